"""What a voice hears: utterances cut out of the other side's audio and decoded.

Fed block by block; it keeps the audio of the utterance in progress, starts one
decode per utterance when it ends, and hands each result over no earlier than
its declared time, in order. In virtual time it waits for a due decode; on the
wall clock a late one comes late and says by how much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import numpy as np

from duplex.local.endpoint import BLOCK, LONGEST, QUIET, Endpointer, Kind
from duplex.local.seams import VOICE_RATE_HZ, Ears, Pcm
from duplex.local.thinking import Thinking

MARGIN = VOICE_RATE_HZ // 5
"""Audio around an utterance that is decoded with it (200 ms)."""
_KEPT_BLOCKS = (LONGEST + QUIET + 2 * MARGIN) // BLOCK + 1
_IDLE_BLOCKS = 2 * MARGIN // BLOCK


@dataclass(slots=True, kw_only=True)
class Theirs:
    """One utterance of the other side, in samples."""

    start: int
    end: int
    overlapped: bool
    """It began while this side was speaking."""
    cut: bool = False
    """This side stopped for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """An utterance with its words; ``late`` is samples past the declared time."""

    theirs: Theirs
    text: str
    late: int


@dataclass(frozen=True, slots=True)
class _Decode:
    theirs: Theirs
    due: int
    task: asyncio.Task[str]


class Hearing:
    """The ears' side of one voice."""

    def __init__(self, ears: Ears, thinking: Thinking) -> None:
        self.ends = Endpointer()
        self.current: Theirs | None = None
        """The utterance in progress."""
        self._ears = ears
        self._thinking = thinking
        self._blocks: deque[Pcm] = deque(maxlen=_KEPT_BLOCKS)
        self._decodes: deque[_Decode] = deque()

    @property
    def busy(self) -> bool:
        """Whether speech is in progress or waits to be understood."""
        return self.current is not None or bool(self._decodes)

    def push(self, block: Pcm, speaking: bool) -> None:
        """Hear the next block (copied); ``speaking`` says whether this side speaks."""
        self._blocks.append(block.copy())
        edge = self.ends.push(block)
        if self.current is None and edge is None:
            while len(self._blocks) > _IDLE_BLOCKS:
                self._blocks.popleft()
        if edge is None:
            return
        if edge.kind is Kind.BEGAN:
            self.current = Theirs(start=edge.start, end=edge.end, overlapped=speaking)
        elif self.current is not None:
            self.current.end = edge.end
            if edge.kind is Kind.ENDED:
                self._decode(self.current)
            self.current = None

    async def due(self, position: int, wait: bool) -> Decoded | None:
        """Return the next utterance due by ``position``; with ``wait``, finish it first."""
        if not self._decodes or self._decodes[0].due > position:
            return None
        decode = self._decodes[0]
        if not (wait or decode.task.done()):
            return None
        text = await decode.task
        self._decodes.popleft()
        late = 0 if wait else max(0, position - decode.due - BLOCK + 1)
        return Decoded(theirs=decode.theirs, text=text, late=late)

    async def close(self) -> None:
        tasks = [decode.task for decode in self._decodes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._decodes.clear()

    def _decode(self, theirs: Theirs) -> None:
        """Start decoding the utterance with a margin on both sides."""
        first = self.ends.position - len(self._blocks) * BLOCK
        audio = np.concatenate(self._blocks)
        start = max(0, theirs.start - MARGIN - first)
        part = audio[start : theirs.end + MARGIN - first]
        task = asyncio.get_running_loop().create_task(self._listen(part), name="decode")
        due = self.ends.position + self._thinking.ears()
        self._decodes.append(_Decode(theirs, due, task))

    async def _listen(self, pcm: Pcm) -> str:
        return (await self._ears.transcribe(pcm)).strip()

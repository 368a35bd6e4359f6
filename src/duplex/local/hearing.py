"""What a voice hears: utterances cut out of the other side's audio and decoded.

Fed block by block; it keeps the audio of the utterance in progress, starts one
decode per utterance when it has probably ended, and hands each result over no
earlier than its declared time, in order. In virtual time it waits for a due
decode; on the wall clock a late one comes late and says by how much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import numpy as np

from duplex.local.endpoint import BLOCK, LONGEST, QUIET, SHORTEST, Endpointer, Kind
from duplex.local.seams import VOICE_RATE_HZ, Ears, Pcm
from duplex.local.thinking import Thinking

MARGIN = VOICE_RATE_HZ // 5
"""Audio around an utterance that is decoded with it (200 ms)."""
EARLY = VOICE_RATE_HZ * 36 // 100
"""Quiet after which the decode is begun (360 ms, longer than a voice's own pauses),
so that on the wall clock most are done when due; resumed speech gives it up."""
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
        self.last_end = 0
        """Where the last whole utterance ended."""
        self._ears = ears
        self._thinking = thinking
        self._blocks: deque[Pcm] = deque(maxlen=_KEPT_BLOCKS)
        self._decodes: deque[_Decode] = deque()
        self._early: tuple[int, asyncio.Task[str]] | None = None

    @property
    def busy(self) -> bool:
        """Whether speech is in progress or waits to be understood."""
        return self.current is not None or bool(self._decodes)

    def push(self, block: Pcm, own_start: int | None, own_end: int) -> None:
        """Hear the next block (copied).

        ``own_start`` is where this side's present speech began, if it speaks;
        ``own_end`` where its last one ended.
        """
        self._blocks.append(block.copy())
        edge = self.ends.push(block)
        if edge is None:
            if self.current is None:
                while len(self._blocks) > _IDLE_BLOCKS:
                    self._blocks.popleft()
            else:
                self._begin_early(self.current)
            return
        if edge.kind is Kind.BEGAN:
            speaking = own_start is not None and own_start <= edge.start
            overlapped = speaking or own_end > edge.start
            self.current = Theirs(start=edge.start, end=edge.end, overlapped=overlapped)
        elif self.current is not None:
            self.current.end = edge.end
            if edge.kind is Kind.ENDED:
                self.last_end = edge.end
                self._decode(self.current)
            self._give_up_early()
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
        if self._early is not None:
            tasks.append(self._early[1])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._decodes.clear()
        self._early = None

    def _begin_early(self, theirs: Theirs) -> None:
        """Begin to decode what may be over; speech since then makes it worthless."""
        end = self.ends.last_active
        if self._early is not None and self._early[0] != end:
            self._give_up_early()
        if self._early is None and self.ends.quiet() >= EARLY and end - theirs.start >= SHORTEST:
            self._early = (end, self._task(theirs.start, end))

    def _give_up_early(self) -> None:
        if self._early is not None:
            self._early[1].cancel()
            self._early = None

    def _decode(self, theirs: Theirs) -> None:
        """Let the words of an ended utterance be due at their declared time."""
        if self._early is not None and self._early[0] == theirs.end:
            task, self._early = self._early[1], None
        else:
            task = self._task(theirs.start, theirs.end)
        due = self.ends.position + self._thinking.ears()
        self._decodes.append(_Decode(theirs, due, task))

    def _task(self, start: int, end: int) -> asyncio.Task[str]:
        """Decode the audio from ``start`` to ``end`` with a margin on both sides."""
        first = self.ends.position - len(self._blocks) * BLOCK
        audio = np.concatenate(self._blocks)
        part = audio[max(0, start - MARGIN - first) : end + MARGIN - first]
        return asyncio.get_running_loop().create_task(self._listen(part), name="decode")

    async def _listen(self, pcm: Pcm) -> str:
        return (await self._ears.transcribe(pcm)).strip()

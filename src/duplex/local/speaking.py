"""A session's timeline: input audio in at real time, the voice's output out.

Input is queued and consumed no faster than real time, in blocks the voice
hears whatever the client's chunking was; every 100 ms of it becomes one output
delta, every 200 ms the transcripts that fell in, every minute the usage. Media
time here is the audio consumed and nothing else. The session drives it through
:meth:`Speaking.hear`, :meth:`play` and :meth:`close`; it sends nothing itself
but hands finished messages to ``emit``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duplex.clock import Clock
from duplex.local.faults import Line
from duplex.local.faults.line import VOICED_LEVEL
from duplex.local.managed_backend import ManagedBackend
from duplex.local.rate_bridge import RateBridge
from duplex.local.seams import VOICE_RATE_HZ, Pcm, Voice, VoiceFrame, Words
from duplex.local.telling import as_info
from duplex.participants.held_queue import HeldQueue
from duplex.protocols.gpt_live_server import ServerSession

BLOCK_MS = 20
DELTA_MS = 100
TEXT_MS = 200
USAGE_MS = 60_000
LEAD_MS = 60
"""How far a client may run ahead before its audio waits; absorbs network jitter."""
CHUNK_MS = 200
"""The longest chunk a client is taken to send in step with real time."""
QUEUE_MS = 60_000
"""Input that may wait; more is refused."""
DRAIN_MS = 8_000
"""How long a closing session may go on speaking."""
QUIET_MS = 300
"""This much silence ends the speech a closing session waits for."""


class Speaking:
    """Everything between a session's input audio and its output events."""

    def __init__(
        self,
        machine: ServerSession,
        voice: Voice,
        clock: Clock,
        line: Line,
        emit: Emit,
        backend: ManagedBackend | None = None,
    ) -> None:
        assert machine.config is not None
        self._backend = backend
        self._machine = machine
        self._voice = voice
        self._clock = clock
        self._line = line
        self._emit = emit
        self._rate = machine.config.audio.rate_hz
        other = self._rate != VOICE_RATE_HZ
        self._inward = RateBridge(self._rate, VOICE_RATE_HZ) if other else None
        self._outward = RateBridge(VOICE_RATE_HZ, self._rate) if other else None
        self._input: HeldQueue[Pcm | None] = HeldQueue(clock, QUEUE_MS)
        self._queued = 0
        self._consumed = 0
        self._anchor = clock.position
        self._deadline: int | None = None
        self._block = np.zeros(0, np.int16)
        self._delta = np.zeros(0, np.int16)
        self._fixture: Pcm | None = None
        self._texts: list[tuple[bool, Words]] = []
        self._last_text: dict[bool, str] = {}
        self._quiet_ms = QUIET_MS
        self._now_ms = 0

    # -- what the session asks for ------------------------------------------

    def hear(self, pcm: Pcm) -> bool:
        """Queue input at the session's rate; False when too much waits already."""
        if self._queued + len(pcm) > QUEUE_MS * self._rate // 1000:
            return False
        if not self._queued and not self._consumed:
            # Media time begins where the first chunk began: it was spoken before it came.
            chunk = min(len(pcm), CHUNK_MS * self._rate // 1000)
            self._anchor = self._clock.position - self._ticks(chunk)
        self._queued += len(pcm)
        return self._input.put(pcm)

    def play(self, pcm: Pcm) -> None:
        """Play a fixture (24 kHz) in place of the voice."""
        self._fixture = pcm

    def close(self) -> None:
        """Let what is queued and being said come to its end, within the drain time."""
        if self._deadline is None:
            self._deadline = self._clock.position + self._ticks(DRAIN_MS * self._rate // 1000)
            self._input.put(None)

    @property
    def seconds(self) -> int:
        """Billable whole seconds so far, a begun one counted."""
        return -(-self._now_ms // 1000)

    async def run(self) -> None:
        """Speak until closed; leaves no message unsent."""
        while (pcm := await self._input.get()) is not None:
            await self._take(pcm)
        await self._drain()
        self._flush_texts()
        if len(self._delta):
            self._emit(self._machine.say_audio(self._delta))

    def release(self) -> None:
        """Give back the input queue's hold on the clock, once :meth:`run` is over."""
        self._input.close()

    # -- the timeline -------------------------------------------------------

    async def _take(self, pcm: Pcm) -> None:
        """Consume one client chunk in pieces, each when it is due."""
        step = self._rate * DELTA_MS // 1000
        for start in range(0, len(pcm), step):
            piece = pcm[start : start + step]
            self._queued -= len(piece)
            await self._due(len(piece))
            if not self._too_late():
                await self._consume(piece)

    async def _due(self, samples: int) -> None:
        """Wait until ``samples`` more may be consumed at real time."""
        if self._deadline is not None and self._clock.virtual:
            return  # the loop is past its last tick: media time stands still
        lead = self._ticks(LEAD_MS * self._rate // 1000)
        await self._clock.until(self._anchor + self._ticks(self._consumed + samples) - lead)

    def _too_late(self) -> bool:
        return self._deadline is not None and self._clock.position > self._deadline

    async def _consume(self, pcm: Pcm) -> None:
        """Give the voice whole blocks and keep the rest for the next piece."""
        self._consumed += len(pcm)
        size = self._rate * BLOCK_MS // 1000
        waiting = np.concatenate((self._block, pcm)) if len(self._block) else pcm
        whole = len(waiting) - len(waiting) % size
        for start in range(0, whole, size):
            await self._step(waiting[start : start + size])
        self._block = waiting[whole:]

    async def _step(self, pcm: Pcm) -> None:
        heard = self._inward.convert(pcm) if self._inward else pcm
        frame = await self._voice.frame(heard)
        assert len(frame.pcm) == len(heard), "a voice says as many samples as it hears"
        self._now_ms += BLOCK_MS
        self._machine.now_ms = self._now_ms
        self._tell(frame)
        self._speak(frame.pcm)
        if self._now_ms % TEXT_MS == 0:
            self._flush_texts()
        if self._now_ms % USAGE_MS == 0:
            self._emit(self._machine.say_usage(self.seconds))

    def _tell(self, frame: VoiceFrame) -> None:
        self._texts += [(False, words) for words in frame.heard]
        if self._fixture is None:
            self._texts += [(True, words) for words in frame.said]
        if frame.delegations:
            # The client works from transcripts: what a delegation rests on goes out first.
            self._flush_texts()
        for offset in frame.delegations:
            if self._backend is not None:
                self._backend.delegated(offset)
            else:
                self._emit(self._machine.say_delegation(offset))
        for note in frame.notes:
            self._emit(self._machine.say_info(*as_info(note)))

    def _speak(self, pcm: Pcm) -> None:
        """Append one block to the output; send a delta when it is full."""
        played = False
        if self._fixture is not None:
            piece, self._fixture = self._fixture[: len(pcm)], self._fixture[len(pcm) :]
            pcm = np.concatenate((piece, np.zeros(len(pcm) - len(piece), np.int16)))
            played = len(self._fixture) == 0
        voiced = bool(pcm.any())
        self._quiet_ms = 0 if voiced else self._quiet_ms + BLOCK_MS
        heard = voiced and int(np.abs(pcm.astype(np.int32)).max()) > VOICED_LEVEL
        self._line.voiced_ms += BLOCK_MS if heard else 0
        out = self._outward.convert(pcm) if self._outward else pcm
        self._delta = np.concatenate((self._delta, out))
        if self._now_ms % DELTA_MS == 0:
            self._emit(self._machine.say_audio(self._delta))
            self._delta = np.zeros(0, np.int16)
        if played:
            self._fixture = None
            self._emit(self._machine.say_fixture_played())

    def _flush_texts(self) -> None:
        """Send the transcripts that fell in, on the session's 200 ms grid."""
        for said, words in self._texts:
            start = words.start_ms // TEXT_MS * TEXT_MS
            end = max(start + TEXT_MS, -(-words.end_ms // TEXT_MS) * TEXT_MS)
            text = _spaced(self._last_text.get(said, ""), words.text)
            self._last_text[said] = text or self._last_text.get(said, "")
            if self._backend is not None:
                self._backend.heard(said=said, text=text, start_ms=start)
            self._emit(
                self._machine.say_transcript(said=said, text=text, start_ms=start, end_ms=end)
            )
        self._texts.clear()

    async def _drain(self) -> None:
        """Go on in silence until what is being said has ended, or time is up."""
        size = self._rate * BLOCK_MS // 1000
        limit_ms = self._now_ms + DRAIN_MS
        while self._quiet_ms < QUIET_MS and self._now_ms < limit_ms and not self._too_late():
            await self._due(size)
            await self._consume(np.zeros(size, np.int16))

    def _ticks(self, samples: int) -> int:
        """Convert samples at the session's rate to the clock's."""
        return samples * self._clock.rate_hz // self._rate


Emit = Callable[[str], None]


def _spaced(before: str, text: str) -> str:
    """Give a piece its leading space when neither neighbour brings one."""
    joined = not before or before[-1].isspace() or not text or not text[0].isalnum()
    return text if joined else f" {text}"

"""The microphone's side: blocks wait in a bounded queue until the call takes them.

:meth:`take` runs in the card's thread and only appends; :meth:`drain` runs in the call's.
Audio that finds no room is dropped and counted, and so is what the card says it lost.
It resamples nothing and never blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duplex.card.device import Pcm
from duplex.card.stream_clock import StreamClock

LIMIT_MS = 2_000
"""Audio that may wait: more, and the call does not keep up."""


@dataclass(frozen=True, slots=True)
class Block:
    """Mono samples at the card's rate; ``end`` counts the stream's frames up to its end."""

    pcm: Pcm
    at: float
    end: int


class Capture:
    """What a microphone gave and nobody took yet; ``now`` is in seconds."""

    def __init__(self, rate_hz: int, now: Callable[[], float], limit_ms: int = LIMIT_MS) -> None:
        self.rate_hz = rate_hz
        self.clock = StreamClock(rate_hz)
        self.overruns = 0
        """How often the card said that it lost audio before we came for it."""
        self.dropped = 0
        """Frames that found no room here."""
        self.frames = 0
        self._now = now
        self._limit = limit_ms * rate_hz // 1000
        self._blocks: deque[Block] = deque()
        self._in = 0
        self._out = 0
        self.last_at = now()

    def take(self, block: Pcm, lost: bool) -> None:
        """Queue what came: int16, (frames, channels); several channels become their mean."""
        at = self.last_at = self._now()
        mono = block[:, 0] if block.shape[1] == 1 else block.astype(np.int32).mean(axis=1)
        pcm = np.ascontiguousarray(np.rint(mono).astype(np.int16))
        self.overruns += lost
        self.frames += len(pcm)
        self.clock.add(self.frames, at)
        if self._in - self._out + len(pcm) > self._limit:
            self.dropped += len(pcm)
            return
        self._in += len(pcm)
        self._blocks.append(Block(pcm, at, self.frames))

    def drain(self) -> list[Block]:
        """Take everything that waits, oldest first."""
        found = []
        while self._blocks:
            found.append(self._blocks.popleft())
            self._out += len(found[-1].pcm)
        return found

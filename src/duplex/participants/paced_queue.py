"""Audio that comes much faster than it is heard, and the pace at which it leaves.

A peer that makes speech faster than real time is queued here, stretch by stretch
(a reply, an item, a message), and handed over sample by sample as the call asks
for it. What was handed over was heard, so how much of a stretch was heard is a
count and never an estimate. It reads no clock; a participant drives it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from duplex.participants.base import Pcm, Spoken

LIMIT_SECONDS = 600
"""Audio that may wait; more is refused."""
PIECES = 50_000
"""So is audio in more pieces than these: a message of one sample costs as much as one of many."""


@dataclass(slots=True, kw_only=True)
class Stretch:
    """One run of audio that belongs together: counts in samples.

    ``start`` is how much of everything had been handed over before its first
    sample; None while none of it has.
    """

    key: str
    received: int = 0
    handed: int = 0
    start: int | None = None

    @property
    def waiting(self) -> int:
        return self.received - self.handed


@dataclass(slots=True, kw_only=True)
class _Piece:
    stretch: Stretch
    pcm: Pcm
    arrived_at: int | None


class PacedQueue:
    """First in, first out; nothing leaves unasked."""

    def __init__(self, rate_hz: int, limit_seconds: int = LIMIT_SECONDS) -> None:
        self.handed = 0
        """Samples handed over so far."""
        self.waiting = 0
        """Samples that wait."""
        self._limit = limit_seconds * rate_hz
        self._pieces: deque[_Piece] = deque()
        self._dry = True

    def add(self, stretch: Stretch, pcm: Pcm, arrived_at: int | None) -> int:
        """Queue audio that came at ``arrived_at`` of the clock; return what found room."""
        room = self._limit - self.waiting if len(self._pieces) < PIECES else 0
        pcm = pcm[: max(0, room)]
        if len(pcm):
            self._pieces.append(_Piece(stretch=stretch, pcm=pcm, arrived_at=arrived_at))
            stretch.received += len(pcm)
            self.waiting += len(pcm)
        return len(pcm)

    def take(self, samples: int) -> Spoken | None:
        """Hand over up to ``samples`` in one piece; None when nothing waits.

        Only audio that found the queue empty says when it arrived: what waited
        behind other audio was never late.
        """
        parts: list[Pcm] = []
        arrived_at = self._pieces[0].arrived_at if self._dry and self._pieces else None
        left = samples
        while left and self._pieces:
            piece = self._pieces[0]
            part, piece.pcm = piece.pcm[:left], piece.pcm[left:]
            self._count(piece.stretch, len(part))
            parts.append(part)
            left -= len(part)
            if not len(piece.pcm):
                self._pieces.popleft()
        self._dry = left > 0
        if not parts:
            return None
        pcm = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Spoken(pcm=pcm, arrived_at=arrived_at)

    def flush(self) -> int:
        """Forget all that waits; return the samples."""
        dropped, self.waiting = self.waiting, 0
        self._pieces.clear()
        return dropped

    def _count(self, stretch: Stretch, samples: int) -> None:
        if stretch.start is None:
            stretch.start = self.handed
        stretch.handed += samples
        self.handed += samples
        self.waiting -= samples

"""What an agent said and the other side has not heard yet: a queue played at the call's pace.

Audio comes much faster than real time or at its pace, in pieces of any size, and
leaves tick by tick. A *spurt* is audio without a gap: it begins once enough has
come to play on (its hold), and is over when there is nothing more. Each has a
resampler of its own, so nothing of it stays inside. Everything is counted: what
came, what was played, what a clear threw away. It reads no clock and never
waits; a participant drives it, all from one task at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from duplex.participants.audible import is_audible
from duplex.participants.base import Pcm, Spoken
from duplex.participants.steady import most_held
from duplex.resample import Resampler

HOLD_MS = 60
"""How much must have come before a spurt begins, so that an agent that sends at real-time
pace may be this late; the resampler's own delay comes on top."""
LIMIT_SECONDS = 300
"""More waiting audio than this is dropped."""
PIECES = 20_000
"""So is audio in more pieces than these: a message of one sample costs as much as one of many."""
MARKS = 10_000
"""Marks that may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A clear that met audio: of the spurt so far, in ms and in samples at the session rate."""

    heard_ms: float
    received_ms: float
    discarded: int


@dataclass(slots=True)
class _Spurt:
    """Audio without a gap. ``base``: samples that had been received before it (wire rate)."""

    base: int
    arrived_at: int
    taken_at: int
    stream: Resampler
    received: int = 0
    given: int = 0
    playing: bool = False
    audible: bool = False


class Spurts:
    """Plays one agent's audio; ``wire_hz`` is its rate, ``rate_hz`` the session's."""

    def __init__(self, wire_hz: int, rate_hz: int, *, hold_ms: int = HOLD_MS) -> None:
        self._wire_hz = wire_hz
        self._rate_hz = rate_hz
        lag = most_held(wire_hz, rate_hz)
        self._hold_wire = hold_ms * wire_hz // 1000 + -(-lag * wire_hz // rate_hz)
        self._hold = hold_ms * rate_hz // 1000 + lag
        self._limit = LIMIT_SECONDS * wire_hz
        self._waiting: deque[tuple[Pcm, int]] = deque()
        self._waiting_samples = 0
        self._ready: Pcm = np.zeros(0, np.int16)
        self._received = 0
        self._spurt: _Spurt | None = None
        self._marks: deque[tuple[int, str]] = deque()

    def put(self, pcm: Pcm, arrived_at: int, taken_at: int) -> int:
        """Queue ``pcm`` (wire rate); return how many samples there was no room for.

        ``arrived_at`` is the clock's position, ``taken_at`` the engine's: from there
        on it could be played.
        """
        full = len(self._waiting) >= PIECES
        room = 0 if full else max(0, self._limit - self._waiting_samples)
        kept = pcm[:room]
        if len(kept):
            if self._spurt is None:
                self._spurt = _Spurt(
                    base=self._received,
                    arrived_at=arrived_at,
                    taken_at=taken_at,
                    stream=Resampler(self._wire_hz, self._rate_hz),
                )
            self._spurt.received += len(kept)
            self._received += len(kept)
            self._waiting.append((kept, arrived_at))
            self._waiting_samples += len(kept)
        return len(pcm) - len(kept)

    def mark(self, name: str) -> bool:
        """Remember ``name`` until everything before it was played; False: too many wait."""
        if len(self._marks) >= MARKS:
            return False
        self._marks.append((self._received, name))
        return True

    def clear(self) -> tuple[Cut | None, list[str]]:
        """Forget what was not played; return what was cut and every mark that waited."""
        names = [name for _, name in self._marks]
        self._marks.clear()
        spurt, self._spurt = self._spurt, None
        self._waiting.clear()
        self._waiting_samples = 0
        self._ready = self._ready[:0]
        if spurt is None:
            return None, names
        received = spurt.received * self._rate_hz // self._wire_hz
        cut = Cut(
            heard_ms=round(spurt.given * 1000 / self._rate_hz, 3),
            received_ms=round(spurt.received * 1000 / self._wire_hz, 3),
            discarded=max(0, received - spurt.given),
        )
        return cut, names

    def pull(self, samples: int, position: int) -> list[Spoken]:
        """Return what is played in the ``samples`` from ``position``: at most that much.

        What is given out counts as played from then on.
        """
        spurt = self._spurt
        if spurt is None or not self._begins(spurt, position):
            return []
        first = spurt.given == 0
        arrived_at = self._waiting[0][1] if self._waiting else spurt.arrived_at
        self._fill(spurt, samples)
        pcm, self._ready = self._ready[:samples], self._ready[samples:]
        spurt.given += len(pcm)
        if self._spurt_is_over():
            self._spurt = None
        if not len(pcm):
            return []
        # Until the first sound, a piece tells when it came; later ones only wait their turn.
        told = spurt.arrived_at if first else None if spurt.audible else arrived_at
        spurt.audible = spurt.audible or is_audible(pcm)
        return [Spoken(pcm=pcm, arrived_at=told, taken_at=spurt.taken_at if first else None)]

    def marks(self) -> list[str]:
        """Return the marks whose audio has been given out since the last call."""
        spurt = self._spurt
        played = self._received
        if spurt is not None:
            played = spurt.base + spurt.given * self._wire_hz // self._rate_hz
        names = []
        while self._marks and self._marks[0][0] <= played:
            names.append(self._marks.popleft()[1])
        return names

    def _begins(self, spurt: _Spurt, position: int) -> bool:
        enough = spurt.received >= self._hold_wire
        spurt.playing = spurt.playing or enough or position - spurt.taken_at >= self._hold
        return spurt.playing

    def _fill(self, spurt: _Spurt, samples: int) -> None:
        """Resample until ``samples`` are ready; the spurt ends where there is nothing more."""
        parts = [self._ready]
        ready = len(self._ready)
        while ready < samples and self._waiting:
            if spurt.stream.finished:
                spurt.stream = Resampler(self._wire_hz, self._rate_hz)
            pcm, _ = self._waiting.popleft()
            self._waiting_samples -= len(pcm)
            parts.append(spurt.stream.push(pcm))
            ready += len(parts[-1])
        if ready < samples and not spurt.stream.finished:
            parts.append(spurt.stream.finish())
        self._ready = np.concatenate(parts) if len(parts) > 1 else self._ready

    def _spurt_is_over(self) -> bool:
        assert self._spurt is not None
        return self._spurt.stream.finished and not self._waiting and not len(self._ready)

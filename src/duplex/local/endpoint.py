"""Endpointing: where the other side's utterances begin and end.

An adaptive energy detector on 10 ms frames of 24 kHz audio: integer energies
against a noise floor that follows the quietest frames of the last two seconds,
and, where the line is never quiet, against what it carries most of the time: voices
in the background rise and fall, and would hold a turn for ever.
It is pure and driven block by block; it never sees words and never waits.
Positions are samples of the session. This is how a voice hears turns; what a
recording contains is measured elsewhere.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

import numpy as np

from duplex.local.seams import VOICE_RATE_HZ, Pcm

BLOCK = VOICE_RATE_HZ // 50
"""Samples given to :meth:`Endpointer.push` at a time (20 ms)."""
FRAME = BLOCK // 2
QUIET = VOICE_RATE_HZ // 2
"""Quiet that ends an utterance (500 ms)."""
SHORTEST = VOICE_RATE_HZ * 120 // 1000
"""Less voice than this is no utterance."""
LONGEST = VOICE_RATE_HZ * 28
"""An utterance is ended here at the latest; the ears take no more."""
BURST_GAP = VOICE_RATE_HZ * 3 // 10
"""Quiet after which resumed speech counts as a new burst of the same utterance."""

_LOUD = 110 * 110
"""Mean square below which nothing counts as speech, however quiet the line (-49 dBFS)."""
_ON, _OFF = 4.0, 2.5
"""Times the floor that begins (6 dB) and sustains (4 dB) speech; the quietest of
200 frames of steady noise lies 1 dB under its mean."""
_START_FRAMES = 3
_SUSTAIN_FRAMES = 2
_BACK_FRAMES = 10
_FLOOR_FRAMES = 25
_FLOOR_WINDOWS = 8
_LOST_FRAMES = 12
_GROUND_ON, _GROUND_OFF = 8.0, 6.0
"""Times the ground that begins (9 dB) and sustains (8 dB) speech over voices behind it."""
_GROUND_FRAMES = 2_000
"""Frames over which the ground is taken (20 s); a turn holds more than half of them rarely."""
_GROUND_SHARE, _NEAR_SHARE = 0.4, 0.96
"""Share of the frames that lie below the ground, and below what is surely near."""
_GROUND_LEAST = 500
_GROUND_EVERY = 25


class Kind(Enum):
    BEGAN = "began"
    ENDED = "ended"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An utterance began, ended, or turned out too short to be one."""

    kind: Kind
    start: int
    end: int


class Endpointer:
    """Follows one side; the attributes are valid after every :meth:`push`."""

    def __init__(self) -> None:
        self.position = 0
        self.speaking = False
        self.start = 0
        """First sample of the utterance in progress, or of the last one."""
        self.last_active = 0
        """End of the last frame that held voice."""
        self.burst = 0
        """Where the present unbroken stretch of the utterance began."""
        self._floor = _Floor()
        self._ground = _Ground()
        self._recent: deque[float] = deque(maxlen=_BACK_FRAMES + _START_FRAMES)
        self._run = 0
        self._began = False
        self._free_from = 0

    def push(self, block: Pcm) -> Edge | None:
        """Take the next 20 ms (int16); return the edge it revealed, if any."""
        assert len(block) == BLOCK, len(block)
        frames = block.reshape(2, FRAME).astype(np.int64)
        sums = frames.sum(axis=1)
        squares = (frames * frames).sum(axis=1)
        # Variance, not power: a line's constant offset is no sound.
        for total, square in zip(sums.tolist(), squares.tolist(), strict=True):
            self._frame((square - total * total / FRAME) / FRAME)
        return self._edge()

    def quiet(self) -> int:
        """Samples since the last voice."""
        return self.position - self.last_active

    def _frame(self, energy: float) -> None:
        floor = self._floor.push(energy)
        ground = self._ground.push(energy, floor)
        self.position += FRAME
        self._recent.append(energy)
        sustains = max(_LOUD / 2, floor * _OFF, ground * _GROUND_OFF)
        begins = max(_LOUD, floor * _ON, ground * _GROUND_ON)
        threshold = sustains if self.speaking else begins
        self._run = self._run + 1 if energy >= threshold else 0
        if self.speaking:
            if self._run >= _SUSTAIN_FRAMES:
                first = self.position - self._run * FRAME
                if first - self.last_active >= BURST_GAP:
                    self.burst = first
                self.last_active = self.position
        elif self._run >= _START_FRAMES:
            self.speaking = True
            self.start = self.burst = self._back_dated(sustains)
            self.last_active = self.position
            self._began = True

    def _back_dated(self, threshold: float) -> int:
        """Return where the voice that has just been found really began."""
        frames = 0
        for energy in reversed(self._recent):
            if energy < threshold:
                break
            frames += 1
        return max(self.position - frames * FRAME, self._free_from)

    def _edge(self) -> Edge | None:
        if self._began:
            self._began = False
            return Edge(kind=Kind.BEGAN, start=self.start, end=self.position)
        if not self.speaking:
            return None
        if self.quiet() < QUIET and self.position - self.start < LONGEST:
            return None
        self.speaking = False
        self._run = 0
        self._free_from = self.last_active
        long_enough = self.last_active - self.start >= SHORTEST
        kind = Kind.ENDED if long_enough else Kind.DROPPED
        return Edge(kind=kind, start=self.start, end=self.last_active)


class _Floor:
    """The noise floor: the quietest frame of the last two seconds.

    A short run of digital silence is a lost packet and says nothing about the
    line's noise; a longer one is how quiet the line is.
    """

    def __init__(self) -> None:
        self._windows: deque[float] = deque(maxlen=_FLOOR_WINDOWS)
        self._least = 0.0
        self._count = 0
        self._zeros = _LOST_FRAMES
        self._last = (0.0, 0.0)

    def push(self, energy: float) -> float:
        """Take the next frame's energy; return the floor."""
        self._zeros = self._zeros + 1 if energy <= 0 else 0
        before, frame = self._last
        self._last = (frame, energy)
        # Judged one frame late: the frames beside a lost packet may be partly lost.
        if min(before, frame, energy) <= 0 and self._zeros < _LOST_FRAMES:
            return self._least
        if self._count % _FLOOR_FRAMES == 0:
            self._windows.append(frame)
        else:
            self._windows[-1] = min(self._windows[-1], frame)
        self._count += 1
        self._least = min(self._windows)
        return self._least


class _Ground:
    """What an unsteady line carries most of the time; nothing (0) on any other line.

    A line's steady noise lies close to its floor and needs no second measure. Where
    the usual level would itself sustain speech over the floor, somebody talks in the
    background, and only what stands out from that is near.
    """

    def __init__(self) -> None:
        self._energies = np.zeros(_GROUND_FRAMES)
        self._count = 0
        self._usual = 0.0

    def push(self, energy: float, floor: float) -> float:
        """Take the next frame's energy; return the level speech has to stand out from."""
        self._energies[self._count % _GROUND_FRAMES] = energy
        self._count += 1
        if self._count >= _GROUND_LEAST and self._count % _GROUND_EVERY == 0:
            known = self._energies[: min(self._count, _GROUND_FRAMES)]
            low, high = int(len(known) * _GROUND_SHARE), int(len(known) * _NEAR_SHARE)
            parted = np.partition(known, (low, high))
            usual, near = float(parted[low]), float(parted[high])
            # Where nothing stands out from the usual, the usual may be who speaks.
            self._usual = usual if near > usual * _GROUND_ON else 0.0
        return self._usual if self._usual > floor * _OFF else 0.0

"""What planted sides say: turns of a wanted length whose first and last sample are known.

Turns come from clips of speech, whole or shortened, or are made with edges as sharp as
sound can have. Every one has unit active level, so whoever places it sets its level by one
factor and no edge moves. It draws from the generator it is given and from nothing else;
``plan`` drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from duplex.calibration.clips import RATE_HZ, Clip, Floats, active_rms, trimmed

LEAST_S = 0.2
"""No short turn is shorter: below 150 ms of voice nothing is called a turn."""
PERIOD = 4096
"""Points of one period of the sharp voice."""
GAP_S = (0.04, 0.14)
"""Pauses between the phrases of one turn: shorter than any detector's end of speech."""


def nothing() -> Floats:
    """No samples at all."""
    return np.zeros(0, np.float32)


class Stimuli(StrEnum):
    """What the turns of a row are made of."""

    SHARP = "sharp"
    SPEECH = "speech"
    UNCUT = "uncut"
    SHORT = "short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A turn at unit active level; ``head`` and ``tail`` lie outside of what is true."""

    samples: Floats
    head: Floats = field(default_factory=nothing)
    tail: Floats = field(default_factory=nothing)

    def until(self, n: int) -> Said:
        """The turn broken off after ``n`` samples; it ends where it was last loud."""
        level = 10 ** (-20 / 20)
        kept = trimmed(self.samples[:n] * level) / np.float32(level)
        return Said(samples=kept, head=self.head)


class Talker(Protocol):
    """A voice that says turns."""

    def turn(self, seconds: float, rng: np.random.Generator) -> Said:
        """A turn of about ``seconds``, never of less than half of that."""


class ClipTalker:
    """Speaks in phrases of one speaker, joined until the turn is long enough."""

    def __init__(self, clips: Sequence[Clip], *, uncut: bool = False) -> None:
        self._clips = clips
        self._uncut = uncut

    def turn(self, seconds: float, rng: np.random.Generator) -> Said:
        parts: list[Floats] = []
        length = 0
        head = tail = nothing()
        while not parts or (length < seconds * RATE_HZ and not self._uncut):
            if parts:
                parts.append(np.zeros(int(rng.uniform(*GAP_S) * RATE_HZ), np.float32))
            clip = self._clips[int(rng.integers(len(self._clips)))]
            unit = np.float32(1 / active_rms(clip.samples))
            if self._uncut:
                head, tail = clip.head * unit, clip.tail * unit
            parts.append(clip.samples * unit)
            length += len(parts[-1]) + (len(parts[-2]) if len(parts) > 1 else 0)
        return Said(samples=np.concatenate(parts), head=head, tail=tail)


class ShortTalker:
    """Breaks phrases off after exactly as long as was wanted: 'yes', 'no', 'stop'."""

    def __init__(self, whole: Talker) -> None:
        self._whole = whole

    def turn(self, seconds: float, rng: np.random.Generator) -> Said:
        wanted = int(seconds * RATE_HZ)
        while True:
            said = self._whole.turn(seconds, rng).until(wanted)
            if len(said.samples) >= max(wanted * 0.9, LEAST_S * RATE_HZ):
                return said


class SharpTalker:
    """A voice-like buzz in syllables, never steady, that begins and ends within a sample."""

    def turn(self, seconds: float, rng: np.random.Generator) -> Said:
        n = int(seconds * rng.uniform(0.9, 1.1) * RATE_HZ)
        made = (_buzz(n, rng) * _syllables(n, rng)).astype(np.float32)
        return Said(samples=made / np.float32(active_rms(made)))


def _buzz(n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Harmonics of a wandering pitch that fall by 6 dB an octave, and breath above 1 kHz."""
    knots = max(2, 4 * n // RATE_HZ)
    pitch = np.interp(np.linspace(0, knots - 1, n), np.arange(knots), rng.uniform(100, 220, knots))
    turn = 2 * np.pi * np.arange(PERIOD) / PERIOD
    period = np.zeros(PERIOD)
    for k in range(1, 17):
        period += np.cos(k * turn + rng.uniform(0, 2 * np.pi)) / k
    wave = period[(np.cumsum(pitch) * (PERIOD / RATE_HZ)).astype(np.int64) % PERIOD]
    breath = np.diff(rng.standard_normal(n + 1))
    return wave + 0.2 * breath


def _syllables(n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """An envelope of 4 to 6 syllables a second, loud at both ends."""
    count = max(1, round(n / RATE_HZ * rng.uniform(4, 6)))
    steps = np.empty(2 * count + 1)
    steps[0::2] = rng.uniform(0.5, 1.0, count + 1)
    steps[1::2] = rng.uniform(0.05, 0.3, count)
    return np.interp(np.linspace(0, 2 * count, n), np.arange(2 * count + 1), steps)


def cough(rng: np.random.Generator) -> Floats:
    """A burst of noise that dies away in 150 to 350 ms, at unit active level."""
    n = int(rng.uniform(0.15, 0.35) * RATE_HZ)
    wave = rng.standard_normal(n) * np.exp(-3 * np.arange(n) / n)
    made = wave.astype(np.float32)
    return made / np.float32(active_rms(made))

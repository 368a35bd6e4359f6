"""What sounds are made of: chance, filters, struck things, rooms, levels.

Everything is float64 at ``RATE_HZ`` and, where it is a bed, a loop: filters hear its
end before its beginning. Coefficients and gains are rounded to 2⁻²⁴, all else is
exact arithmetic in a fixed order, so every machine renders the same samples. The
scenes and clips of this package drive it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from duplex import _synth

Floats = npt.NDArray[np.float64]
Pcm = npt.NDArray[np.int16]
_T = TypeVar("_T")
Section = tuple[float, float, float, float, float]

RATE_HZ = 24_000
LOOP_S = 32
LOOP = RATE_HZ * LOOP_S
HOP = 120
"""Samples between two values of a track, 5 ms."""
HOPS = LOOP // HOP
_WARM = RATE_HZ
_SINE = 4_096


def fixed(value: float) -> float:
    """A coefficient or gain as every machine has it: rounded to 2⁻²⁴."""
    return round(value * 16_777_216) / 16_777_216


def ratio(level_db: float) -> float:
    """The amplitude ratio of a level difference."""
    return fixed(10 ** (level_db / 20))


class Draw:
    """Seeded chance; the same draws on every machine and Python."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)

    def between(self, low: float, high: float) -> float:
        """Uniform in [low, high)."""
        return low + (high - low) * self._source.random()

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int((high - low + 1) * self._source.random())

    def one(self, options: Sequence[_T]) -> _T:
        """One of the options."""
        return options[self.whole(0, len(options) - 1)]

    def chance(self, share: float) -> bool:
        """True for ``share`` of all draws."""
        return self._source.random() < share

    def seed(self) -> int:
        """A seed for something else."""
        return self.whole(0, 2**53 - 1)


# -- sources -------------------------------------------------------------------


def hiss(seed: int, samples: int = LOOP) -> Floats:
    """White noise of variance 1."""
    return _synth.noise(seed, samples)


@cache
def _sine() -> Floats:
    turn = 2 * math.pi / _SINE
    return np.array([fixed(math.sin(turn * step)) for step in range(_SINE)])


def tone(hz: Floats, levels: Sequence[float], *, closed: bool = False) -> Floats:
    """Harmonics of a pitch given per sample; ``closed`` makes it meet its own start."""
    phase = _synth.phases(np.ascontiguousarray(hz, dtype=np.float64), float(RATE_HZ), closed)
    return _synth.tones(phase, np.array([fixed(one) for one in levels]), _sine())


def struck(partials: Sequence[tuple[float, float, float]], seconds: float) -> Floats:
    """Something hit once: partials of (Hz, seconds to decay by 60 dB, level)."""
    samples = int(seconds * RATE_HZ)
    total = np.zeros(samples)
    knock = np.zeros(samples)
    knock[0] = 1.0
    for hz, rt60, level in partials:
        if hz >= 0.48 * RATE_HZ:
            continue
        keep = math.exp(-6.9078 / (rt60 * RATE_HZ))
        turn = 2 * math.pi * hz / RATE_HZ
        ring = (fixed(math.sin(turn) * level), 0.0, 0.0)
        total += filtered(knock, [(*ring, fixed(-2 * keep * math.cos(turn)), fixed(keep * keep))])
    return total


# -- filters -------------------------------------------------------------------


def filtered(x: Floats, sections: Sequence[Section], *, loop: bool = False) -> Floats:
    """Filter by second-order sections; a loop is heard as if it had always run."""
    table = np.array([[fixed(one) for one in section] for section in sections])
    warm = min(len(x), _WARM) if loop else 0
    return _synth.biquads(np.ascontiguousarray(x), table, warm)


def lowpass(hz: float, q: float = 0.7071, rate_hz: int = RATE_HZ) -> Section:
    """A second-order low-pass (Audio EQ Cookbook, R. Bristow-Johnson)."""
    cosine, alpha = _at(hz, q, rate_hz)
    edge = (1 - cosine) / 2
    return _normal(edge, 1 - cosine, edge, alpha, cosine)


def highpass(hz: float, q: float = 0.7071, rate_hz: int = RATE_HZ) -> Section:
    """A second-order high-pass (same source)."""
    cosine, alpha = _at(hz, q, rate_hz)
    edge = (1 + cosine) / 2
    return _normal(edge, -(1 + cosine), edge, alpha, cosine)


def bandpass(hz: float, q: float) -> Section:
    """A second-order band-pass, 0 dB at its centre (same source)."""
    cosine, alpha = _at(hz, q, RATE_HZ)
    return _normal(alpha, 0.0, -alpha, alpha, cosine)


def peak(hz: float, q: float, level_db: float) -> Section:
    """A bell of ``level_db`` around ``hz`` (same source)."""
    cosine, alpha = _at(hz, q, RATE_HZ)
    root = 10 ** (level_db / 40)
    top, low = 1 + alpha * root, 1 + alpha / root
    return (
        top / low,
        -2 * cosine / low,
        (1 - alpha * root) / low,
        -2 * cosine / low,
        (1 - alpha / root) / low,
    )


def _at(hz: float, q: float, rate_hz: int) -> tuple[float, float]:
    turn = 2 * math.pi * min(hz, 0.49 * rate_hz) / rate_hz
    return math.cos(turn), math.sin(turn) / (2 * q)


def _normal(b0: float, b1: float, b2: float, alpha: float, cosine: float) -> Section:
    whole = 1 + alpha
    return b0 / whole, b1 / whole, b2 / whole, -2 * cosine / whole, (1 - alpha) / whole


def pink_sections(rate_hz: int) -> list[Section]:
    """Falls 3 dB an octave from 15 Hz: poles two octaves apart, zeros between them."""
    sections: list[Section] = [highpass(15, rate_hz=rate_hz)]
    hz = 10.0
    while hz < rate_hz / 2:
        pole = math.exp(-2 * math.pi * hz / rate_hz)
        zero = math.exp(-2 * math.pi * 2 * hz / rate_hz)
        sections.append((1.0, -zero, 0.0, -pole, 0.0))
        hz *= 4
    return sections


def brown_sections(rate_hz: int) -> list[Section]:
    """Falls 6 dB an octave from 20 Hz."""
    pole = math.exp(-2 * math.pi * 10 / rate_hz)
    return [highpass(20, rate_hz=rate_hz), (1.0, 0.0, 0.0, -pole, 0.0)]


def pink(seed: int) -> Floats:
    """A loop of pink noise."""
    return filtered(hiss(seed), pink_sections(RATE_HZ), loop=True)


# -- rooms ---------------------------------------------------------------------

_COMBS_MS = (29.7, 37.1, 41.1, 43.7)
_ALLPASSES_MS = (5.0, 1.7)


def room(x: Floats, rt60_s: float, *, wet_db: float, damping: float = 0.3) -> Floats:
    """A loop in a room: the late part ``wet_db`` against the direct sound.

    Four combs and two all-passes (M. R. Schroeder, 1962), with a one-pole loss.
    """
    combs = np.array([int(one * RATE_HZ / 1000) for one in _COMBS_MS], np.int64)
    keeps = [fixed(10 ** (-3 * int(delay) / (rt60_s * RATE_HZ))) for delay in combs]
    passes = np.array([int(one * RATE_HZ / 1000) for one in _ALLPASSES_MS], np.int64)
    warm = min(len(x), int(RATE_HZ * max(1.0, rt60_s)))
    late = _synth.reverb(
        np.ascontiguousarray(x), combs, np.array(keeps), passes, fixed(damping), warm
    )
    return x + levelled(late, 0.0) * (rms(x) * ratio(wet_db))


# -- levels and places ---------------------------------------------------------


def rms(x: Floats) -> float:
    """Root of the mean square."""
    return math.sqrt(_synth.mean_square(np.ascontiguousarray(x)))


def levelled(x: Floats, level_db: float) -> Floats:
    """The same at ``level_db`` against an rms of 1; silence stays silence."""
    found = rms(x)
    return x * (ratio(level_db) / found) if found > 0 else x


def peaked(x: Floats) -> Floats:
    """The same with a largest magnitude of 1."""
    most = float(np.abs(x).max(initial=0.0))
    return x / most if most > 0 else x


def mix(*parts: tuple[Floats, float]) -> Floats:
    """Sum of parts, each brought to its own level in dB first."""
    total = np.zeros(len(parts[0][0]))
    for x, level_db in parts:
        total += levelled(x, level_db)
    return total


def curve(track: Sequence[float] | Floats, hop: int = HOP, *, loop: bool = True) -> Floats:
    """Straight lines through a track of one value every ``hop`` samples."""
    return _synth.ramp(np.ascontiguousarray(track, dtype=np.float64), hop, loop)


def wander(draw: Draw, low: float, high: float, every_s: float) -> Floats:
    """A value per sample of a loop that drifts between two bounds, turning ``every_s``."""
    points = max(2, round(LOOP_S / every_s))
    while LOOP % points:
        points += 1
    values = [draw.between(low, high) for _ in range(points)]
    return curve(values, LOOP // points)


def smooth(step: Floats) -> Floats:
    """The S-curve 3t² − 2t³ of 0 to 1, held outside."""
    t = np.minimum(np.maximum(step, 0.0), 1.0)
    bent: Floats = t * t * (3.0 - 2.0 * t)
    return bent


def swell(samples: int, rise: float, fall: float) -> Floats:
    """An envelope that rises over a share of its length and falls over another."""
    t = np.arange(samples, dtype=np.int64) / samples
    return smooth(t / rise) * smooth((1.0 - t) / fall)


def scattered(
    clips: Sequence[Floats],
    places_s: Sequence[float],
    draw: Draw,
    *,
    spread_db: float = 6.0,
) -> Floats:
    """A loop with a clip at every place (seconds), each up to ``spread_db`` softer."""
    out = np.zeros(LOOP)
    chosen = [(draw.whole(0, len(clips) - 1), place) for place in places_s]
    gains = [ratio(-draw.between(0, spread_db)) for _ in chosen]
    for index, clip in enumerate(clips):
        mine = [number for number, (which, _) in enumerate(chosen) if which == index]
        at = np.array([int(chosen[number][1] * RATE_HZ) for number in mine], np.int64)
        loud = np.array([gains[number] for number in mine], np.float64)
        _synth.scatter(out, np.ascontiguousarray(clip), at, loud)
    return out


def random_places(draw: Draw, per_s: float) -> list[float]:
    """Times in a loop, ``per_s`` a second on average, one in each equal stretch."""
    count = round(LOOP_S * per_s)
    return [(number + draw.between(0, 1)) * LOOP_S / count for number in range(count)]


def placed(parts: Sequence[tuple[float, Floats]]) -> Floats:
    """A loop with every part added at its time in seconds."""
    out = np.zeros(LOOP)
    for at_s, part in parts:
        place = np.array([int(at_s * RATE_HZ)], np.int64)
        _synth.scatter(out, np.ascontiguousarray(part), place, np.ones(1))
    return out


def rolled(x: Floats, seconds: float) -> Floats:
    """A loop begun elsewhere."""
    return np.roll(x, int(seconds * RATE_HZ))


Scene = Callable[[], Floats]
"""Renders one loop of ``LOOP`` samples at any level."""

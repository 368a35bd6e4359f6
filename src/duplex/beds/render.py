"""Beds and single sounds at the rate of a call, at one stated level.

Every bed and clip has an rms of ``LEVEL_DBOV``, so that a gain of 1 is as loud as a
levelled caller. A bed's level is even: over any ten seconds it is the same within
half a dB. Rendering happens once a process and rate. It never reads the clock and
never mixes into a call: ``line`` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from duplex import _synth
from duplex.beds import files
from duplex.beds.catalogue import BEDS, BURSTS, SIDE_SPEECH, TICS, ClipEntry
from duplex.beds.speech import crowd, people
from duplex.beds.tools import (
    HOP,
    LOOP_S,
    RATE_HZ,
    Floats,
    Pcm,
    brown_sections,
    curve,
    filtered,
    fixed,
    hiss,
    levelled,
    pink_sections,
)
from duplex.errors import InputError

LEVEL_DBOV = -26.0
"""Rms level of every bed and clip; 0 dBov is a square wave at full scale."""

_RMS = fixed(32768 * 10 ** (LEVEL_DBOV / 20))
_CEILING = fixed(10 ** (17.5 / 20))
"""Peaks are bent below this, against an rms of 1."""
_EVEN_S = 2.5
_ZEROS = 16
_PER_ZERO = 256
_BAND = 0.92
_RATES_HZ = (4_000, 96_000)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bed:
    """A loop of int16 samples, shape (n,), read-only; its end leads into its start.

    ``silent`` beds (a silent file) hold zeros: mixing one in has no effect.
    """

    kind: str
    rate_hz: int
    samples: Pcm
    silent: bool = False

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate_hz


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """One take of a single sound: int16, shape (n,), read-only."""

    kind: str
    rate_hz: int
    samples: Pcm
    silent: bool = False


@cache
def bed(kind: str, rate_hz: int) -> Bed:
    """The bed of a kind, or of a sound file, at a rate.

    Raises:
        InputError: there is no such kind, the file cannot be used, or the rate is
            outside 4 000 to 96 000 Hz.
    """
    _check(rate_hz)
    if files.is_file(kind):
        samples = files.loop(kind, rate_hz, resampled)
        return _bed(kind, rate_hz, samples)
    entry = next((entry for entry in BEDS if entry.kind == kind), None)
    if entry is None:
        names = ", ".join(entry.kind for entry in BEDS)
        raise InputError(f'noise "{kind}" does not exist, wanted one of: {names}')
    if entry.scene is None:
        return _bed(kind, rate_hz, _plain(kind, rate_hz))
    return _bed(kind, rate_hz, at_rate(even(entry.scene()), rate_hz))


@cache
def background_speech(voices: int, rate_hz: int) -> Bed:
    """A loop of other people talking, without a word."""
    _check(rate_hz)
    talk = crowd(people(voices, seed=401 + voices), seed=402)
    return _bed("background_speech", rate_hz, at_rate(even(talk), rate_hz))


@cache
def bursts(kind: str, rate_hz: int) -> tuple[Clip, ...]:
    """All takes of a kind of burst; ``any`` gives every kind's, a folder its files."""
    _check(rate_hz)
    if files.is_folder(kind):
        return tuple(_clip(name, rate_hz, x) for name, x in files.takes(kind, rate_hz, resampled))
    return _takes(BURSTS, "bursts", kind, rate_hz)


@cache
def tics(kind: str, rate_hz: int) -> tuple[Clip, ...]:
    """All takes of a kind of tic; ``any`` gives every kind's."""
    _check(rate_hz)
    return _takes(TICS, "tics", kind, rate_hz)


@cache
def side_speech(kind: str, rate_hz: int) -> tuple[Clip, ...]:
    """All remarks to somebody else."""
    _check(rate_hz)
    return _takes(SIDE_SPEECH, "side_speech", kind, rate_hz)


def even(x: Floats) -> Floats:
    """A loop whose level over some seconds stays the same, and whose peaks are held.

    What happens within a second is left alone; only the slow level is.
    """
    for _ in range(3):
        x = _synth.limited(_flat(levelled(x, 0)), _CEILING)
    return levelled(x, 0)


def at_rate(x: Floats, rate_hz: int) -> Floats:
    """A loop of 24 kHz at another rate, as long as it was."""
    if rate_hz == RATE_HZ:
        return x
    return resampled(x, RATE_HZ, rate_hz, loop=True)


def resampled(x: Floats, from_hz: int, to_hz: int, *, loop: bool) -> Floats:
    """Windowed-sinc resampling whose samples are the same on every machine."""
    if from_hz == to_hz:
        return x
    count = len(x) * to_hz // from_hz
    band = fixed(_BAND * min(1.0, to_hz / from_hz))
    return _synth.resampled(np.ascontiguousarray(x), count, _kernel(), _PER_ZERO, band, loop)


def _flat(x: Floats) -> Floats:
    energy = _synth.energies(np.ascontiguousarray(x), HOP)
    reach = int(_EVEN_S * RATE_HZ / HOP)
    # A running mean, taken twice, so that the gain has no corners.
    around = _around(_around(energy, reach), reach) / HOP
    most = around.max(initial=0.0)
    return x * curve(1.0 / np.sqrt(np.maximum(around, most * 1e-4)))


def _around(track: Floats, reach: int) -> Floats:
    """The mean over ``reach`` values around each, in a circle."""
    turned = np.concatenate((track[-(reach // 2) :], track, track[: reach - reach // 2]))
    total = np.concatenate((np.zeros(1), np.cumsum(turned)))
    mean: Floats = (total[reach : reach + len(track)] - total[: len(track)]) / reach
    return mean


def _plain(kind: str, rate_hz: int) -> Floats:
    """White, pink or brown noise with the whole band of the rate."""
    white = hiss({"white": 11, "pink": 12, "brown": 13}[kind], LOOP_S * rate_hz)
    if kind == "white":
        return white
    sections = pink_sections(rate_hz) if kind == "pink" else brown_sections(rate_hz)
    return filtered(white, sections, loop=True)


def _takes(
    entries: tuple[ClipEntry, ...], effect: str, kind: str, rate_hz: int
) -> tuple[Clip, ...]:
    chosen = [entry for entry in entries if kind in ("any", entry.kind)]
    if not chosen:
        names = ", ".join(entry.kind for entry in entries)
        raise InputError(f'{effect} kind "{kind}" does not exist, wanted one of: any, {names}')
    return tuple(
        _clip(entry.kind, rate_hz, resampled(take, RATE_HZ, rate_hz, loop=False))
        for entry in chosen
        for take in entry.takes()
    )


def _clip(kind: str, rate_hz: int, x: Floats) -> Clip:
    samples, silent = _finished(x)
    return Clip(kind=kind, rate_hz=rate_hz, samples=samples, silent=silent)


def _bed(kind: str, rate_hz: int, x: Floats) -> Bed:
    samples, silent = _finished(x)
    return Bed(kind=kind, rate_hz=rate_hz, samples=samples, silent=silent)


def _finished(x: Floats) -> tuple[Pcm, bool]:
    x = np.ascontiguousarray(x)
    power = _synth.mean_square(x)
    if power > 0:
        x = _synth.limited(x / math.sqrt(power), _CEILING)
        power = _synth.mean_square(x)
    samples = _synth.rounded(x, _RMS / math.sqrt(power) if power > 0 else 0.0)
    samples.flags.writeable = False
    return samples, not samples.any()


@cache
def _kernel() -> Floats:
    """Half a sinc under a Kaiser window (beta 8), rounded to 2⁻²⁴."""
    cells = _ZEROS * _PER_ZERO
    values = [1.0]
    for cell in range(1, cells + 1):
        t = cell / _PER_ZERO
        window = _bessel(8.0 * math.sqrt(1 - (cell / cells) ** 2)) / _bessel(8.0)
        values.append(fixed(math.sin(math.pi * t) / (math.pi * t) * window))
    return np.array(values)


def _bessel(x: float) -> float:
    """Modified Bessel function of order zero, by its series."""
    total = term = 1.0
    for k in range(1, 40):
        term *= (x / (2 * k)) ** 2
        total += term
    return total


def _check(rate_hz: int) -> None:
    if not _RATES_HZ[0] <= rate_hz <= _RATES_HZ[1]:
        raise InputError(f"beds: rate {rate_hz} Hz is outside {_RATES_HZ[0]} to {_RATES_HZ[1]} Hz")

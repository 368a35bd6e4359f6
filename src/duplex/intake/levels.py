"""How loud both sides are and how alike, gathered while the audio passes.

Keeps one figure per 10 ms and side, and sums; never the audio. Levels are
variances within the 10 ms, so a constant offset is no sound. ``listen.py``
drives it, ``health.py`` reads what :meth:`Meter.levels` gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex.intake.sound import Pcm

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

FRAMES_PER_SECOND = 100
FULL_SCALE = 32768.0
_FLAT_TOP = 3
"""As many samples in a row at the extreme are a clipped peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideLevels:
    """One side: mean squares per 10 ms frame, peak, and samples in clipped peaks."""

    energies: Floats
    peak: int
    clipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Both sides; ``likeness`` is the correlation of the channels as they lie, −1 to 1.

    ``likeness`` is None when a channel has no sound at all.
    """

    rate_hz: int
    sides: tuple[SideLevels, SideLevels]
    likeness: float | None

    @property
    def frame(self) -> int:
        """Samples in 10 ms."""
        return self.rate_hz // FRAMES_PER_SECOND

    def frames_in(self, runs: Sequence[tuple[int, int]], margin: int = 0) -> Mask:
        """Which frames lie in ``runs`` (samples), widened by ``margin`` frames."""
        inside = np.zeros(len(self.sides[0].energies), np.bool_)
        for start, end in runs:
            inside[max(0, start // self.frame - margin) : -(-end // self.frame) + margin] = True
        return inside


class Meter:
    """Hears both sides in step, in pieces of any size."""

    def __init__(self, rate_hz: int) -> None:
        assert rate_hz % FRAMES_PER_SECOND == 0, rate_hz
        self._rate = rate_hz
        self._frame = rate_hz // FRAMES_PER_SECOND
        self._mean = np.full(self._frame, 1 / self._frame, np.float32)
        self._left: tuple[Pcm, Pcm] = (np.zeros(0, np.int16), np.zeros(0, np.int16))
        self._energies: tuple[list[Floats], list[Floats]] = ([], [])
        self._tops = (_Top(), _Top())
        self._common = 0.0
        self._own = [0.0, 0.0]

    def push(self, caller: Pcm, assistant: Pcm) -> None:
        """Take int16 of one length from both sides."""
        pair = (caller, assistant)
        for top, pcm in zip(self._tops, pair, strict=True):
            top.push(pcm)
        whole = [np.concatenate(both) for both in zip(self._left, pair, strict=True)]
        count = len(whole[0]) // self._frame * self._frame
        self._left = (whole[0][count:], whole[1][count:])
        self._measure([pcm[:count] for pcm in whole])

    def levels(self) -> Levels:
        """What was heard; a last piece shorter than 10 ms is left out."""
        product = self._own[0] * self._own[1]
        sides = [
            SideLevels(
                energies=np.concatenate([np.zeros(0, np.float32), *energies]),
                peak=top.peak,
                clipped=top.clipped,
            )
            for energies, top in zip(self._energies, self._tops, strict=True)
        ]
        return Levels(
            rate_hz=self._rate,
            sides=(sides[0], sides[1]),
            likeness=self._common / math.sqrt(product) if product > 0 else None,
        )

    def _measure(self, pair: Sequence[Pcm]) -> None:
        if not len(pair[0]):
            return
        first, second = (pcm.astype(np.float32).reshape(-1, self._frame) for pcm in pair)
        means = [frames @ self._mean for frames in (first, second)]
        for index, frames in enumerate((first, second)):
            energy = np.einsum("ij,ij->i", frames, frames) / np.float32(self._frame)
            energy = np.maximum(energy - means[index] ** 2, 0).astype(np.float32)
            self._energies[index].append(energy)
            self._own[index] += float(energy.sum(dtype=np.float64))
        common = np.einsum("ij,ij->i", first, second) / np.float32(self._frame)
        self._common += float((common - means[0] * means[1]).sum(dtype=np.float64))


class _Top:
    """The largest magnitude of a side and how many samples are cut off at it."""

    def __init__(self) -> None:
        self.peak = 0
        self._extremes = {1: 0, -1: 0}
        self._counts = {1: 0, -1: 0}

    @property
    def clipped(self) -> int:
        """Samples in runs of three and more at an extreme; 0 for a quiet signal."""
        return sum(self._counts.values()) if self.peak > FULL_SCALE / 8 else 0

    def push(self, pcm: Pcm) -> None:
        if not len(pcm):
            return
        for sign, found in ((1, int(pcm.max())), (-1, int(pcm.min()))):
            extreme = self._extremes[sign]
            if found * sign > extreme * sign:
                self._extremes[sign], self._counts[sign] = found, 0
            if found * sign >= extreme * sign and found:
                self._counts[sign] += _run_samples(pcm == found)
            self.peak = max(self.peak, found * sign)


def _run_samples(hit: Mask) -> int:
    """Samples of runs of at least three hits."""
    core = hit[2:] & hit[1:-1] & hit[:-2]
    if not core.any():
        return 0
    spread = np.zeros(len(hit), np.bool_)
    for shift in range(_FLAT_TOP):
        spread[shift : shift + len(core)] |= core
    return int(spread.sum())


def decibels(mean_square: float) -> float | None:
    """dBFS of a mean square of int16 samples (a full-scale square wave is 0); None for 0."""
    if mean_square <= 0:
        return None
    return 10 * math.log10(mean_square / FULL_SCALE**2)

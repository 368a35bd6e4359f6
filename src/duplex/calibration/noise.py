"""Noise of known colour at unit power: what is put on a channel to hide speech in.

200 s of each kind are made once, from fixed seeds, and cut at random places. It never
measures speech; what it is mixed with, and how loud, is for the caller to say.
Conditions and ``bench/edge_study.py`` drive it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from duplex.calibration.clips import RATE_HZ, Floats, active_rms
from duplex.errors import InputError

SECONDS = 200
COLOURED = ("white", "pink", "car")
KINDS = (*COLOURED, "babble")


class Noises:
    """Cuts of noise; ``babblers`` are the clips that babble is made of, by speaker."""

    def __init__(self, babblers: Mapping[str, Sequence[Floats]]) -> None:
        self._babblers = babblers
        self._made: dict[str, Floats] = {}

    def cut(self, kind: str, n: int, rng: np.random.Generator) -> Floats:
        """``n`` samples of one kind, from a place that ``rng`` draws."""
        if kind not in self._made:
            noise = _babble(self._babblers) if kind == "babble" else _coloured(kind)
            self._made[kind] = (noise / np.sqrt((noise**2).mean())).astype(np.float32)
        x = self._made[kind]
        at = int(rng.integers(len(x)))
        if at + n <= len(x):
            return x[at : at + n]
        return np.take(x, np.arange(at, at + n), mode="wrap")


def _coloured(kind: str) -> npt.NDArray[np.float64]:
    if kind not in COLOURED:
        raise InputError(f'noise "{kind}" is not one of {", ".join(KINDS)}')
    n = RATE_HZ * SECONDS
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    x = rng.standard_normal(n)
    if kind == "white":
        return x
    f = np.maximum(np.fft.rfftfreq(n, 1 / RATE_HZ), 1.0)
    shape = 1 / np.sqrt(np.maximum(f, 20.0))
    if kind == "car":
        # A rumble below 100 Hz, a hiss 50 dB below it, the whole swaying by 1.5 dB.
        hiss = 3e-3 / np.sqrt(1 + (f / 800) ** 2)
        shape = 1 / (1 + (f / 100) ** 2) / (1 + (20 / f) ** 4) + hiss
    x = np.fft.irfft(np.fft.rfft(x) * shape, n)
    if kind == "car":
        sway = np.fft.rfft(rng.standard_normal(n))
        sway[int(0.5 * n / RATE_HZ) :] = 0
        slow = np.fft.irfft(sway, n)
        x = x * 10 ** (1.5 * slow / slow.std() / 20)
    return x


def _babble(babblers: Mapping[str, Sequence[Floats]]) -> npt.NDArray[np.float64]:
    if not babblers:
        raise InputError("babble needs speech to be made of")
    rng, mix = np.random.default_rng(4), np.zeros(RATE_HZ * SECONDS)
    for clips in babblers.values():
        at = 0
        while at < len(mix):
            clip = clips[int(rng.integers(len(clips)))]
            n = min(len(clip), len(mix) - at)
            mix[at : at + n] += clip[:n] / active_rms(clip)
            at += n + int(rng.uniform(0.05, 0.4) * RATE_HZ)
    return mix

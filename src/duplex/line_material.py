"""What a line plays and how loud: takes of sounds, gains of beds, and chances as thresholds.

Pure arithmetic on samples that ``beds`` made, whole numbers where a processor's way of
adding floats could show. It builds nothing and draws nothing; ``line`` asks.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from duplex import beds
from duplex.conditions import Bursts, Effect, SideSpeech, Tics
from duplex.errors import InputError

DRAWS = 2**64

_LOOP_BLOCKS = 1_500
_FULL_SCALE = 32_767
_PEAKS_MAKE_UP, _CLOSE = 2.0, 1.005
_FADE_MS = 10

Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float32]


def sounds(effect: Bursts | Tics | SideSpeech, rate_hz: int) -> list[Pcm]:
    """The takes an effect draws from, cut to the length it asks for."""
    takes = [clip.samples for clip in clips(effect, rate_hz)]
    length = None if isinstance(effect, Bursts) else effect.length_ms
    return [_cut(take, rate_hz, length) for take in takes]


def clips(effect: Effect, rate_hz: int) -> tuple[beds.Clip, ...]:
    match effect:
        case Bursts():
            return beds.bursts(effect.kind, rate_hz)
        case Tics():
            return beds.tics(effect.kind, rate_hz)
        case SideSpeech():
            return beds.side_speech(effect.kind, rate_hz)
    raise InputError(f"condition: {effect.title} has no sounds")


def _cut(take: Pcm, rate_hz: int, length_ms: int | None) -> Pcm:
    """The loudest ``length_ms`` of a take with 10 ms of fade at both ends."""
    samples = len(take) if length_ms is None else rate_hz * length_ms // 1000
    if samples >= len(take):
        return take
    squares = np.cumsum(np.append(0, take.astype(np.int64) ** 2))
    start = int(np.argmax(squares[samples:] - squares[:-samples]))
    part = take[start : start + samples].astype(np.int64)
    fade = min(rate_hz * _FADE_MS // 1000, samples // 2)
    ramp = np.minimum(np.arange(1, samples + 1), fade)
    both = np.minimum(ramp, ramp[::-1])
    return np.asarray(part * both // fade, np.int16)


def gain_for(loop: Pcm, wanted: float) -> float:
    """The gain that brings a loop to an rms, peaks cut at full scale; that of a silent one is 0."""
    rms = _rms(loop)
    if not rms:
        return 0.0
    gain = wanted / rms
    at_most = gain * _PEAKS_MAKE_UP
    peak = int(np.abs(loop.astype(np.int32)).max())
    while peak * gain > _FULL_SCALE:
        # What full scale cuts off is missing from the level: the rest makes up for it.
        short = wanted / _rms(np.rint(np.clip(loop * gain, -_FULL_SCALE, _FULL_SCALE)))
        if short < _CLOSE or gain == at_most:
            break
        gain = min(gain * short, at_most)
    return rounded32(gain)


def _rms(samples: Pcm | npt.NDArray[np.float64]) -> float:
    # Counted in whole numbers: a float mean depends on how a processor adds.
    wide = samples.astype(np.int64)
    return math.sqrt(int(wide @ wide) / len(wide))


def rounded32(value: float) -> float:
    """Round to 24 significant bits, as a gain that kernels multiply with has them."""
    return float(np.float32(value))


def drift(depth_db: float, rate_hz: int, key: int) -> Floats:
    """Factors a block that wander by ``depth_db`` and back in 30 s, their mean square 1."""
    t = np.arange(_LOOP_BLOCKS) / _LOOP_BLOCKS
    turns = ((15, 1.0), (41, 0.3), (6, 0.2))
    phases = [(key >> shift & 0xFFFF) / 65536 for shift in (0, 16, 32)]
    sway = sum(
        share * np.sin(2 * np.pi * (turn * t + phase))
        for (turn, share), phase in zip(turns, phases, strict=True)
    )
    factors = 10 ** (depth_db * sway / 1.5 / 20)
    factors /= math.sqrt(float(np.mean(factors**2)))
    return np.asarray(np.rint(factors * 2**20) / 2**20, np.float32)


def arrivals(rate_per_min: float) -> tuple[int, int, int]:
    """Thresholds of a draw: up to the first no arrival in 20 ms, up to the second one, ..."""
    mean = rate_per_min / 60 * 0.02
    none = math.exp(-mean)
    one, two = none * mean, none * mean * mean / 2
    return chance(none), chance(none + one), chance(none + one + two)


def chance(probability: float) -> int:
    """The threshold a 64-bit draw lies below with this probability."""
    return min(DRAWS - 1, max(0, round(probability * 2**53) << 11))

"""How much of what the loudspeaker plays comes back by the microphone, and how late.

The delay is where the whitened correlation (GCC-PHAT, Knapp and Carter 1976) peaks; the
path is the least-squares filter of a few ms around it, so its energy is the echo's and
not that of who speaks meanwhile. An echo that does not stand out is not told. Pure: the
call's participant drives it while it runs, metrics afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_toeplitz
from scipy.signal import fftconvolve

from duplex.card.device import Pcm
from duplex.detect import segments

LONGEST_MS = 800
LEAST_MS = 1_500
"""This much of the loudspeaker's sound is needed."""
_STANDS_OUT = 9.0
_BEFORE_MS, _AFTER_MS = 2, 6
_BLOCK_MS = 20
_AUDIBLE = 100.0
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """An echo: dB of what was played (negative: quieter), and ms later.

    ``heard_as_speech``: the detector finds speech in the echo alone, so a call would take
    it for the caller's.
    """

    level_db: float
    delay_ms: float
    heard_as_speech: bool


def measure(played: Pcm, recorded: Pcm, rate_hz: int, detector: str = "edge") -> Returned | None:
    """The echo of ``played`` in ``recorded``, both int16 mono on one timeline; None without one."""
    length = min(len(played), len(recorded))
    ours, back = played[:length].astype(np.float64), recorded[:length].astype(np.float64)
    if audible_ms(played[:length], rate_hz) < LEAST_MS or not back.any():
        return None
    lag = _lag(ours, back, rate_hz)
    if lag is None:
        return None
    first = max(0, lag - _BEFORE_MS * rate_hz // 1000)
    taps = (_BEFORE_MS + _AFTER_MS) * rate_hz // 1000
    echo = _echo(ours, back, first, taps)
    energy, source = float(echo @ echo), float(ours @ ours)
    if energy <= 0:
        return None
    return Returned(
        level_db=round(10 * math.log10(energy / source), 1),
        delay_ms=round(lag * 1000 / rate_hz, 1),
        heard_as_speech=_is_speech(echo, back, rate_hz, detector),
    )


def audible_ms(pcm: Pcm, rate_hz: int) -> int:
    """How much of it is loud enough to be heard coming back."""
    return int((_levels(pcm.astype(np.float64), rate_hz) >= _AUDIBLE).sum()) * _BLOCK_MS


def _lag(ours: Floats, back: Floats, rate_hz: int) -> int | None:
    """The delay in samples at which the whitened correlation stands out; None if none does."""
    reach = LONGEST_MS * rate_hz // 1000
    size = 1 << (len(ours) + reach).bit_length()
    cross = np.fft.rfft(back, size) * np.conj(np.fft.rfft(ours, size))
    weight = np.abs(cross)
    # Bins without any of our sound hold only rounding: whitened, they would drown the rest.
    cross /= weight + 1e-3 * float(weight.mean()) + 1e-30
    curve = np.abs(np.fft.irfft(cross, size)[: reach + 1])
    at = int(curve.argmax())
    noise = float(np.sqrt(np.mean(curve**2)))
    return at if noise > 0 and curve[at] >= _STANDS_OUT * noise else None


def _echo(ours: Floats, back: Floats, first: int, taps: int) -> Floats:
    """What of ``back`` a filter of ``taps`` from lag ``first`` on makes of ``ours``."""
    size = 1 << (len(ours) + taps + first).bit_length()
    spectrum = np.fft.rfft(ours, size)
    own = np.fft.irfft(np.abs(spectrum) ** 2, size)[:taps]
    cross = np.fft.irfft(np.fft.rfft(back, size) * np.conj(spectrum), size)[first : first + taps]
    own[0] *= 1 + 1e-3
    own[0] += 1e-9
    path = solve_toeplitz(own, cross)
    made = fftconvolve(ours, path)[: len(ours) - first]
    return np.concatenate((np.zeros(first), made))


def _is_speech(echo: Floats, back: Floats, rate_hz: int, detector: str) -> bool:
    """Whether a detector hears speech in the echo over the room's own noise."""
    levels = _levels(back - echo, rate_hz)
    room = float(np.percentile(levels, 10)) if len(levels) else 0.0
    noise = np.random.default_rng(7).normal(0, max(room, 1.0), len(echo))
    heard = np.clip(np.rint(echo + noise), -32768, 32767).astype(np.int16)
    found = segments(heard, rate_hz, detector)
    return sum(span.length for span in found) >= 0.2 * rate_hz


def _levels(pcm: Floats, rate_hz: int) -> Floats:
    block = _BLOCK_MS * rate_hz // 1000
    whole = pcm[: len(pcm) // block * block].reshape(-1, block)
    levels: Floats = np.sqrt(np.mean(whole * whole, axis=1))
    return levels

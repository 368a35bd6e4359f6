"""Clicks that are played and found again: how long a card takes from one end to the other.

Each click is a burst of its own pseudo-random signs, so none is taken for another however
long the way is. One is found by cross-correlation and only where it stands out of all the
rest; its place is read between samples. Pure: ``calibration.py`` plays and records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from duplex.card.device import Pcm
from duplex.errors import InputError

COUNT = 6
GAP_MS = 200
LONGEST_MS = 700
"""The longest delay that is looked for."""
LEAST_FOUND = 3
_LENGTH_MS = 12
_PEAK = 12_000
_STANDS_OUT = 9.0
_ALIKE = 0.4
"""A room and a small loudspeaker change a click, but not beyond this correlation."""
_AGREE_MS = 5.0
_LEAST_WIDTH_MS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Echoed:
    """One click that came back: how long it took, how loud it came, in dB of what was played."""

    delay_ms: float
    level_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What clicks agree on: their median delay, and the farthest that one of them is from it."""

    delay_ms: float
    plus_minus_ms: float
    level_db: float
    found: int
    played: int


def click(index: int, rate_hz: int) -> Pcm:
    """The click of that number: int16, 12 ms, never the same twice."""
    random = np.random.default_rng([7, index])
    chips = random.choice((-1.0, 1.0), size=_LENGTH_MS * 8)
    # Chips of 1/8 ms, whatever the rate: the same sound, with little above 8 kHz.
    at = np.arange(_LENGTH_MS * rate_hz // 1000) * 8_000 // rate_hz
    sound: Pcm = np.rint(_PEAK * chips[at]).astype(np.int16)
    return sound


def find(recorded: Pcm, sent: Pcm, rate_hz: int) -> tuple[float, float] | None:
    """Where ``sent`` begins in ``recorded``, in samples, and its gain in dB; None if it does not.

    The correlation must stand out of what it is elsewhere, of either sign.
    """
    if len(recorded) < 2 * len(sent):
        return None
    played = sent.astype(np.float64)
    products = _correlated(recorded.astype(np.float64), played)
    size = np.abs(products)
    at = int(size.argmax())
    elsewhere = np.delete(size, slice(max(0, at - len(sent)), at + len(sent)))
    if not len(elsewhere):
        return None
    noise = float(np.sqrt(np.mean(elsewhere**2)))
    if size[at] < 1e-9 or (noise > 0 and size[at] < _STANDS_OUT * noise):
        return None
    heard = recorded[at : at + len(sent)].astype(np.float64)
    if size[at] < _ALIKE * float(np.sqrt((heard @ heard) * (played @ played))):
        return None
    gain = size[at] / float(played @ played)
    return at + _between(size, at), 20 * float(np.log10(max(gain, 1e-9)))


def settle(found: Sequence[Echoed], played: int) -> Settled:
    """The delay that most clicks agree on; raises InputError when too few do."""
    if found:
        middle = median(one.delay_ms for one in found)
        agreed = [one for one in found if abs(one.delay_ms - middle) <= _AGREE_MS]
        if len(agreed) >= LEAST_FOUND and 2 * len(agreed) > played:
            middle = median(one.delay_ms for one in agreed)
            farthest = max(abs(one.delay_ms - middle) for one in agreed)
            return Settled(
                delay_ms=round(middle, 2),
                plus_minus_ms=round(max(farthest, _LEAST_WIDTH_MS), 2),
                level_db=round(median(one.level_db for one in agreed), 1),
                found=len(agreed),
                played=played,
            )
    raise InputError(
        f"calibrate: {len(found)} of {played} clicks came back at delays that agree too little; "
        "let the microphone hear the loudspeaker (no headphones), louder, in a quiet room, "
        "and the machine be idle"
    )


def _correlated(long: npt.NDArray[np.float64], short: npt.NDArray[np.float64]) -> np.ndarray:
    size = 1 << (len(long) + len(short) - 1).bit_length()
    spectrum = np.fft.rfft(long, size) * np.conj(np.fft.rfft(short, size))
    return np.fft.irfft(spectrum, size)[: len(long) - len(short) + 1]


def _between(size: np.ndarray, at: int) -> float:
    """The peak's place between samples, by a parabola through three of them."""
    if not 0 < at < len(size) - 1:
        return 0.0
    left, top, right = (float(one) for one in size[at - 1 : at + 2])
    bend = left - 2 * top + right
    return 0.0 if bend == 0 else float(np.clip((left - right) / (2 * bend), -0.5, 0.5))

"""The active speech level of a signal: how loud it is while somebody speaks.

Method B of ITU-T P.56: the level over the samples in which a twice smoothed
envelope lies above a threshold, held 200 ms, that is itself 15.9 dB below that
level. It never judges what is speech and never changes audio. Audio conditions
level calls and beds by it; any chunking gives the same figures, to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex.errors import InputError

Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]

OVERLOAD = 32768.0
"""0 dBov: the level of a square wave at full scale."""
MARGIN_DB = 15.9
"""How far the threshold lies below the active level."""
SMOOTHING_S = 0.03
HANGOVER_S = 0.2
SPEAKER_DBOV = -26.0
"""What a speaker is brought to before a line degrades it: the nominal level of ITU-T P.800."""
THRESHOLDS = 15
"""Powers of two from one int16 step to half of full scale."""

_BLOCK_S = 1
_RANGE_HZ = (1_000, 384_000)
_NEGLIGIBLE = 2.0**-60
_GAIN_UNIT = 2**24
_CODES_DB = tuple(20 * math.log10(2.0 ** (j - THRESHOLDS)) for j in range(THRESHOLDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechLevel:
    """Levels in dBov, None where there is nothing to measure.

    ``rms_dbov`` is over all samples, ``active_dbov`` over the active ones, and
    ``activity`` their share of the time, 0 to 1. Speech fainter than about −74
    dBov lies below the lowest threshold: its active level is None.
    """

    samples: int
    rms_dbov: float | None
    active_dbov: float | None
    activity: float | None


class LevelMeter:
    """Hears int16 mono in pieces of any size; :meth:`level` may be asked at any time.

    Raises:
        InputError: ``rate_hz`` is outside 1 000 to 384 000 Hz.
    """

    def __init__(self, rate_hz: int) -> None:
        if not _RANGE_HZ[0] <= rate_hz <= _RANGE_HZ[1]:
            raise InputError(
                f"active level: rate {rate_hz} Hz is outside {_RANGE_HZ[0]} to {_RANGE_HZ[1]} Hz"
            )
        self._envelope = _Envelope(rate_hz)
        self._block = _BLOCK_S * rate_hz
        self._hang = math.floor(rate_hz * HANGOVER_S + 0.5)
        self._waiting: list[Pcm] = []
        self._waiting_samples = 0
        self._counts = _Counts(since=(self._hang + 1,) * THRESHOLDS)

    def push(self, pcm: Pcm) -> None:
        """Take int16 of shape (n,), whatever n is."""
        self._waiting.append(pcm.copy())
        self._waiting_samples += len(pcm)
        if self._waiting_samples < self._block:
            return
        whole = np.concatenate(self._waiting)
        at = 0
        while len(whole) - at >= self._block:
            self._counts = self._heard(whole[at : at + self._block], self._envelope)
            at += self._block
        self._waiting = [whole[at:]]
        self._waiting_samples = len(whole) - at

    def level(self) -> SpeechLevel:
        """Tell the level of all that was heard so far; changes nothing."""
        if not self._waiting_samples:
            return _level(self._counts)
        return _level(self._heard(np.concatenate(self._waiting), self._envelope.copy()))

    def _heard(self, pcm: Pcm, envelope: _Envelope) -> _Counts:
        """The counts with one more block, which moves ``envelope`` on."""
        counts, smooth = self._counts, envelope.over(pcm)
        wide = pcm.astype(np.int64)
        active, since = [], []
        for j in range(THRESHOLDS):
            hits = np.flatnonzero(smooth >= 2.0 ** (j - THRESHOLDS))
            grown, left = _active(hits, len(pcm), counts.since[j], self._hang)
            active.append(counts.active[j] + grown)
            since.append(left)
        return _Counts(
            samples=counts.samples + len(pcm),
            squares=counts.squares + int(wide @ wide),
            active=tuple(active),
            since=tuple(since),
        )


def speech_level(pcm: Pcm, rate_hz: int) -> SpeechLevel:
    """Measure a whole signal, int16 mono of shape (n,)."""
    meter = LevelMeter(rate_hz)
    meter.push(pcm)
    return meter.level()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Sums so far: per threshold the active samples, and samples since it was last reached."""

    samples: int = 0
    squares: int = 0
    active: tuple[int, ...] = (0,) * THRESHOLDS
    since: tuple[int, ...]


class _Envelope:
    """Two one-pole smoothings of the magnitude, in an order of evaluation that is fixed.

    A scan of doubling steps; only sums and products of single numbers, so that
    every machine gets the same bits. The coefficient is rounded to 2⁻³² for that.
    """

    def __init__(self, rate_hz: int) -> None:
        self._keep = round(math.exp(-1 / (rate_hz * SMOOTHING_S)) * 2**32) / 2**32
        self._powers = np.multiply.accumulate(np.full(_BLOCK_S * rate_hz, self._keep))
        self._last = (0.0, 0.0)

    def copy(self) -> _Envelope:
        other = object.__new__(_Envelope)
        other._keep, other._powers, other._last = self._keep, self._powers, self._last
        return other

    def over(self, pcm: Pcm) -> Floats:
        """Smooth the next samples; full scale is 1."""
        found = np.abs(pcm.astype(np.float64)) / OVERLOAD
        last = []
        for before in self._last:
            found = self._smoothed(found, before)
            last.append(float(found[-1]))
        self._last = (last[0], last[1])
        return found

    def _smoothed(self, values: Floats, before: float) -> Floats:
        out = values * (1 - self._keep)
        step, factor = 1, self._keep
        while step < len(out) and factor > _NEGLIGIBLE:
            out[step:] += factor * out[:-step]
            step, factor = 2 * step, factor * factor
        return out + before * self._powers[: len(out)]


def _active(hits: npt.NDArray[np.intp], length: int, since: int, hang: int) -> tuple[int, int]:
    """Active samples of a block, and the samples since the last hit at its end.

    ``since`` is 1 when the sample before the block was a hit; a hit makes itself
    and ``hang`` samples after it active.
    """
    first = int(hits[0]) if len(hits) else length
    carried = max(0, min(first, hang + 1 - since))
    if not len(hits):
        return carried, min(hang + 1, since + length)
    last = length - int(hits[-1])
    inside = int(np.minimum(np.diff(hits), hang + 1).sum())
    return carried + inside + min(last, hang + 1), min(hang + 1, last)


def _level(counts: _Counts) -> SpeechLevel:
    if not counts.squares:
        nothing = None if not counts.samples else 0.0
        return SpeechLevel(
            samples=counts.samples, rms_dbov=None, active_dbov=None, activity=nothing
        )
    rms = _dbov(counts.squares, counts.samples)
    active = _where_the_margin_holds(counts)
    return SpeechLevel(
        samples=counts.samples,
        rms_dbov=rms,
        active_dbov=active,
        activity=None if active is None else min(1.0, 10 ** ((rms - active) / 10)),
    )


def _where_the_margin_holds(counts: _Counts) -> float | None:
    """The level that lies 15.9 dB above its own threshold, between two of those counted."""
    above: tuple[float, float] | None = None
    for active, code in zip(counts.active, _CODES_DB, strict=True):
        if not active:
            break
        level = _dbov(counts.squares, active)
        over = level - code - MARGIN_DB
        if over <= 0:
            if above is None:
                return level if over == 0 else None
            share = above[1] / (above[1] - over)
            return above[0] + share * (level - above[0])
        above = (level, over)
    # Clicks: far above a threshold that the envelope reached, below the next one.
    return None if above is None else above[0]


def _dbov(squares: int, samples: int) -> float:
    return 10 * math.log10(squares / samples / OVERLOAD**2)


def levelled(pcm: Pcm, rate_hz: int, dbov: float = SPEAKER_DBOV) -> Pcm:
    """Bring int16 mono to an active level; what has none comes back as it is.

    The hangover after the last sample counts, so that utterances that are levelled
    one by one have that level together too. Samples beyond int16 are clipped.
    """
    meter = LevelMeter(rate_hz)
    meter.push(pcm)
    meter.push(np.zeros(rate_hz, np.int16))  # longer than envelope and hangover last
    active = meter.level().active_dbov
    if active is None:
        return pcm
    gain = round(10 ** ((dbov - active) / 20) * _GAIN_UNIT) / _GAIN_UNIT
    made: Pcm = np.clip(np.rint(pcm * gain), -32768, 32767).astype(np.int16)
    return made

"""Levels of one side, where it speaks and where it does not: SNR, clipping, leaks.

Speech is what the detector says, noise the median of the frames in which nobody
is near speech. A figure that cannot be told is None. ``health.py`` drives it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex.intake.levels import FRAMES_PER_SECOND, decibels
from duplex.intake.listen import Listening
from duplex.values import Side, Span

Mask = npt.NDArray[np.bool_]

_MARGIN = 20
_ENOUGH = 20
_VOICE = 220.0**2
"""The mean square from which contract 2.0 takes a window for voice."""
_DIGITAL = 0.25
"""A mean square below this, in int16 steps, is digital silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness:
    """One side in figures; ``segments`` counts the detector's finds, echoes too.

    ``noise_dbfs`` is None when there is none (digital silence) or no pause to
    measure it in, which ``noise_known`` tells apart. ``leak_db`` is the level of
    the other side on this channel against its own, None when nothing is heard of
    it. ``spread_db`` is the range of level inside the longest segment. ``sound_ms`` is
    how long anything is as loud as contract 2.0 takes for voice, speech or not.
    """

    segments: int
    own_segments: int
    speech_ms: float
    sound_ms: float
    longest_ms: float
    speech_dbfs: float | None
    noise_dbfs: float | None
    noise_known: bool
    snr_db: float | None
    loudest_dbfs: float | None
    peak_dbfs: float | None
    clipped_share: float
    spread_db: float | None
    leak_db: float | None


def loudness_of(heard: Listening, side: Side) -> Loudness:
    """Work out the levels of one side."""
    levels = heard.levels
    energies = levels.sides[side].energies
    spans, others = heard.spans(side), heard.spans(side.other)
    noise = _noise(heard, side)
    speech = _mean(energies, _frames(heard, spans))
    length = sum(span.length for span in spans)
    longest = max(spans, key=lambda span: span.length, default=None)
    above = speech if speech is None or noise is None else max(speech - noise, 1e-9)
    return Loudness(
        segments=len(spans),
        own_segments=len(heard.own_speech(side)),
        speech_ms=length * 1000 / heard.rate_hz,
        sound_ms=float((energies >= _VOICE).sum()) * 1000 / FRAMES_PER_SECOND,
        longest_ms=0.0 if longest is None else longest.length * 1000 / heard.rate_hz,
        speech_dbfs=None if above is None else decibels(above),
        noise_dbfs=None if noise is None or noise < _DIGITAL else decibels(noise),
        noise_known=noise is not None,
        snr_db=_ratio_db(above, noise) if noise is not None and noise >= _DIGITAL else None,
        loudest_dbfs=decibels(float(energies.max(initial=0))),
        peak_dbfs=decibels(float(levels.sides[side].peak) ** 2),
        clipped_share=min(1.0, levels.sides[side].clipped / length) if length else 0.0,
        spread_db=None if longest is None else _spread(heard, side, longest),
        leak_db=_leak(heard, side, noise, others),
    )


def agreement(heard: Listening, side: Side, witness: str) -> float | None:
    """Share of 10 ms frames in which two detectors say the same; None for no frames."""
    mine, other = (_frames(heard, heard.spans(side, name)) for name in (heard.detector, witness))
    return float((mine == other).mean()) if len(mine) else None


def _frames(heard: Listening, spans: tuple[Span, ...], margin: int = 0) -> Mask:
    return heard.levels.frames_in([(span.start, span.end) for span in spans], margin)


def _noise(heard: Listening, side: Side) -> float | None:
    """Median mean square where nobody speaks, or at least this side does not."""
    energies = heard.levels.sides[side].energies
    own = ~_frames(heard, heard.spans(side), _MARGIN)
    for quiet in (own & ~_frames(heard, heard.spans(side.other), _MARGIN), own):
        if quiet.sum() >= _ENOUGH:
            return float(np.median(energies[quiet]))
    return None


def _leak(
    heard: Listening, side: Side, noise: float | None, others: tuple[Span, ...]
) -> float | None:
    """How loud the other side is here while only it speaks, against its own level."""
    theirs = _frames(heard, others)
    own = tuple(segment.span for segment in heard.own_speech(side))
    alone = theirs & ~_frames(heard, own, _MARGIN)
    here = _mean(heard.levels.sides[side].energies, alone)
    there = _mean(heard.levels.sides[side.other].energies, alone)
    if here is None or there is None or noise is None or alone.sum() < FRAMES_PER_SECOND:
        return None
    return _ratio_db(here - noise, there) if here > 2 * max(noise, _DIGITAL) else None


def _spread(heard: Listening, side: Side, span: Span) -> float | None:
    """Range in dB between the quiet and the loud tenth of a segment."""
    inside = heard.levels.sides[side].energies[_frames(heard, (span,))]
    if len(inside) < _ENOUGH:
        return None
    low, high = np.percentile(inside, [10, 90])
    return _ratio_db(float(high), max(float(low), _DIGITAL))


def _mean(energies: npt.NDArray[np.float32], where: Mask) -> float | None:
    return float(energies[where].mean(dtype=np.float64)) if where.any() else None


def _ratio_db(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or part <= 0 or whole <= 0:
        return None
    return 10 * math.log10(part / whole)

"""Two voices out of one: which family a voice name belongs to, and how it is made.

The second family is spoken 1.35 times slower and played that much faster, so
its tempo is the same and its pitch 5.2 semitones higher. A style's own pitch
shift works the same way. Pure arithmetic on names, samples and rates.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import soxr

from duplex.active_level import levelled
from duplex.local.chance import Chance
from duplex.local.seams import VOICE_RATE_HZ, Pcm, Style

Floats = npt.NDArray[np.float32]

PACE_SPREAD = 0.10
SEMITONE_SPREAD = 1.0
EDGE = 0.004
"""Samples quieter than this (-48 dBFS) at either end are cut off."""
KEPT_MS = 15
"""Left on both sides of the cut, so that no soft consonant is clipped."""


class Family(Enum):
    """One of the two sounds; the value is the length scale that makes it."""

    BASE = 1.0
    SECOND = 1.35


_BASE = (
    "ash cedar cinder delta echo meridian quartz ripple stone tempo verse willow",
    Family.BASE,
)
_SECOND = ("alloy ballad beacon bossa coral gleam marin sage shida shimmer vesper", Family.SECOND)
_FAMILIES = {name: kind for names, kind in (_BASE, _SECOND) for name in names.split()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one sentence is made: Piper's length scale, and the resampling ratio."""

    length_scale: float
    ratio: float


def family(voice: str) -> Family:
    """Return the family of a voice name; a name not known goes by its hash."""
    name = voice.lower()
    if name in _FAMILIES:
        return _FAMILIES[name]
    odd = hashlib.sha256(name.encode()).digest()[0] % 2
    return Family.SECOND if odd else Family.BASE


def seeded_style(voice: str, seed: int | None, who: str, *, pace: float = 1.0) -> Style:
    """Draw a speaker's pace (±10 % of ``pace``) and pitch (±1 semitone); None draws nothing."""
    if seed is None:
        return Style(voice=voice, pace=pace)
    chance = Chance(seed, who)
    return Style(
        voice=voice,
        pace=pace * (1.0 + chance.stream("pace").uniform(-PACE_SPREAD, PACE_SPREAD)),
        semitones=chance.stream("pitch").uniform(-SEMITONE_SPREAD, SEMITONE_SPREAD),
    )


def recipe(style: Style) -> Recipe:
    """Return how to make ``style``; pitch never changes the tempo."""
    ratio = family(style.voice).value * 2.0 ** (style.semitones / 12.0)
    return Recipe(length_scale=round(style.pace * ratio, 4), ratio=round(ratio, 6))


def finish(samples: Floats, rate_hz: int, how: Recipe) -> Pcm:
    """Trim, resample to 24 kHz at the recipe's ratio, round to int16 and level to -26 dBov."""
    loud = np.flatnonzero(np.abs(samples) > EDGE)
    if not len(loud):
        return np.zeros(0, np.int16)
    kept = int(KEPT_MS * rate_hz * how.ratio) // 1000
    samples = samples[max(0, loud[0] - kept) : loud[-1] + kept + 1]
    shifted = soxr.resample(samples, rate_hz * how.ratio, VOICE_RATE_HZ, quality="HQ")
    scaled = np.clip(np.rint(shifted * np.float32(32767)), -32768, 32767)
    return levelled(scaled.astype(np.int16), VOICE_RATE_HZ)

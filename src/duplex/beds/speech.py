"""Voices that say nothing: syllables of no language, by source and filter.

A plan of syllables gives pitch, voicing, breath and resonances every 5 ms, and a
compiled loop speaks it. Syllables come four to five a second, in phrases with
pauses, as in conversation; there are no words, so nothing in it can be
transcribed as part of a call. Scenes and clips of this package drive it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from duplex import _synth
from duplex.beds.tools import (
    HOP,
    HOPS,
    LOOP,
    RATE_HZ,
    Draw,
    Floats,
    filtered,
    highpass,
    levelled,
    peak,
    rolled,
)

# Formants of American English vowels, men's averages (Peterson and Barney, 1952).
_VOWELS = (
    (270, 2290, 3010),
    (390, 1990, 2550),
    (530, 1840, 2480),
    (660, 1720, 2410),
    (730, 1090, 2440),
    (570, 840, 2410),
    (440, 1020, 2240),
    (300, 870, 2240),
    (640, 1190, 2390),
    (490, 1350, 1690),
)
_NASALS = ((270, 1000, 2200), (280, 1700, 2600))
_LIQUIDS = ((310, 1060, 1380), (360, 1300, 2700), (290, 610, 2150), (260, 2070, 3020))
_HISSES = ((6_200, 1_500, 1.0), (3_300, 900, 0.9), (7_500, 4_000, 0.3), (4_500, 4_000, 0.35))
_UPPER = (3_500, 4_500)
# Brings the mean of many voices to the long-term spectrum of speech (Byrne et al., 1994).
_TIMBRE = (peak(180, 0.8, 3), peak(1_000, 0.9, -4.5), peak(2_300, 0.8, 3.5), highpass(70))
_WIDTHS = (70, 90, 140, 220, 300)
_FULL, _NONE = 1.0, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How somebody sounds; ``tract`` scales resonances, ``lively`` the melody.

    ``pace`` multiplies the speed, ``pause_s`` bounds the pauses between phrases,
    ``breath`` replaces that share of voicing by breath (1 whispers).
    """

    pitch_hz: float
    tract: float = 1.0
    pace: float = 1.0
    lively: float = 0.18
    pause_s: tuple[float, float] = (0.25, 0.8)
    syllables: tuple[int, int] = (5, 14)
    breath: float = 0.04
    tilt: float = 0.35
    rough: float = 0.03
    open_share: float = 0.62


@dataclass(slots=True)
class Plan:
    """Targets per hop, grown stretch by stretch."""

    levels: list[tuple[float, float, float]] = field(default_factory=list)
    pitch: list[float] = field(default_factory=list)
    formants: list[tuple[float, float, float]] = field(default_factory=list)
    hiss: list[tuple[float, float]] = field(default_factory=list)

    def add(
        self,
        hops: int,
        formants: tuple[float, float, float],
        *,
        voice: float = _NONE,
        breath: float = _NONE,
        noise: float = _NONE,
        hiss: tuple[float, float] = (5_000, 2_000),
    ) -> None:
        """Hold these targets for a number of hops; pitch is laid over phrases later."""
        self.levels += [(voice, breath, noise)] * hops
        self.formants += [formants] * hops
        self.hiss += [hiss] * hops

    @property
    def hops(self) -> int:
        return len(self.levels)


def people(count: int, seed: int, **changes: object) -> list[Voice]:
    """Men and women in turn, no two alike."""
    draw = Draw(seed)
    found = []
    for number in range(count):
        woman = number % 2 == 1
        found.append(
            Voice(
                pitch_hz=draw.between(165, 235) if woman else draw.between(92, 152),
                tract=draw.between(1.12, 1.22) if woman else draw.between(0.94, 1.04),
                pace=draw.between(0.88, 1.15),
                tilt=draw.between(0.25, 0.5),
                lively=draw.between(0.12, 0.26),
            )
        )
    return [replace(voice, **changes) for voice in found]  # type: ignore[arg-type]


def chatter(voice: Voice, seed: int) -> Floats:
    """One voice for a whole loop; it pauses over the seam. Shape (LOOP,), rms 1."""
    return levelled(filtered(_untreated(voice, seed), _TIMBRE, loop=True), 0.0)


def _untreated(voice: Voice, seed: int) -> Floats:
    draw = Draw(seed)
    plan = Plan()
    while True:
        pause = int(draw.between(*voice.pause_s) * RATE_HZ / HOP)
        phrase = _phrase(voice, draw)
        if plan.hops + pause + phrase.hops > HOPS:
            break
        _silence(plan, pause, voice.pitch_hz)
        _append(plan, phrase)
    _silence(plan, HOPS - plan.hops, voice.pitch_hz)
    return levelled(spoken(plan, voice, draw.seed()), 0.0)


def remark(voice: Voice, syllables: int, seed: int) -> Floats:
    """One phrase and the silence it ends in."""
    draw = Draw(seed)
    plan = Plan()
    _silence(plan, 2, voice.pitch_hz)
    _append(plan, _phrase(replace(voice, syllables=(syllables, syllables)), draw))
    _silence(plan, 8, voice.pitch_hz)
    return spoken(plan, voice, draw.seed())


def crowd(voices: Sequence[Voice], seed: int) -> Floats:
    """All voices at once, each equally loud and beginning elsewhere in the loop."""
    draw = Draw(seed)
    total = np.zeros(LOOP)
    for voice in voices:
        total += rolled(_untreated(voice, draw.seed()), draw.between(0, LOOP / RATE_HZ))
    return filtered(total, _TIMBRE, loop=True)


def spoken(plan: Plan, voice: Voice, seed: int) -> Floats:
    """Render a plan in a voice."""
    levels = _blurred(np.array(plan.levels), 1)
    pitch = _blurred(np.array(plan.pitch)[:, None], 2)
    formants = _blurred(np.array(plan.formants), 3) * voice.tract
    upper = np.full((plan.hops, len(_UPPER)), _UPPER) * voice.tract
    hiss = _blurred(np.array(plan.hiss), 1)
    widths = np.full((plan.hops, len(_WIDTHS)), _WIDTHS, dtype=np.float64)
    hz = np.concatenate((formants, upper, hiss[:, :1]), axis=1)
    width = np.concatenate((widths, hiss[:, 1:]), axis=1)
    return _synth.speak(
        np.ascontiguousarray(np.concatenate((levels, pitch), axis=1)),
        _poles(hz, width),
        HOP,
        float(RATE_HZ),
        voice.open_share,
        voice.tilt,
        voice.rough,
        seed,
    )


def _poles(hz: Floats, width: Floats) -> Floats:
    """(a1, a2) of each resonance, rounded to 2⁻²⁴ so that every machine has the same."""
    keep = np.exp(-math.pi * width / RATE_HZ)
    turn = np.cos(2 * math.pi * np.minimum(hz, 0.46 * RATE_HZ) / RATE_HZ)
    both = np.stack((-2 * keep * turn, keep * keep), axis=2).reshape(len(hz), -1)
    rounded: Floats = np.rint(both * 16_777_216) / 16_777_216
    return np.ascontiguousarray(rounded)


def _blurred(track: Floats, reach: int) -> Floats:
    """A running mean over ``reach`` hops to either side; ends are held."""
    padded = np.concatenate(
        (np.repeat(track[:1], reach, 0), track, np.repeat(track[-1:], reach, 0))
    )
    total = np.zeros_like(track)
    for shift in range(2 * reach + 1):
        total += padded[shift : shift + len(track)]
    mean: Floats = total / (2 * reach + 1)
    return mean


def _silence(plan: Plan, hops: int, pitch_hz: float) -> None:
    plan.add(hops, plan.formants[-1] if plan.hops else _mouth(_VOWELS[-1]))
    plan.pitch += [pitch_hz] * hops


def _append(plan: Plan, more: Plan) -> None:
    plan.levels += more.levels
    plan.pitch += more.pitch
    plan.formants += more.formants
    plan.hiss += more.hiss


def _mouth(formants: tuple[int, int, int]) -> tuple[float, float, float]:
    return float(formants[0]), float(formants[1]), float(formants[2])


# -- syllables -----------------------------------------------------------------


def _phrase(voice: Voice, draw: Draw) -> Plan:
    """A run of syllables under one falling melody."""
    plan = Plan()
    count = draw.whole(*voice.syllables)
    accents = []
    for number in range(count):
        accent = 1.0 if number % 3 == draw.whole(0, 2) else 0.72
        start = plan.hops
        _syllable(plan, voice, draw, accent, last=number == count - 1)
        accents.append((start, plan.hops, accent * draw.between(0.6, 1.0)))
    plan.pitch = _melody(voice, plan.hops, accents)
    return plan


def _melody(voice: Voice, hops: int, accents: Sequence[tuple[int, int, float]]) -> list[float]:
    """Pitch falls over a phrase and bulges on each syllable by its accent."""
    fall = [1 + voice.lively * (0.6 - 1.2 * hop / hops) for hop in range(hops)]
    for start, end, accent in accents:
        length = end - start
        for hop in range(start, end):
            t = (hop - start) / length
            fall[hop] += voice.lively * accent * 4 * t * (1 - t) * 0.8
    return [voice.pitch_hz * one for one in fall]


def _syllable(plan: Plan, voice: Voice, draw: Draw, accent: float, *, last: bool) -> None:
    vowel = _mouth(draw.one(_VOWELS))
    if draw.chance(0.85):
        _consonant(plan, voice, draw, vowel, accent)
    hops = draw.whole(15, 27) + (draw.whole(8, 16) if last else 0)
    _sound(plan, voice, _hops(voice, hops), vowel, accent)
    if draw.chance(0.4):
        _consonant(plan, voice, draw, vowel, accent * 0.7)


def _hops(voice: Voice, hops: int) -> int:
    return max(2, round(hops / voice.pace))


def _sound(
    plan: Plan, voice: Voice, hops: int, formants: tuple[float, float, float], level: float
) -> None:
    """A voiced stretch; its last third fades a little."""
    tail = hops // 3
    for part, share in ((hops - tail, 1.0), (tail, 0.75)):
        plan.add(
            part,
            formants,
            voice=level * share * (1 - voice.breath),
            breath=level * share * (0.012 + 0.25 * voice.breath),
        )


def _consonant(
    plan: Plan, voice: Voice, draw: Draw, vowel: tuple[float, float, float], level: float
) -> None:
    kind = draw.one(("stop", "stop", "voiced", "hiss", "hiss", "buzz", "nasal", "liquid"))
    if kind in ("stop", "voiced"):
        place = draw.one(((2_500, 1_200), (1_500, 700), (4_200, 1_800)))
        bar = 0.08 * level if kind == "voiced" else 0.0
        plan.add(_hops(voice, draw.whole(8, 13)), vowel, voice=bar)
        plan.add(2, vowel, noise=0.16 * level, hiss=place)
        if kind == "stop":
            plan.add(_hops(voice, draw.whole(4, 8)), vowel, breath=0.10 * level)
    elif kind in ("hiss", "buzz"):
        hz, width, loud = draw.one(_HISSES)
        hum = 0.25 * level if kind == "buzz" else 0.0
        loudness = loud * level * (0.035 if kind == "buzz" else 0.07)
        hops = _hops(voice, draw.whole(13, 22))
        plan.add(hops, vowel, voice=hum, noise=loudness, hiss=(hz, width))
    else:
        table = _NASALS if kind == "nasal" else _LIQUIDS
        loud = 0.35 if kind == "nasal" else 0.6
        plan.add(_hops(voice, draw.whole(9, 14)), _mouth(draw.one(table)), voice=loud * level)

"""Beds in which people are heard: babble, café, office, airport, library, children, a baby.

Each function renders one loop at no particular level. No voice says a word.
``catalogue`` lists them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from duplex.beds.speech import Plan, Voice, chatter, crowd, people, spoken
from duplex.beds.tools import (
    HOPS,
    LOOP,
    LOOP_S,
    RATE_HZ,
    Draw,
    Floats,
    bandpass,
    curve,
    filtered,
    highpass,
    hiss,
    levelled,
    lowpass,
    mix,
    peak,
    peaked,
    pink,
    placed,
    random_places,
    rolled,
    room,
    scattered,
    smooth,
    struck,
    swell,
    tone,
)


def babble() -> Floats:
    """Ten people talk at once, near."""
    return crowd(people(10, seed=101), seed=102)


def cafe() -> Floats:
    """Eight voices in a room, cups and spoons, chairs, the steam of the machine."""
    draw = Draw(110)
    voices = room(crowd(people(8, seed=111), seed=112), 0.5, wet_db=-2)
    cups = scattered(_china(draw), random_places(draw, 1.3), draw, spread_db=14)
    chairs = scattered(
        [_scrape(draw.seed(), 0.35), _scrape(draw.seed(), 0.22)],
        random_places(draw, 0.16),
        draw,
    )
    return mix(
        (voices, 0),
        (room(cups, 0.5, wet_db=-6), -10),
        (chairs, -17),
        (placed([(19.0, _steam(draw.seed()))]), -15),
        (_air(draw.seed(), 900), -20),
    )


def office() -> Floats:
    """Ventilation, keyboards, and people some desks away."""
    draw = Draw(120)
    talk = crowd(people(3, seed=121, pause_s=(0.8, 3.5)), seed=122)
    far = room(filtered(talk, [lowpass(1_800)], loop=True), 0.6, wet_db=0)
    keys = [_key(draw.seed()) for _ in range(6)]
    typing = scattered(keys, _typing(draw), draw, spread_db=7)
    phone = placed([(12.4, _desk_phone()), (14.4, _desk_phone())])
    return mix(
        (_air(draw.seed(), 500), -2),
        (far, -4),
        (room(typing, 0.4, wet_db=-8), -12),
        (room(filtered(phone, [lowpass(3_000)]), 0.6, wet_db=0), -20),
    )


def airport() -> Floats:
    """A hall: the murmur of many, trolleys, and an announcement after a chime."""
    draw = Draw(130)
    murmur = crowd(people(8, seed=131), seed=132)
    hall = room(filtered(murmur, [lowpass(2_500, 0.5)], loop=True), 1.8, wet_db=3)
    speaker = Voice(pitch_hz=205, tract=1.15, pace=0.9, lively=0.12, pause_s=(0.3, 0.5))
    words = chatter(speaker, 133)
    gate = np.zeros(LOOP)
    start, length = int(5.6 * RATE_HZ), int(11.5 * RATE_HZ)
    gate[start : start + length] = swell(length, 0.02, 0.02)
    horn = [highpass(400), lowpass(3_200), peak(1_500, 1.0, 5)]
    call = filtered(mix((words * gate, -3), (placed([(3.6, _chime())]), -8)), horn, loop=True)
    return mix(
        (hall, 0),
        (room(call, 2.2, wet_db=0), -4),
        (_trolleys(draw), -12),
        (_air(draw.seed(), 400), -10),
    )


def library() -> Floats:
    """Almost nothing: a hum, pages, a chair, somebody whispers far away."""
    draw = Draw(140)
    hum = tone(np.full(LOOP, 50.0), (0.5, 1.0, 0.15, 0.3, 0.05, 0.1), closed=True)
    pages = scattered(
        [_page(draw.seed(), seconds) for seconds in (0.35, 0.5, 0.42)],
        random_places(draw, 0.2),
        draw,
        spread_db=8,
    )
    creaks = scattered([_creak(draw.seed())], random_places(draw, 0.07), draw)
    whisper = Voice(
        pitch_hz=150, tract=1.08, breath=1.0, pause_s=(1.5, 5.0), syllables=(4, 9), pace=1.05
    )
    return mix(
        (_air(draw.seed(), 350), 0),
        (hum, -6),
        (room(pages, 0.9, wet_db=-2), -10),
        (room(creaks, 0.9, wet_db=0), -14),
        (room(chatter(whisper, draw.seed()), 0.9, wet_db=0), -14),
    )


def children() -> Floats:
    """Six children at play outdoors: shouts, laughter, a ball."""
    draw = Draw(150)
    kids = [
        Voice(
            pitch_hz=draw.between(270, 400),
            tract=draw.between(1.28, 1.42),
            pace=draw.between(0.95, 1.2),
            lively=draw.between(0.3, 0.5),
            pause_s=(0.5, 2.2),
            syllables=(2, 7),
            tilt=draw.between(0.75, 0.95),
            rough=0.04,
        )
        for _ in range(6)
    ]
    talk = filtered(crowd(kids, seed=151), [peak(2_800, 0.7, 6)], loop=True)
    fun = [(place, _laugh(kids[draw.whole(0, 5)], draw)) for place in random_places(draw, 0.3)]
    balls = scattered([_ball(draw)], random_places(draw, 0.5), draw, spread_db=8)
    outside = filtered(pink(draw.seed()), [highpass(120), lowpass(2_500)], loop=True)
    return mix((room(talk, 0.3, wet_db=-9), 0), (placed(fun), -6), (balls, -14), (outside, -18))


def crying_baby() -> Floats:
    """One infant in a room, wail after wail with a breath between."""
    draw = Draw(160)
    plan = Plan()
    baby = Voice(pitch_hz=420, tract=1.0, breath=0.03, tilt=0.75, rough=0.05, open_share=0.55)
    while True:
        wail, breath = draw.whole(130, 270), draw.whole(40, 75)
        if plan.hops + wail + breath > HOPS:
            break
        _wail(plan, draw, wail)
        _inhale(plan, draw, breath)
    rest = HOPS - plan.hops
    if rest > 130:
        _wail(plan, draw, rest - 50)
        rest = 50
    plan.add(rest, (900.0, 2_900.0, 4_600.0))
    plan.pitch += [400.0] * rest
    cry = filtered(
        spoken(plan, baby, draw.seed()), [highpass(220), peak(1_150, 0.8, 9), peak(3_900, 0.7, -14)]
    )
    return mix((room(cry, 0.4, wet_db=-8), 0), (_air(draw.seed(), 600), -34))


# -- people's sounds -----------------------------------------------------------


def _wail(plan: Plan, draw: Draw, hops: int) -> None:
    """Rises fast, holds with a tremor, falls; the mouth opens and closes."""
    top = draw.between(430, 560)
    for hop in range(hops):
        t = hop / hops
        rise = min(1.0, t / 0.18)
        arch = rise * (2 - rise) if t < 0.18 else 1.0 - 0.35 * ((t - 0.18) / 0.82) ** 2
        tremor = 1 + 0.012 * (1 if hop % 24 < 12 else -1)
        loud = min(1.0, t / 0.08, (1 - t) / 0.2)
        plan.add(
            1,
            (800.0 + 450.0 * arch, 2_500.0 + 500.0 * arch, 4_400.0),
            voice=loud,
            breath=0.03 * loud,
        )
        plan.pitch.append(top * (0.55 + 0.45 * arch) * tremor)


def _inhale(plan: Plan, draw: Draw, hops: int) -> None:
    quiet = hops // 4
    plan.add(quiet, (900.0, 2_900.0, 4_600.0))
    level = draw.between(0.05, 0.09)
    plan.add(hops - 2 * quiet, (700.0, 2_600.0, 4_300.0), breath=level)
    plan.add(quiet, (900.0, 2_900.0, 4_600.0))
    plan.pitch += [400.0] * hops


def _laugh(voice: Voice, draw: Draw) -> Floats:
    """Five to eight short breathy syllables on a falling pitch."""
    plan = Plan()
    pitch = voice.pitch_hz * draw.between(1.2, 1.6)
    for _ in range(draw.whole(5, 8)):
        plan.add(14, (750.0, 1_500.0, 2_600.0), breath=0.10)
        plan.add(20, (750.0, 1_500.0, 2_600.0), voice=1.0, breath=0.03)
        plan.pitch += [pitch] * 34
        pitch *= 0.96
    plan.add(20, (750.0, 1_500.0, 2_600.0))
    plan.pitch += [pitch] * 20
    return levelled(spoken(plan, replace(voice, breath=0.1), draw.seed()), 0)


# -- things --------------------------------------------------------------------


def _air(seed: int, hz: float) -> Floats:
    """Ventilation: noise that falls off above ``hz``."""
    return filtered(pink(seed), [highpass(40), lowpass(hz, 0.6), lowpass(3 * hz, 0.6)], loop=True)


def _china(draw: Draw) -> list[Floats]:
    """Cups, saucers and spoons: a few inharmonic partials that die at once."""
    found = []
    for _ in range(7):
        base = draw.between(1_900, 3_600)
        partials = [
            (base * factor, draw.between(0.05, 0.28) / factor, draw.between(0.3, 1.0))
            for factor in (1.0, 1.58, 2.24, 2.92)
        ]
        hit = struck(partials, 0.3)
        again = np.zeros(len(hit) + RATE_HZ // 8)
        again[: len(hit)] += hit
        later = draw.whole(RATE_HZ // 40, RATE_HZ // 9)
        again[later : later + len(hit)] += 0.5 * hit
        found.append(peaked(again))
    return found


def _scrape(seed: int, seconds: float) -> Floats:
    samples = int(seconds * RATE_HZ)
    rasp = curve([1.0, 0.2, 0.7, 0.1, 0.9, 0.3] * (samples // 360 + 1), 60)[:samples]
    noise = hiss(seed, samples) * rasp * swell(samples, 0.2, 0.3)
    return levelled(filtered(noise, [bandpass(620, 2.0), highpass(250)]), 0)


def _steam(seed: int) -> Floats:
    samples = int(2.6 * RATE_HZ)
    noise = hiss(seed, samples) * swell(samples, 0.15, 0.1)
    return filtered(noise, [highpass(2_200), peak(5_000, 1.5, 8), lowpass(9_000)])


def _key(seed: int) -> Floats:
    """A key goes down and comes up: two clicks with a dull body."""
    draw = Draw(seed)
    samples = int(0.11 * RATE_HZ)
    out = np.zeros(samples)
    for at, loud in ((0, 1.0), (draw.whole(1_300, 1_900), 0.45)):
        click = hiss(draw.seed(), 260) * swell(260, 0.03, 0.9)
        out[at : at + 260] += loud * filtered(click, [bandpass(draw.between(2_200, 3_800), 0.9)])
        body = struck([(draw.between(170, 260), 0.03, 0.6), (900, 0.02, 0.3)], 0.03)
        out[at : at + len(body)] += loud * 0.5 * body
    return peaked(out)


def _typing(draw: Draw) -> list[float]:
    """Runs of keys, six to nine a second, with pauses to think."""
    places: list[float] = []
    for _ in range(2):
        at = draw.between(0, 2)
        while at < LOOP_S - 1:
            for _ in range(draw.whole(6, 28)):
                places.append(at)
                at += draw.between(0.09, 0.19)
            at += draw.between(0.5, 2.5)
    return [place % LOOP_S for place in places]


def _desk_phone() -> Floats:
    """An electronic ring, 1.1 s."""
    samples = int(1.1 * RATE_HZ)
    steps = [820.0 if step % 2 else 1_040.0 for step in range(22)]
    hz = np.repeat(np.array(steps), samples // 22)
    return tone(hz, (1.0, 0.0, 0.25)) * swell(len(hz), 0.02, 0.1)


def _chime() -> Floats:
    """Three falling bells."""
    out = np.zeros(int(2.6 * RATE_HZ))
    for number, hz in enumerate((784.0, 659.0, 523.0)):
        bell = struck([(hz, 1.4, 1.0), (2 * hz, 0.9, 0.3), (3.01 * hz, 0.4, 0.12)], 1.4)
        at = int(number * 0.5 * RATE_HZ)
        out[at : at + len(bell)] += bell
    return out


def _trolleys(draw: Draw) -> Floats:
    """Wheels of cases over tiles: a rumble that ticks, passing."""
    noise = filtered(hiss(draw.seed()), [bandpass(420, 0.8), highpass(120)], loop=True)
    ticks = curve([1.0, 0.35] * (LOOP // 1_200), 600)
    near = np.zeros(LOOP)
    for place in random_places(draw, 0.16):
        near += rolled(_passing(draw.between(1.2, 2.2)), place)
    return noise * ticks * (near + 0.05)


def _passing(seconds: float) -> Floats:
    """The level of something that passes in the middle of a loop: 1 / (1 + t²)."""
    t = (np.arange(LOOP, dtype=np.int64) - LOOP // 2) / (seconds * RATE_HZ)
    gone: Floats = 1.0 / (1.0 + t * t)
    return gone


def _page(seed: int, seconds: float) -> Floats:
    """A page turned: paper slides, then flaps."""
    draw = Draw(seed)
    samples = int(seconds * RATE_HZ)
    flutter = curve([draw.between(0.2, 1.0) for _ in range(samples // 240 + 1)], 240)[:samples]
    slide = hiss(draw.seed(), samples) * flutter * swell(samples, 0.4, 0.25)
    flap = np.zeros(samples)
    at = int(0.7 * samples)
    length = min(900, samples - at)
    flap[at : at + length] = 2.0 * hiss(draw.seed(), length) * swell(length, 0.05, 0.9)
    return levelled(filtered(slide + flap, [highpass(900), peak(3_500, 0.8, 6)]), 0)


def _creak(seed: int) -> Floats:
    draw = Draw(seed)
    samples = int(0.5 * RATE_HZ)
    t = np.arange(samples, dtype=np.int64) / samples
    hz = 70.0 + 90.0 * smooth(t * 1.2)
    rasp = tone(hz, [1.0 / (k + 1) for k in range(18)]) * swell(samples, 0.3, 0.4)
    return levelled(filtered(rasp, [bandpass(draw.between(600, 900), 3.0), highpass(200)]), 0)


def _ball(draw: Draw) -> Floats:
    partials = [(draw.between(110, 150), 0.12, 1.0), (310, 0.06, 0.5), (900, 0.03, 0.3)]
    return peaked(struck(partials, 0.18))

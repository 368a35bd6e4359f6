"""Single sounds: what bursts over a line, and what a caller does besides talking.

Each kind has a few takes, so that no two in a row need be the same. A folder of
sound files can stand for a burst's kind. ``render`` brings them to level and rate.
"""

from __future__ import annotations

import numpy as np

from duplex.beds.outside import horn
from duplex.beds.speech import Plan, Voice, people, remark, spoken
from duplex.beds.tools import (
    RATE_HZ,
    Draw,
    Floats,
    bandpass,
    filtered,
    highpass,
    hiss,
    levelled,
    lowpass,
    peak,
    smooth,
    struck,
    swell,
    tone,
)


def horns() -> list[Floats]:
    """A car's horn: long, short, twice."""
    twice = np.concatenate((horn(420, 0.18), np.zeros(int(0.12 * RATE_HZ)), horn(420, 0.3)))
    return [horn(400, 1.1), horn(350, 0.45), twice]


def barks() -> list[Floats]:
    """A dog: two barks, three, one."""
    draw = Draw(310)
    return [_barks(draw, count) for count in (2, 3, 1)]


def doors() -> list[Floats]:
    """A door falls shut: latch, slam, the frame."""
    draw = Draw(320)
    return [_door(draw) for _ in range(3)]


def sirens() -> list[Floats]:
    """A siren that wails, one that alternates, one that yelps."""
    samples = int(3.0 * RATE_HZ)
    t = np.arange(samples, dtype=np.int64) / RATE_HZ
    wail = 700.0 + 650.0 * _triangle(t / 2.6)
    yelp = 750.0 + 600.0 * _triangle(t / 0.36)
    steps = (np.floor(t / 0.55).astype(np.int64) % 2).astype(np.float64)
    return [_siren(hz) for hz in (wail, 440.0 + 145.0 * steps, yelp)]


def phones() -> list[Floats]:
    """A telephone rings: a bell, an electronic one, a buzz on the table."""
    return [_bell(), _warble(), _buzz()]


def coughs() -> list[Floats]:
    """One cough, two, three."""
    draw = Draw(340)
    return [_coughs(draw, count) for count in (1, 2, 3)]


def throats() -> list[Floats]:
    """A throat is cleared."""
    draw = Draw(350)
    return [_throat(draw) for _ in range(2)]


def sniffs() -> list[Floats]:
    """A sniff, short and long."""
    draw = Draw(360)
    return [_sniff(draw, seconds) for seconds in (0.28, 0.42)]


def side_talks() -> list[Floats]:
    """Remarks to somebody else in the room: turned away, so dull."""
    voices = [*people(2, seed=371), *people(2, seed=372)]
    lengths = (4, 6, 3, 7)
    return [
        filtered(remark(voice, length, 373 + number), [lowpass(1_600, 0.6)])
        for number, (voice, length) in enumerate(zip(voices, lengths, strict=True))
    ]


# -- one of each ---------------------------------------------------------------


def _triangle(t: Floats) -> Floats:
    """0 to 1 and back once a turn, rounded at the turning points."""
    turn = t - np.floor(t)
    return smooth(1.0 - np.abs(2.0 * turn - 1.0))


def _barks(draw: Draw, count: int) -> Floats:
    plan = Plan()
    for _ in range(count):
        hops = draw.whole(22, 30)
        high = draw.between(460, 560)
        for hop in range(hops):
            t = hop / hops
            loud = min(1.0, t / 0.1) * (1 - t) ** 2
            plan.add(1, (750.0 + 300.0 * (1 - t), 1_350.0, 2_700.0), voice=loud, breath=0.25 * loud)
            plan.pitch.append(high * (1.05 - 0.5 * t))
        gap = draw.whole(24, 44)
        plan.add(gap, (700.0, 1_300.0, 2_600.0))
        plan.pitch += [250.0] * gap
    dog = Voice(pitch_hz=450, tract=0.9, tilt=0.8, rough=0.12, open_share=0.5)
    return filtered(spoken(plan, dog, draw.seed()), [highpass(180)])


def _door(draw: Draw) -> Floats:
    samples = int(0.9 * RATE_HZ)
    out = np.zeros(samples)
    slam = struck(
        [
            (draw.between(48, 70), 0.35, 1.0),
            (draw.between(110, 150), 0.25, 0.8),
            (draw.between(260, 340), 0.15, 0.4),
            (720, 0.06, 0.2),
        ],
        0.5,
    )
    latch = struck([(1_900, 0.03, 0.3), (3_100, 0.025, 0.25), (4_700, 0.02, 0.15)], 0.05)
    thud = filtered(hiss(draw.seed(), 2_400) * swell(2_400, 0.02, 0.95), [lowpass(900)])
    at = int(0.05 * RATE_HZ)
    out[at : at + len(slam)] += levelled(slam, 0)
    out[at : at + len(thud)] += 1.5 * levelled(thud, 0)
    for place in (0, draw.whole(1_600, 2_200)):
        out[place : place + len(latch)] += 0.5 * levelled(latch, 0)
    return out


def _siren(hz: Floats) -> Floats:
    voiced = tone(np.ascontiguousarray(hz), (1.0, 0.25, 0.55, 0.15, 0.3, 0.1, 0.15))
    return filtered(voiced * swell(len(hz), 0.06, 0.12), [peak(1_400, 0.8, 6), highpass(350)])


def _bell() -> Floats:
    """A mechanical bell: a clapper, twenty strokes a second on two gongs."""
    gongs = [
        struck([(hz, 0.5, 1.0), (hz * 2.02, 0.35, 0.5), (hz * 3.41, 0.2, 0.3)], 0.5)
        for hz in (1_240.0, 1_480.0)
    ]
    out = np.zeros(int(1.8 * RATE_HZ))
    for stroke in range(24):
        at = int(stroke * RATE_HZ / 20)
        gong = gongs[stroke % 2]
        out[at : at + len(gong)] += gong
    return out


def _warble() -> Floats:
    hz = np.repeat(np.array([960.0, 1_200.0] * 9), RATE_HZ // 15)
    return tone(hz, (1.0, 0.1, 0.3, 0.0, 0.1)) * swell(len(hz), 0.02, 0.05)


def _buzz() -> Floats:
    samples = int(0.9 * RATE_HZ)
    motor = tone(np.full(samples, 165.0), [1.0 / (k + 1) for k in range(14)])
    rattle = filtered(motor, [bandpass(330, 1.0), peak(1_100, 1.5, 6)])
    return rattle * swell(samples, 0.04, 0.04)


def _coughs(draw: Draw, count: int) -> Floats:
    """A burst through the open glottis, then a breathy end with a little voice."""
    plan = Plan()
    mouth = (650.0, 1_400.0, 2_500.0)
    for _ in range(count):
        burst = draw.whole(9, 13)
        for hop in range(burst):
            t = hop / burst
            plan.add(
                1, mouth, breath=0.9 * (1 - 0.6 * t), noise=0.12 * (1 - t), hiss=(2_800, 2_500)
            )
        tail = draw.whole(22, 34)
        for hop in range(tail):
            fade = (1 - hop / tail) ** 2
            voiced = 0.45 if 4 < hop < tail * 0.6 else 0.0
            plan.add(1, mouth, voice=voiced * fade, breath=0.35 * fade)
        gap = draw.whole(14, 26)
        plan.add(gap, mouth)
        plan.pitch += [draw.between(120, 160)] * (burst + tail + gap)
    body = Voice(pitch_hz=130, tract=1.03, rough=0.15, tilt=0.6)
    return spoken(plan, body, draw.seed())


def _throat(draw: Draw) -> Floats:
    plan = Plan()
    mouth = (520.0, 1_250.0, 2_350.0)
    for hops, voiced in ((draw.whole(30, 44), 0.8), (draw.whole(44, 64), 1.0)):
        for hop in range(hops):
            t = hop / hops
            loud = min(1.0, t / 0.15, (1 - t) / 0.35) * (1.0 if hop % 6 < 3 else 0.55)
            plan.add(1, mouth, voice=voiced * loud, breath=0.2 * loud)
        plan.pitch += [draw.between(85, 105)] * hops
        plan.add(8, mouth)
        plan.pitch += [90.0] * 8
    return spoken(plan, Voice(pitch_hz=95, rough=0.25, tilt=0.3, tract=0.98), draw.seed())


def _sniff(draw: Draw, seconds: float) -> Floats:
    samples = int(seconds * RATE_HZ)
    noise = hiss(draw.seed(), samples) * swell(samples, 0.55, 0.2)
    nose = [highpass(700), peak(1_900, 1.5, 9), peak(4_200, 1.5, 6), lowpass(7_500)]
    return filtered(noise, nose)

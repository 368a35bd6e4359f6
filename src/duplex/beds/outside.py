"""Beds without speech: traffic, vehicles from inside, building sites, weather.

Each function renders one loop at no particular level. ``catalogue`` lists them.
"""

from __future__ import annotations

import numpy as np

from duplex.beds.tools import (
    LOOP,
    LOOP_S,
    RATE_HZ,
    Draw,
    Floats,
    bandpass,
    brown_sections,
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
    wander,
)


def street() -> Floats:
    """Traffic from the pavement: a rumble, cars that pass, a horn now and then."""
    draw = Draw(210)
    rumble = filtered(
        hiss(draw.seed()), [*brown_sections(RATE_HZ), highpass(35), lowpass(400, 0.5)], loop=True
    )
    cars = np.zeros(LOOP)
    for place in random_places(draw, 0.28):
        cars += rolled(_car(draw), place)
    horns = placed([(7.3, horn(400, 0.35)), (7.9, horn(400, 0.7)), (24.1, horn(340, 0.9))])
    return mix((rumble, -3), (cars, 0), (room(horns, 1.2, wet_db=-3), -13), (pink(210), -18))


def car() -> Floats:
    """Inside a moving car: the engine's orders, the road, the wind."""
    draw = Draw(220)
    firing = wander(draw, 66, 82, 4.0)
    # A four-cylinder engine: half orders are weak, the firing order and its double strong.
    levels = (0.12, 1.0, 0.15, 0.55, 0.10, 0.30, 0.06, 0.16, 0.04, 0.08, 0.03, 0.05)
    engine = tone(firing / 2, levels, closed=True) * wander(draw, 0.8, 1.0, 2.0)
    road = filtered(
        hiss(draw.seed()), [*brown_sections(RATE_HZ), highpass(30), peak(190, 1.2, 6)], loop=True
    )
    wind = filtered(pink(draw.seed()), [highpass(300), lowpass(1_400, 0.5)], loop=True)
    bumps = scattered(
        [peaked(struck([(55, 0.25, 1.0), (110, 0.12, 0.4)], 0.3))], random_places(draw, 0.5), draw
    )
    return mix(
        (engine, -6),
        (road * wander(draw, 0.75, 1.0, 1.3), 0),
        (wind * wander(draw, 0.6, 1.0, 0.9), -13),
        (bumps, -9),
    )


def train() -> Floats:
    """Inside a train: rolling, ventilation, and wheels over the joints in pairs."""
    draw = Draw(230)
    rolling = filtered(
        pink(draw.seed()), [highpass(50), peak(160, 0.9, 8), lowpass(1_300, 0.5)], loop=True
    )
    clatter = scattered([_joint(draw) for _ in range(4)], _joints(draw), draw, spread_db=4)
    squeal = filtered(hiss(draw.seed()), [bandpass(2_850, 40), bandpass(2_850, 40)], loop=True)
    sway = wander(draw, -1.4, 1.0, 3.0)
    bend = np.maximum(sway, 0.0)
    return mix(
        (rolling * wander(draw, 0.8, 1.0, 1.6), 0),
        (room(clatter, 0.35, wet_db=-6), -2),
        (squeal * bend * bend, -24),
        (filtered(pink(draw.seed()), [highpass(200), lowpass(700)], loop=True), -9),
    )


def construction() -> Floats:
    """A building site: hammers, a pneumatic drill, a saw, diesel."""
    draw = Draw(240)
    hammers = [_hammer(draw) for _ in range(4)]
    blows: list[float] = []
    for start in (0.6, 4.1, 13.2, 17.6, 27.5):
        gap = draw.between(0.36, 0.5)
        blows += [start + number * gap + draw.between(0, 0.04) for number in range(7)]
    knocks = scattered(hammers, blows, draw, spread_db=5)
    drill = placed([(8.2, _drill(draw, 4.0)), (21.5, _drill(draw, 5.2))])
    saw = placed([(3.0, _saw(draw, 2.4)), (18.5, _saw(draw, 2.8))])
    diesel = filtered(
        tone(wander(draw, 23, 26, 3.0), [1.0 / (k + 1) for k in range(24)], closed=True),
        [lowpass(500), highpass(40)],
        loop=True,
    )
    yard = room(mix((knocks, -1), (drill, 1), (saw, -6)), 0.5, wet_db=-9)
    return mix((yard, 0), (diesel, -11), (pink(draw.seed()), -19))


def rain() -> Floats:
    """Steady rain: thousands of drops, and gutters nearer by."""
    return _rain(Draw(250))


def thunderstorm() -> Floats:
    """Rain with thunder rolling over it."""
    draw = Draw(260)
    rolls = [(place, _thunder(draw)) for place in (1.5, 9.0, 15.8, 24.6)]
    gusts = filtered(pink(draw.seed()), [highpass(60), lowpass(300, 0.6)], loop=True)
    return mix(
        (_rain(draw), 0),
        (placed(rolls), 0),
        (gusts * wander(draw, 0.2, 1.0, 3.0), -10),
    )


# -- what is heard -------------------------------------------------------------


def horn(hz: float, seconds: float) -> Floats:
    """Two reeds a third apart, as on a car."""
    samples = int(seconds * RATE_HZ)
    levels = [0.5, 0.9, 1.0, 0.8, 0.7, 0.45, 0.35, 0.25, 0.2, 0.12, 0.1, 0.06]
    low, high = (tone(np.full(samples, one), levels) for one in (hz, hz * 1.26))
    ends = int(0.02 * RATE_HZ) / samples
    return levelled((low + high) * swell(samples, ends, ends), 0)


def _car(draw: Draw) -> Floats:
    """One car passing in the middle of a loop: tyres, and an engine that drops in pitch."""
    speed = draw.between(0.45, 1.1)
    t = (np.arange(LOOP, dtype=np.int64) - LOOP // 2) / (speed * RATE_HZ)
    near: Floats = 1.0 / (1.0 + t * t)
    tyres = filtered(
        hiss(draw.seed()), [bandpass(draw.between(750, 1_100), 0.45), highpass(100)], loop=True
    )
    base = draw.between(34, 52)
    side = t / np.sqrt(1.0 + t * t)
    engine = tone(base * (1.0 - 0.05 * side), [1.0 / (k + 1) for k in range(16)])
    loud = draw.between(0.5, 1.0)
    body = levelled(tyres, 0) + 0.7 * levelled(engine, 0)
    passed: Floats = loud * body * near
    return passed


def _joint(draw: Draw) -> Floats:
    """One wheel over a joint: a thump and a short ring of the rail."""
    thump = [(draw.between(75, 120), 0.13, 1.0), (draw.between(190, 240), 0.08, 0.6)]
    ring = [
        (draw.between(880, 1_150), 0.07, 0.22),
        (draw.between(1_700, 2_300), 0.05, 0.14),
        (draw.between(2_900, 3_600), 0.03, 0.08),
    ]
    return peaked(struck(thump + ring, 0.2))


def _joints(draw: Draw) -> list[float]:
    """Two wheel sets to a bogie, two bogies to a joint, a joint every 1.28 s."""
    places = []
    for number in range(25):
        start = number * 1.28
        for offset in (0.0, 0.15, 0.52, 0.67):
            places.append((start + offset + draw.between(-0.006, 0.006)) % LOOP_S)
    return places


def _hammer(draw: Draw) -> Floats:
    """Steel on steel over a dull body."""
    base = draw.between(1_050, 1_500)
    ring = [
        (base * factor, draw.between(0.05, 0.16), draw.between(0.2, 0.5))
        for factor in (1.0, 2.31, 3.64, 4.87)
    ]
    return peaked(struck([(180, 0.06, 1.0), (420, 0.05, 0.8), *ring], 0.25))


def _drill(draw: Draw, seconds: float) -> Floats:
    """A pneumatic drill: 26 blows a second, each a burst of noise on a clank."""
    blow = int(RATE_HZ / 26)
    count = int(seconds * 26)
    noise = hiss(draw.seed(), count * blow)
    t = np.arange(blow, dtype=np.int64) / blow
    once = (1.0 - t) * (1.0 - t) * (1.0 - t)
    beat = np.concatenate([once * draw.between(0.75, 1.0) for _ in range(count)])
    clank = peaked(struck([(640, 0.03, 1.0), (1_480, 0.02, 0.7), (2_750, 0.02, 0.5)], 0.035))
    hits = np.zeros(count * blow)
    for number in range(count):
        at = number * blow
        length = min(len(clank), len(hits) - at)
        hits[at : at + length] += clank[:length]
    body = filtered(noise * beat, [bandpass(1_300, 0.5), highpass(120)])
    whole = (levelled(body, 0) + 0.9 * levelled(hits, 0)) * swell(len(hits), 0.03, 0.03)
    return levelled(whole, 0)


def _saw(draw: Draw, seconds: float) -> Floats:
    """A circular saw: a whine that sags in the wood."""
    samples = int(seconds * RATE_HZ)
    t = np.arange(samples, dtype=np.int64) / samples
    run = smooth(t / 0.15) * smooth((1.0 - t) / 0.25)
    load = smooth((t - 0.3) / 0.1) * smooth((0.75 - t) / 0.1)
    hz = 120.0 + 620.0 * run - 140.0 * load
    whine = tone(hz, (0.4, 1.0, 0.3, 0.6, 0.2, 0.3, 0.15, 0.1)) * run
    bite = filtered(hiss(draw.seed(), samples), [bandpass(3_200, 0.7)]) * load
    return levelled(levelled(whine, 0) + 1.2 * levelled(bite, 0), 0)


def _rain(draw: Draw) -> Floats:
    wash = filtered(
        hiss(draw.seed()), [highpass(400, 0.5), peak(5_200, 0.6, 5), lowpass(9_500, 0.6)], loop=True
    )
    drops = [_drop(draw, 1_200, 6_500) for _ in range(80)]
    near = [_drop(draw, 500, 1_600) for _ in range(8)]
    fall = scattered(drops, random_places(draw, 260), draw, spread_db=16)
    gutter = scattered(near, random_places(draw, 14), draw, spread_db=10)
    return mix((wash * wander(draw, 0.75, 1.0, 1.0), 0), (fall, -7), (gutter, -13))


def _drop(draw: Draw, low: float, high: float) -> Floats:
    hz = draw.between(low, high)
    return peaked(struck([(hz, draw.between(0.008, 0.03), 1.0), (hz * 1.7, 0.008, 0.4)], 0.04))


def _thunder(draw: Draw) -> Floats:
    """A crack, then a roll that comes in waves and dies away."""
    samples = int(draw.between(5.5, 7.0) * RATE_HZ)
    points = samples // 2_400 + 2
    t = [number / points for number in range(points)]
    bumps = [draw.between(0.15, 1.0) * (1 - one) * (1 - one) for one in t]
    envelope = curve([0.0, *bumps], 2_400, loop=False)[:samples]
    rumble = filtered(
        hiss(draw.seed(), samples), [*brown_sections(RATE_HZ), highpass(35), lowpass(160, 0.6)]
    )
    roar = filtered(hiss(draw.seed(), samples), [bandpass(320, 0.5), lowpass(900)])
    crack = np.zeros(samples)
    length = int(0.5 * RATE_HZ)
    crack[:length] = filtered(
        hiss(draw.seed(), length) * swell(length, 0.02, 0.95), [bandpass(900, 0.4)]
    )
    rolling = (levelled(rumble, 0) + 0.35 * levelled(roar, 0)) * envelope
    return levelled(levelled(rolling, 0) + draw.between(0.1, 0.4) * levelled(crack, 0), 0)

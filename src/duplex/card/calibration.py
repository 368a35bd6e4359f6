"""The delay of a card, measured: clicks are played, heard again, and timed by both streams.

Both streams are opened anew a few times, because the way from one to the other may be
another one each time; the ± holds for the next opening too. Needs a microphone that
hears the loudspeaker, or a cable. ``duplex talk --calibrate`` drives it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from duplex.card import clicks
from duplex.card.capture import Block, Capture
from duplex.card.clicks import Echoed, Settled
from duplex.card.device import Driver, Pcm, Wanted
from duplex.card.playback import Playback
from duplex.card.seat import Keys, Seat
from duplex.card.settling import Settling
from duplex.errors import InputError

OPENINGS = 2
SPARE = 1
"""Further openings where fewer than half of the clicks of one came back."""
FIRST_AUDIO_MS = 5_000
"""How long a microphone may take to give its first block."""
_STEP_MS = 20
_LIMIT_MS = 30_000

Sleep = Callable[[float], None]
"""Lets that many seconds go by on the clock that ``now`` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The card to calibrate, how to open it, and the clock it is watched by."""

    driver: Driver
    input: Wanted
    output: Wanted
    now: Callable[[], float]
    sleep: Sleep


def calibrate(bench: Bench, *, openings: int = OPENINGS, count: int = clicks.COUNT) -> Settled:
    """Measure the delay from output to input; blocks for about 3 s an opening.

    Raises:
        InputError: a device cannot be opened, gives no audio, or too few clicks came back.
    """
    found: list[Echoed] = []
    tried = heard = 0
    while heard < openings and tried < openings + SPARE:
        came = _opening(bench, count)
        found += came
        heard += 2 * len(came) > count
        tried += 1
    return clicks.settle(found, tried * count)


def _opening(bench: Bench, count: int) -> list[Echoed]:
    seat = Seat(bench.input, bench.output, Keys(now=bench.now), bench.now)
    with closing(seat):
        seat.open(bench.driver, begin_ms=0, limit_ms=_LIMIT_MS)
        _settle(bench, seat)
        seat.capture.clock.restart()
        seat.playback.clock.restart()
        return _played(bench, seat.capture, seat.playback, count)


def _settle(bench: Bench, seat: Seat) -> None:
    """Wait for both streams to keep the pace; a card that never does is used as it is."""
    settling, waited = Settling(seat), 0
    while not settling.steady() and waited < FIRST_AUDIO_MS:
        bench.sleep(_STEP_MS / 1000)
        waited += _STEP_MS
    if not seat.capture.frames:
        name = bench.input.device.name
        raise InputError(f'input device "{name}" gave no audio within {FIRST_AUDIO_MS} ms')


def _played(bench: Bench, capture: Capture, playback: Playback, count: int) -> list[Echoed]:
    """Play all clicks as one train, wait for the last, and look for each."""
    rate = playback.rate_hz
    gap = clicks.GAP_MS * rate // 1000
    train = np.zeros(count * gap, np.int16)
    for index in range(count):
        sent = clicks.click(index, rate)
        train[index * gap : index * gap + len(sent)] = sent
    heard: list[Block] = capture.drain()
    playback.put(train)
    for _ in range((count * clicks.GAP_MS + clicks.LONGEST_MS) // _STEP_MS):
        bench.sleep(_STEP_MS / 1000)
        heard += capture.drain()
    begun = playback.first_frame
    if begun is None or not heard:
        return []
    recorded = np.concatenate([block.pcm for block in heard])
    first = heard[0].end - len(heard[0].pcm)
    found = []
    for index in range(count):
        at = playback.clock.time_of(begun + index * gap)
        if at is None:
            continue
        echoed = _echoed(capture, recorded, first, index, at)
        if echoed is not None:
            found.append(echoed)
    return found


def _echoed(
    capture: Capture, recorded: Pcm, first: int, index: int, played_at: float
) -> Echoed | None:
    """Look for a click in what was heard from the moment it was played."""
    rate = capture.rate_hz
    zero = capture.clock.time_of(first)
    if zero is None:
        return None
    begin = max(0, int((played_at - zero) * rate))
    sent = clicks.click(index, rate)
    span = clicks.LONGEST_MS * rate // 1000 + len(sent)
    found = clicks.find(recorded[begin : begin + span], sent, rate)
    if found is None:
        return None
    place, level = found
    came_at = capture.clock.time_of(first + begin + place)
    assert came_at is not None, "a stream that gave audio has a time"
    return Echoed(delay_ms=(came_at - played_at) * 1000, level_db=level)

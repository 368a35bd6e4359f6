"""The queue of an agent's audio: whatever comes and goes, no sample and no mark is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.participants.base import Pcm
from duplex.participants.spurts import MARKS, PIECES, Spurts
from duplex.participants.steady import SteadyRate, most_held

RATE = 24_000
RATES = [8_000, 16_000, 24_000, 48_000]
STEPS = st.lists(
    st.tuples(st.just("put"), st.integers(1, 4_000))
    | st.tuples(st.just("pull"), st.sampled_from([240, 480, 4_800]))
    | st.tuples(st.just("mark"), st.just(0))
    | st.tuples(st.just("clear"), st.just(0)),
    max_size=40,
)


def loud(samples: int) -> Pcm:
    return np.full(samples, 2_000, np.int16)


@settings(max_examples=60, deadline=None)
@given(rate=st.sampled_from(RATES), steps=STEPS)
def test_what_came_was_played_or_cut_and_every_mark_returns_once(
    rate: int, steps: list[tuple[str, int]]
) -> None:
    queue = Spurts(rate, RATE)
    position = received = played = cut = made = 0
    returned: list[str] = []
    spurts = 0

    def pull(samples: int) -> None:
        nonlocal position, played
        played += sum(len(item.pcm) for item in queue.pull(samples, position))
        position += samples
        returned.extend(queue.marks())

    for kind, size in steps:
        if kind == "put":
            assert queue.put(loud(size), position, position) == 0
            received += size
            spurts += 1
        elif kind == "pull":
            pull(size)
        elif kind == "mark":
            assert queue.mark(str(made))
            made += 1
        else:
            found, names = queue.clear()
            returned.extend(names)
            if found is not None:
                cut += found.discarded
                assert 0 <= found.heard_ms <= found.received_ms + 1
    while position < 10 * RATE and (played + cut) * rate < received * RATE - spurts * RATE:
        pull(480)
    for _ in range(60):
        pull(480)
    # A spurt that ends between two output samples is rounded: one at most each time.
    assert abs(played + cut - received * RATE // rate) <= 2 * spurts + 1
    assert returned == [str(number) for number in range(made)]


def test_pieces_and_marks_that_wait_are_bounded() -> None:
    queue = Spurts(8_000, RATE)
    one = loud(1)
    assert sum(queue.put(one, 0, 0) for _ in range(PIECES + 50)) == 50
    assert [queue.mark("m") for _ in range(MARKS + 2)][-3:] == [True, False, False]


def test_a_piece_says_when_it_came_only_until_there_was_sound() -> None:
    queue = Spurts(RATE, RATE, hold_ms=0)
    queue.put(np.zeros(480, np.int16), 10, 5)
    queue.put(loud(960), 20, 5)
    told = [item for _ in range(3) for item in queue.pull(480, 0)]
    assert [(item.arrived_at, item.taken_at) for item in told] == [
        (10, 5),
        (20, None),
        (None, None),
    ]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("tick", [240, 480, 3_288, 4_800])
def test_a_steady_rate_gives_each_tick_its_share(rate: int, tick: int) -> None:
    stream = SteadyRate(RATE, rate)
    given_out = [len(stream.push(loud(tick))) for _ in range(40)]
    assert set(given_out) <= {tick * rate // RATE, tick * rate // RATE + 1}
    assert stream.delay == most_held(RATE, rate)

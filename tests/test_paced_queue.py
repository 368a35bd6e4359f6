"""The paced queue: nothing leaves unasked, and what left is what was heard."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duplex.participants.paced_queue import PacedQueue, Stretch

RATE = 24_000


def ramp(first: int, samples: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return np.arange(first, first + samples, dtype=np.int64).astype(np.int16)


@given(
    st.lists(st.integers(1, 3_000), max_size=12),
    st.lists(st.integers(1, 1_000), max_size=60),
)
def test_every_sample_leaves_once_in_order_and_is_counted(
    adds: list[int], takes: list[int]
) -> None:
    queue = PacedQueue(RATE)
    stretches = [Stretch(key=str(n)) for n in range(len(adds))]
    first = 0
    for stretch, samples in zip(stretches, adds, strict=True):
        assert queue.add(stretch, ramp(first, samples), 0) == samples
        first += samples
    out = [queue.take(samples) for samples in takes]
    pcm = np.concatenate([np.zeros(0, np.int16), *(one.pcm for one in out if one)])
    assert np.array_equal(pcm, ramp(0, min(sum(adds), sum(takes))))
    assert sum(stretch.handed for stretch in stretches) == queue.handed == len(pcm)
    assert queue.flush() == sum(adds) - len(pcm)
    assert queue.take(480) is None


def test_only_audio_that_found_the_queue_empty_says_when_it_came() -> None:
    queue, stretch = PacedQueue(RATE), Stretch(key="a")
    queue.add(stretch, ramp(0, 480), 100)
    queue.add(stretch, ramp(0, 480), 200)
    arrived = [one.arrived_at for _ in range(2) if (one := queue.take(480)) is not None]
    assert arrived == [100, None]
    assert queue.take(480) is None
    queue.add(stretch, ramp(0, 480), 300)
    last = queue.take(480)
    assert last is not None
    assert last.arrived_at == 300


def test_a_stretch_knows_where_it_began() -> None:
    queue, one, two = PacedQueue(RATE), Stretch(key="a"), Stretch(key="b")
    queue.add(one, ramp(0, 700), None)
    queue.add(two, ramp(0, 700), None)
    queue.take(480)
    assert (one.start, two.start) == (0, None)
    queue.take(480)
    assert (two.start, two.handed, two.waiting) == (700, 260, 440)


def test_what_finds_no_room_is_refused() -> None:
    queue, stretch = PacedQueue(8_000, limit_seconds=1), Stretch(key="a")
    assert queue.add(stretch, ramp(0, 7_000), None) == 7_000
    assert queue.add(stretch, ramp(0, 7_000), None) == 1_000
    assert queue.add(stretch, ramp(0, 7_000), None) == 0
    assert stretch.received == queue.waiting == 8_000

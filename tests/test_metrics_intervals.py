"""Interval arithmetic against sets of integers."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from duplex.metrics.intervals import (
    Run,
    Runs,
    clip,
    intersect,
    longest,
    merge,
    run_over,
    run_reaching,
    starts_from,
    subtract,
    total,
)

lists = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=10)


def points(runs: Runs | list[Run]) -> set[int]:
    return {at for start, end in runs for at in range(start, end)}


def assert_canonical(runs: Runs) -> None:
    assert all(start < end for start, end in runs)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(runs))


@given(lists)
def test_merge_keeps_every_point_in_the_fewest_runs(intervals: list[Run]) -> None:
    merged = merge(intervals)
    assert_canonical(merged)
    assert points(merged) == points(intervals)
    assert total(merged) == len(points(intervals))


@given(lists, lists)
def test_intersect_and_subtract_split_a_set(left: list[Run], right: list[Run]) -> None:
    a, b = merge(left), merge(right)
    both, only = intersect(a, b), subtract(a, b)
    assert_canonical(both)
    assert_canonical(only)
    assert points(both) == points(a) & points(b)
    assert points(only) == points(a) - points(b)


@given(lists, st.integers(0, 40), st.integers(0, 40))
def test_clip_keeps_what_is_inside(intervals: list[Run], start: int, end: int) -> None:
    clipped = clip(merge(intervals), start, end)
    assert_canonical(clipped)
    assert points(clipped) == points(intervals) & set(range(start, end))


@given(lists, st.integers(0, 41))
def test_look_ups_agree_with_a_search(intervals: list[Run], at: int) -> None:
    runs = merge(intervals)
    over = [run for run in runs if run[0] < at < run[1]]
    reaching = [run for run in runs if run[0] < at <= run[1]]
    assert run_over(runs, at) == (over[0] if over else None)
    assert run_reaching(runs, at) == (reaching[0] if reaching else None)
    assert [run for run in runs if run[0] >= at] == list(runs[starts_from(runs, at) :])


def test_longest_of_nothing_is_zero() -> None:
    assert longest(()) == 0
    assert longest(((0, 3), (10, 17))) == 7

"""Set arithmetic on half-open integer intervals ``[start, end)``.

Everything here is pure and keeps the unit it is given. A ``Runs`` value is
sorted, its runs are not empty and neither overlap nor touch; every function
that returns one keeps that. The metrics drive it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

Run = tuple[int, int]
Runs = tuple[Run, ...]


def merge(intervals: Iterable[Run]) -> Runs:
    """Unite intervals in any order; those that overlap or touch become one run."""
    merged: list[Run] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def clip(runs: Runs, start: int, end: int) -> Runs:
    """Keep what lies inside ``[start, end)``."""
    if start >= end:
        return ()
    first = bisect_right(runs, start, key=_end)
    last = bisect_left(runs, end, key=_start)
    return tuple((max(s, start), min(e, end)) for s, e in runs[first:last])


def intersect(left: Runs, right: Runs) -> Runs:
    """Keep what is in both; what lies clear of the other is not looked at."""
    if not left or not right:
        return ()
    start, end = max(left[0][0], right[0][0]), min(left[-1][1], right[-1][1])
    left, right = clip(left, start, end), clip(right, start, end)
    common: list[Run] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start = max(left[i][0], right[j][0])
        end = min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def subtract(runs: Runs, holes: Runs) -> Runs:
    """Keep what is in ``runs`` and in no hole."""
    kept: list[Run] = []
    j = 0
    for start, end in runs:
        while j < len(holes) and holes[j][1] <= start:
            j += 1
        at, k = start, j
        while k < len(holes) and holes[k][0] < end:
            if at < holes[k][0]:
                kept.append((at, holes[k][0]))
            at = max(at, holes[k][1])
            k += 1
        if at < end:
            kept.append((at, end))
    return tuple(kept)


def total(runs: Sequence[Run]) -> int:
    """Sum the lengths of disjoint runs."""
    return sum(end - start for start, end in runs)


def longest(runs: Sequence[Run]) -> int:
    """Length of the longest run; 0 when there is none."""
    return max((end - start for start, end in runs), default=0)


def starts_from(runs: Runs, position: int) -> int:
    """Index of the first run that starts at or after ``position``."""
    return bisect_left(runs, position, key=_start)


def run_over(runs: Runs, position: int) -> Run | None:
    """The run with ``start < position < end``; None when there is none."""
    index = bisect_left(runs, position, key=_start) - 1
    if index >= 0 and position < runs[index][1]:
        return runs[index]
    return None


def run_reaching(runs: Runs, position: int) -> Run | None:
    """The run with ``start < position <= end``; None when there is none."""
    index = bisect_left(runs, position, key=_start) - 1
    if index >= 0 and position <= runs[index][1]:
        return runs[index]
    return None


def _start(run: Run) -> int:
    return run[0]


def _end(run: Run) -> int:
    return run[1]

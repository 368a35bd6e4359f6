"""By how much two sets of calls differ, with an interval and a p-value.

A percentile bootstrap (Efron 1979) that draws whole calls, or whole pairs of
calls where they are paired: a call's turns are never torn apart. The two-sided
p-value is twice the smaller share of resamples on either side of no difference,
counted with the observed one (Davison and Hinkley 1997). Seeded, so that the same
runs always give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex.metrics.stats import RESAMPLES, Draws, Floats, Interval, Ints, counts, resampled

STATS = ("mean", "p50", "p95")
_NEEDS = 2
_Z_SUM = 1.959963984540054 + 0.8416212335729143
"""Of a two-sided test at 5 % with a power of 80 %, in standard errors."""
_AT_ONCE = 250

Values = Sequence[Sequence[float]]
"""Values by call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Current minus baseline in one statistic; None where a side has no value.

    ``ci95`` and ``p`` need two calls a side. ``detectable`` is the difference
    that calls as varied as these would have shown four times in five.
    """

    stat: str
    current: float | None
    baseline: float | None
    ci95: Interval | None = None
    p: float | None = None
    detectable: float | None = None

    @property
    def delta(self) -> float | None:
        if self.current is None or self.baseline is None:
            return None
        return self.current - self.baseline


def differences(
    current: Values, baseline: Values, *, paired: bool, seed: str
) -> tuple[Difference, ...]:
    """Compare the pooled values of two sets of calls in mean, median and p95.

    ``paired``: call N of one set belongs to call N of the other, and pairs in
    which a side has no value are left out.
    """
    if paired:
        assert len(current) == len(baseline), (len(current), len(baseline))
        both = [(a, b) for a, b in zip(current, baseline, strict=True) if a and b]
        current, baseline = [a for a, _ in both], [b for _, b in both]
    current, baseline = ([unit for unit in side if unit] for side in (current, baseline))
    ours, theirs = _Side.of(current), _Side.of(baseline)
    found = []
    seen = [side.observed() if side.count else None for side in (ours, theirs)]
    rows = None
    if min(ours.count, theirs.count) >= _NEEDS:
        rows = _drawn(ours, theirs, paired=paired, seed=seed)
    for at, stat in enumerate(STATS):
        a, b = (None if one is None else float(one[at]) for one in seen)
        if rows is None or a is None or b is None:
            found.append(Difference(stat=stat, current=a, baseline=b))
            continue
        deltas = rows[:, at]
        low, high = np.percentile(deltas, [2.5, 97.5])
        found.append(
            Difference(
                stat=stat,
                current=a,
                baseline=b,
                ci95=(float(low), float(high)),
                p=_two_sided(deltas),
                detectable=float(np.std(deltas, ddof=1)) * _Z_SUM,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One set's values in ascending order, and which call each belongs to."""

    values: Floats
    owner: Ints
    count: int

    @classmethod
    def of(cls, units: Values) -> _Side:
        pairs = sorted((v, at) for at, unit in enumerate(units) for v in unit if math.isfinite(v))
        return cls(
            values=np.array([value for value, _ in pairs], dtype=np.float64),
            owner=np.array([at for _, at in pairs], dtype=np.int64),
            count=len(units),
        )

    def observed(self) -> Floats:
        ones = np.ones((1, len(self.values)), dtype=np.int64)
        found: Floats = resampled(self.values, ones)[0]
        return found

    def drawn(self, weights: Ints) -> Floats:
        return resampled(self.values, weights[:, self.owner])


def _drawn(ours: _Side, theirs: _Side, *, paired: bool, seed: str) -> Floats:
    """Differences of the three statistics, a row a resample."""
    draws = Draws(seed)
    rows = []
    for first in range(0, RESAMPLES, _AT_ONCE):
        size = min(_AT_ONCE, RESAMPLES - first)
        mine = counts(draws.below(ours.count, (size, ours.count)), ours.count)
        other = mine
        if not paired:
            other = counts(draws.below(theirs.count, (size, theirs.count)), theirs.count)
        rows.append(ours.drawn(mine) - theirs.drawn(other))
    return np.concatenate(rows)


def _two_sided(deltas: Floats) -> float:
    below = (int((deltas <= 0).sum()) + 1) / (len(deltas) + 1)
    above = (int((deltas >= 0).sum()) + 1) / (len(deltas) + 1)
    return min(1.0, 2 * min(below, above))

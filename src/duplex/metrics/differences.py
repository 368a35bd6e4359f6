"""By how much two sets of calls differ, with an interval and a p-value.

The interval is a percentile bootstrap (Efron 1979) that draws whole calls, or whole
pairs of calls where they are paired, widened for few calls as Student's t is wider
than the normal (after Hesterberg 2015). The two-sided p-value is that of a permutation
test: calls, or the two sides of each pair, change places at random, which keeps its
level however few there are; the observed one is counted (Davison and Hinkley 1997).
A median is tested by the mean ranks of the two sides (Wilcoxon's): the median of a
mixture of slow and quick calls is that of one or the other, so medians of drawings
lie as far apart as the observed ones however large the difference.
A call's turns are never torn apart. Seeded, so that the same runs always give the
same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex.metrics.stats import RESAMPLES, Draws, Floats, Interval, Ints, counts, resampled

STATS = ("mean", "p50", "p95")
_NEEDS = 2
_Z95 = 1.959963984540054
_Z80 = 0.8416212335729143
"""What a power of 80 % adds, in standard errors."""
_LEVEL = 0.05
_AT_ONCE = 250

Values = Sequence[Sequence[float]]
"""Values by call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Current minus baseline in one statistic; None where a side has no value.

    ``ci95`` and ``p`` need two calls a side. ``detectable`` is the difference
    that calls as varied as these would have shown four times in five; None where
    there are too few for any to be significant.
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
        moved, observed = _swapped(current, baseline, paired=paired, seed=seed)
        wider = _wider(min(ours.count, theirs.count))
        possible = _least_p(ours.count, theirs.count, paired=paired) <= _LEVEL
    for at, stat in enumerate(STATS):
        a, b = (None if one is None else float(one[at]) for one in seen)
        if rows is None or a is None or b is None:
            found.append(Difference(stat=stat, current=a, baseline=b))
            continue
        deltas = rows[:, at]
        low, high = (float(np.percentile(deltas, q)) - (a - b) for q in (2.5, 97.5))
        error = float(np.std(deltas, ddof=1))
        found.append(
            Difference(
                stat=stat,
                current=a,
                baseline=b,
                ci95=(a - b + wider * min(low, 0.0), a - b + wider * max(high, 0.0)),
                p=_two_sided(moved[:, at], observed[at]),
                detectable=error * (_Z95 * wider + _Z80) if possible else None,
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

    def apart(self, mine: Ints) -> Floats:
        """How far calls of weight 1 lie from those of weight 0, in each statistic's test."""
        from scipy.stats import rankdata

        found: Floats = self.drawn(mine) - self.drawn(1 - mine)
        weights, ranks = mine[:, self.owner], rankdata(self.values)
        others = 1 - weights
        found[:, STATS.index("p50")] = (weights @ ranks) / weights.sum(axis=1) - (
            others @ ranks
        ) / others.sum(axis=1)
        return found


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


def _swapped(
    current: Values, baseline: Values, *, paired: bool, seed: str
) -> tuple[Floats, Floats]:
    """Differences where which side a call is on was drawn by lot, a row a drawing; the observed."""
    draws = Draws(f"{seed} swapped")
    side, ours = _Side.of([*current, *baseline]), len(current)
    seen = np.zeros((1, side.count), dtype=np.int64)
    seen[0, :ours] = 1
    rows = [side.apart(seen)]
    for first in range(0, RESAMPLES, _AT_ONCE):
        size = min(_AT_ONCE, RESAMPLES - first)
        if paired:
            stays = draws.below(2, (size, ours))
            mine = np.concatenate([stays, 1 - stays], axis=1)
        else:
            lots = draws.below(1 << 52, (size, side.count))
            order = np.argsort(lots, axis=1, kind="stable")
            mine = np.zeros((size, side.count), dtype=np.int64)
            np.put_along_axis(mine, order[:, :ours], 1, axis=1)
        rows.append(side.apart(mine))
    return np.concatenate(rows[1:]), rows[0][0]


def _two_sided(moved: Floats, observed: float) -> float:
    """Share of drawings with a difference at least as large, the observed one among them."""
    least = abs(observed) - 1e-9 * max(1.0, abs(observed))
    return (int((np.abs(moved) >= least).sum()) + 1) / (len(moved) + 1)


def _wider(calls: int) -> float:
    """How much wider an interval from so few calls must be than a large sample's."""
    from scipy.stats import t

    return float(t.ppf(0.975, calls - 1)) / _Z95 * math.sqrt(calls / (calls - 1))


def _least_p(ours: int, theirs: int, *, paired: bool) -> float:
    """The smallest two-sided p-value that so many calls can have."""
    ways = 1 << ours if paired else math.comb(ours + theirs, ours)
    return float(2 / ways)

"""Two shares of passed calls beside each other: interval, p-value, detectable gap.

Where calls are paired, the exact McNemar test and Newcombe's score interval for
paired shares (1998, method 10); where they are not, Fisher's exact test and
Newcombe's interval for independent ones (method 10 of the other paper).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.metrics.stats import Interval, wilson
from duplex.verdict.detectable import POWER

ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Calls that passed on both sides; ``pairs`` counts those that belong together.

    ``lost`` passed only at baseline, ``won`` only now. Shares from 0 to 1.
    """

    passed: int
    graded: int
    baseline_passed: int
    baseline_graded: int
    pairs: int = 0
    won: int = 0
    lost: int = 0

    @property
    def paired(self) -> bool:
        """Whether every graded call on either side has its pair."""
        return self.pairs > 0 and self.pairs == self.graded == self.baseline_graded

    @property
    def delta(self) -> float | None:
        if not self.graded or not self.baseline_graded:
            return None
        return self.passed / self.graded - self.baseline_passed / self.baseline_graded

    @property
    def p(self) -> float | None:
        """Two-sided chance of a difference like this if there were none."""
        if self.delta is None:
            return None
        if self.paired:
            return mcnemar(self.won, self.lost)
        from scipy.stats import fisher_exact

        table = [
            [self.passed, self.graded - self.passed],
            [self.baseline_passed, self.baseline_graded - self.baseline_passed],
        ]
        return float(fisher_exact(table).pvalue)

    @property
    def ci95(self) -> Interval | None:
        """Interval of the difference."""
        delta = self.delta
        if delta is None:
            return None
        low, high = wilson(self.passed, self.graded)
        other_low, other_high = wilson(self.baseline_passed, self.baseline_graded)
        p, q = self.passed / self.graded, self.baseline_passed / self.baseline_graded
        phi = self._phi() if self.paired else 0.0
        below = _root(p - low, other_high - q, phi)
        above = _root(high - p, q - other_low, phi)
        return max(-1.0, delta - below), min(1.0, delta + above)

    @property
    def detectable(self) -> float | None:
        """The loss in passed calls that this comparison would have flagged with a power of 80 %.

        Optimistic: it takes the baseline always to pass. None when no loss would do.
        """
        if self.paired:
            return _paired_gap(self.pairs)
        return _independent_gap(self.graded, self.baseline_graded)

    def _phi(self) -> float:
        """Correlation of the two sides over the pairs (Newcombe's, with its correction)."""
        both = self.passed - self.won
        neither = self.pairs - both - self.won - self.lost
        margins = (
            (both + self.won) * (self.lost + neither) * (both + self.lost) * (self.won + neither)
        )
        if not margins:
            return 0.0
        cross = float(both * neither - self.won * self.lost)
        if cross > 0:
            cross = max(0.0, cross - self.pairs / 2)
        spread: float = math.sqrt(margins)
        return cross / spread


def mcnemar(won: int, lost: int) -> float:
    """Exact two-sided p-value of the discordant pairs (binomial at one half)."""
    total, least = won + lost, min(won, lost)
    ways = sum(math.comb(total, k) for k in range(least + 1))
    return min(1.0, float(2 * ways / (1 << total)))


def shares(
    pairs: Sequence[tuple[bool, bool]],
    current: Sequence[bool] = (),
    baseline: Sequence[bool] = (),
) -> Shares:
    """Count a check: ``pairs`` are (now, then); the others belong to no pair."""
    now = [mine for mine, _ in pairs] + list(current)
    then = [other for _, other in pairs] + list(baseline)
    return Shares(
        passed=sum(now),
        graded=len(now),
        baseline_passed=sum(then),
        baseline_graded=len(then),
        pairs=len(pairs),
        won=sum(mine and not other for mine, other in pairs),
        lost=sum(other and not mine for mine, other in pairs),
    )


def _root(a: float, b: float, phi: float) -> float:
    return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))


def _paired_gap(pairs: int) -> float | None:
    """Losses are significant from ``2 · 0.5^k ≤ 5 %`` on, six in a row."""
    needed = next((k for k in range(1, pairs + 1) if mcnemar(0, k) <= ALPHA), None)
    return None if needed is None else _rate_with_power(needed, pairs)


def _independent_gap(graded: int, baseline: int) -> float | None:
    if not graded or not baseline:
        return None
    from scipy.stats import fisher_exact

    def significant(failed: int) -> bool:
        table = [[graded - failed, failed], [baseline, 0]]
        return float(fisher_exact(table).pvalue) <= ALPHA

    if not significant(graded):
        return None
    low, high = 0, graded
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if significant(middle) else (middle, high)
    return _rate_with_power(high, graded)


def _rate_with_power(needed: int, calls: int) -> float:
    from scipy.stats import beta

    return float(beta.ppf(POWER, needed, calls - needed + 1))

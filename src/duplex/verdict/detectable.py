"""How large a difference in failures a sample of this size could have shown.

Optimistic on purpose: it takes the other side never to fail, counts calls and not
verdicts, and ignores the correction for many comparisons. A gap it cannot see
exists all the same.
"""

from __future__ import annotations

import math

POWER = 0.8


def detectable_gap(calls: int, rest: int, *, alpha: float, power: float = POWER) -> float | None:
    """Points in per cent by which a value must fail more often to be flagged with ``power``.

    The fewest failures ``a`` of ``calls`` that a one-sided Fisher exact test calls
    significant at ``alpha`` when none of ``rest`` fails, and the failure rate at
    which at least ``a`` come up with ``power``. None when no count suffices.
    """
    needed = next(
        (
            failures
            for failures in range(1, calls + 1)
            if math.comb(calls, failures) <= alpha * math.comb(calls + rest, failures)
        ),
        None,
    )
    if needed is None:
        return None
    from scipy.stats import beta

    # P(Bin(n, p) >= a) is the beta distribution's function at p, with a and n - a + 1.
    return 100 * float(beta.ppf(power, needed, calls - needed + 1))

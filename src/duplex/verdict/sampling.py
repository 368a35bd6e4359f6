"""Several samples of one scenario: how many must pass, and pass@k and pass^k.

Counts only. pass@k and pass^k are estimated without bias from counts: over all
choices of k of the n samples, the share in which any, or every, one passed
(Chen et al. 2021; Yao et al. 2024).
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal


def needed(samples: int, pass_rate: float) -> int:
    """Samples that must pass: ``pass_rate · samples`` rounded half up, at least 1.

    The rate is taken as it is written, so 0.35 of 10 is 3.5 and makes 4.
    """
    asked = Decimal(repr(pass_rate)) * samples
    return max(1, int(asked.to_integral_value(rounding=ROUND_HALF_UP)))


def pass_at_k(n: int, passed: int, k: int) -> float | None:
    """Chance that any of ``k`` samples passes, from ``passed`` of ``n``; None when k > n."""
    if not 1 <= k <= n:
        return None
    return 1 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float | None:
    """Chance that all of ``k`` samples pass, from ``passed`` of ``n``; None when k > n."""
    if not 1 <= k <= n:
        return None
    return math.comb(passed, k) / math.comb(n, k)

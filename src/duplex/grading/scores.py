"""Means of scores that may be missing or broken.

A score that is no finite number is counted aside and changes nothing else, so
one broken grader cannot poison a run; the order of scores never matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """``n`` usable scores with their mean and extremes, None when there are none.

    ``invalid`` counts scores that were given and are not finite, ``missing`` those
    not given at all.
    """

    n: int
    invalid: int
    missing: int
    mean: float | None
    best: float | None
    worst: float | None


def pool(scores: Iterable[float | None]) -> Pool:
    """Pool scores; not given and not finite ones are counted, never used."""
    given = list(scores)
    missing = sum(score is None for score in given)
    usable = [score for score in given if score is not None and math.isfinite(score)]
    return Pool(
        n=len(usable),
        invalid=len(given) - missing - len(usable),
        missing=missing,
        mean=math.fsum(usable) / len(usable) if usable else None,
        best=max(usable, default=None),
        worst=min(usable, default=None),
    )


def semantic_score(dimensions: Mapping[str, float | None]) -> float | None:
    """Return the mean of the dimensions that apply, to 4 decimals; None for none."""
    mean = pool(dimensions.values()).mean
    return None if mean is None else round(mean, 4)

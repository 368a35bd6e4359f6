"""A broken score spoils no mean."""

from __future__ import annotations

import itertools
import math

import pytest

from duplex.grading.scores import pool, semantic_score


@pytest.mark.parametrize("scores", list(itertools.permutations([1.0, math.nan, 0.0])))
def test_a_score_that_is_no_number_is_counted_aside_in_every_order(
    scores: tuple[float, ...],
) -> None:
    """pydantic/logfire-js#250: a number that is none poisons no mean."""
    pooled = pool(scores)
    assert (pooled.mean, pooled.n, pooled.invalid, pooled.missing) == (0.5, 2, 1, 0)
    assert (pooled.best, pooled.worst) == (1.0, 0.0)


def test_nothing_to_pool_is_unknown_and_not_zero() -> None:
    pooled = pool([None, math.inf])
    assert (pooled.mean, pooled.best, pooled.worst) == (None, None, None)
    assert (pooled.n, pooled.invalid, pooled.missing) == (0, 1, 1)


def test_the_semantic_score_is_the_mean_of_what_applies() -> None:
    dimensions = {"a": 0.75, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.75, "f": None}
    assert semantic_score(dimensions) == 0.9
    assert semantic_score({"a": None}) is None

"""Statistics against numpy and scipy, and what they must never do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from duplex.metrics.stats import (
    Distribution,
    Measured,
    Rate,
    distribution,
    percentile,
    pooled,
    resampled,
)

FINITE = st.floats(-1e6, 1e6, allow_nan=False)


def spread(values: list[float]) -> Distribution:
    return distribution([Measured(value=v) for v in values], seed="test", reason="nothing")


@given(st.lists(FINITE, min_size=1, max_size=60), st.sampled_from((0.0, 2.5, 50, 95, 99, 100)))
def test_a_percentile_is_that_of_numpy(values: list[float], q: float) -> None:
    assert percentile(sorted(values), q) == pytest.approx(
        float(np.percentile(values, q)), rel=1e-12, abs=1e-9
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=40))
def test_a_distribution_reports_what_numpy_does(values: list[float]) -> None:
    found = spread(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(float(np.mean(values)), abs=1e-6)
    assert (found.min, found.max) == (min(values), max(values))
    assert [found.p50, found.p95, found.p99] == pytest.approx(
        [float(v) for v in np.percentile(values, [50, 95, 99])], abs=1e-6
    )


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_rate_has_the_wilson_interval_of_scipy(counts: tuple[int, int]) -> None:
    found = Rate(numerator=counts[0], denominator=counts[1]).ci95
    wanted = binomtest(*counts).proportion_ci(confidence_level=0.95, method="wilson")
    assert found == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_a_rate_of_nothing_is_unknown_not_zero() -> None:
    found = Rate(numerator=0, denominator=0).as_json()
    assert found == {"rate": None, "numerator": 0, "denominator": 0, "n": 0, "ci95": None}


def test_a_count_above_its_base_has_no_interval() -> None:
    found = Rate(numerator=3, denominator=2)
    assert (found.value, found.ci95) == (1.5, None)


def test_values_that_are_not_finite_are_counted_and_left_out_in_every_order() -> None:
    for values in itertools.permutations((1.0, math.nan, 0.0, math.inf)):
        found = spread(list(values))
        assert (found.mean, found.n, found.invalid) == (0.5, 2, 2)
        assert (found.min, found.max) == (0.0, 1.0)


def test_nothing_measured_is_null_with_a_reason() -> None:
    found = spread([])
    assert (found.n, found.mean, found.p95, found.ci95) == (0, None, None, None)
    assert found.reason == "nothing"


def test_only_invalid_values_are_null_and_say_so() -> None:
    found = spread([math.nan])
    assert (found.n, found.mean, found.reason) == (0, None, "1 value is not finite")


@pytest.mark.parametrize(
    ("n", "flagged"), [(19, ["p95", "p99"]), (20, ["p99"]), (99, ["p99"]), (100, [])]
)
def test_percentiles_of_few_values_are_flagged(n: int, flagged: list[str]) -> None:
    flags = spread([float(v) for v in range(n)]).flags
    assert [flag.split()[0] for flag in flags] == flagged


def test_a_single_value_has_no_interval() -> None:
    found = spread([7.0])
    assert (found.mean, found.ci95, found.ci95_p50) == (7.0, None, None)


def test_the_typical_width_is_the_root_mean_square_of_the_known() -> None:
    values = [
        Measured(value=1.0, plus_minus=3.0),
        Measured(value=2.0, plus_minus=math.nan),
        Measured(value=3.0, plus_minus=4.0),
        Measured(value=4.0, unreliable=True),
    ]
    found = distribution(values, seed="s", reason="")
    assert found.plus_minus == pytest.approx(math.sqrt(12.5))
    assert (found.n, found.unreliable) == (4, 1)


def test_the_interval_of_the_mean_matches_theory() -> None:
    values = list(np.random.default_rng(3).normal(800, 100, 400))
    found = spread(values)
    assert found.ci95 is not None
    half = 1.96 * np.std(values) / math.sqrt(len(values))
    assert found.ci95 == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=1.5)


def test_the_interval_of_percentiles_matches_a_bootstrap_by_numpy() -> None:
    values = np.random.default_rng(5).exponential(500, 150)
    found = spread(list(values))
    rng = np.random.default_rng(11)
    drawn = rng.choice(values, (8_000, len(values)))
    for interval, q in ((found.ci95_p50, 50), (found.ci95_p95, 95)):
        wanted = np.percentile(np.percentile(drawn, q, axis=1), [2.5, 97.5])
        assert interval == pytest.approx(tuple(wanted), rel=0.06)


@pytest.mark.parametrize("sizes", [[1] * 60, [3, 40, 1, 17, 60, 9, 25, 30, 4, 12, 33, 8, 50, 2]])
@pytest.mark.parametrize("name", ["mean", "p50", "p95"])
def test_intervals_over_calls_are_those_of_scipy(sizes: list[int], name: str) -> None:
    random = np.random.default_rng(8)
    # Calls differ from each other, so that drawing values instead of calls would be far too sure.
    calls = [random.normal(random.normal(800, 200), 60, size) for size in sizes]
    statistic: dict[str, Callable[[npt.NDArray[np.float64]], float]] = {
        "mean": lambda values: float(np.mean(values)),
        "p50": lambda values: float(np.percentile(values, 50)),
        "p95": lambda values: float(np.percentile(values, 95)),
    }
    wanted = bootstrap(
        (np.arange(len(calls)),),
        lambda drawn: statistic[name](np.concatenate([calls[int(call)] for call in drawn])),
        vectorized=False,
        n_resamples=2_000,
        method="percentile",
        rng=np.random.default_rng(4),
    ).confidence_interval
    found = pooled(
        [[Measured(value=float(v)) for v in call] for call in calls], seed="s", reason=""
    )
    interval = {"mean": found.ci95, "p50": found.ci95_p50, "p95": found.ci95_p95}[name]
    assert interval is not None
    width = wanted.high - wanted.low
    assert interval == pytest.approx((wanted.low, wanted.high), abs=0.15 * width)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12).flatmap(
        lambda values: st.tuples(
            st.just(sorted(values)),
            st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values)).filter(any),
        )
    )
)
def test_weighted_statistics_are_those_of_the_values_written_out(
    case: tuple[list[int], list[int]],
) -> None:
    values = np.array(case[0], dtype=np.float64)
    weights = np.array([case[1]], dtype=np.int64)
    written = np.repeat(values, case[1])
    wanted = [np.mean(written), np.percentile(written, 50), np.percentile(written, 95)]
    assert resampled(values, weights)[0] == pytest.approx(wanted)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = [Measured(value=float(v * v)) for v in range(30)]
    first = distribution(values, seed="run_a", reason="")
    assert distribution(list(reversed(values)), seed="run_a", reason="").ci95_p95 is not None
    assert distribution(values, seed="run_a", reason="") == first
    assert distribution(values, seed="run_b", reason="").ci95 != first.ci95


def test_pooling_draws_whole_calls() -> None:
    calls = [[Measured(value=v)] * 50 for v in (100.0, 200.0, 900.0)]
    by_call = pooled(calls, seed="s", reason="")
    flat = distribution([value for call in calls for value in call], seed="s", reason="")
    assert by_call.mean == flat.mean == 400.0
    assert by_call.resampled == "calls"
    assert by_call.ci95 is not None
    assert flat.ci95 is not None
    assert by_call.ci95[1] - by_call.ci95[0] > 4 * (flat.ci95[1] - flat.ci95[0])


def test_one_call_alone_has_no_interval_over_calls() -> None:
    found = pooled([[Measured(value=1.0), Measured(value=2.0)], []], seed="s", reason="")
    assert (found.n, found.mean, found.ci95) == (2, 1.5, None)


def test_many_values_are_resampled_in_bounded_pieces() -> None:
    found = spread([float(v % 97) for v in range(3_000)])
    assert found.ci95 is not None
    assert found.ci95[0] < 47.9 < found.ci95[1]

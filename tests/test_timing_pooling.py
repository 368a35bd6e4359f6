"""Pooling timing blocks over calls."""

from __future__ import annotations

import json

import pytest

from duplex.errors import InputError
from duplex.metrics.pooling import pool
from duplex.metrics.timing import timing
from duplex.metrics.timing_policy import TimingPolicy
from duplex.values import Action, Json
from timing_scenes import label, measured, nulls, speech


def call(delay: float, second: float | None = None) -> Json:
    """A call whose turns are answered after so many seconds; None: never."""
    replies = [(2 + delay, 4 + delay)]
    if second is not None:
        replies.append((10 + second, 12 + second))
    return measured([(0, 2), (8, 10)], replies, 20).as_json()


def part(document: Json, *names: str) -> Json:
    for name in names:
        assert isinstance(document, dict)
        document = document[name]
    return document


def test_latencies_pool_as_values_not_as_means() -> None:
    found = pool([call(0.5, 0.7), call(1.5)], seed="run")
    assert part(found, "response_latency", "n") == 3
    assert part(found, "response_latency", "mean") == pytest.approx(900)
    assert part(found, "response_latency", "p50") == pytest.approx(700)
    assert part(found, "response_latency", "resampled") == "calls"


def test_rates_pool_their_counts() -> None:
    found = pool([call(0.5, 0.7), call(1.5), call(1.5)], seed="run")
    assert part(found, "response_rate", "numerator") == 4
    assert part(found, "response_rate", "denominator") == 6
    assert part(found, "ledger", "unanswered") == 2


def test_ratios_pool_numerators_and_denominators() -> None:
    short = measured([(0, 1)], [(0.5, 1.5)], 2).as_json()
    long = measured([(0, 10)], [(20, 30)], 40).as_json()
    found = pool([short, long], seed="run")
    assert found["overlap_ratio"] == pytest.approx(0.5 / 21.5, abs=1e-6)
    assert found["talk_ratio"] == 1.0


def test_yields_and_selectivity_pool_too() -> None:
    labels = [label(6, 6.4, Action.BACKCHANNEL)]
    one = measured([(4, 5), (6, 6.4)], [(1, 4.6), (5.6, 9)], 12, labels=labels).as_json()
    found = pool([one, one], seed="run")
    assert part(found, "time_to_yield", "mean") == pytest.approx(600)
    assert part(found, "yield_rate", "denominator") == 2
    assert part(found, "selectivity_backchannel", "numerator") == 2


def test_the_seed_fixes_the_intervals() -> None:
    calls = [call(0.3 + n * n / 77, 0.9 + n / 13) for n in range(8)]
    first, again = pool(calls, seed="run_a"), pool(calls, seed="run_a")
    assert first == again
    assert part(first, "response_latency", "ci95") != part(
        pool(calls, seed="run_b"), "response_latency", "ci95"
    )


def test_what_was_stored_pools_like_what_was_measured() -> None:
    calls = [call(0.5, 0.7), call(1.5)]
    stored: list[Json] = [json.loads(json.dumps(document)) for document in calls]
    assert pool(stored, seed="run") == pool(calls, seed="run")


def test_no_calls_are_unknown_not_zero() -> None:
    found = pool([], seed="run")
    assert found["calls"] == 0
    assert part(found, "response_latency", "mean") is None
    assert part(found, "unknown", "/response_latency") == "no call measured one"
    assert part(found, "unknown", "/response_rate") == "nothing to count"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_null_of_a_pool_has_its_reason(count: int) -> None:
    found = pool([measured([], [], 3).as_json()] * count, seed="run")
    unknown = found.pop("unknown")
    assert isinstance(unknown, dict)
    for pointer in nulls(found):
        top = "/" + pointer.split("/")[1]
        assert pointer in unknown or top in unknown, pointer


@pytest.mark.parametrize("what", ["timing_version", "detector", "policy"])
def test_different_rulers_are_never_pooled(what: str) -> None:
    first = call(0.5)
    assert isinstance(first, dict)
    other: dict[str, Json] = {"timing_version": "9.9", "detector": "ear", "policy": {}}
    with pytest.raises(InputError, match=f"timing block 1: {what} .* of block 0"):
        pool([first, {**first, what: other[what]}], seed="run")


def test_another_policy_is_refused_by_its_numbers() -> None:
    heard = speech([(0, 2)], [(2.5, 3)], 9)
    strict = timing(heard, TimingPolicy(response_deadline_ms=1_000)).as_json()
    with pytest.raises(InputError, match="policy"):
        pool([timing(heard).as_json(), strict], seed="run")


def test_a_block_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError, match=r"timing block 0: timing_version: field required"):
        pool([{}], seed="run")

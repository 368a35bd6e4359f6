"""The verdict over a run: sums, checks against their shares, every way to fail."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.results import Run
from duplex.verdict.block import blocks, judged
from duplex.verdict.sampling import needed, pass_at_k, pass_hat_k
from duplex.verdict.verdict import Verdict, attempts, summarise
from verdict_runs import arms, call, run


def verdict_of(made: Run) -> Verdict:
    _, _, verdict = judged(made)
    assert verdict is not None
    return verdict


def kinds(made: Run) -> list[str]:
    return [failure.kind for failure in verdict_of(made).failures]


def test_a_run_whose_every_call_passed_passes() -> None:
    made = run(call(), call(scenario="other"))
    assert verdict_of(made).passed
    assert verdict_of(made).score == 100


def test_one_failed_call_fails_the_run_where_every_sample_must_pass() -> None:
    (failure,) = verdict_of(run(call(), call(scenario="other", passed=False))).failures
    assert failure.kind == "METRIC_BELOW_MIN_PASS_RATE"
    assert (failure.pass_rate, failure.min_pass_rate) == (50, 100)
    assert "task_completed passed on 1 of 2 calls" in failure.sentence


def test_a_threshold_is_graded_call_by_call_against_its_share() -> None:
    fast, slow = call(), call(scenario="slow", latencies=(2000.0,))
    check = "response_latency.p50 <= 1500ms"
    missed = verdict_of(run(fast, slow, checks=[check]))
    assert [tally.pass_rate for tally in missed.checks] == [100, 50]
    assert [failure.kind for failure in missed.failures] == ["METRIC_BELOW_MIN_PASS_RATE"]
    assert missed.checks[1].criterion.inherited
    assert missed.checks[1].criterion.min_pass_rate == 80
    assert verdict_of(run(fast, slow, checks=[f"{check} @ 50%"])).passed


def test_a_high_score_does_not_pass_and_a_low_one_does_not_fail() -> None:
    many = [call(sample=n) for n in range(1, 20)]
    high = run(*many, call(sample=20, passed=False))
    assert not verdict_of(high).passed
    assert verdict_of(high).score == 95
    slow = [call(sample=n, latencies=(9000.0,)) for n in range(1, 6)]
    low = run(*slow, checks=["response_latency.p50 <= 1s @ 0%"])
    assert verdict_of(low).passed
    assert verdict_of(low).score == 50


def test_a_check_that_no_call_could_be_graded_on_fails_by_its_name() -> None:
    (failure,) = verdict_of(run(call(), checks=["time_to_yield.p50 <= 1s"])).failures
    assert failure.kind == "METRIC_NOT_EVALUATED"
    assert failure.criterion is not None
    assert failure.criterion.name == "time_to_yield.p50 <= 1000ms"


def test_a_check_not_measured_in_one_call_leaves_that_call_out() -> None:
    made = run(call(), call(scenario="mute", latencies=()), checks=["response_latency <= 2s"])
    assert verdict_of(made).passed
    assert [tally.evaluated_calls for tally in verdict_of(made).checks] == [2, 1]


def test_a_call_of_ours_that_failed_is_missing_coverage_and_no_failed_check() -> None:
    made = run(call(), call(scenario="lost", outcome="invalidated"))
    (failure,) = verdict_of(made).failures
    assert failure.kind == "INCOMPLETE_COVERAGE"
    assert (failure.evaluated_calls, failure.expected_calls) == (1, 2)


def test_an_agent_that_never_spoke_is_a_failure_of_its_own() -> None:
    made = run(
        call(),
        call(scenario="silent", outcome="never_spoke", final=False),
        call(scenario="silent", outcome="never_spoke", attempt=2),
    )
    (failure,) = verdict_of(made).failures
    assert failure.kind == "AGENT_NEVER_SPOKE"
    assert (failure.never_spoke_calls, failure.total_calls, failure.silent_attempts) == (1, 2, 2)
    assert failure.agent == "local"


def test_a_silent_call_that_a_retry_reached_counts_by_the_retry() -> None:
    made = run(
        call(outcome="never_spoke", final=False),
        call(attempt=2),
    )
    assert verdict_of(made).passed
    found = attempts(judged(made)[0])
    assert (found.test_cases, found.attempts, found.silent) == (1, 2, 1)
    assert (found.retries, found.still_silent) == (1, 0)


def test_a_run_that_was_cancelled_fails_whatever_it_held() -> None:
    assert kinds(run(call(), status="cancelled")) == ["RUN_NOT_COMPLETED"]


def test_a_run_in_progress_has_sums_and_no_verdict() -> None:
    made = run(call(), status="running", expected=5)
    found = blocks(made)
    assert found["verdict"] is None
    assert isinstance(found["summary"], dict)
    assert found["summary"]["evaluated"] == 1


def test_the_sums_are_those_of_the_report() -> None:
    made = run(
        call(),
        call(scenario="b", passed=False),
        call(scenario="c", outcome="invalidated"),
        call(scenario="d", latencies=(3000.0,)),
        checks=["response_latency <= 1.5s"],
    )
    cases, checks, _ = judged(made)
    found = summarise(cases.cases, checks)
    assert (found.total, found.counted, found.evaluated) == (4, 3, 3)
    assert (found.passed, found.failed) == (1, 2)
    assert found.call_pass_rate == pytest.approx(100 / 3)
    assert found.score == pytest.approx((200 / 3 + 200 / 3) / 2)
    assert found.check_pass_rate == pytest.approx(400 / 6)


def test_samples_pass_by_the_rule_and_one_scenario_cannot_hide_behind_another() -> None:
    good = [call(scenario="good", sample=n) for n in (1, 2, 3, 4)]
    bad = [call(scenario="bad", sample=n, passed=n == 1) for n in (1, 2, 3, 4)]
    made = run(*good, *bad, task_rate=50, pass_rate=0.5)
    (failure,) = verdict_of(made).failures
    assert (failure.scenario, failure.pass_rate, failure.min_pass_rate) == ("bad", 25, 50)
    tallies = {one.scenario: one for one in verdict_of(made).scenarios}
    assert (tallies["good"].passed, tallies["bad"].passed) == (True, False)


def test_a_scenarios_own_check_grades_only_its_calls() -> None:
    from duplex.verdict.criteria import pinned

    checks = pinned((), {"slow": ["response_latency <= 1s"]})
    made = run(call(scenario="fast"), call(scenario="slow"))
    plan = made.run.duplex["plan"]
    assert isinstance(plan, dict)
    told = {**plan, "criteria": [one.as_json() for one in checks]}
    made = made.model_copy(update={"run": made.run.model_copy(update={"duplex": {"plan": told}})})
    tally = verdict_of(made).checks[1]
    assert (tally.evaluated_calls, tally.passed_calls) == (1, 0)


def test_arms_of_a_sweep_are_told_apart_and_attributed() -> None:
    loud, quiet = arms("0", "20")
    held = [call(arm=loud, sample=n, passed=n < 2) for n in range(1, 9)]
    held += [call(arm=quiet, sample=n) for n in range(1, 9)]
    found = blocks(run(*held, arms=(quiet, loud)))
    sweep = found["sweep"]
    assert isinstance(sweep, dict)
    assert isinstance(sweep["checks"], list)
    (check,) = sweep["checks"]
    assert isinstance(check, dict)
    assert check["attribution"] == "PROPERTY_ATTRIBUTABLE"
    assert check["metricName"] == "task_completed"
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("samples", "rate", "wanted"),
    [
        (3, 0.67, 2),
        (3, 0.5, 2),
        (5, 0.5, 3),
        (4, 1.0, 4),
        (10, 0.01, 1),
        (10, 0.35, 4),
        (1, 0.2, 1),
    ],
)
def test_the_needed_samples_are_rounded_half_up_and_at_least_one(
    samples: int, rate: float, wanted: int
) -> None:
    assert needed(samples, rate) == wanted


@given(st.integers(1, 8), st.data())
def test_pass_at_k_and_pass_hat_k_are_means_over_all_choices(n: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    samples = [at < passed for at in range(n)]
    choices = list(combinations(samples, k))
    assert pass_at_k(n, passed, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, passed, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_more_samples_than_were_graded_tell_nothing() -> None:
    assert pass_at_k(3, 1, 4) is None
    assert pass_hat_k(3, 1, 0) is None

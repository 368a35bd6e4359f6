"""Checks as people write them: what is read, what is refused, and what each says of a call."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.errors import InputError
from duplex.grading.checks import CHECKS
from duplex.scenario import Question
from duplex.verdict.criteria import from_json, pinned, read_check
from duplex.verdict.readings import METRICS, find
from verdict_runs import call


@pytest.mark.parametrize(
    ("text", "limit", "share"),
    [
        ("response_latency.p95 <= 1500ms", 1500, 80),
        ("response_latency.p95<=1.5s", 1500, 80),
        ("response_rate >= 90%", 0.9, 80),
        ("response_rate >= 0.9 @ 95%", 0.9, 95),
        ("false_yield.count == 0", 0, 80),
        ("Quick enough: response_latency < 2s @ 50 %", 2000, 50),
        ("response_latency.p95 - response_latency.p50 <= 800ms", 800, 80),
        ("response_latency.p95 / response_latency.p50 <= 2", 2, 80),
        ("2 * (overlap_ratio + 0.1) <= 1", 1, 80),
    ],
)
def test_a_check_is_read_with_its_unit_and_share(text: str, limit: float, share: float) -> None:
    check = read_check(text)
    assert check.limit == pytest.approx(limit)
    assert check.min_pass_rate == share
    assert check.inherited == ("@" not in text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("response_latency.p95 <= 1500", "no unit of time"),
        ("response_latency <= 90%", "no unit of time"),
        ("overlap_ratio <= 3ms", "is a time"),
        ("eot_misprediction <= 5%", "is a share"),
        ("response_rate >= 90", "no share"),
        ("respnse_latency <= 1s", "nearest: response_latency"),
        ("response_latency.p96 <= 1s", "has no p96"),
        ("response_latency", "no limit"),
        ("task_completed <= 1", "yes or no"),
        ("response_latency + overlap_ratio <= 1s", "adds milliseconds"),
        ("response_latency * response_latency <= 1s", "multiplies"),
        ("1 / response_latency <= 1", "divides"),
        ("3 <= 4", "names no metric"),
        ("__import__('os').system('x') <= 1", "no expression"),
        ("response_latency[0] <= 1s", "no expression"),
        ("(" * 300 + "response_latency" + ")" * 300 + " <= 1s", "characters"),
        ("response_latency <= 1s @ 101%", "at most 100"),
        ("", "no expression"),
    ],
)
def test_a_wrong_check_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read_check(text)
    assert "\n" not in str(refused.value)


def test_a_check_asked_for_twice_is_refused() -> None:
    with pytest.raises(InputError, match="there twice"):
        pinned(["response_latency <= 1s", "response_latency <= 1000 ms"])


def test_the_task_is_always_among_the_checks() -> None:
    assert [check.id for check in pinned(())] == ["task_completed"]
    with pytest.raises(InputError, match="every run has it"):
        pinned(["task_completed"])


def test_a_check_that_no_call_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match='no call has a check "aplication_state", nearest: appl'):
        pinned(["check.aplication_state"])
    with pytest.raises(InputError, match='no call has a check "question_upsell"'):
        pinned(["check.question_upsell"], questions={})
    asked = Question(id="upsell", question="Did it upsell?")
    assert len(pinned(["Mine: check.question_upsell"], questions={}, asked=[asked])) == 3
    graded = {one.id for one in call().assessment.checks}
    assert graded == set(CHECKS)
    assert len(pinned([f"check.{id}" for id in CHECKS])) == len(CHECKS) + 1


def test_pinned_checks_are_read_back_as_they_were() -> None:
    checks = pinned(
        ["Fast: response_latency.p95 <= 1s @ 70%", "check.application_state"],
        {"a": ["overlap_ratio <= 10%"], "b": ["overlap_ratio <= 10%"]},
        task_rate=66.7,
    )
    again = from_json(check.as_json() for check in checks)
    assert [one.as_json() for one in again] == [one.as_json() for one in checks]
    assert again[-1].scenarios == ("a", "b")


def test_a_formula_is_graded_from_the_values_of_the_call() -> None:
    check = read_check("response_latency.p95 - response_latency.p50 <= 150ms")
    graded = check.grade(call(latencies=(1000.0, 1200.0, 1400.0)))
    assert (graded.reading, graded.passed) == (200, False)
    assert check.grade(call(latencies=())).passed is None


def test_a_division_by_zero_is_not_graded() -> None:
    check = read_check("response_latency / (response_latency - response_latency) <= 1")
    assert check.grade(call()).passed is None


def test_a_check_of_the_grade_itself_can_be_asked_for() -> None:
    assert read_check("check.application_state").grade(call()).passed is True
    assert read_check("check.semantic_outcome").grade(call()).passed is None


def test_every_metric_of_the_table_can_be_asked_for() -> None:
    for name, metric in METRICS.items():
        for stat in metric.stats or ("",):
            assert find(f"{name}.{stat}" if stat else name).metric is metric


@given(st.text(max_size=80))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(InputError):
        assert read_check(text).id

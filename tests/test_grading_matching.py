"""Arguments, states and tool calls are compared by one rule."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.grading.matching import (
    json_equal,
    mismatch,
    normalised,
    pair_calls,
    state_holds,
    state_satisfied,
)
from duplex.values import Json


@dataclass(frozen=True)
class Call:
    name: str
    arguments: dict[str, Json] = field(default_factory=dict)
    status: str = "completed"


@pytest.mark.parametrize(
    ("actual", "strict", "lenient"),
    [
        (2, None, None),
        (2.0, None, None),
        ("2", "n: type_mismatch(string,integer)", None),
        ("2.0", "n: type_mismatch(string,integer)", None),
        (True, "n: type_mismatch(boolean,integer)", "n: type_mismatch(boolean,integer)"),
        ("two", "n: type_mismatch(string,integer)", "n: type_mismatch(string,integer)"),
        (None, "n: type_mismatch(null,integer)", "n: type_mismatch(null,integer)"),
        (3, "n: value_mismatch", "n: value_mismatch"),
        (2.5, "n: value_mismatch", "n: value_mismatch"),
        ([2], "n: type_mismatch(array,integer)", "n: type_mismatch(array,integer)"),
    ],
)
def test_a_number_is_matched_by_an_equal_number_only(
    actual: Json, strict: str | None, lenient: str | None
) -> None:
    """sierra-research/tau2-bench#430: one documented rule, both outcomes told."""
    assert mismatch({"n": 2}, {"n": actual}) == strict
    assert mismatch({"n": 2}, {"n": actual}, lenient=True) == lenient


@pytest.mark.parametrize(("expected", "actual"), [(True, 1), (1, True), (False, 0), ("1", 1)])
def test_booleans_and_text_are_never_numbers(expected: Json, actual: Json) -> None:
    assert mismatch(expected, actual, lenient=True) is not None
    assert not json_equal(expected, actual)


def test_text_arguments_ignore_case_punctuation_and_space_only() -> None:
    assert mismatch("Maya O'Neil", " maya  o neil. ") is None
    assert mismatch("19:00", "1900") is not None
    assert mismatch("!", "?") is not None
    assert normalised("ﬁnd  IT!") == "find it"


@pytest.mark.parametrize(
    "other",
    ["2026-03-08T10:00:00-05:00", "2026-03-08T15:00:00", "2026-03-08", "03/08/2026", "no date"],
)
def test_dates_without_a_declared_type_are_compared_as_text(other: str) -> None:
    """KanishJebaMathewM/Truxify#4589: another spelling is a mismatch, never an error."""
    assert mismatch("2026-03-08T15:00:00Z", other) == "value_mismatch"


def test_only_expected_arguments_are_looked_at_and_missing_ones_are_named() -> None:
    assert mismatch({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}) is None
    assert mismatch({"a": {"b": 1}}, {"a": {"c": 2}}) == "a.b: missing"
    assert mismatch({"a": [1, {"b": 2}]}, {"a": [1, {"b": "2"}]}) == (
        "a[1].b: type_mismatch(string,integer)"
    )
    assert mismatch({"a": [1, 2]}, {"a": [1]}) == "a: has 1 entry, want 2 or more"


@pytest.mark.parametrize(
    ("names", "matched", "extra"), [("BA", 2, 0), ("AAB", 2, 1), ("A", 1, 0), ("ABC", 2, 1)]
)
def test_each_real_call_is_used_once_in_any_order(names: str, matched: int, extra: int) -> None:
    """vibrantlabsai/ragas#2582: never above 1, whatever the order."""
    values: dict[str, Json] = {"A": 1, "B": 2, "C": 3}
    wanted = [Call("A", {"x": 1}), Call("B", {"x": 2})]
    made = [Call(name, {"x": values[name]}) for name in names]
    pairing = pair_calls(wanted, made)
    assert (pairing.matched, len(pairing.extra)) == (matched, extra)


def test_a_loose_expectation_never_takes_the_only_call_a_strict_one_fits() -> None:
    loose, strict = Call("f"), Call("f", {"x": 1})
    for wanted in ([loose, strict], [strict, loose]):
        for made in itertools.permutations([Call("f", {"x": 1}), Call("f", {"x": 2})]):
            assert pair_calls(wanted, made).matched == 2


@given(st.lists(st.integers(0, 2), max_size=5), st.lists(st.integers(0, 2), max_size=5))
def test_matches_are_as_many_as_two_multisets_share(left: list[int], right: list[int]) -> None:
    pairing = pair_calls(
        [Call("f", {"x": one}) for one in left], [Call("f", {"x": one}) for one in right]
    )
    assert pairing.matched == sum(min(left.count(one), right.count(one)) for one in set(left))
    assert pairing.matched + len(pairing.extra) == len(right)
    assert pairing.matched + len(pairing.unmet) == len(left)


def test_unmet_expectations_say_why() -> None:
    wanted = [Call("f", {"x": 1}), Call("g"), Call("h"), Call("h")]
    made = [Call("f", {"x": "1"}), Call("g", status="failed"), Call("h")]
    assert pair_calls(wanted, made).unmet == {
        0: "x: type_mismatch(string,integer)",
        1: "status failed",
        3: "called too few times",
    }
    assert pair_calls([Call("k")], made).unmet == {0: "never called"}


def test_an_expectation_of_any_status_takes_a_failed_call() -> None:
    assert pair_calls([Call("f", status="any")], [Call("f", status="failed")]).matched == 1


def test_a_state_is_a_recursive_subset_with_lists_in_any_order() -> None:
    actual: Json = {"a": [{"id": 1, "done": True}, {"id": 2, "done": False}], "b": "Maya"}
    assert state_holds({"a": [{"id": 2}, {"id": 1}]}, actual)
    assert not state_holds({"a": [{"done": True}, {"done": True}]}, actual)
    assert not state_holds({"b": "maya"}, actual)
    assert not state_holds({"c": None}, actual)


def test_unchanged_means_deep_equality_with_the_beginning() -> None:
    start: Json = {"a": [1, {"b": 2}]}
    assert state_satisfied({"unchanged": True}, {"a": [1, {"b": 2.0}]}, start)
    assert not state_satisfied({"unchanged": True}, {"a": [1, {"b": 2}], "c": None}, start)
    assert not state_satisfied({"unchanged": True}, {"a": [True, {"b": 2}]}, start)
    assert state_satisfied({"unchanged": False}, {"unchanged": False}, start)

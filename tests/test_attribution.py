"""Sweeps: the tests by hand, what is called worse, and what could not be seen."""

from __future__ import annotations

import json
import random
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.attributing import analysed, attribution
from duplex.errors import InputError
from duplex.verdict.attribution import (
    Sweep,
    SweptCall,
    SweptValue,
    attribute,
    benjamini_hochberg,
)
from duplex.verdict.attribution_json import sweep_json
from duplex.verdict.detectable import detectable_gap


def fisher(failed: int, n: int, rest_failed: int, m: int) -> float:
    """The one-sided p-value, term by term."""
    total, failures = n + m, failed + rest_failed
    ways = sum(
        comb(failures, k) * comb(total - failures, n - k)
        for k in range(failed, min(n, failures) + 1)
    )
    return ways / comb(total, n)


def value(name: str) -> SweptValue:
    return SweptValue(key=name, value=name, label=name)


def calls(name: str, passed: int, failed: int, check: str = "a") -> list[SweptCall]:
    verdicts = [True] * passed + [False] * failed
    return [SweptCall(value=name, outcome="counted", checks={check: one}) for one in verdicts]


def swept(*arms: tuple[str, int, int]) -> Sweep:
    held = [call for name, passed, failed in arms for call in calls(name, passed, failed)]
    return attribute([value(name) for name, _, _ in arms], held, ["a"])


def test_a_value_that_fails_much_more_often_is_called_worse_with_its_corrected_p() -> None:
    sweep = swept(("quiet", 8, 0), ("loud", 1, 7), ("mid", 7, 1))
    (check,) = sweep.checks
    assert check.attribution == "PROPERTY_ATTRIBUTABLE"
    (worse,) = check.worse
    assert worse.of.key == "loud"
    p = [fisher(0, 8, 8, 16), fisher(7, 8, 1, 16), fisher(1, 8, 7, 16)]
    assert worse.adjusted_p == pytest.approx(min(1.0, p[1] * 3), rel=1e-12)
    assert (worse.failure_rate, worse.rest_failure_rate) == (87.5, 6.25)
    assert sweep.tested == 3


def test_failures_spread_evenly_are_found_and_not_attributed() -> None:
    (check,) = swept(("a", 5, 3), ("b", 5, 3)).checks
    assert (check.attribution, check.worse) == ("FOUND_UNATTRIBUTED", ())


def test_few_failures_anywhere_are_within_noise() -> None:
    (check,) = swept(("a", 8, 0), ("b", 7, 1)).checks
    assert check.attribution == "WITHIN_NOISE"


def test_a_check_nobody_failed_still_counts_as_compared_with_p_one() -> None:
    sweep = swept(("a", 8, 0), ("b", 8, 0))
    assert sweep.tested == 2
    assert sweep.checks[0].attribution == "WITHIN_NOISE"


def test_a_small_arm_is_shown_and_not_compared_yet_belongs_to_the_rest() -> None:
    sweep = swept(("base", 0, 2), ("a", 8, 0), ("b", 8, 0))
    assert [arm.testable for arm in sweep.values] == [False, True, True]
    assert sweep.tested == 2
    assert any("base had fewer than 5" in caveat for caveat in sweep.caveats)
    worse = swept(("base", 0, 2), ("a", 0, 8), ("b", 8, 0)).checks[0].worse
    assert [one.of.key for one in worse] == ["a"]
    assert worse[0].rest_failure_rate == 20.0  # the two of base among the ten others


def test_a_check_graded_too_rarely_at_a_value_is_not_compared_there() -> None:
    held = calls("a", 8, 0) + calls("b", 8, 0)
    for call in held[:4] + held[8:]:
        call.checks["rare"] = True
    sweep = attribute([value("a"), value("b")], held, ["a", "rare"])
    assert sweep.tested == 3  # a: both values; rare: only b has five verdicts


def test_all_comparisons_of_a_run_are_corrected_together() -> None:
    held = calls("a", 8, 0) + calls("b", 3, 5)
    alone = attribute([value("a"), value("b")], held, ["a"]).checks[0].worse[0].adjusted_p
    for call in held:
        call.checks["other"] = True
    both = attribute([value("a"), value("b")], held, ["a", "other"])
    worse = next(check for check in both.checks if check.check == "a").worse
    assert worse[0].adjusted_p == pytest.approx(2 * alone)


def test_silence_is_a_family_of_its_own_over_attempts() -> None:
    silent = [SweptCall(value="b", outcome="never_spoke") for _ in range(6)]
    held = calls("a", 8, 0) + calls("b", 2, 0) + silent
    sweep = attribute([value("a"), value("b")], held, ["a"])
    (found,) = sweep.never_spoke
    assert (found.silent, found.attempted) == (6, 8)
    assert (found.rest_silent, found.rest_attempted) == (0, 8)
    assert found.adjusted_p == pytest.approx(2 * fisher(6, 8, 0, 8))
    assert sweep.values[1].counted == 2


def test_platform_failures_are_no_attempts_and_invalidated_calls_are() -> None:
    held = [*calls("a", 5, 0), SweptCall(value="a", outcome="not_run")]
    held += [SweptCall(value="a", outcome="invalidated")]
    (arm,) = attribute([value("a")], held, ["a"]).values
    assert (arm.attempted, arm.counted) == (6, 5)


def test_a_sweep_that_compared_nothing_says_so() -> None:
    sweep = swept(("a", 3, 0), ("b", 3, 0))
    assert (sweep.tested, sweep.minimum_detectable_gap) == (0, None)
    assert any("nothing was tested" in caveat for caveat in sweep.caveats)


@pytest.mark.parametrize("rest", [8, 10])
def test_the_detectable_gap_is_that_of_the_definition(rest: int) -> None:
    gap = detectable_gap(8, rest, alpha=0.1)
    assert gap is not None
    p = gap / 100
    needed = next(a for a in range(1, 9) if comb(8, a) / comb(8 + rest, a) <= 0.1)
    power = sum(comb(8, k) * p**k * (1 - p) ** (8 - k) for k in range(needed, 9))
    assert power == pytest.approx(0.8)
    assert gap == pytest.approx(46.2, abs=0.05)


def test_no_gap_is_detectable_where_even_failing_always_says_nothing() -> None:
    assert detectable_gap(2, 2, alpha=0.1) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_corrected_p_values_follow_the_step_up_rule(p: list[float]) -> None:
    order = sorted(range(len(p)), key=lambda at: p[at])
    wanted, low = [0.0] * len(p), 1.0
    for rank in range(len(p), 0, -1):
        at = order[rank - 1]
        low = min(low, p[at] * len(p) / rank)
        wanted[at] = low
    assert benjamini_hochberg(p) == pytest.approx(wanted)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_the_order_of_calls_changes_nothing(
    sizes: list[tuple[int, int]], shuffling: random.Random
) -> None:
    values = [value(f"v{at}") for at in range(len(sizes))]
    held = [c for v, (p, f) in zip(values, sizes, strict=True) for c in calls(v.key, p, f)]
    before = attribute(values, held, ["a"])
    shuffling.shuffle(held)
    assert attribute(values, held, ["a"]) == before


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("call,value,outcome,check,passed", *lines)) + "\n")
    return path


def test_a_table_gives_the_published_object(tmp_path: Path) -> None:
    rows = [f"c{n},0 dB,counted,task,{'false' if n else 'true'}" for n in range(8)]
    rows += [f"d{n},20 dB,counted,task,true" for n in range(8)]
    rows += ["e,20 dB,never_spoke,,"]
    found = attribution(write(tmp_path / "sweep.csv", *rows))
    assert json.loads(json.dumps(found)) == found
    values = found["values"]
    assert isinstance(values, list)
    assert [v["isBaseline"] for v in values if isinstance(v, dict)] == [True, False]
    (check,) = found["checks"] if isinstance(found["checks"], list) else []
    assert isinstance(check, dict)
    assert check["attribution"] == "PROPERTY_ATTRIBUTABLE"
    (worse,) = check["worseValues"] if isinstance(check["worseValues"], list) else []
    assert isinstance(worse, dict)
    assert worse["key"] == "0 dB"
    assert worse["adjustedPValue"] == pytest.approx(2 * fisher(7, 8, 0, 8))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["c,a,heard,x,true"], "outcome"),
        (["c,a,counted,x,maybe"], "neither true nor false"),
        (["c,a,counted,x"], "4 cells"),
        (["c,a,counted,x,true", "c,b,counted,y,true"], "another value"),
        (["c,a,counted,x,true", "c,a,counted,x,true"], "twice"),
        (["c,,counted,x,true"], "value is empty"),
        ([], "no call"),
        (['c,"a,counted,x,true'], "line"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(
    lines: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        analysed(write(tmp_path / "t.csv", *lines))


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("call,passed\n")
    with pytest.raises(InputError, match="want call,value"):
        analysed(path)


def test_every_number_of_the_object_is_finite(tmp_path: Path) -> None:
    json.dumps(sweep_json(swept(("a", 0, 0), ("b", 0, 0))), allow_nan=False)

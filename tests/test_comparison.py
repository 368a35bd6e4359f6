"""Two runs beside each other: pairs, tests by hand, and what could not be seen."""

from __future__ import annotations

import random
from math import comb

import pytest

from duplex.comparing import headline
from duplex.errors import InputError
from duplex.metrics.differences import differences
from duplex.results import Run
from duplex.verdict.block import judged
from duplex.verdict.comparison import Comparison, compare
from duplex.verdict.pairing import Shares, mcnemar, shares
from verdict_runs import call, run


def compared(current: Run, baseline: Run, *, across_rulers: bool = False) -> Comparison:
    now, checks, _ = judged(current)
    then, other_checks, _ = judged(baseline)
    return compare(now, then, checks, other_checks, across_rulers=across_rulers)


def held(count: int, failed: int = 0, slower: float = 0.0, **more: str) -> Run:
    spread = random.Random(5)
    calls = []
    for n in range(1, count + 1):
        base = spread.gauss(1200, 150)
        calls.append(
            call(
                sample=n,
                passed=n > failed,
                latencies=[base + slower + spread.gauss(0, 20) for _ in range(3)],
                agent=more.get("agent", "local"),
            )
        )
    return run(*calls, task_rate=0)


def test_an_assistant_400_ms_slower_is_caught_with_an_interval() -> None:
    found = compared(held(8, slower=400), held(8))
    mean = next(t for t in found.timings if t.metric == "response_latency")
    assert found.pairs == 8
    assert mean.paired
    assert mean.direction == "worse"
    assert mean.difference.ci95 is not None
    low, high = mean.difference.ci95
    assert low < 400 < high
    assert high - low < 60
    assert found.worse


@pytest.mark.parametrize("paired", [True, False])
def test_a_median_that_moved_in_every_call_is_no_chance(paired: bool) -> None:
    spread = random.Random(3)
    quick = [[400 + spread.gauss(0, 30) for _ in range(4)] for _ in range(8)]
    slow = [[value + 1200 for value in call] for call in quick]
    mean, median, _ = differences(slow, quick, paired=paired, seed="moved")
    assert median.delta == pytest.approx(1200)
    assert (mean.p or 1) < 0.02
    assert (median.p or 1) < 0.02


@pytest.mark.parametrize("paired", [True, False])
def test_a_median_s_test_keeps_its_level_where_calls_differ_and_builds_do_not(paired: bool) -> None:
    spread = random.Random(4)

    def held() -> list[list[float]]:
        return [
            [base + spread.gauss(0, 30) for _ in range(spread.randint(1, 5))]
            for base in (spread.choice((400, 1600)) for _ in range(7))
        ]

    found = [differences(held(), held(), paired=paired, seed=str(n))[1].p for n in range(200)]
    assert sum(p is not None and p <= 0.05 for p in found) <= 18


def test_the_same_build_twice_shows_no_difference_and_says_what_could_have_been_seen() -> None:
    found = compared(held(8), held(8))
    assert not found.worse
    assert {t.direction for t in found.timings} == {"no difference seen"}
    assert any("would have been seen" in caveat for caveat in found.caveats)
    assert any("points more often" in caveat for caveat in found.caveats)


def test_lost_calls_are_tested_by_mcnemar_over_the_pairs() -> None:
    found = compared(held(20, failed=8), held(20))
    (task,) = found.checks
    assert task.tested is not None
    assert (task.tested.pairs, task.tested.won, task.tested.lost) == (20, 0, 8)
    assert task.tested.p == pytest.approx(2 * 0.5**8)
    assert task.delta == pytest.approx(-0.4)
    assert task.direction == "worse"


def test_pairing_sees_what_calls_apart_do_not() -> None:
    def scenarios(slower: float) -> Run:
        # Scenarios that differ by seconds, an assistant that differs by 60 ms.
        spread = random.Random(3)
        return run(
            *[
                call(scenario=f"s{n}", latencies=[800 + 400 * n + slower + spread.gauss(0, 8)] * 3)
                for n in range(10)
            ],
            task_rate=0,
        )

    found = compared(scenarios(60), scenarios(0))
    mean = next(t for t in found.timings if t.metric == "response_latency")
    assert mean.direction == "worse"
    apart = differences(
        [[800 + 400 * n + 60.0] for n in range(10)],
        [[800 + 400 * n + 0.0] for n in range(10)],
        paired=False,
        seed="x",
    )
    assert apart[0].p is not None
    assert apart[0].p > 0.5


def test_runs_without_common_seeds_are_compared_without_pairs_and_say_so() -> None:
    mine = run(*[call(sample=n, seed=100 + n) for n in range(1, 7)])
    theirs = run(*[call(sample=n, seed=200 + n, passed=False) for n in range(1, 7)], task_rate=0)
    found = compared(mine, theirs)
    (task,) = found.checks
    assert found.pairs == 0
    assert task.tested is not None
    assert not task.tested.paired
    assert task.tested.p == pytest.approx(2 / comb(12, 6))
    assert task.direction == "better"
    assert "without pairs" in found.caveats[0]


def test_another_condition_is_no_pair() -> None:
    found = compared(run(call(condition="noisy")), run(call()))
    assert (found.pairs, found.unpaired, found.unpaired_baseline) == (0, 1, 1)


def test_different_rulers_are_refused_unless_told_and_then_no_timing_is_compared() -> None:
    other = run(call(policy={"response_deadline_ms": 9000}))
    with pytest.raises(InputError, match="different versions"):
        compared(run(call()), other)
    found = compared(run(call()), other, across_rulers=True)
    assert found.timings == ()
    assert any("different rulers" in caveat for caveat in found.caveats)


def test_a_check_only_one_run_was_judged_by_is_shown_and_not_compared() -> None:
    found = compared(run(call(), checks=["response_latency <= 2s"]), run(call()))
    check = found.checks[1]
    assert (check.current_rate, check.baseline_rate, check.delta) == (1, None, None)
    assert check.direction == "not compared"
    assert check.why == "only this run was judged by it"


def test_one_name_for_two_limits_is_not_compared() -> None:
    found = compared(
        run(call(), checks=["Fast: response_latency <= 2s"]),
        run(call(), checks=["Fast: response_latency <= 1s"]),
    )
    assert found.checks[1].why == "the two runs mean different things by it"


def test_two_calls_say_that_nothing_could_have_been_detected() -> None:
    found = compared(held(2), held(2))
    assert any("however large" in caveat for caveat in found.caveats)


def test_one_call_each_says_that_it_is_too_little_and_not_that_nothing_changed() -> None:
    assert headline(compared(held(1), held(1, slower=900.0))).startswith("Too few calls")
    assert headline(compared(held(20), held(20))) == "No difference was seen."


def test_all_p_values_of_a_comparison_are_corrected_together() -> None:
    found = compared(held(20, failed=8), held(20))
    raw = [c.tested.p for c in found.checks if c.tested and c.tested.p is not None]
    assert found.checks[0].adjusted_p is not None
    assert found.checks[0].adjusted_p > raw[0]


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (0, 6), (3, 3), (1, 9), (10, 2)])
def test_mcnemar_is_the_exact_binomial(won: int, lost: int) -> None:
    from scipy.stats import binomtest

    wanted = 1.0 if won + lost == 0 else binomtest(won, won + lost, 0.5).pvalue
    assert mcnemar(won, lost) == pytest.approx(wanted)


def test_the_interval_of_paired_shares_is_newcombes() -> None:
    # Newcombe 1998, table II, method 10: of 50 pairs both 20, only first 12, only second 2.
    found = shares(
        [(True, True)] * 20 + [(True, False)] * 12 + [(False, True)] * 2 + [(False, False)] * 16
    )
    assert found.delta == pytest.approx(0.2)
    assert found.ci95 is not None
    assert found.ci95 == pytest.approx((0.0562, 0.3290), abs=0.0006)


def test_the_interval_of_independent_shares_is_newcombes() -> None:
    # Newcombe 1998, example (a): 56/70 against 48/80, method 10.
    found = Shares(passed=56, graded=70, baseline_passed=48, baseline_graded=80)
    assert found.ci95 == pytest.approx((0.0524, 0.3339), abs=0.0001)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    spread = random.Random(11)
    inside = 0
    for trial in range(60):
        now = [[spread.gauss(50, 30)] for _ in range(30)]
        then = [[spread.gauss(0, 30)] for _ in range(30)]
        (mean, *_) = differences(now, then, paired=False, seed=str(trial))
        assert mean.ci95 is not None
        inside += mean.ci95[0] <= 50 <= mean.ci95[1]
    assert 50 <= inside <= 60


def test_pairs_in_which_a_side_is_missing_are_left_out() -> None:
    (mean, *_) = differences([[10.0], [], [30.0]], [[0.0], [5.0], []], paired=True, seed="x")
    assert (mean.current, mean.baseline, mean.p) == (10, 0, None)

"""The turn-taking score at its published check points, and how turns are scored."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.metrics.scores import cut_in_score, latency_score, yield_score
from duplex.metrics.speech import Speech
from duplex.metrics.timing import timing
from duplex.values import Action
from timing_scenes import conversations, label, measured


@pytest.mark.parametrize(
    ("latency", "score"),
    [
        (-10_000, 0.0),
        (-500, 0.0),
        (0, 0.5),
        (200, 0.7),
        (500, 1.0),
        (1_234, 1.0),
        (2_000, 1.0),
        (2_750, 0.5),
        (3_000, 1 / 3),
        (3_500, 0.0),
        (60_000, 0.0),
    ],
)
def test_a_reply_scores_by_its_latency(latency: float, score: float) -> None:
    assert latency_score(latency) == pytest.approx(score)


@pytest.mark.parametrize(
    ("latency", "score"), [(0, 0.5), (2_750, 1.0), (3_000, 1.0), (4_000, 0.5), (5_000, 0.0)]
)
def test_a_turn_with_a_tool_may_take_longer(latency: float, score: float) -> None:
    assert latency_score(latency, tool=True) == pytest.approx(score)


@pytest.mark.parametrize(
    ("overlap", "cuts", "gap", "score"),
    [
        (500, 1, None, 0.375),
        (0, 1, None, 0.5),
        (0, 2, None, 0.25),
        (0, 3, None, 0.0),
        (0, 9, None, 0.0),
        (2_500, 1, None, 0.0),
        (500, 1, 0.1, 0.1),
        (500, 1, 0.9, 0.375),
    ],
)
def test_a_cut_in_scores_by_overlap_count_and_gap(
    overlap: float, cuts: int, gap: float | None, score: float
) -> None:
    assert cut_in_score(overlap, cuts, gap) == pytest.approx(score)


@pytest.mark.parametrize(("after", "score"), [(0, 1), (600, 0.7), (2_000, 0), (9_000, 0)])
def test_a_yield_scores_by_how_soon_it_came(after: float, score: float) -> None:
    assert yield_score(after) == pytest.approx(score)


@given(st.lists(st.floats(-2_000, 9_000), min_size=2, max_size=9), st.booleans())
def test_latency_scores_are_shares_that_rise_then_fall(points: list[float], tool: bool) -> None:
    scores = [latency_score(point, tool=tool) for point in sorted(points)]
    assert all(0 <= score <= 1 for score in scores)
    top = scores.index(max(scores))
    assert all(a <= b for a, b in itertools.pairwise(scores[: top + 1]))
    assert all(a >= b for a, b in itertools.pairwise(scores[top:]))


def test_the_call_scores_the_mean_of_its_turns() -> None:
    block = measured([(0, 2), (6, 8)], [(2.2, 5), (8.5, 10)], 12)
    assert [round(score or 0, 6) for score in block.taking.scores] == [0.7, 1.0]
    assert block.taking.value == pytest.approx(0.85)


def test_a_greeting_is_not_scored() -> None:
    block = measured([(3, 4)], [(0.5, 2), (4.2, 6)], 8)
    assert block.taking.n == 1
    assert block.taking.value == pytest.approx(0.7)


def test_a_tool_in_the_turn_stretches_the_curve() -> None:
    slow = measured([(0, 2)], [(4.75, 6)], 8)
    tool = measured([(0, 2)], [(4.75, 6)], 8, tools=[(2.1, 4)])
    assert slow.taking.value == pytest.approx(0.5)
    assert tool.taking.value == 1.0


def test_a_tool_after_the_reply_stretches_nothing() -> None:
    block = measured([(0, 2)], [(4.75, 6)], 8, tools=[(4.8, 7)])
    assert block.taking.value == pytest.approx(0.5)


def test_a_cut_in_that_keeps_the_floor_scores_by_its_overlap() -> None:
    assert measured([(0, 4)], [(3.5, 6)], 8).taking.value == pytest.approx(0.375)


def test_a_cut_in_that_gave_way_scores_by_the_gap_after_too() -> None:
    assert measured([(0, 5)], [(2, 3.1), (5.5, 7)], 8).taking.value == pytest.approx(0.225)
    assert measured([(0, 5)], [(2, 3.1), (8.4, 9)], 10).taking.value == pytest.approx(1 / 15)


def test_a_barge_in_scores_by_the_yield_whatever_the_latency() -> None:
    block = measured([(4, 7)], [(1, 4.6), (10, 12)], 14)
    assert block.taking.value == pytest.approx(0.7)


def test_a_turn_with_both_scores_the_lesser() -> None:
    block = measured([(4, 9)], [(1, 5.6), (7, 8.1), (9.5, 12)], 14)
    assert block.taking.value == pytest.approx(0.2)


def test_a_turn_that_was_never_answered_scores_nothing() -> None:
    block = measured([(0, 2), (6, 8)], [(8.5, 10)], 12)
    assert block.taking.scores == (0.0, 1.0)


def test_a_last_request_never_answered_zeroes_the_call() -> None:
    block = measured([(0, 2), (6, 8)], [(2.6, 5)], 20)
    assert (block.taking.value, block.taking.why) == (0.0, "the last request was never answered")


def test_a_goodbye_never_answered_does_not() -> None:
    labels = [label(0, 2, Action.SPEAK), label(6, 8, Action.STOP)]
    block = measured([(0, 2), (6, 8)], [(2.6, 5)], 20, labels=labels)
    assert (block.taking.n, block.taking.value) == (1, 1.0)


def test_a_censored_turn_is_not_scored() -> None:
    block = measured([(0, 2), (6, 8)], [(2.6, 5)], 9)
    assert block.taking.scores == (1.0, None)


def test_nothing_to_score_is_unknown_not_zero() -> None:
    block = measured([], [(0, 2)], 5)
    assert (block.taking.value, block.taking.why) == (None, "no caller turn could be scored")


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_scores_are_shares(found: Speech) -> None:
    taking = timing(found).taking
    assert all(score is None or 0 <= score <= 1 for score in taking.scores)
    assert taking.value is None or 0 <= taking.value <= 1

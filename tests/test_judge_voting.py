"""Votes become verdicts by majority and scores by median, or contradict each other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import pytest

from duplex.grading.judging import Cast, Judgement, decide, read_vote
from duplex.grading.overall import (
    WEIGHTS,
    Known,
    conciseness,
    conversation_progression,
    judged_block,
    overall_score,
    semantic_quality,
)
from duplex.values import Json
from judge_cases import TABLE, bent, good
from judge_fakes import Answer, part

BROKEN = Cast(vote=None, problem="its answer is empty", code="unreadable")
HEARD = Known(value=0.8)


def outcome(verdict: str, score: Json) -> Cast:
    def change(answer: Answer) -> None:
        part(answer, "dimensions", "task_understanding").update(verdict=verdict, score=score)

    return read_vote(bent(change), TABLE)


def fidelity(score: Json) -> Cast:
    def change(answer: Answer) -> None:
        part(answer, "dimensions", "context_fidelity").update(score=score)

    return read_vote(bent(change), TABLE)


def decided(casts: Sequence[Cast]) -> Judgement:
    return decide("judge", TABLE, casts)


def test_one_vote_is_the_judgement() -> None:
    judgement = decided([read_vote(json.dumps(good()), TABLE)])
    assert judgement.usable
    assert judgement.outcome.value == "pass"
    assert [one.value for one in judgement.requirements] == ["met", "met"]
    assert [one.turn for one in judgement.conciseness] == [1, 3, 6]
    assert judgement.outcome.evidence[0].start_ms == 9_000


PASS, FAIL = outcome("pass", 1), outcome("fail", 0.5)


@pytest.mark.parametrize(
    ("casts", "verdict"),
    [
        ([PASS, PASS, FAIL], "pass"),
        ([FAIL, PASS, FAIL], "fail"),
        ([PASS, FAIL], None),
        ([PASS, PASS, FAIL, FAIL], None),
        ([PASS, PASS, PASS, FAIL], "pass"),
        ([PASS, PASS, BROKEN], "pass"),
        ([PASS, PASS, FAIL, BROKEN], None),
        ([PASS, BROKEN, BROKEN], None),
        ([PASS, BROKEN], None),
        ([BROKEN], None),
    ],
)
def test_a_verdict_needs_more_than_half_of_all_answers(
    casts: Sequence[Cast], verdict: str | None
) -> None:
    for order in itertools.permutations(casts):
        judgement = decided(order)
        assert judgement.outcome.value == verdict
        if verdict is None:
            assert judgement.outcome.why


def test_too_few_usable_answers_decide_nothing_and_say_why() -> None:
    judgement = decided([PASS, BROKEN, BROKEN])
    assert not judgement.usable
    assert judgement.problem == "of 3 answers 1 can be used: its answer is empty"
    assert judgement.dimensions == {}
    assert [one.value for one in judgement.requirements] == [None, None]


@pytest.mark.parametrize(
    ("scores", "value"),
    [
        ([0.75], 0.75),
        ([0.5, 0.75, 1], 0.75),
        ([0.5, 1], 0.5),
        ([0.5, 0.75, 0.75, 1], 0.75),
        ([0.25, 1], None),
        ([0, 0.5, 1], None),
        ([None, None, 1], None),
        ([None, 0.5, 0.75], 0.5),
        ([None, 1], None),
    ],
)
def test_a_score_is_the_lower_median_of_votes_that_lie_close(
    scores: Sequence[float | None], value: float | None
) -> None:
    for order in itertools.permutations(scores):
        ruling = decided([fidelity(score) for score in order]).dimensions["context_fidelity"]
        assert ruling.value == value
        assert (ruling.why == "") == (value is not None)


def test_a_dimension_without_occasion_is_no_contradiction() -> None:
    without = decided([fidelity(None)])
    assert not without.dimensions["context_fidelity"].undecided
    assert semantic_quality(without).value == 1.0
    torn = decided([fidelity(0), fidelity(1)])
    assert torn.dimensions["context_fidelity"].undecided
    assert semantic_quality(torn).value is None
    assert "context_fidelity" in semantic_quality(torn).why


def flagged(*names: str) -> Judgement:
    def change(answer: Answer) -> None:
        for name in names:
            evidence: Json = [{"turn": 3, "quote": "Under what name?"}]
            part(answer, "flags", name).update(present=True, evidence=evidence)

    return decided([read_vote(bent(change), TABLE)])


@pytest.mark.parametrize(
    ("names", "progression"),
    [
        ((), 1.0),
        (("information_loss",), 0.5),
        (("information_loss", "poor_question_quality"), 0.0),
        (("information_loss", "poor_question_quality", "redundant_statements"), 0.0),
    ],
)
def test_progression_falls_with_every_flag(names: tuple[str, ...], progression: float) -> None:
    assert conversation_progression(flagged(*names)).value == progression


def test_a_flag_that_is_undecided_leaves_progression_unknown() -> None:
    one, other = flagged(), flagged("information_loss")
    torn = decided([one.casts[0], other.casts[0]])
    assert torn.flags["information_loss"].value is None
    assert torn.flags["redundant_statements"].value is False
    assert conversation_progression(torn).value is None


def test_conciseness_is_the_mean_of_the_turns_that_have_a_score() -> None:
    def change(answer: Answer) -> None:
        answer["conciseness"] = [{"turn": 1, "score": 0.5}, {"turn": 6, "score": 1}]

    judgement = decided([read_vote(bent(change), TABLE)])
    assert conciseness(judgement).value == 0.75
    assert [one.ruling.value for one in judgement.conciseness] == [0.5, None, 1]


def test_the_overall_score_is_the_documented_mean() -> None:
    judgement = flagged("information_loss")
    block, why = judged_block(judgement, HEARD, counts=True)
    assert block["overall_score"] == pytest.approx(0.35 * 1 + 0.35 * 0.8 + 0.15 * 0.5 + 0.15 * 1)
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert set(why) == {f"/tokens/{kind}_tokens" for kind in ("input", "output", "total")}


@pytest.mark.parametrize("missing", sorted(WEIGHTS))
def test_a_member_that_is_not_known_leaves_no_overall_score(missing: str) -> None:
    members = {name: Known(value=1.0) for name in WEIGHTS}
    members[missing] = Known(value=None, why="not measured")
    known = overall_score(members)
    assert (known.value, known.why) == (None, f"{missing}: not measured")


def test_a_judgement_of_a_call_that_does_not_count_has_no_overall_score() -> None:
    block, why = judged_block(flagged(), HEARD, counts=False)
    assert block["overall_score"] is None
    assert why["/overall_score"] == "the call does not count"

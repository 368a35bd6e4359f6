"""Votes of one judge on one call, counted into a judgement.

A verdict needs more than half of all the times the judge was asked. A score is the
median of the usable votes, of two middle ones the lower; votes further apart than
:data:`SPREAD` contradict each other and give no score. What is not decided says so and
how the votes were; it is never a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duplex.grading.judging.case import JudgeCase
from duplex.grading.judging.judgement import (
    NOT_APPLICABLE,
    Cast,
    Judgement,
    Point,
    Ruling,
    TurnScore,
    Vote,
    W,
)
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS

SPREAD = 0.5
"""Largest distance between two votes on one score that is no contradiction."""


def decide(model: str, case: JudgeCase, casts: Sequence[Cast]) -> Judgement:
    """Count the votes; too few usable ones decide nothing."""
    votes = [cast.vote for cast in casts if cast.vote is not None]
    if 2 * len(votes) <= len(casts):
        told = next((cast.problem for cast in casts if cast.vote is None), "it was never asked")
        few = f"of {len(casts)} answers {len(votes)} can be used: " if len(casts) > 1 else ""
        return failed(model, case, f"{few}{told}", casts)
    count = _Count(votes, len(casts))
    outcome = count.verdict([vote.outcome for vote in votes])
    speaker = next((vote for vote in votes if vote.outcome.value == outcome.value), votes[0])
    return Judgement(
        model=model,
        casts=tuple(casts),
        outcome=outcome,
        criteria=case.criteria,
        requirements=tuple(
            count.verdict([vote.requirements[index] for vote in votes])
            for index in range(len(case.criteria))
        ),
        dimensions={
            name: count.score([vote.dimensions[name] for vote in votes]) for name in DIMENSIONS
        },
        conciseness=tuple(_turn(count, case, number) for number in case.assistant_turns),
        flags={name: count.verdict([vote.flags[name] for vote in votes]) for name in FLAGS},
        going_well=_points(speaker.going_well),
        to_improve=_points(speaker.to_improve),
    )


def failed(model: str, case: JudgeCase, why: str, casts: Sequence[Cast] = ()) -> Judgement:
    """A judgement that decides nothing, and why."""
    return Judgement(
        model=model,
        casts=tuple(casts),
        problem=why,
        outcome=Ruling(value=None, why=why),
        criteria=case.criteria,
        requirements=tuple(Ruling(value=None, why=why) for _ in case.criteria),
    )


def majority(told: Sequence[Ruling[W]], asked: int) -> Ruling[W]:
    """The value that more than half of all the times asked have."""
    counted = Counter(one.value for one in told)
    value, most = counted.most_common(1)[0]
    if 2 * most <= asked:
        shown = ", ".join(f"{_shown(one)} {count}" for one, count in counted.most_common())
        return Ruling(value=None, why=f"the votes contradict each other: {shown}")
    first = next(one for one in told if one.value == value)
    return Ruling(value=value, reasoning=first.reasoning, evidence=first.evidence)


class _Count:
    def __init__(self, votes: Sequence[Vote], asked: int) -> None:
        self.votes = votes
        self._asked = asked

    def verdict(self, told: Sequence[Ruling[W]]) -> Ruling[W]:
        """The value that more than half of all votes have."""
        return majority(told, self._asked)

    def score(self, told: Sequence[Ruling[float]]) -> Ruling[float]:
        """The median of the scores, if most votes have one and they lie close together."""
        scores = sorted(one.value for one in told if one.value is not None)
        absent = len(told) - len(scores)
        if absent > len(scores):
            first = next(one for one in told if one.value is None)
            return Ruling(value=None, why=NOT_APPLICABLE, reasoning=first.reasoning)
        if absent == len(scores):
            why = f"the votes contradict each other: {absent} find no occasion, {absent} score"
            return Ruling(value=None, why=why)
        if scores[-1] - scores[0] > SPREAD:
            why = f"the votes contradict each other: {scores[0]:g} to {scores[-1]:g}"
            return Ruling(value=None, why=why)
        value = scores[(len(scores) - 1) // 2]
        first = next(one for one in told if one.value == value)
        return Ruling(value=value, reasoning=first.reasoning, evidence=first.evidence)


def _turn(count: _Count, case: JudgeCase, number: int) -> TurnScore:
    turn = case.turn(number)
    told: list[Ruling[float]] = [
        Ruling(value=vote.conciseness[number]) for vote in count.votes if number in vote.conciseness
    ]
    ruling = (
        count.score(told)
        if told
        else Ruling(value=None, why="the judge gave no score for this turn")
    )
    return TurnScore(turn=number, start_ms=turn.start_ms if turn else None, ruling=ruling)


def _points(told: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(told[:5])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "present" if value else "absent"
    return str(value)

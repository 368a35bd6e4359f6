"""Figures worked out from a judgement: conciseness, progression, and one overall score.

The weights are ours, and documented; the score is of one set of members only, so where
one is not known there is no score, and the reason names it. A call that does not count
has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from duplex.grading.judging.judgement import Judgement
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS
from duplex.grading.scores import semantic_score
from duplex.values import Json

WEIGHTS: Mapping[str, float] = {
    "semantic_quality": 0.35,
    "turn_taking_score": 0.35,
    "conversation_progression": 0.15,
    "conciseness": 0.15,
}
"""Judged and heard alike: what was done and said well, and how it was to talk to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A figure, or why there is none."""

    value: float | None
    why: str = ""


def semantic_quality(judgement: Judgement | None) -> Known:
    """The mean of the dimensions that apply; none while one of them is undecided."""
    if judgement is None:
        return Known(value=None, why="no judge was asked")
    if not judgement.usable:
        return Known(value=None, why=judgement.problem)
    for name in DIMENSIONS:
        ruling = judgement.dimensions[name]
        if ruling.undecided:
            return Known(value=None, why=f"{name}: {ruling.why}")
    score = semantic_score({name: judgement.score(name) for name in DIMENSIONS})
    return Known(value=score, why="no dimension applies" if score is None else "")


def conciseness(judgement: Judgement) -> Known:
    """The mean over the assistant's turns that have a score."""
    if not judgement.usable:
        return Known(value=None, why=judgement.problem)
    scores = [one.ruling.value for one in judgement.conciseness if one.ruling.value is not None]
    if not scores:
        return Known(value=None, why="no turn has a score")
    return Known(value=round(math.fsum(scores) / len(scores), 4))


def conversation_progression(judgement: Judgement) -> Known:
    """1 without a flag, 0.5 with one, 0 with more; none while a flag is undecided.

    Source: the rating of ServiceNow EVA, 3, 2 or 1, as (rating - 1) / 2.
    """
    if not judgement.usable:
        return Known(value=None, why=judgement.problem)
    for name in FLAGS:
        if judgement.flags[name].value is None:
            return Known(value=None, why=f"{name}: {judgement.flags[name].why}")
    present = sum(judgement.flags[name].value is True for name in FLAGS)
    return Known(value=(1.0, 0.5, 0.0)[min(present, 2)])


def overall_score(members: Mapping[str, Known]) -> Known:
    """The weighted mean of :data:`WEIGHTS`; every member must be known."""
    for name in WEIGHTS:
        member = members[name]
        if member.value is None:
            return Known(value=None, why=f"{name}: {member.why}")
    total = math.fsum(WEIGHTS[name] * (members[name].value or 0.0) for name in WEIGHTS)
    return Known(value=round(total / math.fsum(WEIGHTS.values()), 4))


def judged_block(
    judgement: Judgement, turn_taking: Known, counts: bool
) -> tuple[dict[str, Json], dict[str, str]]:
    """The block ``duplex.judge`` and, by JSON pointer into it, why which values are null."""
    members = {
        "semantic_quality": semantic_quality(judgement),
        "turn_taking_score": turn_taking,
        "conversation_progression": conversation_progression(judgement),
        "conciseness": conciseness(judgement),
    }
    overall = overall_score(members) if counts else Known(value=None, why="the call does not count")
    shown = {
        "conciseness": members["conciseness"],
        "conversation_progression": members["conversation_progression"],
        "overall_score": overall,
    }
    figures: dict[str, Json] = {name: known.value for name, known in shown.items()}
    why = {f"/{name}": known.why for name, known in shown.items() if known.value is None}
    untold = [name for name, count in judgement.tokens().items() if count is None]
    quiet = "the judge's server did not tell" if judgement.casts else judgement.problem
    why |= {f"/tokens/{name}": quiet for name in untold}
    return {**judgement.as_json(), **figures, "weights": dict(WEIGHTS)}, why

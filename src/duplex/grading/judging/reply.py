"""The shape of a judge's answer, checked as strictly as a file: nothing is coerced.

Only shape and what one part says of itself; whether the quotes were said, and whether
the answer fits the call, is ``reading.py``'s. Field for field the schema of
``rubric.py``.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from duplex.grading.judging.rubric import CONCISENESS, SCORES


def _score(value: float) -> float:
    if value not in SCORES:
        raise ValueError("want 0, 0.25, 0.5, 0.75, 1 or null")
    return value


def _turn_score(value: float) -> float:
    if value not in CONCISENESS:
        raise ValueError("want 0, 0.5 or 1")
    return value


Score = Annotated[float, AfterValidator(_score)]
TurnScore = Annotated[float, AfterValidator(_turn_score)]


class Part(BaseModel):
    """Base of every object in an answer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Quote(Part):
    turn: int
    quote: str


class Reasoned(Part):
    reasoning: str
    evidence: list[Quote]


class Rated(Reasoned):
    score: Score | None


class Understood(Rated):
    verdict: Literal["pass", "fail"]


class Required(Reasoned):
    number: int
    verdict: Literal["met", "not_met", "not_applicable"]


class Flag(Reasoned):
    present: bool


class Turned(Part):
    turn: int
    score: TurnScore


class Noted(Part):
    text: str
    evidence: list[Quote]


class Dimensions(Part):
    task_understanding: Understood
    context_fidelity: Rated
    clarification_quality: Rated
    grounded_communication: Rated
    conversational_coherence: Rated


class Flags(Part):
    unnecessary_tool_calls: Flag
    information_loss: Flag
    redundant_statements: Flag
    poor_question_quality: Flag


class Reply(Part):
    """One whole answer."""

    dimensions: Dimensions
    requirements: list[Required]
    conciseness: list[Turned]
    flags: Flags
    going_well: list[Noted]
    to_improve: list[Noted]


class Answered(Reasoned):
    number: int
    answer: Literal["yes", "no", "cannot_tell"]


class Answers(Part):
    """One whole answer to questions that were asked besides."""

    answers: list[Answered]


_GOOD_ENDS = re.compile(
    r"\b(all|every)( of)?( the| its)? (criteria|criterion|requirements?|conditions?|goals?)"
    r"( \w+){0,2} (met|fulfilled|satisfied|reached)\b"
    r"|\bthe (goal|outcome|requirement|criterion|task) (was|is|has been) (fully )?"
    r"(met|fulfilled|satisfied|reached|achieved|completed)\b"
)
_BAD_ENDS = re.compile(
    r"\bthe (goal|outcome|requirement|criterion|task) (was|is|has)( clearly)? (not|never)( been)? "
    r"(met|fulfilled|satisfied|reached|achieved|completed)\b"
)
_DENIAL = re.compile(r"\b(not|never|no|nor|neither|none|except|but|cannot|hardly)\b|n[’']t\b")


def gainsays(reasoning: str, *, good: bool) -> bool:
    """Whether the last sentence of a reasoning plainly says the opposite of its verdict.

    Only unmistakable sentences count; most contradictions are caught by verdict and score.
    """
    sentences = [one for one in re.split(r"[.!?\n]+", reasoning.casefold()) if one.strip()]
    last = sentences[-1] if sentences else ""
    if good:
        return _BAD_ENDS.search(last) is not None
    return _GOOD_ENDS.search(last) is not None and _DENIAL.search(last) is None

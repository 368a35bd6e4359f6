"""What a judge decided of one call, how it voted, and what it could not decide.

Plain values. A ruling without a value says why: never asked is not undecided, undecided
is not zero. ``voting.py`` makes judgements; results write them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from duplex.grading.judging.case import JudgeCase
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS, JUDGE_VERSION, QUESTIONS_VERSION
from duplex.scenario import Question
from duplex.values import Json

V = TypeVar("V", bound="str | float | bool")
W = TypeVar("W", bound="str | float | bool")
NOT_APPLICABLE = "the judge found no occasion for it in this call"

Outcome = Literal["pass", "fail"]
Requirement = Literal["met", "not_met", "not_applicable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that were said in a turn; they have been looked for there, and found."""

    turn: int
    quote: str
    who: str
    start_ms: int | None

    def as_json(self) -> dict[str, Json]:
        return {
            "turn": self.turn,
            "who": self.who,
            "start_ms": self.start_ms,
            "quote": self.quote,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling(Generic[V]):
    """One decision. ``value`` is None with the ``why``, and what the votes were."""

    value: V | None
    why: str = ""
    reasoning: str = ""
    evidence: tuple[Quoted, ...] = ()

    @property
    def applies(self) -> bool:
        """False where the judge decided that there was no occasion."""
        return self.value is not None or self.why != NOT_APPLICABLE

    @property
    def undecided(self) -> bool:
        return self.value is None and self.applies

    def as_json(self, name: str) -> dict[str, Json]:
        document: dict[str, Json] = {name: self.value}
        if self.value is None:
            document["why"] = self.why
        return {
            **document,
            "reasoning": self.reasoning,
            "evidence": [one.as_json() for one in self.evidence],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Something that went well, or that should be better."""

    text: str
    evidence: tuple[Quoted, ...]

    def as_json(self) -> dict[str, Json]:
        return {"text": self.text, "evidence": [one.as_json() for one in self.evidence]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScore:
    """Conciseness of one turn of the assistant."""

    turn: int
    start_ms: int | None
    ruling: Ruling[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One usable answer, its quotes found where it said."""

    outcome: Ruling[str]
    dimensions: Mapping[str, Ruling[float]]
    requirements: tuple[Ruling[str], ...]
    conciseness: Mapping[int, float]
    flags: Mapping[str, Ruling[bool]]
    going_well: tuple[Point, ...]
    to_improve: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """One time the judge was asked: its vote, or why there is none; ``code`` names the kind.

    Asked questions besides, it has ``answers`` and no vote. ``reply`` is what it answered,
    word for word.
    """

    vote: Vote | None
    answers: tuple[Ruling[str], ...] | None = None
    problem: str = ""
    code: str = ""
    reply: str = ""
    tokens: Mapping[str, Json] | None = None
    waited_seconds: float = 0.0

    def as_json(self) -> dict[str, Json]:
        return {
            "usable": self.vote is not None or self.answers is not None,
            "problem": self.problem or None,
            "code": self.code or None,
            "reply": self.reply,
            "tokens": None if self.tokens is None else dict(self.tokens),
            "waited_seconds": round(self.waited_seconds, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was made of one question that was asked besides."""

    question: Question
    ruling: Ruling[str]

    def as_json(self) -> dict[str, Json]:
        asked = self.question.model_dump(mode="json", include={"id", "question", "expected"})
        return asked | self.ruling.as_json("answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All decisions on one call. ``problem`` says why nothing at all was decided."""

    model: str
    casts: tuple[Cast, ...]
    problem: str = ""
    outcome: Ruling[str]
    requirements: tuple[Ruling[str], ...] = ()
    criteria: tuple[str, ...] = ()
    dimensions: Mapping[str, Ruling[float]] = field(default_factory=dict)
    conciseness: tuple[TurnScore, ...] = ()
    flags: Mapping[str, Ruling[bool]] = field(default_factory=dict)
    going_well: tuple[Point, ...] = ()
    to_improve: tuple[Point, ...] = ()
    version: str = JUDGE_VERSION
    questions: tuple[Answer, ...] = ()
    question_casts: tuple[Cast, ...] = ()

    @property
    def usable(self) -> bool:
        return not self.problem

    def score(self, dimension: str) -> float | None:
        return self.dimensions[dimension].value if dimension in self.dimensions else None

    def why(self, dimension: str) -> str:
        """Why a dimension has no score."""
        return self.dimensions[dimension].why if dimension in self.dimensions else self.problem

    def tokens(self) -> dict[str, Json]:
        """Sum what all answers used; None for a count that any of them did not tell."""
        used = [cast.tokens for cast in (*self.casts, *self.question_casts) if cast.reply]
        names = ("input_tokens", "output_tokens", "total_tokens")
        return {name: _summed([one.get(name) if one else None for one in used]) for name in names}

    def as_json(self) -> dict[str, Json]:
        """The block of a result, without what is worked out from other figures."""
        return {
            "model": self.model,
            "judge_version": self.version,
            "repetitions": len(self.casts),
            "usable_votes": sum(cast.vote is not None for cast in self.casts),
            "problem": self.problem or None,
            "outcome": self.outcome.as_json("verdict"),
            "requirements": [
                {"number": number, "text": text, **ruling.as_json("verdict")}
                for number, (text, ruling) in enumerate(
                    zip(self.criteria, self.requirements, strict=True), 1
                )
            ],
            "dimensions": {
                name: self.dimensions[name].as_json("score")
                for name in DIMENSIONS
                if name in self.dimensions
            },
            "conciseness_by_turn": [
                {"turn": one.turn, "start_ms": one.start_ms, "score": one.ruling.value}
                | ({"why": one.ruling.why} if one.ruling.value is None else {})
                for one in self.conciseness
            ],
            "flags": {
                name: self.flags[name].as_json("present") for name in FLAGS if name in self.flags
            },
            "going_well": [point.as_json() for point in self.going_well],
            "to_improve": [point.as_json() for point in self.to_improve],
            "tokens": self.tokens(),
            "votes": [cast.as_json() for cast in self.casts],
            **self._answers(),
        }

    def answer(self, id: str) -> Ruling[str] | None:
        """What was made of a question; None for one that was not asked."""
        return next((one.ruling for one in self.questions if one.question.id == id), None)

    def _answers(self) -> dict[str, Json]:
        if not self.questions:
            return {}
        return {
            "questions_version": QUESTIONS_VERSION,
            "questions": [one.as_json() for one in self.questions],
            "question_votes": [cast.as_json() for cast in self.question_casts],
        }


class Judge(Protocol):
    """Whoever judges calls; a failure is a judgement that says so, never an exception."""

    async def judge(self, case: JudgeCase) -> Judgement: ...


def _summed(counts: list[Json]) -> int | None:
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known and len(known) == len(counts) else None

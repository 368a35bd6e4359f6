"""A judge's reply read into a vote, or into the reason why it is none.

The reply may be bare JSON, fenced, or have prose around it; it must be one object of
the asked shape that does not contradict itself and quotes only what was said. What it
got right beside a fault is not used: a judge that invents one quote is not believed
the rest. Nothing here raises.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from duplex.grading.judging import reply as shapes
from duplex.grading.judging.case import JudgeCase
from duplex.grading.judging.judgement import NOT_APPLICABLE, Cast, Point, Quoted, Ruling, Vote
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS
from duplex.values import Json

S = TypeVar("S", bound=shapes.Part)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What some models think aloud before they answer; a draft in it is no judgement."""
_BEGINNING = re.compile(r'\{\s*"')
_TRIES = 100
"""Places at which an object may begin that are looked at; each may cost a millisecond."""
REPLY_LIMIT = 32_768
"""Characters of a reply that are kept beside the judgement."""
_QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'"}
)


class Unusable(Exception):
    """Why a reply is no vote; ``code`` is the kind of fault."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def read_vote(text: str, case: JudgeCase) -> Cast:
    """Read one reply on ``case``."""
    try:
        told = shaped(shapes.Reply, object_in(text))
        return Cast(vote=_vote(told, case), reply=text[:REPLY_LIMIT])
    except Unusable as fault:
        return unusable(fault, text)


def unusable(fault: Unusable, text: str) -> Cast:
    """What is kept of a reply that is no vote."""
    problem = f"its answer {fault}"
    return Cast(vote=None, problem=problem, code=fault.code, reply=text[:REPLY_LIMIT])


def occurs(quote: str, text: str) -> bool:
    """Whether ``quote`` stands in ``text``, but for case, white space and kind of quotes.

    Three dots at either end, and quotes around the whole, say where it was cut.
    """
    wanted = _folded(quote).strip("\"' ")
    wanted = wanted.removeprefix("...").removesuffix("...").strip("\"' ")
    return any(map(str.isalnum, wanted)) and wanted in _folded(text)


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    return " ".join(plain.split())


# -- text into an object -------------------------------------------------------


def object_in(text: str, member: str = "dimensions") -> dict[str, Json]:
    """Find the one JSON object of a reply, which has this member."""
    text = _THOUGHT.sub("", text, count=1)
    if not text.strip():
        raise Unusable("unreadable", "is empty")
    found: list[dict[str, Json]] = []
    place = _BEGINNING.search(text)
    for _ in range(_TRIES):
        if place is None:
            break
        end = place.end()
        try:
            value, end = _DECODER.raw_decode(text, place.start())
            found += [value] if isinstance(value, dict) else []
        except (ValueError, RecursionError):
            pass
        place = _BEGINNING.search(text, end)
    whole = [one for one in found if member in one]
    if len(whole) > 1 and any(one != whole[0] for one in whole):
        raise Unusable("contradiction", "holds two judgements that differ")
    if not whole:
        raise Unusable("unreadable", "holds no JSON object with a judgement")
    return whole[0]


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Members of an object; one that is told twice, differently, cannot be believed."""
    members: dict[str, Json] = {}
    for name, value in pairs:
        if name in members and members[name] != value:
            raise ValueError(f"{name} is told twice")
        members[name] = value
    return members


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not json")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_constant)


def shaped(shape: type[S], found: dict[str, Json]) -> S:
    """An object in the shape that was asked for."""
    try:
        return shape.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise Unusable("unreadable", f"has another shape: {where}: {message[:160]}") from None


# -- an object into a vote -----------------------------------------------------


def _vote(reply: shapes.Reply, case: JudgeCase) -> Vote:
    reader = _Reader(case)
    rated = {name: _rated(reply, name) for name in DIMENSIONS}
    return Vote(
        outcome=reader.outcome(reply.dimensions.task_understanding),
        dimensions={name: reader.dimension(name, one) for name, one in rated.items()},
        requirements=reader.requirements(reply.requirements),
        conciseness=reader.conciseness(reply.conciseness),
        flags={name: reader.flag(name, _flag(reply, name)) for name in FLAGS},
        going_well=reader.points("going_well", reply.going_well),
        to_improve=reader.points("to_improve", reply.to_improve),
    )


def _rated(reply: shapes.Reply, name: str) -> shapes.Rated:
    found = dict(reply.dimensions)[name]
    assert isinstance(found, shapes.Rated), "the shape has every dimension"
    return found


def _flag(reply: shapes.Reply, name: str) -> shapes.Flag:
    found = dict(reply.flags)[name]
    assert isinstance(found, shapes.Flag), "the shape has every flag"
    return found


class _Reader:
    """Holds an answer against the call it is about."""

    def __init__(self, case: JudgeCase) -> None:
        self._case = case

    def outcome(self, told: shapes.Understood) -> Ruling[str]:
        passed, score = told.verdict == "pass", told.score
        if score is None or (score < 0.5 if passed else score > 0.5):
            why = f"contradicts itself: task_understanding is {told.verdict} with score {score}"
            raise Unusable("contradiction", why)
        self._consistent("task_understanding", told.reasoning, good=passed)
        evidence = self._quotes("task_understanding", told.evidence, needed=passed)
        return Ruling(value=told.verdict, reasoning=told.reasoning, evidence=evidence)

    def dimension(self, name: str, told: shapes.Rated) -> Ruling[float]:
        failed = name == "task_understanding" and told.score is not None and told.score <= 0.5
        needed = told.score is not None and not failed
        return Ruling(
            value=told.score,
            why=NOT_APPLICABLE if told.score is None else "",
            reasoning=told.reasoning,
            evidence=self._quotes(name, told.evidence, needed=needed),
        )

    def requirements(self, told: Sequence[shapes.Required]) -> tuple[Ruling[str], ...]:
        wanted = list(range(1, len(self._case.criteria) + 1))
        if sorted(one.number for one in told) != wanted:
            numbers = ", ".join(str(one.number) for one in told) or "none"
            asked = f"1 to {len(wanted)}" if wanted else "none"
            raise Unusable("incomplete", f"judges requirements {numbers}, wanted {asked}")
        rulings = []
        for one in sorted(told, key=lambda one: one.number):
            where = f"requirement {one.number}"
            if one.verdict != "not_applicable":
                self._consistent(where, one.reasoning, good=one.verdict == "met")
            evidence = self._quotes(where, one.evidence, needed=one.verdict == "met")
            rulings.append(Ruling(value=one.verdict, reasoning=one.reasoning, evidence=evidence))
        return tuple(rulings)

    def conciseness(self, told: Sequence[shapes.Turned]) -> dict[int, float]:
        known = self._case.assistant_turns
        scores: dict[int, float] = {}
        for one in told:
            if one.turn not in known:
                why = f"scores turn {one.turn}, which is none of the assistant's"
                raise Unusable("incomplete", why)
            if scores.setdefault(one.turn, one.score) != one.score:
                raise Unusable("contradiction", f"scores turn {one.turn} twice, differently")
        return scores

    def flag(self, name: str, told: shapes.Flag) -> Ruling[bool]:
        evidence = self._quotes(name, told.evidence, needed=told.present)
        return Ruling(value=told.present, reasoning=told.reasoning, evidence=evidence)

    def points(self, where: str, told: Iterable[shapes.Noted]) -> tuple[Point, ...]:
        return tuple(
            Point(text=one.text, evidence=self._quotes(where, one.evidence, needed=False))
            for one in told
            if one.text.strip()
        )

    def _consistent(self, where: str, reasoning: str, *, good: bool) -> None:
        if shapes.gainsays(reasoning, good=good):
            raise Unusable(
                "contradiction", f"contradicts itself: the reasoning of {where} says the opposite"
            )

    def _quotes(
        self, where: str, told: Iterable[shapes.Quote], *, needed: bool
    ) -> tuple[Quoted, ...]:
        return looked_up(self._case, where, told, needed=needed)


def looked_up(
    case: JudgeCase, where: str, told: Iterable[shapes.Quote], *, needed: bool
) -> tuple[Quoted, ...]:
    """Look every quote up; a claim that needs evidence must have some."""
    found = []
    for one in told:
        turn = case.turn(one.turn)
        if turn is None:
            raise Unusable("misquoted", f"cites turn {one.turn} for {where}: there is none")
        if not occurs(one.quote, turn.text):
            shown = re.sub(r"\s+", " ", one.quote)[:80]
            why = f"quotes for {where} what turn {one.turn} does not say: {shown!r}"
            raise Unusable("misquoted", why)
        found.append(Quoted(turn=one.turn, quote=one.quote, who=turn.who, start_ms=turn.start_ms))
    if needed and not found:
        raise Unusable("unfounded", f"cites nothing for {where}")
    return tuple(found)

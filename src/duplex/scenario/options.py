"""The one object ``duplex`` that a scenario file may hold beside schema 1.0.

It says how a call is held and what is asked about it: rate, conditions, caller levels,
who speaks first, scripted lines, seed, limits and questions. Options given on the command
line win over a scenario's, a scenario's over its dataset's.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from duplex import conditions
from duplex.errors import InputError
from duplex.values import Action

Level = Literal["off", "occasional", "frequent"]
Pace = Literal["slow", "normal", "fast"]
Emotion = Literal["neutral", "calm", "cheerful", "impatient", "upset", "anxious", "sad"]
Clarity = Literal["clear", "vague"]
Memory = Literal["good", "poor"]

INTO_MS = 1_000
"""Where an interruption or a murmur that names no time begins in the assistant's turn."""
TENDENCY: dict[str, float] = {"off": 0.0, "occasional": 0.25, "frequent": 0.75}
"""The tendency a level stands for."""

QUESTION = "question_"
"""What the ids of questions' checks begin with."""

_CHECK = re.compile(
    r"([^:<>=@]{1,100}:)?\s*"
    r"(check\.[a-z][a-z0-9_]*"
    r"|[a-zA-Z0-9_.+\-*/() ]*[a-z][a-zA-Z0-9_.+\-*/() ]*(<=|>=|<|>|==)\s*-?\d+(\.\d+)?\s*(ms|s|%)?)"
    r"\s*(@\s*\d+(\.\d+)?\s*%)?\s*"
)
"""The outer form of a check; which metrics there are is known above."""


def _is_check(value: str) -> str:
    if _CHECK.fullmatch(value) is None:
        raise PydanticCustomError(
            "duplex", "is no check, want for example 'response_latency.p95 <= 1500ms'"
        )
    return value


def _is_condition(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise PydanticCustomError(
            "duplex", "is no condition, want for example 'telephony' or 'noise,snr=15'"
        )
    try:
        conditions.parse(value)
    except InputError as error:
        message = str(error).partition(": ")[2]
        raise PydanticCustomError("duplex", "{message}", {"message": message}) from None
    return value


def _compose(values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        conditions.parse(values)
    except InputError as error:
        message = f"do not compose: {str(error).partition(': ')[2]}"
        raise PydanticCustomError("duplex", "{message}", {"message": message}) from None
    return values


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PersonaLevels(_Options):
    """Levels of caller behaviour; each one left out stays as the persona has it."""

    pace: Pace | None = None
    interruptions: Level | None = None
    backchannels: Level | None = None
    emotion: Emotion | None = None
    disfluency: Level | None = None
    clarity: Clarity | None = None
    memory: Memory | None = None

    def tendencies(self) -> dict[str, float]:
        """Return the persona fields these levels replace."""
        named = {
            "interrupt_tendency": self.interruptions,
            "backchannel_tendency": self.backchannels,
        }
        return {field: TENDENCY[level] for field, level in named.items() if level is not None}


class ScriptLine(_Options):
    """One line of a scripted caller.

    ``at_ms`` is a time on the call's timeline; ``pause_ms`` counts from the end of
    the assistant's turn, ``into_ms`` from its beginning. With none of them, an
    interruption or a murmur begins a second into that turn, and any other line
    follows it at once.
    """

    text: Annotated[str, Field(min_length=1, pattern=r"\S")]
    at_ms: Annotated[int, Field(ge=0)] | None = None
    pause_ms: Annotated[int, Field(ge=0)] | None = None
    into_ms: Annotated[int, Field(ge=0)] | None = None
    action: Annotated[Action, Strict(False)] = Action.SPEAK

    @model_validator(mode="after")
    def _has_one_time(self) -> ScriptLine:
        times = {"at_ms": self.at_ms, "pause_ms": self.pause_ms, "into_ms": self.into_ms}
        given = [name for name, time in times.items() if time is not None]
        if len(given) > 1:
            both = {"both": " and ".join(given[:2])}
            raise PydanticCustomError("duplex", "has both {both}, want one", both)
        return self

    @property
    def begins_into_ms(self) -> int | None:
        """Where in the assistant's turn it begins; None when it does not."""
        over = self.action in (Action.INTERRUPT, Action.BACKCHANNEL)
        untimed = self.at_ms is None and self.pause_ms is None
        return INTO_MS if self.into_ms is None and over and untimed else self.into_ms


class Question(_Options):
    """A yes/no question about a call, with the answer that is wanted.

    ``description`` says what counts as which; ``min_pass_rate`` is the per cent of calls
    that must have the wanted answer, None for the usual share.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    question: Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
    expected: Literal["yes", "no"] = "yes"
    description: Annotated[str, Field(max_length=2_000)] = ""
    min_pass_rate: Annotated[float, Field(ge=0, le=100)] | None = None

    @property
    def check(self) -> str:
        """The id of its check in a call's grade."""
        return f"{QUESTION}{self.id}"


def _have_ids_of_their_own(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    ids = [one.id for one in questions]
    twice = next((id for at, id in enumerate(ids) if id in ids[:at]), None)
    if twice is not None:
        raise PydanticCustomError("duplex", 'holds id "{id}" twice', {"id": twice})
    return questions


class DuplexOptions(_Options):
    """How a call is held; None is not said."""

    rate_hz: Literal[8000, 16000, 24000, 48000] | None = None
    conditions: (
        Annotated[
            tuple[Annotated[str, AfterValidator(_is_condition)], ...],
            Strict(False),
            AfterValidator(_compose),
        ]
        | None
    ) = None
    persona: PersonaLevels | None = None
    first_speaker: Literal["caller", "assistant"] | None = None
    script: Annotated[tuple[ScriptLine, ...], Strict(False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    checks: (
        Annotated[tuple[Annotated[str, AfterValidator(_is_check)], ...], Strict(False)] | None
    ) = None
    questions: (
        Annotated[tuple[Question, ...], Strict(False), AfterValidator(_have_ids_of_their_own)]
        | None
    ) = None

    def over(self, base: DuplexOptions) -> DuplexOptions:
        """Return these options with ``base`` filling in what they do not say."""
        said = {name: value for name, value in self if value is not None}
        if self.persona is not None and base.persona is not None:
            levels = {name: value for name, value in self.persona if value is not None}
            said["persona"] = base.persona.model_copy(update=levels)
        return base.model_copy(update=said)

"""The one object ``duplex`` that a scenario file may hold beside schema 1.0.

It says how a call is held: rate, conditions, caller levels, who speaks first,
scripted lines, seed and limits. It never says what is expected. Options given on
the command line win over a scenario's, a scenario's over its dataset's.
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

TENDENCY: dict[str, float] = {"off": 0.0, "occasional": 0.25, "frequent": 0.75}
"""The tendency a level stands for."""

_CHECK = re.compile(
    r"\s*[a-z][a-z0-9_]*(\.[a-z0-9_]+)*\s*(<=|>=|<|>|==)\s*-?\d+(\.\d+)?\s*(ms|%)?\s*"
)


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
    the assistant's turn. With neither, the line follows that turn at once.
    """

    text: Annotated[str, Field(min_length=1, pattern=r"\S")]
    at_ms: Annotated[int, Field(ge=0)] | None = None
    pause_ms: Annotated[int, Field(ge=0)] | None = None
    action: Annotated[Action, Strict(False)] = Action.SPEAK

    @model_validator(mode="after")
    def _has_one_time(self) -> ScriptLine:
        if self.at_ms is not None and self.pause_ms is not None:
            raise PydanticCustomError("duplex", "has both at_ms and pause_ms, want one")
        return self


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

    def over(self, base: DuplexOptions) -> DuplexOptions:
        """Return these options with ``base`` filling in what they do not say."""
        said = {name: value for name, value in self if value is not None}
        if self.persona is not None and base.persona is not None:
            levels = {name: value for name, value in self.persona if value is not None}
            said["persona"] = base.persona.model_copy(update=levels)
        return base.model_copy(update=said)

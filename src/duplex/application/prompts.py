"""The two instruction texts of a call, and reading their private blocks back.

Real and local sessions get the same text: prose for a model, and one fenced
JSON block that the local brains parse. The caller's block is its brief, without
expectations and without tools; the assistant's is its desk, without the agenda.
The session's instructions are the only thing that joins a scenario to a brain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from duplex.application.desk import Desk
from duplex.application.model import Application
from duplex.errors import InputError
from duplex.values import Json

Scalar = str | int | float | bool | None

OPENING_COMMENTARY = "The caller is on the line. Greet them now and ask how you can help."
"""Words by which a session asks its assistant to speak first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgendaItem:
    """One thing the caller means to do; field names as in the scenario file."""

    id: str
    action: str = "answer"
    commitment: str = ""
    trigger_condition: str = ""
    completion_condition: str = ""
    facts: tuple[str, ...] = ()
    response_hint: str = ""
    after: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """How the caller behaves; tendencies are probabilities in [0, 1].

    ``pace`` to ``memory`` are levels as ``duplex.persona`` of a scenario names them.
    """

    description: str = ""
    speech_instructions: str = ""
    verbosity: str = ""
    interrupt_tendency: float = 0.15
    backchannel_tendency: float = 0.25
    backchannels: tuple[str, ...] = ()
    pace: str = "normal"
    emotion: str = "neutral"
    disfluency: str = "off"
    clarity: str = "clear"
    memory: str = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """All that the caller knows. ``opening`` is what it says first (``input.text``)."""

    goal: str
    opening: str
    known_facts: Mapping[str, Scalar] = field(default_factory=dict)
    agenda: tuple[AgendaItem, ...] = ()
    persona: Persona = field(default_factory=Persona)
    context: str = ""
    first_speaker: str = "assistant"


def caller_instructions(brief: Brief) -> str:
    """Write the caller's instructions: prose, then its ``duplex-brief`` block."""
    lines = [
        "You are a person making a telephone call. You are the caller, never the one who answers: "
        "do not offer help, do not confirm anything on the other side's behalf, and do not invent "
        "details beyond those below.",
        f"What you want: {brief.goal}",
    ]
    if brief.context:
        lines.append(f"What happened before: {brief.context}")
    begin = "Speak first. Begin" if brief.first_speaker == "caller" else "Once greeted, begin"
    lines.append(f"{begin} with: {brief.opening}")
    if brief.known_facts:
        facts = "; ".join(f"{k.replace('_', ' ')}: {v}" for k, v in brief.known_facts.items())
        lines.append(f"What you know: {facts}.")
    lines += [f"- {_item_in_prose(item)}" for item in brief.agenda]
    persona = brief.persona
    lines += [text for text in (persona.description, persona.speech_instructions) if text]
    lines += manner_in_prose(persona)
    lines.append(
        "Answer the question you were actually asked, in one short sentence. Give several details "
        "together when several are asked for. Repeat yourself when asked. If a detail is read back "
        "wrong, correct it. When your aim is reached, or clearly cannot be, thank them and say "
        "goodbye."
    )
    return "\n".join(lines) + "\n\n" + _block("duplex-brief", _briefs(), brief)


_MANNERS: dict[tuple[str, str], str] = {
    ("pace", "slow"): "Speak slowly.",
    ("pace", "fast"): "Speak fast.",
    ("disfluency", "occasional"): "Now and then begin with a filler such as um.",
    ("disfluency", "frequent"): "Hesitate often: fillers, words said twice, sentences begun anew.",
    ("clarity", "vague"): "Be vague at first and hedge; be exact only when asked again.",
    ("memory", "poor"): "You often have to think before a detail comes to you; say so, and pause.",
}


def manner_in_prose(persona: Persona) -> list[str]:
    """A sentence for every trait in which a persona differs from a plain one."""
    found = [
        said
        for (trait, level), said in _MANNERS.items()
        if {
            "pace": persona.pace,
            "disfluency": persona.disfluency,
            "clarity": persona.clarity,
            "memory": persona.memory,
        }[trait]
        == level
    ]
    if persona.emotion != "neutral":
        found.append(f"You are {persona.emotion}, and it can be heard.")
    return found


def _item_in_prose(item: AgendaItem) -> str:
    when = f"When this happens: {item.trigger_condition} " if item.trigger_condition else ""
    how = {
        "interrupt": "Interrupt while they speak. ",
        "backchannel": "Only murmur that you are listening, while they speak. ",
        "wait": "Stay silent. ",
    }.get(item.action, "")
    hint = f' For instance: "{item.response_hint}"' if item.response_hint else ""
    return f"{when}{how}{item.commitment}{hint}".strip()


def assistant_instructions(
    application: Application, initial_state: Mapping[str, Json], extra: Sequence[str] = ()
) -> str:
    """Write the assistant's instructions: the application's prose, then its desk."""
    desk = application.desk(initial_state)
    lines = [application.instructions, f"Today is {desk.today}."]
    lines += [text for text in extra if text]
    lines.append(f"When you open the call, say: {desk.greeting}")
    return "\n".join(lines) + "\n\n" + _block("duplex-desk", _desks(), desk)


def brief_from(instructions: str) -> Brief:
    """Read the caller's brief out of its instructions; raise InputError if there is none."""
    return _read("duplex-brief", _briefs(), instructions)


def desk_from(instructions: str) -> Desk:
    """Read the assistant's desk out of its instructions; raise InputError if there is none."""
    return _read("duplex-desk", _desks(), instructions)


T = TypeVar("T", Brief, Desk)


@cache
def _briefs() -> TypeAdapter[Brief]:
    return TypeAdapter(Brief)


@cache
def _desks() -> TypeAdapter[Desk]:
    return TypeAdapter(Desk)


def _block(tag: str, kind: TypeAdapter[T], value: T) -> str:
    # A fence inside a string would end the block early, so backticks are escaped.
    text = kind.dump_json(value, indent=1).decode().replace("`", "\\u0060")
    return f"```{tag}\n{text}\n```\n"


def _read(tag: str, kind: TypeAdapter[T], instructions: str) -> T:
    match = re.search(rf"```{tag}\s+(\{{.*?\}})\s*```", instructions, re.DOTALL)
    if match is None:
        raise InputError(f"instructions: no {tag} block, which the local voice needs")
    try:
        return kind.validate_json(match[1])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"instructions: {tag} block: {place}: {first['msg'].lower()}") from error

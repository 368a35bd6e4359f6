"""``duplex scenario import``: scenarios of LiveKit's ``scenarios.yaml`` as schema 1.0.

Ids and labels are kept, so runs stay comparable over edits. What a caller is told
is parted by the headings people write (opening line, facts, do in order); text
without headings becomes the goal whole. What has no place here is said, never
dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from duplex.errors import InputError
from duplex.inputs import read_text
from duplex.scenario import AgendaItem, Expected, Input, Persona, Scenario, Simulation
from duplex.scenario.model import ApplicationStart, Fact
from duplex.scenario.text import MAX_YAML_BYTES, read_yaml
from duplex.scenario_files import put

_HEADING = re.compile(
    r"^\s*(?:#+\s*)?(persona|opening line|opening|facts|do, in order|do in order|do|steps|"
    r"reactions|hidden truth)\b[^:\n]*:\s*(.*)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_FACT = re.compile(r"^(?P<name>[^:=]{1,60})[:=]\s*(?P<value>.+)$")
_NAMES = {"opening line": "opening", "do, in order": "do", "do in order": "do", "steps": "do"}


class _Scenario(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = ""
    label: str
    instructions: str
    agent_expectations: str = ""
    tags: dict[str, str] = {}
    userdata: dict[str, JsonValue] = {}


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = ""
    name: str = ""
    scenarios: list[_Scenario]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import brought; ``notes`` tell what could not be taken over."""

    scenarios: tuple[Scenario, ...]
    notes: tuple[str, ...]


def command(source: Path, out: Path | None) -> tuple[str, ...]:
    """Write the scenarios (to stdout without ``out``); return the notes. Raises InputError."""
    found = imported(source)
    put(found.scenarios, out)
    return found.notes


def imported(source: Path) -> Imported:
    """Read a file of theirs."""
    name = f"scenarios {source}"
    return taken_over(read_yaml(read_text(source, name, limit=MAX_YAML_BYTES), name), name)


def taken_over(value: object, name: str) -> Imported:
    """Make scenarios of what stands in such a file; ``name`` is what complaints call it."""
    try:
        group = _Group.model_validate(value)
    except ValidationError as error:
        raise _fault(error, name) from None
    if not group.scenarios:
        raise InputError(f"{name}: it holds no scenario")
    notes: list[str] = []
    made: dict[str, Scenario] = {}
    for at, one in enumerate(group.scenarios):
        try:
            scenario = _made(one, at, notes)
        except ValidationError as error:
            raise _fault(error, f"{name}: scenarios[{at}]") from None
        if scenario.id.casefold() in made:
            raise InputError(f"{name}: scenarios[{at}].id {scenario.id} is there twice")
        made[scenario.id.casefold()] = scenario
    return Imported(scenarios=tuple(made.values()), notes=tuple(notes))


def _fault(error: ValidationError, name: str) -> InputError:
    """The first thing that is wrong, in a sentence."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return InputError(f"{name}: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}")


def _made(one: _Scenario, at: int, notes: list[str]) -> Scenario:
    parts = _parts(one.instructions)
    opening = " ".join(parts.get("opening", [])).strip().strip("\"'") or _first_sentence(one)
    facts: dict[str, Fact] = dict(_facts(parts.get("facts", ())))
    id = _safe(one.id or one.label, at)
    truth = parts.get("hidden truth")
    if truth:
        notes.append(f"{id}: the hidden truth is part of the goal, which the caller is told")
    if one.userdata:
        notes.append(f"{id}: userdata became the application's initial state")
    steps = parts.get("do", [])
    return Scenario(
        id=id,
        title=one.label,
        interaction="multi_turn",
        tags=tuple(f"{name}={value}" for name, value in one.tags.items()),
        input=Input(text=opening),
        application=ApplicationStart(initial_state=dict(one.userdata)),
        expected=Expected(
            answer=one.agent_expectations.strip() or "The caller's request is settled.",
            criteria=tuple(_lines(one.agent_expectations)),
        ),
        simulation_parameters=Simulation(
            goal=one.instructions.strip(),
            known_facts=facts,
            agenda=tuple(_agenda(steps)),
            persona=Persona(description=" ".join(parts["persona"]))
            if parts.get("persona")
            else Persona(),
            expectations=tuple(parts.get("reactions", [])),
        ),
    )


def _parts(text: str) -> dict[str, list[str]]:
    """The lines below each heading, bullets taken off."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            name = heading[1].lower()
            current = found.setdefault(_NAMES.get(name, name), [])
            if heading[2].strip():
                current.append(heading[2].strip())
        elif current is not None and line.strip():
            current.append(_BULLET.sub("", line).strip())
    return found


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if clean := _BULLET.sub("", line).strip():
            yield clean


def _facts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, line in enumerate(lines, start=1):
        fact = _FACT.match(line)
        if fact is None:
            yield f"fact_{at}", line
        else:
            name = re.sub(r"[^a-z0-9]+", "_", fact["name"].strip().lower()).strip("_")
            yield name or f"fact_{at}", fact["value"].strip()


def _agenda(steps: Sequence[str]) -> Iterator[AgendaItem]:
    """Each step after the one before it, as it is written."""
    for at, step in enumerate(steps, start=1):
        yield AgendaItem(
            id=f"step_{at}",
            commitment=step,
            trigger_condition="The assistant gives an occasion for it.",
            completion_condition="The caller has said it.",
            action="answer",
            after=(f"step_{at - 1}",) if at > 1 else (),
        )


def _first_sentence(one: _Scenario) -> str:
    text = " ".join(one.instructions.split())
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0] or one.label


def _safe(name: str, at: int) -> str:
    clean = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-")[:100]
    return clean or f"scenario_{at + 1}"

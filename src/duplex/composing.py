"""``duplex scenario new``: a scenario from a few answers, asked for one by one.

Whatever an option says is not asked; without a terminal nothing is, and what is
missing is one sentence. The result is a file that ``scenario validate`` accepts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from duplex.errors import InputError
from duplex.scenario import DuplexOptions, Expected, Input, Scenario, Simulation
from duplex.scenario.model import ApplicationStart
from duplex.scenario_files import put
from duplex.values import Json
from duplex.verdict.criteria import read_check

Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the scenario is made of; None is asked for, a pair is ``name=value``."""

    title: str | None = None
    goal: str | None = None
    opening: str | None = None
    answer: str | None = None
    facts: Sequence[str] = ()
    state: Sequence[str] = ()
    check: Sequence[str] = ()


def command(answers: Answers, ask: Ask | None, out: Path | None) -> None:
    """Ask, make and write a scenario. Raises InputError."""
    try:
        scenario = compose(answers, ask)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for check in answers.check:
        read_check(check)
    put((scenario,), out)


def compose(answers: Answers, ask: Ask | None) -> Scenario:
    """Make the scenario; ``ask`` puts a question to a person, None where nobody is there."""
    title = _told(answers.title, "title", "What is it about, in a few words?", ask)
    opening = _told(answers.opening, "opening", "What does the caller say first?", ask)
    goal = _told(answers.goal, "goal", "What does the caller want to be settled in the end?", ask)
    expected = _told(answers.answer, "answer", "What must the assistant have done by then?", ask)
    facts, state = list(answers.facts), list(answers.state)
    if ask is not None and not facts:
        facts = _several(ask, "What does the caller know? name=value, empty to go on")
    if ask is not None and not state:
        state = _several(ask, "What must the application's state hold? name=value, empty to go on")
    return Scenario(
        id=re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:100] or "scenario",
        title=title,
        interaction="multi_turn",
        input=Input(text=opening),
        application=ApplicationStart(),
        expected=Expected(answer=expected, state=dict(_pairs(state, "state"))),
        simulation_parameters=Simulation(
            goal=goal,
            known_facts={name: _scalar(value, name) for name, value in _pairs(facts, "fact")},
        ),
        duplex=DuplexOptions(checks=tuple(answers.check) or None),
    )


def _told(given: str | None, name: str, question: str, ask: Ask | None) -> str:
    if given is not None and given.strip():
        return given.strip()
    if ask is None:
        raise InputError(f"--{name} is missing, and there is no terminal to ask at")
    for _ in range(3):
        if said := ask(question).strip():
            return said
    raise InputError(f"{name} is empty")


def _several(ask: Ask, question: str) -> list[str]:
    found = []
    while said := ask(question).strip():
        found.append(said)
    return found


def _pairs(texts: Sequence[str], what: str) -> list[tuple[str, Json]]:
    found: list[tuple[str, Json]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f'{what} "{text}": want name=value')
        found.append((name.strip(), _value(value.strip())))
    return found


def _value(text: str) -> Json:
    """A number, true or false where the text is one; else the text."""
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _scalar(value: Json, name: str) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        raise InputError(f"fact {name} is no scalar")
    return value

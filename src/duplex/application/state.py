"""Whether a scenario's initial state is one its application can start from.

An application says by a JSON schema what the members it reads look like; a
scenario may hold others beside them. What does not fit is told with its place,
what was got and what is wanted, because an application that reads a state it
does not understand would just not do what the scenario is about.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping

from duplex.application.model import Application
from duplex.application.schema import problems
from duplex.values import Json

_DAY: dict[str, Json] = {
    "type": "string",
    "format": "date",
    "description": "a day such as 2026-08-01",
}
_VALUES: dict[str, Json] = {"type": "array", "description": "a list of values"}


def state_problems(application: Application, state: Mapping[str, Json], at: str) -> list[str]:
    """Say what is wrong with an initial state; ``at`` is where it stands in its file."""
    return [
        problem
        for name, schema in _members(application).items()
        if name in state
        for problem in _wrong(schema, state[name], f"{at}.{name}")
    ]


def state_doubts(application: Application, state: Mapping[str, Json], at: str) -> list[str]:
    """Say which members the application does not read but look like ones it does."""
    known = _members(application)
    found = []
    for name in state:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if name not in known and name not in application.initial_state and close:
            found.append(
                f"{at}.{name} is nothing the application {application.name} reads, "
                f'did you mean "{close[0]}"?'
            )
    return found


def _members(application: Application) -> dict[str, Mapping[str, Json]]:
    """The schema of every member that the application, or its desk, reads."""
    properties = application.state_schema.get("properties")
    given = properties if isinstance(properties, dict) else {}
    declared = {name: sub for name, sub in given.items() if isinstance(sub, dict)}
    return {"today": _DAY, **dict.fromkeys(application.allowed_from.values(), _VALUES), **declared}


def _wrong(schema: Mapping[str, Json], value: Json, at: str) -> Iterator[str]:
    """Yield the innermost places that do not fit, each with what is wanted there."""
    inside = [
        problem
        for name, (sub, item) in _children(schema, value)
        for problem in _wrong(sub, item, at + name)
    ]
    if inside:
        yield from inside
        return
    found = problems(schema, value, at)
    if found:
        wanted = schema.get("description")
        missing = found[0] if found[0].endswith(": missing") else ""
        if missing or not isinstance(wanted, str):
            yield found[0]
        else:
            yield f"{at} is {_shown(value)}, want {wanted}"


def _children(
    schema: Mapping[str, Json], value: Json
) -> Iterator[tuple[str, tuple[Mapping[str, Json], Json]]]:
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(properties, dict):
        for name, sub in properties.items():
            if name in value and isinstance(sub, dict):
                yield f".{name}", (sub, value[name])
    if isinstance(value, list) and isinstance(items, dict):
        for index, item in enumerate(value):
            yield f"[{index}]", (items, item)


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

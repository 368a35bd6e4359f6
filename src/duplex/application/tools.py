"""Tools of an application and the one way to run them.

A tool is a plain function ``f(state, **arguments)`` with a JSON schema. The
toolbox owns one call's state, checks arguments before anything runs, and turns
refusals into values; it knows nothing of conversations or clocks.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from duplex.application.bounds import unbearable
from duplex.application.schema import check_schema, problems
from duplex.errors import InputError
from duplex.values import Json

State = dict[str, Json]
Function = Callable[..., Json]
_SHOWN = 10
"""Faults of arguments that are told at once."""


class ToolRefused(Exception):
    """Raised by a tool that will not do what it was asked; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing the application can do.

    ``run`` gets the mutable state and the arguments by name, returns strict
    JSON, and raises :class:`ToolRefused` to decline.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    run: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one call: ``completed`` with a result or ``failed`` with an error.

    ``broke``: it failed by an error of its own instead of declining.
    """

    status: str
    result: Json = None
    error: str | None = None
    changed: bool = False
    broke: bool = False


class Toolbox:
    """The tools and the state of one call."""

    def __init__(self, tools: Sequence[Tool], state: Mapping[str, Json]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise InputError(f"tool {tool.name}: declared twice")
            check_schema(f"tool {tool.name}: parameters", tool.parameters)
            self._tools[tool.name] = tool
        self._state: State = copy.deepcopy(dict(state))

    @property
    def state(self) -> State:
        """A copy of the state as it stands."""
        return copy.deepcopy(self._state)

    def run_json(self, name: str, arguments: str) -> Outcome:
        """Run with arguments as a model writes them: a JSON object, or nothing."""
        try:
            parsed: Json = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return Outcome(status="failed", error=f"tool_args_error: not JSON: {error}")
        if not isinstance(parsed, dict):
            kind = type(parsed).__name__
            return Outcome(status="failed", error=f"tool_args_error: {kind}, wanted an object")
        return self.run(name, parsed)

    def run(self, name: str, arguments: Mapping[str, Json]) -> Outcome:
        """Check the arguments, run the tool, keep its changes only if it succeeds."""
        tool = self._tools.get(name)
        if tool is None:
            return Outcome(status="failed", error=f"no tool named {name}")
        if (beyond := unbearable(arguments)) is not None:
            return Outcome(status="failed", error=beyond)
        wrong = problems(tool.parameters, dict(arguments))
        if wrong:
            return Outcome(status="failed", error=_joined(wrong))
        state = copy.deepcopy(self._state)
        try:
            result = tool.run(state, **_as_declared(tool.parameters, arguments))
        except ToolRefused as refusal:
            return Outcome(status="failed", error=str(refusal))
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            # Also what would end the whole run, such as sys.exit: it is one failed call.
            return Outcome(status="failed", error=told(problem), broke=True)
        changed = state != self._state
        self._state = state
        return Outcome(status="completed", result=copy.deepcopy(result), changed=changed)


def _joined(wrong: Sequence[str]) -> str:
    """The first of many faults, each short enough to be read."""
    shown = [one if len(one) <= 300 else f"{one[:300]}…" for one in wrong[:_SHOWN]]
    return "; ".join(
        [*shown, *([f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else [])]
    )


def told(problem: BaseException) -> str:
    """Say in one line what somebody else's code came to."""
    kind = type(problem).__name__
    text = " ".join(str(problem).split())[:300]
    if isinstance(problem, SystemExit):
        return f"it left by sys.exit({text})"
    return f"{kind}: {text}" if text else kind


def _as_declared(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Hand integers over as int: JSON's ``2.0`` is the integer 2."""
    properties = schema.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    out: dict[str, Json] = {}
    for name, value in arguments.items():
        sub = kinds.get(name)
        whole = isinstance(sub, dict) and sub.get("type") == "integer"
        out[name] = int(value) if whole and isinstance(value, float) else copy.deepcopy(value)
    return out

"""The application's tools, worked by a model: events, media time and the call's state.

Arguments are checked before anything runs, by the one rule of ``schema.py``; nulls that
strict servers write for what is optional count as not given. Calls of one response run
side by side in media time, each taking its declared time, in the order they are due.
Nothing here talks to a model; ``model_backend.py`` and a live session drive it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

from duplex.application.base import Tell
from duplex.application.tools import Outcome, Tool, Toolbox
from duplex.clock import Clock
from duplex.protocols.gpt_live import Broken, read_object
from duplex.protocols.model_values import Call, Function, Output
from duplex.protocols.strict_schema import without_nulls
from duplex.values import Happening, Json

TOOL_MS = 200
"""Declared media time of one tool, in ms, before jitter of a fifth either way."""
SHOWN = 500
"""Characters of unreadable arguments that the events keep."""


class Workbench:
    """The tools and the state of one call; without tools there is no state to tell of."""

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        state: Mapping[str, Json] | None = None,
        *,
        seed: int = 0,
        tool_ms: int = TOOL_MS,
    ) -> None:
        self.functions: tuple[Function, ...] = tuple(
            Function(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in tools
        )
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._tools = Toolbox(tools, state or {})
        self._tool_ms = tool_ms
        self._jitter = random.Random(f"{seed}:tool_ms")

    @property
    def state(self) -> dict[str, Json]:
        """A copy of the application's state as it stands."""
        return self._tools.state

    def begin(self, tell: Tell) -> None:
        if self.functions:
            tell(Happening(type="state", fields={"state": self._tools.state}))

    async def run(
        self, calls: Sequence[Call], delegation_id: str | None, clock: Clock, tell: Tell
    ) -> list[Output]:
        """Run all calls of one response; return their outputs in the order of the calls."""
        start = clock.position
        due: list[tuple[int, int]] = []
        for index, call in enumerate(calls):
            tell(Happening(type="tool.started", fields=_started(call, delegation_id)))
            pause = self._tool_ms * self._jitter.uniform(0.8, 1.2)
            due.append((start + int(pause * clock.rate_hz / 1000), index))
        outputs: dict[int, Output] = {}
        for at, index in sorted(due):
            await clock.until(at)
            outputs[index] = self._run(calls[index], tell)
        return [outputs[index] for index in range(len(calls))]

    def _run(self, call: Call, tell: Tell) -> Output:
        outcome = self._outcome(call)
        fields: dict[str, Json] = {
            "call_id": call.call_id,
            "status": outcome.status,
            "result": outcome.result,
            "error": outcome.error,
        }
        tell(Happening(type="tool.ended", fields=fields))
        if outcome.changed:
            tell(Happening(type="state", fields={"state": self._tools.state}))
        return Output(call_id=call.call_id, text=_told(outcome))

    def _outcome(self, call: Call) -> Outcome:
        arguments = read_arguments(call.arguments)
        if arguments is None:
            error = "tool_args_error: the arguments are no JSON object"
            return Outcome(status="failed", error=error)
        schema = self._schemas.get(call.name)
        return self._tools.run(call.name, without_nulls(schema or {}, arguments))


def read_arguments(text: str) -> dict[str, Json] | None:
    """Return a call's arguments as an object, None when they are none."""
    found = read_object(text) if text.strip() else {}
    return None if isinstance(found, Broken) else found


def _started(call: Call, delegation_id: str | None) -> dict[str, Json]:
    arguments = read_arguments(call.arguments)
    if arguments is None:
        arguments = {"unreadable": call.arguments[:SHOWN]}
    return {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": arguments,
        "delegation_id": delegation_id,
    }


def _told(outcome: Outcome) -> str:
    """What the model is told of a call: its result, or why there is none."""
    if outcome.status == "completed":
        return json.dumps(outcome.result)
    error = "the tool broke; nothing was changed" if outcome.broke else outcome.error
    return json.dumps({"error": error})

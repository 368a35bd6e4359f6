"""The local backend: does delegated work by the application's own procedures.

It reads the conversation it is handed, never the audio, the agenda or the
expectations; runs the errand's tools on the call's state; and answers with
sentences built from what the tools returned. Tools cost media time through
``clock.until``. Delegations of one call are worked off one after the other, so
the same details can never be booked twice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.application.base import Line, Tell
from duplex.application.dialogue import Tracker
from duplex.application.model import Application, Procedure
from duplex.application.steps import BROKE, arguments_of, holds, said_first, say_results
from duplex.application.template import fill
from duplex.application.tools import Outcome, Toolbox
from duplex.application.turnstile import Turnstile
from duplex.clock import Clock
from duplex.values import Happening, Json

TOOL_MS = 200
"""Declared media time of one tool, in ms, before jitter of a fifth either way."""


class LocalBackend:
    """Owns the delegated work of one call (see ``base.Backend``)."""

    def __init__(
        self,
        application: Application,
        initial_state: Mapping[str, Json],
        *,
        seed: int = 0,
        tool_ms: int = TOOL_MS,
    ) -> None:
        self._application = application
        self._desk = application.desk(initial_state)
        self._tools = Toolbox(application.tools, application.state(initial_state))
        self._tool_ms = tool_ms
        self._jitter = random.Random(f"{seed}:tool_ms")
        self._ids = random.Random(f"{seed}:call_ids")
        self._turn = Turnstile()
        self._done: dict[str, _Work] = {}
        self._looked_up: dict[str, Outcome] = {}

    @property
    def state(self) -> dict[str, Json]:
        """A copy of the application's state as it stands."""
        return self._tools.state

    def begin(self, tell: Tell) -> None:
        tell(Happening(type="state", fields={"state": self._tools.state}))

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        tracker = Tracker(self._desk)
        tracker.replay(conversation)
        await self._turn.enter(clock)
        try:
            return [await self._work(Job(delegation_id, clock, tell), tracker)]
        finally:
            self._turn.leave(clock)

    async def _work(self, job: Job, tracker: Tracker) -> str:
        errand = tracker.errand or self._desk.errands[0]
        values = tracker.details()
        if first := said_first(tracker):
            return first
        before = self._done.get(errand.name)
        if before is not None and before.values == values:
            return before.said
        procedure = self._application.procedures[errand.name]
        work = await self._run(job, procedure, values, before)
        if work.finished:
            self._done[errand.name] = work
        return work.said

    async def _run(
        self, job: Job, procedure: Procedure, values: Mapping[str, Json], before: _Work | None
    ) -> _Work:
        changing = before is not None and bool(procedure.change)
        steps = procedure.change if changing else procedure.steps
        results: dict[str, Json] = dict(before.results) if before is not None and changing else {}
        said = self._desk.said(values)
        for step in steps:
            arguments = arguments_of(step, {**results, **values})
            outcome = await self._call(job, step.tool, arguments)
            if outcome.status == "failed":
                said["error"] = BROKE if outcome.broke else outcome.error or ""
                return _Work(values, results, fill(procedure.failed, said), finished=False)
            if isinstance(outcome.result, dict):
                results.update({k: v for k, v in outcome.result.items() if k not in values})
                said.update(say_results(step, outcome.result, self._desk.slots, said))
            for stop in step.stops:
                if holds(stop.when, outcome.result):
                    return _Work(values, results, fill(stop.say, said), finished=False)
        template = procedure.say_changed if changing else procedure.say
        return _Work(values, results, fill(template, said), finished=True)

    async def _call(self, job: Job, name: str, arguments: dict[str, Json]) -> Outcome:
        """Run one tool; a look-up already made on the same state is not made again."""
        key = f"{name}({sorted(arguments.items())!r}) on {self._tools.state!r}"
        if key in self._looked_up:
            return self._looked_up[key]
        call_id = f"call_{self._ids.getrandbits(64):016x}"
        job.tell(
            Happening(
                type="tool.started",
                fields={
                    "call_id": call_id,
                    "name": name,
                    "arguments": arguments,
                    "delegation_id": job.delegation_id,
                },
            )
        )
        pause = self._tool_ms * self._jitter.uniform(0.8, 1.2)
        await job.clock.until(job.clock.position + int(pause * job.clock.rate_hz / 1000))
        outcome = self._tools.run(name, arguments)
        job.tell(
            Happening(
                type="tool.ended",
                fields={
                    "call_id": call_id,
                    "status": outcome.status,
                    "result": outcome.result,
                    "error": outcome.error,
                },
            )
        )
        if outcome.changed:
            job.tell(Happening(type="state", fields={"state": self._tools.state}))
        elif outcome.status == "completed":
            self._looked_up[key] = outcome
        return outcome


@dataclass(frozen=True, slots=True)
class Job:
    """One delegation at work."""

    delegation_id: str
    clock: Clock
    tell: Tell


@dataclass(frozen=True, slots=True)
class _Work:
    """What one errand came to; ``finished`` only when every step was done."""

    values: Mapping[str, Json]
    results: Mapping[str, Json]
    said: str
    finished: bool

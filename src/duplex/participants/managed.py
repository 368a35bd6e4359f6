"""Delegated work that the peer's own backend does, with the application's tools over here.

Under Responses delegation the service runs the model. Its responses come as nested
events; the functions they call are run here once their response has completed, and
their outputs sent back; the backend goes on when nothing runs and every open call has
its output. A response that failed or broke off takes its calls back: none of them is
ever run. The session hands events in and sends what comes out.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from duplex.application.workbench import Workbench
from duplex.clock import Clock
from duplex.participants.live_reading import Reading
from duplex.participants.realtime_replies import Known
from duplex.protocols.gpt_live import Broken
from duplex.protocols.gpt_live_client import BackendEvent, ClientCodec, Delegated
from duplex.protocols.model_values import Answer, Call
from duplex.protocols.responses import StreamReader
from duplex.values import Happening, Json

OUTPUTS_REQUIRED = "function_call_outputs_required"
OPEN_LIMIT = 64
"""Delegations followed at once; events of more are told as a fault."""


@dataclass(slots=True)
class _Work:
    """One delegation: the response it is at, if one runs, and the one before."""

    reader: StreamReader | None = None
    run_id: str = ""
    previous: str | None = None
    announced: str | None = None
    over: bool = False


@dataclass(slots=True)
class _Open:
    """What the whole session still owes its backend."""

    running: int = 0
    calls: set[str] = field(default_factory=set)
    owed: bool = False


class ManagedWork:
    """Runs the functions of one session's backend."""

    def __init__(
        self,
        bench: Workbench,
        reading: Reading,
        clock: Clock,
        codec: ClientCodec,
        send: Callable[[str], None],
    ) -> None:
        self._bench = bench
        self._reading = reading
        self._clock = clock
        self._codec = codec
        self._send = send
        self._works: dict[str | None, _Work] = {}
        self._open = _Open()
        self._used: set[str] = set()
        self._ended = Known()
        self._answered: list[str] = []
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        self._bench.begin(self._tell)

    def delegated(self, message: Delegated) -> None:
        """The peer handed work to its own backend."""
        work = self._work(message.delegation_id)
        if work is not None:
            work.announced, work.over = message.response_id, False

    def take(self, message: BackendEvent) -> None:
        """Take one event of the peer's backend, in order."""
        work = self._work(message.delegation_id)
        if work is None:
            return
        event = message.event
        if work.reader is None and self._is_over(work, event):
            text = f"response {work.previous} goes on after its end; nothing of it is done"
            self._reading.fault("backend", "answer_after_cancel", text)
            return
        if event.get("type") == "response.created" and work.reader is not None:
            self._lost(work, "a response began before the one before it was over")
        if work.reader is None:
            self._start(work, message)
        assert work.reader is not None
        answer = work.reader.take(event)
        if isinstance(answer, Broken):
            self._lost(work, answer.reason)
        elif answer is not None:
            self._over(message.delegation_id, work, answer)

    def refused(self, code: str) -> None:
        """The peer refuses a command: outputs it wants once more have been lost."""
        outputs, self._answered = self._answered, []
        if code == OUTPUTS_REQUIRED and outputs:
            text = "the output of a function was lost; it is sent again"
            self._reading.fault("backend", "tool_result_lost", text)
            for message in outputs:
                self._send(message)
            self._send(self._codec.go_on())

    async def stop(self) -> None:
        """Cancel what is being run and close what is open as not done."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for delegation_id, work in self._works.items():
            if work.reader is not None:
                self._end_run(work, "failed")
            if not work.over:
                self._close(delegation_id, work, ok=False)

    # -- one response -------------------------------------------------------

    def _work(self, delegation_id: str | None) -> _Work | None:
        known = self._works.get(delegation_id)
        if known is not None:
            return known
        if len(self._works) >= OPEN_LIMIT:
            text = f"more than {OPEN_LIMIT} delegations were begun"
            self._reading.fault("backend", "too_many_delegations", text)
            return None
        # What no delegation was announced for needs no closing either.
        work = self._works[delegation_id] = _Work(over=delegation_id is None)
        return work

    def _is_over(self, work: _Work, event: Mapping[str, Json]) -> bool:
        """Whether an event belongs to a response that has ended, and begins none."""
        response = event.get("response")
        identity = response.get("id") if isinstance(response, dict) else None
        if isinstance(identity, str):
            return identity in self._ended
        return work.previous is not None

    def _start(self, work: _Work, message: BackendEvent) -> None:
        response = message.event.get("response")
        identity = response.get("id") if isinstance(response, dict) else None
        given = identity if isinstance(identity, str) and identity else work.announced
        work.run_id = (given or f"response_{next(self._numbers)}")[:200]
        work.reader, work.announced = StreamReader(), None
        # A delegation that failed may be tried again; without an id there is none to close.
        work.over = message.delegation_id is None
        work.reader.response_id = work.run_id
        self._open.running += 1
        self._open.owed = False
        fields: dict[str, Json] = {
            "run_id": work.run_id,
            "delegation_id": message.delegation_id,
            "previous_run_id": work.previous,
        }
        self._told("run.started", fields)

    def _end_run(self, work: _Work, outcome: str) -> None:
        self._told("run.ended", {"run_id": work.run_id, "outcome": outcome})
        self._ended.add(work.run_id)
        work.previous, work.reader = work.run_id, None
        self._open.running -= 1

    def _lost(self, work: _Work, why: str) -> None:
        self._reading.fault("backend", "response_unreadable", f"response {work.run_id}: {why}")
        self._end_run(work, "failed")

    def _over(self, delegation_id: str | None, work: _Work, answer: Answer) -> None:
        self._end_run(work, answer.status)
        self._tell_usage(answer)
        if answer.status != "completed":
            why = answer.problem or "no reason given"
            text = f"response {answer.response_id} was {answer.status}: {why}"
            # What its provider had no capacity for is no failure of the agent's model.
            stage, code = "backend", f"response_{answer.status}"
            if answer.unserved:
                stage, code = "provider", answer.code
            self._reading.fault(stage, code, text)
            self._close(delegation_id, work, ok=False)
        elif answer.calls:
            self._run(delegation_id, answer.calls)
        else:
            if answer.text:
                said: dict[str, Json] = {"delegation_id": delegation_id, "text": answer.text}
                self._told("commentary", said)
            self._close(delegation_id, work, ok=True)
        self._go_on()

    def _close(self, delegation_id: str | None, work: _Work, *, ok: bool) -> None:
        if not work.over:
            work.over = True
            self._told("delegation.closed", {"delegation_id": delegation_id, "ok": ok})

    def _tell_usage(self, answer: Answer) -> None:
        if answer.tokens is not None and answer.response_id not in self._used:
            self._used.add(answer.response_id)
            fields: dict[str, Json] = {"response_id": answer.response_id}
            self._told("backend.usage", {**fields, **answer.tokens.as_json()})

    # -- its functions ------------------------------------------------------

    def _run(self, delegation_id: str | None, calls: tuple[Call, ...]) -> None:
        self._open.calls |= {call.call_id for call in calls}
        task = self._clock.spawn(self._work_off(delegation_id, calls))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_off(self, delegation_id: str | None, calls: tuple[Call, ...]) -> None:
        outputs = await self._bench.run(calls, delegation_id, self._clock, self._tell)
        self._answered = [self._codec.output(output.call_id, output.text) for output in outputs]
        for message in self._answered:
            self._send(message)
        self._open.calls -= {call.call_id for call in calls}
        self._open.owed = True
        self._go_on()

    def _go_on(self) -> None:
        """Let the backend go on, once, when nothing runs and nothing is owed to it."""
        if self._open.owed and not self._open.running and not self._open.calls:
            self._open.owed = False
            self._send(self._codec.go_on())

    # -- telling ------------------------------------------------------------

    def _told(self, kind: str, fields: dict[str, Json]) -> None:
        self._reading.tell(kind, fields, self._clock.elapsed())

    def _tell(self, happening: Happening) -> None:
        if happening.received_at is None:
            happening = replace(happening, received_at=self._clock.elapsed())
        self._reading.tell(happening.type, happening.fields, happening.received_at)

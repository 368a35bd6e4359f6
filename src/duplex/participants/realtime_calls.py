"""A model's function calls: run each as a task on the call's clock, answer each.

A response may call several functions at once. A call that breaks is answered with
its error, because the model waits for one. When the next response is asked for
is for the session to say, which drives this and sends what it is given to send.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from duplex.application.base import Tell
from duplex.clock import Clock
from duplex.participants.live_reading import Reading
from duplex.participants.realtime_replies import Known
from duplex.protocols.model_values import Call, Output
from duplex.protocols.realtime_events import (
    FunctionCall,
)
from duplex.values import Happening

OPEN_LIMIT = 32
"""Function calls worked on at once; more are answered with an error."""


class Functions(Protocol):
    """What a model may call; ``application/workbench.py`` has the application's."""

    def begin(self, tell: Tell) -> None:
        """The call starts: report the initial ``state``."""

    async def run(
        self, calls: Sequence[Call], delegation_id: str | None, clock: Clock, tell: Tell
    ) -> Sequence[Output]:
        """Run calls and return their outputs for the model; may raise."""


class Calls:
    """One session's function calls."""

    def __init__(
        self,
        functions: Functions | None,
        reading: Reading,
        clock: Clock,
        *,
        answer: Callable[[str, str], None],
        answered: Callable[[], None],
    ) -> None:
        """``answer`` sends (call id, output); ``answered`` is told after each."""
        self._functions = functions
        self._reading = reading
        self._clock = clock
        self._answer = answer
        self._answered = answered
        self._known = Known()
        self._open: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        if self._functions is None:
            return
        try:
            self._functions.begin(self._tell)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._reading.fault("backend", type(error).__name__, str(error)[:500])

    def start(self, call: FunctionCall) -> None:
        """Run one call; a repeated id is ignored."""
        if call.call_id in self._known:
            return
        self._known.add(call.call_id)
        if self._functions is None or len(self._open) >= OPEN_LIMIT:
            code = "no_functions" if self._functions is None else "too_many_calls"
            self._reading.fault("backend", code, f"call {call.call_id} of {call.name} was not run")
            self._answer(call.call_id, json.dumps({"error": code}))
            self._answered()
            return
        self._open[call.call_id] = self._clock.spawn(self._work(self._functions, call))

    @property
    def busy(self) -> bool:
        """Whether a call is still being worked on."""
        return bool(self._open)

    async def stop(self) -> None:
        """Give up what still runs."""
        left = list(self._open.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._open.clear()

    async def _work(self, functions: Functions, call: FunctionCall) -> None:
        try:
            wanted = Call(call_id=call.call_id, name=call.name, arguments=call.arguments)
            outputs = await functions.run([wanted], None, self._clock, self._tell)
            output = outputs[0].text
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # Also what would end the whole run, such as sys.exit: it is the call's failure.
            self._reading.fault("backend", type(error).__name__, str(error)[:500])
            output = json.dumps({"error": "it broke"})
        self._answer(call.call_id, output)
        self._open.pop(call.call_id, None)
        self._answered()

    def _tell(self, happening: Happening) -> None:
        if happening.received_at is None:
            happening = replace(happening, received_at=self._clock.elapsed())
        self._reading.tell(happening.type, happening.fields, happening.received_at)

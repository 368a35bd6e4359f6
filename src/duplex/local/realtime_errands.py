"""Delegated work whose tools are somebody else's: the steps of an errand as function calls.

The procedures are the application's; every tool in them is asked of the client and
the errand waits for the answer. What comes of it, the next call or the words at
the end, waits in order for the response that will carry it. The talk drives it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.application.backend import Job, LocalBackend
from duplex.application.base import Line
from duplex.application.desk import Desk
from duplex.application.model import Application
from duplex.application.tools import Outcome
from duplex.clock import Clock
from duplex.values import Happening, Json

log = logging.getLogger(__name__)

LOST = "I'm sorry, something went wrong here. Could we try that again?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A function call that an errand waits for."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """An errand is over; ``text`` is what came of it."""

    errand_id: str
    text: str


class Errands(LocalBackend):
    """One session's errands, worked off one after the other."""

    def __init__(self, application: Application, desk: Desk, clock: Clock, *, seed: int) -> None:
        super().__init__(application, {}, seed=seed)
        # The desk the client told of, whose day may be another than the application's own.
        self._desk = desk
        self._clock = clock
        self._steps: deque[Wanted | Finished] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._count = 0
        self._closed = False
        self.offered: frozenset[str] = frozenset()
        """Names of the functions that the client has."""

    @property
    def open(self) -> bool:
        """Whether anything is still to come of an errand."""
        return bool(self._tasks or self._steps)

    def start(self, conversation: Sequence[Line]) -> None:
        """Begin what the conversation so far asks for; nothing once it is closed."""
        if self._closed:
            return
        self._count += 1
        name = f"errand_{self._count}"
        self._tasks[name] = self._clock.spawn(self._work_off(name, tuple(conversation)))

    def answer(self, call_id: str, output: str) -> None:
        """Take a function call's output; one that nobody waits for is ignored."""
        waiting = self._answers.pop(call_id, None)
        if waiting is not None and not waiting.done():
            # Held for the errand that goes on, as in _put.
            self._clock.hold()
            waiting.set_result(output)

    def take(self) -> Wanted | Finished | None:
        """Return what has come of the errands and was not taken yet."""
        return self._steps.popleft() if self._steps else None

    async def next(self) -> Wanted | Finished:
        """Wait for what comes next; media time may go on meanwhile."""
        while not self._steps:
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            self._clock.drop()
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.done() or waiter.cancelled():
                    self._clock.hold()
                raise
        return self._steps.popleft()

    async def close(self) -> None:
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work_off(self, name: str, conversation: Sequence[Line]) -> None:
        try:
            (text,) = await self.handle(name, conversation, self._clock, _nobody)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("delegated work was lost")
            text = LOST
        self._tasks.pop(name, None)
        self._put(Finished(errand_id=name, text=text))

    async def _call(self, job: Job, name: str, arguments: dict[str, Json]) -> Outcome:
        """Ask the client for one tool and wait for its answer."""
        if name not in self.offered:
            return Outcome(status="failed", error=f"no tool named {name}")
        call_id = f"call_{self._ids.getrandbits(64):016x}"
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[call_id] = answer
        self._put(Wanted(call_id=call_id, name=name, arguments=json.dumps(arguments)))
        self._clock.drop()
        try:
            output = await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self._clock.hold()
            raise
        return _outcome(output)

    def _put(self, step: Wanted | Finished) -> None:
        self._steps.append(step)
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            # Held here for the one who waits, so that media time cannot slip between.
            self._clock.hold()
            waiter.set_result(None)


def _outcome(output: str) -> Outcome:
    try:
        value: Json = json.loads(output)
    except ValueError:
        value = output
    if isinstance(value, dict) and set(value) == {"error"}:
        return Outcome(status="failed", error=str(value["error"])[:300])
    return Outcome(status="completed", result=value)


def _nobody(happening: Happening) -> None:
    """What errands tell is the client's to tell: it runs the tools."""

"""Delegated work done by a language model: the application's tools in a model's hands.

It gives the model the conversation as the session heard it, runs the functions it
calls on the call's state, and returns its words. Responses are chained, so the model
remembers its earlier work of this call. A response that failed, or that broke off,
runs nothing. In virtual time a response costs a declared time; on the wall clock it
takes what it takes. A model that cannot be asked, and waits long enough to be heard,
are faults of the platform and never of the agent.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from duplex.application.base import BackendFailed, Line, Tell
from duplex.application.model import Application
from duplex.application.model_prompts import NUDGE, Transcript, work_instructions
from duplex.application.turnstile import Turnstile
from duplex.application.workbench import Workbench
from duplex.clock import Clock
from duplex.models.client import ModelClient, ModelError, Waited
from duplex.protocols.model_values import Answer, Ask, Call, Item, Message, Output
from duplex.values import Happening, Json

MODEL_MS = 800
"""Declared media time of one response in virtual time, in ms."""
ROUNDS = 12
"""Responses that one delegation may take."""
AUDIBLE_WAIT_SECONDS = 1.0
"""A server's rate limit that took longer than this, live, is in the call's latencies."""


class ModelBackend:
    """Owns the delegated work of one call (see ``base.Backend``)."""

    def __init__(
        self,
        application: Application,
        initial_state: Mapping[str, Json],
        client: ModelClient,
        *,
        seed: int = 0,
        model_ms: int = MODEL_MS,
    ) -> None:
        self._client = client
        self._bench = Workbench(application.tools, application.state(initial_state), seed=seed)
        self._instructions = work_instructions(application, initial_state, client.where.model)
        self._model_ms = model_ms
        self._turn = Turnstile()
        self._transcript = Transcript()
        self._history: list[Item] = []
        self._previous: str | None = None
        self._used: set[str] = set()
        self._runs = itertools.count(1)
        self._last_run: str | None = None
        self._waited = 0.0

    @property
    def state(self) -> dict[str, Json]:
        """A copy of the application's state as it stands."""
        return self._bench.state

    def begin(self, tell: Tell) -> None:
        self._bench.begin(tell)

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        await self._turn.enter(clock)
        try:
            return await self._work(delegation_id, conversation, clock, tell)
        finally:
            self._turn.leave(clock)

    async def _work(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> list[str]:
        nudge = Message(role="user", text=NUDGE)
        items: list[Item] = [*self._transcript.fresh(conversation), nudge]
        whole = False
        try:
            for _ in range(ROUNDS):
                answer = await self._answer(items, delegation_id, clock, tell)
                self._history += [*items, *answer.items]
                items = []
                self._previous = answer.response_id or None
                if not answer.calls:
                    whole = True
                    return [answer.text] if answer.text else []
                items = list(await self._bench.run(answer.calls, delegation_id, clock, tell))
        finally:
            if not whole:
                self._mend(items)
        raise BackendFailed(f"the model called functions {ROUNDS} times over", code="endless_calls")

    def _mend(self, items: Sequence[Item]) -> None:
        """Work broke off: keep what was said, and no call without its output."""
        self._history += items
        done = {item.call_id for item in self._history if isinstance(item, Output)}
        self._history = [
            item for item in self._history if not isinstance(item, Call) or item.call_id in done
        ]
        self._previous = None

    async def _answer(
        self, items: Sequence[Item], delegation_id: str, clock: Clock, tell: Tell
    ) -> Answer:
        ask = Ask(
            model=self._client.where.model,
            instructions=self._instructions,
            items=tuple(items),
            history=tuple(self._history),
            functions=self._bench.functions,
            previous_id=self._previous,
        )
        run_id = self._open_run(delegation_id, tell)
        outcome = "failed"
        try:
            answer = await self._ask(ask, clock, tell)
            outcome = answer.status
        finally:
            tell(Happening(type="run.ended", fields={"run_id": run_id, "outcome": outcome}))
        if answer.status != "completed":
            raise BackendFailed(
                f"the model's response was {answer.status}: {answer.problem or 'no reason'}",
                code=answer.code if answer.unserved else f"response_{answer.status}",
                fatal=answer.unserved,
            )
        return answer

    async def _ask(self, ask: Ask, clock: Clock, tell: Tell) -> Answer:
        """Ask the model, have it cost its time, and tell what it used."""
        began = clock.position
        try:
            answer = await self._client.answer(ask, clock, lambda one: self._waits(one, tell))
        except ModelError as error:
            raise BackendFailed(str(error), code=error.code, fatal=True) from error
        if clock.virtual:
            await clock.until(began + self._model_ms * clock.rate_hz // 1000)
        identity = answer.response_id
        if answer.tokens is not None and (not identity or identity not in self._used):
            self._used.add(identity)
            usage: dict[str, Json] = {"response_id": identity, **answer.tokens.as_json()}
            tell(Happening(type="backend.usage", fields=usage))
        if self._waited > AUDIBLE_WAIT_SECONDS and not clock.virtual:
            raise BackendFailed(
                f"{self._client.where.host} made this call wait {self._waited:.1f} s for its model",
                code="rate_limited",
                fatal=True,
            )
        return answer

    def _open_run(self, delegation_id: str, tell: Tell) -> str:
        run_id = f"run_{next(self._runs):04d}"
        fields: dict[str, Json] = {
            "run_id": run_id,
            "delegation_id": delegation_id,
            "previous_run_id": self._last_run,
        }
        self._last_run = run_id
        tell(Happening(type="run.started", fields=fields))
        return run_id

    def _waits(self, waited: Waited, tell: Tell) -> None:
        self._waited += waited.seconds
        tell(Happening(type="backend.waited", fields=as_fields(waited)))


def as_fields(waited: Waited) -> dict[str, Json]:
    """The fields of ``backend.waited``."""
    return {
        "host": waited.host,
        "seconds": round(waited.seconds, 3),
        "status": waited.status,
    }

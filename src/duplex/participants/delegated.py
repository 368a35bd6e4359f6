"""Delegated work of one live session: the backend's answers, as commentary.

For every delegation the session announces, the backend is given the
conversation so far and its answers are passed on, in pieces the wire allows.
A backend that fails or has nothing to say still gets a sentence spoken,
because the model waits for one. The session drives it and owns the tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from duplex.application.base import Backend, BackendFailed, Line
from duplex.clock import Clock
from duplex.participants.live_reading import Reading
from duplex.protocols.gpt_live import split_text
from duplex.values import Happening

PIECE_TOKENS = 450
"""Commentary is cut below the wire's limit of 500, as our count is an estimate."""
OPEN_LIMIT = 16
"""Delegations worked on at once; more are answered with an apology."""
FAILED = "Something went wrong while looking that up. Apologise and offer to try again."
NOTHING = "There is nothing to add. Carry on with what you know."

Pass = Callable[[str, str], None]
"""Sends one piece of commentary: (text, delegation id)."""


class Delegations:
    """Runs one session's delegations, each as a task on its clock."""

    def __init__(self, backend: Backend | None, reading: Reading, clock: Clock, send: Pass) -> None:
        self._backend = backend
        self._reading = reading
        self._clock = clock
        self._send = send
        self._open: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        if self._backend is None:
            return
        try:
            self._backend.begin(self._tell)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._reading.fault("backend", type(error).__name__, str(error)[:500])

    def start(self, delegation_id: str, conversation: Sequence[Line]) -> None:
        """Work on one delegation; a repeated id is ignored."""
        if delegation_id in self._open:
            return
        if self._backend is None or len(self._open) >= OPEN_LIMIT:
            code = "no_backend" if self._backend is None else "too_many_delegations"
            self._reading.fault("backend", code, f"delegation {delegation_id} was not worked on")
            self._answer(delegation_id, [NOTHING if self._backend is None else FAILED])
            self._closed(delegation_id, ok=False)
            return
        work = self._work(self._backend, delegation_id, conversation)
        self._open[delegation_id] = self._clock.spawn(work)

    async def stop(self) -> None:
        """Cancel what is still being worked on and close it as not done."""
        left = dict(self._open)
        for task in left.values():
            task.cancel()
        await asyncio.gather(*left.values(), return_exceptions=True)
        for delegation_id in left:
            if delegation_id in self._open:
                self._closed(delegation_id, ok=False)

    async def _work(
        self, backend: Backend, delegation_id: str, conversation: Sequence[Line]
    ) -> None:
        ok = True
        try:
            pieces = await backend.handle(delegation_id, conversation, self._clock, self._tell)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # Also what would end the whole run, such as sys.exit: it is the backend's failure.
            ok, pieces = False, [FAILED]
            ours = error if isinstance(error, BackendFailed) else None
            code = ours.code if ours is not None else type(error).__name__
            fatal = ours is not None and ours.fatal
            self._reading.fault("backend", code, str(error)[:500], fatal=fatal)
        self._answer(delegation_id, pieces or [NOTHING])
        self._closed(delegation_id, ok=ok)

    def _answer(self, delegation_id: str, pieces: Sequence[str]) -> None:
        for text in pieces:
            self._reading.tell(
                "commentary",
                {"delegation_id": delegation_id, "text": text},
                self._clock.elapsed(),
            )
            for part in split_text(text, PIECE_TOKENS):
                self._send(part, delegation_id)

    def _closed(self, delegation_id: str, *, ok: bool) -> None:
        self._open.pop(delegation_id, None)
        self._reading.tell(
            "delegation.closed", {"delegation_id": delegation_id, "ok": ok}, self._clock.elapsed()
        )

    def _tell(self, happening: Happening) -> None:
        if happening.received_at is None:
            happening = replace(happening, received_at=self._clock.elapsed())
        self._reading.tell(happening.type, happening.fields, happening.received_at)

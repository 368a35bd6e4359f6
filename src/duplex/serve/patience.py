"""Connections with an end to patience: with a request that does not come, an answer not taken.

uvicorn waits for ever for the rest of a request's head, and for ever for a client that
reads nothing; either way whoever opens enough connections keeps everybody else out. Here
a head that is not whole after ``HEAD_SECONDS``, and an answer of which nothing could be
sent for ``TAKE_SECONDS``, end their connection. uvicorn drives it.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
TAKE_SECONDS = 30.0


class PatientProtocol(H11Protocol):
    """uvicorn's own protocol with two timers; the module's constants are read as they stand."""

    _head: asyncio.TimerHandle | None = None
    _take: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            _stop(self._head)
            self._head = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # uvicorn lets a connection that only idles go after its own, shorter time.
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._take = self._take or self.loop.call_later(TAKE_SECONDS, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        _stop(self._take)
        self._take = None

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._head)
        _stop(self._take)
        super().connection_lost(exc)

    def _await_head(self) -> None:
        """Bound the time until a whole head is there, from its first wait on."""
        self._head = self._head or self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """Let the client go at once; what is still in the buffer goes with it."""
        self._head = self._take = None
        self.transport.abort()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()

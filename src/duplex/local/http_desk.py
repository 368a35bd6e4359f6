"""One plain HTTP request on a connection that is no websocket: read, answered, closed.

``h11`` speaks the protocol; bodies are bounded, and what cannot be answered is answered
with an error in the API's own shape. It knows no paths: whoever serves it decides from
the request's head whether to read on, and from the whole request what to say.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

import h11

from duplex.values import Json

BODY_LIMIT = 4 << 20
"""Bytes that a request may have."""
LINGER_SECONDS = 0.5
"""A declined connection stays open this long, so that the answer outlives the request's body."""
PATIENCE_SECONDS = 8.0
"""A request that is not whole by then is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first part of a request; header names are lower-case."""

    method: str
    target: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer; its body is sent piece by piece."""

    status: int
    content_type: str = "application/json"
    body: Iterable[bytes] = field(default_factory=tuple)


Admit = Callable[[Head], Answered | None]
"""Whether to read a request's body: the refusal, or None."""
Respond = Callable[[Head, bytes], Answered]


def refused(status: int, code: str, message: str, param: str | None = None) -> Answered:
    """An error in the API's own shape."""
    error: dict[str, Json] = {
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "code": code,
        "message": message,
        "param": param,
    }
    return Answered(status=status, body=(json.dumps({"error": error}).encode(),))


class HttpDesk:
    """Serves one request of one connection."""

    def __init__(self, transport: asyncio.Transport, admit: Admit, respond: Respond) -> None:
        self._transport = transport
        self._admit = admit
        self._respond = respond
        self._http = h11.Connection(h11.SERVER)
        self._head: Head | None = None
        self._body = bytearray()
        self._over = False
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(PATIENCE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take what came; answer as soon as that is possible."""
        if self._over:
            return
        try:
            self._http.receive_data(data)
            while not self._over:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    if self._http.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        self._write(self._http.send(go_on))
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._answer(refused(400, "invalid_request", f"the request is no http: {error}"))

    def gone(self) -> None:
        """The connection is over."""
        self._over = True
        self._patience.cancel()

    def _take(self, event: object) -> None:
        match event:
            case h11.Request():
                self._head = Head(
                    method=event.method.decode("ascii"),
                    target=event.target.decode("ascii", "replace"),
                    headers={
                        name.decode("ascii").lower(): value.decode("latin-1")
                        for name, value in event.headers
                    },
                )
                if (refusal := self._admit(self._head)) is not None:
                    self._answer(refusal, early=True)
            case h11.Data():
                self._body += event.data
                if len(self._body) > BODY_LIMIT:
                    message = f"the body is longer than {BODY_LIMIT} bytes"
                    self._answer(refused(413, "too_long", message), early=True)
            case h11.EndOfMessage():
                assert self._head is not None
                self._answer(self._respond(self._head, bytes(self._body)))
            case _:
                self.gone()

    def _answer(self, answered: Answered, *, early: bool = False) -> None:
        """Send the answer and close; ``early``: the client may still be sending."""
        self.gone()
        reason = HTTPStatus(answered.status).phrase.encode()
        head = h11.Response(
            status_code=answered.status,
            reason=reason,
            headers=[("Content-Type", answered.content_type), ("Connection", "close")],
        )
        try:
            self._write(self._http.send(head))
            for piece in answered.body:
                self._write(self._http.send(h11.Data(data=piece)))
            self._write(self._http.send(h11.EndOfMessage()))
        except h11.LocalProtocolError:
            self._transport.abort()
            return
        if early:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)
        else:
            self._transport.close()

    def _write(self, data: bytes | None) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)

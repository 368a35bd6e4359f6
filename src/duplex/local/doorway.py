"""The HTTP before a websocket: refusals in the API's own shape, and requests that are no upgrade.

``websockets`` reads upgrade requests only and drops anything with a body. Other uses of
the API are plain requests: they are handed to an :class:`HttpDesk`, which answers them,
instead of leaving a dead connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Response

from duplex.local.http_desk import HttpDesk
from duplex.participants.transport import WebSocketTransport

MakeDesk = Callable[[asyncio.Transport], HttpDesk]


def refusal(status: int, code: str, message: str, *, retry_after: float | None = None) -> Response:
    """Return an HTTP error with the API's JSON error in it."""
    error = {"type": "invalid_request_error", "code": code, "message": message}
    body = json.dumps({"error": error}).encode()
    headers = Headers(
        [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
    )
    if retry_after is not None:
        headers["Retry-After"] = f"{retry_after:g}"
    known = status in HTTPStatus.__members__.values()
    return Response(status, HTTPStatus(status).phrase if known else "Refused", headers, body)


class Doorway(ServerConnection):
    """A server connection that hands what is no GET to a desk instead of dropping it.

    Once it is ``deaf`` it answers nothing of its own accord, a close least of all.
    """

    deaf = False
    _begun = False
    _desk: HttpDesk | None = None

    def make_desk(self) -> HttpDesk:
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            if not b"GET ".startswith(data[:4]):
                self._desk = self.make_desk()
        if self._desk is not None:
            self._desk.data_received(data)
        else:
            super().data_received(data)

    def send_data(self) -> None:
        if self.deaf and self.protocol.close_rcvd is not None:
            self.protocol.data_to_send()
        else:
            super().send_data()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._desk is not None:
            self._desk.gone()
        super().connection_lost(exc)


def doorway(make_desk: MakeDesk, open_doors: set[Doorway]) -> type[Doorway]:
    """Return the connections of one server, whose plain requests ``make_desk``'s desks answer.

    They stand in ``open_doors`` as long as they last.
    """

    class WithDesk(Doorway):
        def make_desk(self) -> HttpDesk:
            return make_desk(self.transport)

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            open_doors.add(self)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            open_doors.discard(self)
            super().connection_lost(exc)

    return WithDesk


class DoorwayTransport(WebSocketTransport):
    """A server's end of a websocket, which can also misbehave."""

    def __init__(self, connection: Doorway) -> None:
        super().__init__(connection)
        self._doorway = connection

    def half_close(self) -> None:
        """End the outgoing half without a close frame and go on reading."""
        self._doorway.transport.write_eof()

    def keep_open(self) -> None:
        """Never answer the other end's close."""
        self._doorway.deaf = True

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

MakeDesk = Callable[[asyncio.Transport], HttpDesk]


def refusal(status: int, code: str, message: str) -> Response:
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
    return Response(status, HTTPStatus(status).phrase, headers, body)


def doorway(make_desk: MakeDesk) -> type[ServerConnection]:
    """Return the connections of one server, whose plain requests ``make_desk``'s desks answer."""

    class Doorway(ServerConnection):
        """A server connection that hands what is no GET to a desk instead of dropping it."""

        _begun = False
        _desk: HttpDesk | None = None

        def data_received(self, data: bytes) -> None:
            if not self._begun:
                self._begun = True
                if not b"GET ".startswith(data[:4]):
                    self._desk = make_desk(self.transport)
            if self._desk is not None:
                self._desk.data_received(data)
            else:
                super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._desk is not None:
                self._desk.gone()
            super().connection_lost(exc)

    return Doorway

"""The HTTP before a websocket: refusals in the API's own shape.

``websockets`` reads upgrade requests only and drops anything with a body. The
API's other uses (WebRTC and call control are POSTs) are answered here with an
HTTP error that says so, instead of a dead connection.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Response

LINGER_SECONDS = 0.5
"""A declined connection stays open this long, so that the answer outlives the request's body."""


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


class Doorway(ServerConnection):
    """A server connection that answers what is no GET instead of dropping it."""

    _begun = False
    _declined = False

    def data_received(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._declined = not b"GET ".startswith(data[:4])
            if self._declined:
                message = "only primary websocket sessions are served here, not webrtc or calls"
                answer = refusal(400, "unsupported_transport", message)
                self.transport.write(answer.serialize())
                loop = asyncio.get_running_loop()
                loop.call_later(LINGER_SECONDS, self.transport.close)
        if not self._declined:
            super().data_received(data)

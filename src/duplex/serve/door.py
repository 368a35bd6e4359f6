"""The door before every path: who may come in, with what, and how much of it.

A foreign page is refused by its ``Host``, ``Origin`` and fetch metadata, a wrong token
always, a missing one for whatever writes and, off loopback, for everything. A body is
read whole before anybody works on it, bounded in size and time. It knows no route.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duplex.local.admission import is_loopback, stranger
from duplex.serve.refusals import Refusal

BODY_BYTES = 256 * 1024
BODY_SECONDS = 10.0
_READS = ("GET", "HEAD", "OPTIONS")
_ALWAYS: Mapping[bytes, bytes] = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; sandbox",
}


class Door:
    """ASGI middleware; ``bound`` is the address that is listened at."""

    def __init__(self, app: ASGIApp, *, token: str, bound: str) -> None:
        self._app = app
        self._token = token.encode()
        self._bound = bound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send)
        try:
            self._admit(scope["method"], Headers(scope=scope))
            body = b"" if scope["method"] in _READS else await _body(scope, receive)
        except Refusal as refusal:
            await _refused(refusal, guarded)
            return
        await self._app(scope, _Replay(body, receive), guarded)

    def _admit(self, method: str, headers: Headers) -> None:
        """Raise the Refusal of a request that is not let in."""
        hosts = headers.getlist("host")
        own = {f"http://{host}" for host in hosts}
        origins = [one for one in headers.getlist("origin") if one not in own]
        refused = stranger(self._bound, origins, hosts)
        if refused is not None:
            raise Refusal(403, refused.code, refused.message)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "origin_not_allowed", "another site's pages are not served here")
        given = headers.getlist("authorization")
        if not given:
            if method in _READS and is_loopback(self._bound):
                return
            raise Refusal(401, "unauthorized", "a bearer token is wanted")
        if len(given) != 1 or not self._is_token(given[0]):
            raise Refusal(401, "unauthorized", "the bearer token is not the server's")

    def _is_token(self, header: str) -> bool:
        scheme, _, value = header.partition(" ")
        same = hmac.compare_digest(value.strip().encode("utf-8", "replace"), self._token)
        return same and scheme.lower() == "bearer"


class _Replay:
    """Hands the body that was read to the application, then whatever else the client sends."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _body(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises Refusal when it is too long or comes too slowly."""
    said = Headers(scope=scope).get("content-length", "")
    if said.isdigit() and int(said[:20]) > BODY_BYTES:
        raise _too_large()
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refusal(400, "no_body", "the client left before its body was read")
                found += message.get("body", b"")
                if len(found) > BODY_BYTES:
                    raise _too_large()
                if not message.get("more_body", False):
                    return bytes(found)
    except TimeoutError:
        raise Refusal(
            408, "body_too_slow", f"the body took more than {BODY_SECONDS:.0f} s"
        ) from None


def _too_large() -> Refusal:
    return Refusal(413, "body_too_large", f"the body has more than {BODY_BYTES} bytes")


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            have = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in _ALWAYS.items() if name not in have]
            message = {**message, "headers": headers}
        await send(message)

    return guarded


async def _refused(refusal: Refusal, send: Send) -> None:
    body = json.dumps(refusal.body()).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        # What is left of a body that was not read cannot be another request.
        (b"connection", b"close"),
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    start: Message = {
        "type": "http.response.start",
        "status": refusal.status,
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})

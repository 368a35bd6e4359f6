"""The door before every path: who may come in, with what, and how much of it.

A foreign page is refused by its ``Host``, ``Origin`` and fetch metadata, a wrong token
always, a missing one for whatever writes and, off loopback, for everything. A browser
has a cookie in its place, with which it writes from this server's own pages only. A body
is read whole before anybody works on it, bounded in size and time. Of routes it knows
where one signs in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duplex.local.admission import is_loopback, stranger
from duplex.serve.refusals import Refusal
from duplex.serve.tickets import Tickets

BODY_BYTES = 1 << 20
BODY_SECONDS = 10.0
SIGN_IN = "/sign-in"
UPLOADS = "/v0/uploads/"
"""Below it whoever serves the path asks for a ticket, and reads the body, itself."""
_OPEN = (SIGN_IN, "/static/", UPLOADS)
"""Paths that hold nothing of anybody's: whoever is let in at all may ask for them."""
_PAGES = ("/", "/new")
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
        self._tickets = Tickets(token)
        self._bound = bound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send)
        headers = Headers(scope=scope)
        if scope["method"] == "HEAD":
            # Whatever can be got has a head; how long a body would be is not found out.
            scope = {**scope, "method": "GET"}
            head = _HeadOnly(guarded, receive)
            guarded, receive = head.send, head.receive
        try:
            self._refuse_strangers(headers)
            if (token := _token_of(scope)) is not None:
                await self._signed_in(token, headers.get("host", ""), guarded)
                return
            signed_in = self._admit(scope, headers)
            if not scope["path"].startswith(UPLOADS):
                body = b"" if scope["method"] in _READS else await _body(scope, receive)
                receive = _Replay(body, receive)
        except Refusal as refusal:
            if refusal.status == 401 and _is_page(scope, headers):
                await _sent_to(SIGN_IN, guarded)
            else:
                await _refused(refusal, guarded)
            return
        scope.setdefault("state", {})["signed_in"] = signed_in
        await self._app(scope, receive, guarded)

    def _refuse_strangers(self, headers: Headers) -> None:
        """Raise the Refusal of a request that comes from elsewhere."""
        hosts = headers.getlist("host")
        own = {f"http://{host}" for host in hosts}
        origins = [one for one in headers.getlist("origin") if one not in own]
        refused = stranger(self._bound, origins, hosts)
        if refused is not None:
            raise Refusal(403, refused.code, refused.message)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "origin_not_allowed", "another site's pages are not served here")

    def _admit(self, scope: Scope, headers: Headers) -> bool:
        """Say whether the request may write; raise the Refusal of one that is not let in."""
        given = headers.getlist("authorization")
        if given and (len(given) != 1 or not self._tickets.is_bearer(given[0])):
            raise Refusal(401, "unauthorized", "the bearer token is not the server's")
        if given:
            return True
        reads = scope["method"] in _READS
        if self._tickets.is_held(headers.get("host", ""), headers.getlist("cookie")):
            # A cookie goes along by itself: only a page of ours may send it to write.
            ours = bool(headers.getlist("origin")) or (
                headers.get("sec-fetch-site") == "same-origin"
            )
            if reads or ours:
                return True
            raise Refusal(
                403, "origin_not_allowed", "a cookie writes from this server's pages only"
            )
        if scope["path"].startswith(_OPEN) or (reads and is_loopback(self._bound)):
            return False
        raise Refusal(401, "unauthorized", "a bearer token is wanted")

    async def _signed_in(self, token: str, host: str, send: Send) -> None:
        """Answer a link that brings the token: a cookie, and the page without the token."""
        if self._tickets.is_token(token):
            await _sent_to("/", send, (b"set-cookie", self._tickets.cookie(host).encode("latin-1")))
        else:
            await _sent_to(f"{SIGN_IN}?wrong=1", send)


class _HeadOnly:
    """Lets the head of an answer through, and is a client that left after it."""

    def __init__(self, send: Send, receive: Receive) -> None:
        self._send = send
        self._receive = receive
        self._over = asyncio.Event()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._over.is_set():
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b""})
            self._over.set()

    async def receive(self) -> Message:
        await self._over.wait()
        return {"type": "http.disconnect"}


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


def _token_of(scope: Scope) -> str | None:
    """The token in a link to the page, ``/?enter=…``, or ``/?token=…`` as people guess."""
    if scope["method"] != "GET" or scope["path"] != "/":
        return None
    query = scope.get("query_string", b"").decode("latin-1")
    found = parse_qs(query)
    return next((found[name][0] for name in ("enter", "token") if name in found), None)


def _is_page(scope: Scope, headers: Headers) -> bool:
    path = scope["path"]
    known = path in _PAGES or path.startswith("/runs/")
    return known and "text/html" in headers.get("accept", "")


async def _sent_to(place: str, send: Send, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"location", place.encode()), (b"content-length", b"0"), *more]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


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

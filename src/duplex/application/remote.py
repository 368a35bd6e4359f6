"""Delegated work that a remote service owns: its tools, its state, its words.

Over HTTPS each delegation is one request; over WSS a call is one connection on
which the service follows the conversation. TLS is verified, no redirect leads
elsewhere, sizes and times are bounded. What goes wrong is a delegation that
failed, recorded, never a lost call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol, TypeVar

import httpx2

from duplex.application.base import Backend, BackendFailed, Line, Tell
from duplex.application.endpoint import Endpoint
from duplex.clock import Clock, wall_seconds
from duplex.models.tls import tls_problem
from duplex.participants.reports import work_events
from duplex.participants.transport import (
    Connect,
    Transport,
    TransportClosed,
    TransportRefused,
    bare_websocket,
)
from duplex.protocols import remote_work
from duplex.protocols.gpt_live import Broken
from duplex.protocols.remote_work import Said, Work
from duplex.values import Happening, Json

T = TypeVar("T")
TIMEOUT_MS = 30_000
"""Longest a delegation may take at the service."""


class RemoteBackend(Backend, Protocol):
    """A backend with a connection to end."""

    async def close(self) -> None:
        """End what is open; never raises, may be called twice."""


def remote_backend(
    where: Endpoint, state: Mapping[str, Json], call_id: str, *, timeout_ms: int = TIMEOUT_MS
) -> RemoteBackend:
    """Return what does one call's delegated work at ``where``."""
    if where.socket:
        return SocketBackend(bare_websocket(where.url, where.headers), timeout_ms=timeout_ms)
    return HttpBackend(where, state, call_id, timeout_ms=timeout_ms)


class HttpBackend:
    """One request a delegation."""

    def __init__(
        self,
        where: Endpoint,
        state: Mapping[str, Json],
        call_id: str,
        *,
        timeout_ms: int = TIMEOUT_MS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._where = where
        self._state = state
        self._call_id = call_id
        self._timeout_ms = timeout_ms
        self._teller = _Teller()
        self._http = httpx2.AsyncClient(
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                **where.headers,
            },
            timeout=timeout_ms / 1000,
            follow_redirects=False,
            trust_env=not where.loopback,
            transport=transport,
        )

    def begin(self, tell: Tell) -> None:
        return

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        body = remote_work.request(self._call_id, delegation_id, _said(conversation), self._state)
        try:
            data = await _charged(self._post(body), clock, self._timeout_ms)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            said = " ".join(str(error).split())[:200] or type(error).__name__
            reason = tls_problem(error) or said
            raise BackendFailed(f"the service failed: {reason}", code="unreachable") from None
        reply = remote_work.read_reply(data)
        if isinstance(reply, Broken):
            raise BackendFailed(f"the service answered: {reply.reason}", code="unreadable")
        self._teller.tell(reply.work, delegation_id, tell)
        return reply.commentary

    async def close(self) -> None:
        await self._http.aclose()

    async def _post(self, body: bytes) -> bytes:
        data = b""
        async with self._http.stream("POST", self._where.url, content=body) as response:
            status = response.status_code
            if 300 <= status < 400:
                message = f"the service redirects ({status}), which is not followed"
                raise BackendFailed(message, code="redirect")
            if status != 200:
                message = f"the service answered with status {status}, wanted 200"
                raise BackendFailed(message, code=str(status))
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > remote_work.REPLY_BYTES:
                    message = f"the service answered more than {remote_work.REPLY_BYTES} bytes"
                    raise BackendFailed(message, code="too_long")
        return data


class SocketBackend:
    """One connection a call, opened with the first delegation."""

    def __init__(self, connect: Connect, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._teller = _Teller()
        self._transport: Transport | None = None
        self._turn = asyncio.Lock()
        self._followed: list[Line] = []

    def begin(self, tell: Tell) -> None:
        return

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        async with self._turn:
            try:
                work = self._work(delegation_id, conversation, clock, tell)
                return await _charged(work, clock, self._timeout_ms)
            except TransportRefused as refused:
                raise BackendFailed(str(refused), code=refused.code) from None
            except TransportClosed as closed:
                self._transport = None
                raise BackendFailed(f"the service: {closed}", code="closed") from None
            except BackendFailed:
                await self.close()
                raise

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            await transport.send(remote_work.forwarded({"type": "session.closed"}))
            await transport.close()
        except TransportClosed:
            pass
        transport.abort()

    async def _work(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> list[str]:
        transport = await self._opened(clock)
        for said in _said(_news(self._followed, conversation)):
            await transport.send(remote_work.forwarded(remote_work.transcript(said)))
        self._followed = list(conversation)
        offset_ms = clock.position * 1000 // clock.rate_hz
        begun = remote_work.delegated(delegation_id, offset_ms)
        await transport.send(remote_work.forwarded(begun))
        return await self._answered(transport, delegation_id, tell)

    async def _answered(self, transport: Transport, delegation_id: str, tell: Tell) -> list[str]:
        """Read on until this delegation is completed."""
        pieces: list[str] = []
        while True:
            message = remote_work.read_message(await transport.receive())
            match message:
                case remote_work.Passed() if message.delegation_id == delegation_id:
                    pieces.append(message.text)
                    if len(pieces) > remote_work.PIECES:
                        text = f"the service passed more than {remote_work.PIECES} pieces"
                        raise BackendFailed(text, code="too_long")
                case remote_work.Observed():
                    self._teller.tell(message.work, delegation_id, tell)
                case remote_work.Completed() if message.delegation_id == delegation_id:
                    return pieces
                case remote_work.Stopped():
                    raise BackendFailed(f"the service stopped: {message.reason}", code="stopped")
                case Broken():
                    raise BackendFailed(f"the service sent: {message.reason}", code="unreadable")
                case _:
                    pass  # what belongs to a delegation that was given up

    async def _opened(self, clock: Clock) -> Transport:
        if self._transport is not None:
            return self._transport
        self._transport = await self._connect(clock)
        self._followed = []
        await self._transport.send(remote_work.configure())
        message = remote_work.read_message(await self._transport.receive())
        if not isinstance(message, remote_work.Ready):
            raise BackendFailed("the service did not take the session", code="not_ready")
        return self._transport


class _Teller:
    """Tells reports as an application's events, within the bound of a call."""

    def __init__(self) -> None:
        self._count = 0

    def tell(self, work: Sequence[Work], delegation_id: str, tell: Tell) -> None:
        for one in work:
            self._count += 1
            if self._count > remote_work.REPORTS:
                text = f"the service reported more than {remote_work.REPORTS} times"
                raise BackendFailed(text, code="too_many_reports")
            made = f"remote_{self._count}"
            for kind, fields in work_events(one, made, delegation_id):
                tell(Happening(type=kind, fields=fields))


async def _charged(work: Awaitable[T], clock: Clock, timeout_ms: int) -> T:
    """Await ``work`` within its time; where the clock stood still, let that much media go by."""
    limited = asyncio.wait_for(work, timeout_ms / 1000)
    try:
        return await _passed_by(limited, wall_seconds(), clock)
    except TimeoutError:
        message = f"the service did not answer within {timeout_ms} ms"
        raise BackendFailed(message, code="timeout") from None


async def _passed_by(work: Awaitable[T], began: float, clock: Clock) -> T:
    """Await ``work``; in virtual time the call goes on by as much as it really took."""
    try:
        found = await work
    except (BackendFailed, TimeoutError, TransportClosed, TransportRefused, httpx2.HTTPError):
        await _let_by(began, clock)
        raise
    await _let_by(began, clock)
    return found


async def _let_by(began: float, clock: Clock) -> None:
    if clock.virtual:
        await clock.until(clock.position + round((wall_seconds() - began) * clock.rate_hz))


def _said(lines: Sequence[Line]) -> list[Said]:
    return [Said(role=one.role, text=one.text, start_ms=one.start_ms) for one in lines]


def _news(before: Sequence[Line], now: Sequence[Line]) -> list[Line]:
    """What was said since ``before``: new lines, and how the last of the old ones went on."""
    same = 0
    while same < min(len(before), len(now)) and before[same] == now[same]:
        same += 1
    news = list(now[same:])
    if same < len(before) and news and news[0].text.startswith(before[same].text):
        first = news[0]
        rest = first.text[len(before[same].text) :].strip()
        news[0] = Line(role=first.role, text=rest, start_ms=first.start_ms)
    return [line for line in news if line.text]

"""The local server: GPT-Live and Realtime sessions on a loopback port, or in memory.

It opens the door (path, key, origin), gives every connection a session of its
own and closes them all at the end. Voices come from the factory it is given;
it knows nothing of words or audio. ``async with LocalServer(…) as server``
serves ``server.url``; :func:`connect_in_memory` needs no port at all.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.protocol import State

from duplex.clock import Clock, WallClock, utc_seconds
from duplex.local.admission import stranger
from duplex.local.doorway import Doorway, DoorwayTransport, doorway, refusal
from duplex.local.faults import Conduct, Plan, ServerTransport
from duplex.local.http_desk import HttpDesk
from duplex.local.managed_backend import Responder, respond_by_rule
from duplex.local.pipe import pipe
from duplex.local.realtime_session import MakeParty, RealtimeServing
from duplex.local.responses_http import ResponsesDesk
from duplex.local.seams import VOICE_RATE_HZ
from duplex.local.session import LocalSession, MakeVoice
from duplex.participants.transport import (
    MAX_MESSAGE_BYTES,
    Connect,
    Transport,
    TransportRefused,
)
from duplex.protocols.gpt_live import SESSION_SECONDS, SESSIONS_PATH
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.gpt_live_server import ServerSession
from duplex.protocols.realtime import DEFAULT_MODEL, REALTIME_PATH
from duplex.protocols.realtime import SESSION_SECONDS as REALTIME_SECONDS
from duplex.protocols.realtime_server import RealtimeMachine

MAX_SESSIONS = 64
"""Sessions served at once; the next is answered 429."""


class LocalServer:
    """Serves sessions until closed.

    ``api_key`` None accepts any bearer token. ``session_seconds`` is how long a
    session may last before it expires. ``make_party`` answers Realtime sessions;
    without it there is nothing at their path.
    """

    def __init__(
        self,
        make_voice: MakeVoice,
        *,
        role: str = "assistant",
        api_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        prefix: str = "/v1",
        faults: Sequence[Plan] = (),
        session_seconds: float = SESSION_SECONDS,
        make_party: MakeParty | None = None,
        respond: Responder = respond_by_rule,
    ) -> None:
        self._make_voice = make_voice
        self._make_party = make_party
        self._respond = respond
        self._role = role
        self._api_key = api_key
        self._host, self._port = host, port
        self._prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
        self._responses = ResponsesDesk(self._prefix, self._admits, bound=host)
        self._conduct = Conduct(faults)
        self._session_seconds = session_seconds
        self._numbers = itertools.count(1)
        self._sessions: set[asyncio.Task[None]] = set()
        self._doors: set[Doorway] = set()
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        # A client that hangs up is no news; sessions log what is.
        quiet = logging.getLogger(f"{__name__}.websockets")
        quiet.setLevel(logging.CRITICAL)
        self._server = await serve(
            self._handle,
            self._host,
            self._port,
            create_connection=doorway(self._desk, self._doors),
            process_request=self._at_the_door,
            origins=[None],
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            close_timeout=2,
            server_header=None,
            logger=quiet,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every session and stop listening; may be called twice."""
        if self._server is not None:
            self._server.close()
            for connection in tuple(self._doors):
                if connection.state is State.CONNECTING:
                    # Whoever has asked for nothing yet would be waited for.
                    connection.transport.abort()
        for task in tuple(self._sessions):
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    @property
    def url(self) -> str:
        """Base URL for clients, such as ``http://127.0.0.1:40001/v1``."""
        assert self._server is not None, "the server is not listening"
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}{self._prefix}"

    # -- over a socket ------------------------------------------------------

    def _at_the_door(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer before the upgrade, or let it through."""
        headers = request.headers
        found = stranger(self._host, headers.get_all("Origin"), headers.get_all("Host"))
        if found is not None:
            return refusal(403, found.code, found.message)
        path = urlsplit(request.path).path
        if not (path.startswith(self._prefix + SESSIONS_PATH) or self._is_realtime(path)):
            return refusal(404, "not_found", f"there is nothing at {path}")
        if not self._admits(", ".join(headers.get_all("Authorization"))):
            return refusal(401, "invalid_api_key", "the bearer token is missing or wrong")
        if len(self._sessions) >= MAX_SESSIONS:
            return refusal(429, "rate_limit_exceeded", f"{MAX_SESSIONS} sessions are open")
        if (turned := self._conduct.at_the_door()) is not None:
            said = "the session was refused on purpose"
            return refusal(turned.status, "refused", said, retry_after=turned.retry_after)
        return None

    def _desk(self, transport: asyncio.Transport) -> HttpDesk:
        return HttpDesk(transport, self._responses.admit, self._responses.respond)

    def _admits(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return False
        wanted = self._api_key
        return wanted is None or hmac.compare_digest(token.strip().encode(), wanted.encode())

    async def _handle(self, connection: ServerConnection) -> None:
        assert isinstance(connection, Doorway)
        transport = DoorwayTransport(connection)
        assert connection.request is not None
        path = urlsplit(connection.request.path).path.rstrip("/")
        clock = WallClock(VOICE_RATE_HZ)
        session: LocalSession | RealtimeServing
        if self._is_realtime(path):
            model = parse_qs(urlsplit(connection.request.path).query).get("model", [DEFAULT_MODEL])
            session = self._realtime(transport, clock, secrets.token_hex(6), model[0][:100])
        elif path == self._prefix + SESSIONS_PATH:
            session = self._session(transport, clock, secrets.token_hex(6))
        else:
            await _decline_sideband(transport)
            return
        task = asyncio.create_task(session.run())
        self._keep(task)
        await asyncio.wait([task])

    # -- in memory ----------------------------------------------------------

    def connector(self, *, realtime: bool = False) -> Connect:
        """Return what opens sessions in memory, on the caller's own clock."""

        async def open_it(clock: Clock) -> Transport:
            if (turned := self._conduct.at_the_door()) is not None:
                said = f"the session was refused on purpose with status {turned.status}"
                raise TransportRefused(str(turned.status), said, turned.retry_after)
            ours, theirs = pipe(clock)
            name = f"local{next(self._numbers):06d}"
            session = (
                self._realtime(ours, clock, name, DEFAULT_MODEL)
                if realtime
                else self._session(ours, clock, name)
            )
            self._keep(asyncio.create_task(session.run()))
            return theirs

        return open_it

    # -- both ---------------------------------------------------------------

    def _session(self, transport: ServerTransport, clock: Clock, name: str) -> LocalSession:
        expires_at = int(utc_seconds() + self._session_seconds)
        machine = ServerSession(session_id=f"sess_{name}", expires_at=expires_at)
        return LocalSession(
            transport,
            clock,
            machine,
            make_voice=self._make_voice,
            role=self._role,
            faults=self._conduct.session(),
            session_seconds=self._session_seconds,
            respond=self._respond,
        )

    def _is_realtime(self, path: str) -> bool:
        here = path.rstrip("/") == self._prefix + REALTIME_PATH
        return here and self._make_party is not None

    def _realtime(
        self, transport: ServerTransport, clock: Clock, name: str, model: str
    ) -> RealtimeServing:
        assert self._make_party is not None, "nobody answers Realtime sessions here"
        seconds = min(self._session_seconds, REALTIME_SECONDS)
        expires_at = int(utc_seconds() + seconds)
        machine = RealtimeMachine(session_id=f"sess_{name}", model=model, expires_at=expires_at)
        return RealtimeServing(
            transport,
            clock,
            machine,
            make_party=self._make_party,
            role=self._role,
            faults=self._conduct.session(ahead=True),
            session_seconds=seconds,
        )

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)


async def connect_in_memory(server: LocalServer, clock: Clock) -> Transport:
    """Open one session on ``server`` without a socket; raises TransportRefused."""
    return await server.connector()(clock)


async def _decline_sideband(transport: Transport) -> None:
    """Answer a sideband or other sub-resource: an error, then the end."""
    machine = ServerSession(session_id="sess_none", expires_at=0)
    message = "only primary websocket sessions are served here"
    problem = Problem(code="unsupported_transport", message=message)
    await transport.send(machine.say_error(problem))
    await transport.close(1000)

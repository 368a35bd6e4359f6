"""How whole messages get from one end of a session to the other.

A :class:`Transport` carries text (or binary) messages both ways and ends with
:class:`TransportClosed`. Here is the one over a websocket; ``local/pipe.py``
has the one in memory. Neither knows what the messages mean.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.http11 import Response

from duplex.clock import Clock, utc_seconds
from duplex.errors import InputError
from duplex.models.limiter import retry_after
from duplex.models.tls import tls_problem
from duplex.protocols.gpt_live import MESSAGE_LIMIT, SESSIONS_PATH

ABNORMAL = 1006
"""Close code for a connection that ended without a close frame (RFC 6455, 7.4.1)."""
TOO_BIG = 1009
MAX_MESSAGE_BYTES = MESSAGE_LIMIT
"""What a server takes of one message; larger ones end the connection."""
MOST_BYTES = 4 * MESSAGE_LIMIT
"""What a client lets come of one message; from ``MESSAGE_LIMIT`` on it is passed over."""


class TransportClosed(Exception):
    """The connection is over; ``code`` is the websocket close code.

    ``oversize``: we ended it, because the peer sent more at once than can be borne.
    """

    def __init__(self, code: int = ABNORMAL, reason: str = "", *, oversize: bool = False) -> None:
        said = f"connection closed with code {code} {reason}".rstrip()
        if oversize:
            said = f"a message was longer than {MOST_BYTES} bytes, which ends the connection"
        super().__init__(said)
        self.code = code
        self.reason = reason
        self.oversize = oversize

    @property
    def fault(self) -> tuple[str, str]:
        """Stage and code of a connection that ended unasked."""
        return ("transport", "oversize") if self.oversize else ("session", "dropped")


class TransportRefused(Exception):
    """No connection came about; ``code`` is an HTTP status or ``refused``.

    ``retry_after`` is in how many seconds one may come again, where that was said.
    """

    def __init__(self, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class Transport(Protocol):
    """One end of a connection."""

    async def send(self, message: str | bytes) -> None:
        """Send one message; raise TransportClosed when there is no connection."""

    async def receive(self) -> str | bytes:
        """Return the next message; raise TransportClosed at the end."""

    async def close(self, code: int = 1000, reason: str = "") -> bool:
        """Close politely, bounded in time; tell whether the peer answered. May be called twice."""

    def abort(self) -> None:
        """Drop the connection at once, without a close frame; may be called twice."""


Connect = Callable[[Clock], Awaitable[Transport]]
"""Opens one connection; raises TransportRefused."""


class WebSocketTransport:
    """A transport over an open websocket of either role."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed as closed:
            raise _closed(closed) from None

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.recv()
        except ConnectionClosed as closed:
            raise _closed(closed) from None

    async def close(self, code: int = 1000, reason: str = "") -> bool:
        await self._connection.close(code, reason)
        return self._connection.protocol.close_rcvd is not None

    def abort(self) -> None:
        self._connection.transport.abort()


def _closed(error: ConnectionClosed) -> TransportClosed:
    frame = error.rcvd or error.sent
    if frame is None or error.rcvd is None:
        oversize = frame is not None and frame.code == TOO_BIG
        reason = frame.reason if frame is not None else ""
        return TransportClosed(ABNORMAL, reason, oversize=oversize)
    return TransportClosed(frame.code, frame.reason)


def websocket(endpoint: str, api_key: str, *, close_timeout_ms: int = 1_000) -> Connect:
    """Return what opens a GPT-Live websocket under ``endpoint`` (``http…/v1`` or ``ws…/v1``)."""
    headers = {"Authorization": f"Bearer {api_key}"}
    return bare_websocket(keyed_url(endpoint), headers, close_timeout_ms=close_timeout_ms)


def bare_websocket(
    url: str, headers: Mapping[str, str] | None = None, *, close_timeout_ms: int = 1_000
) -> Connect:
    """Return what opens the websocket at ``url``; with ``wss`` its certificate is verified."""
    if headers and "Authorization" in headers:
        # Else a user in the address would be sent as a second, other authorization.
        url = _without_user(url)

    async def open_it(clock: Clock) -> Transport:
        try:
            connection = await _SameOrigin(
                url,
                additional_headers=headers,
                compression=None,
                max_size=MOST_BYTES,
                close_timeout=close_timeout_ms / 1000,
                proxy=None if _is_loopback(url) else True,
            )
        except InvalidStatus as error:
            raise _refused(url, error.response) from None
        except InvalidURI:
            # The library's own words would hold the whole address, its query included.
            message = f"{shown_url(url)} is no address of a websocket"
            raise TransportRefused("refused", message) from None
        except (InvalidHandshake, EOFError) as error:
            message = f"{shown_url(url)} is no websocket: {error}"
            raise TransportRefused("refused", message) from None
        except TimeoutError:
            raise TransportRefused("timeout", f"{shown_url(url)} did not answer in time") from None
        except OSError as error:
            if (tls := tls_problem(error)) is not None:
                raise TransportRefused("tls", f"{shown_url(url)}: {tls}") from None
            refused = isinstance(error, ConnectionRefusedError)
            reason = "nobody listens there" if refused else error.strerror or type(error).__name__
            message = f"{shown_url(url)} cannot be reached: {reason}"
            raise TransportRefused("refused", message) from None
        return WebSocketTransport(connection)

    return open_it


def _refused(url: str, response: Response) -> TransportRefused:
    """What a server's answer to the upgrade says, in words and in numbers."""
    status = response.status_code
    message = f"{shown_url(url)} answered the upgrade with status {status}, wanted 101"
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    return TransportRefused(str(status), message, retry_after(headers, utc_seconds()))


class _SameOrigin(connect):
    """Opens a websocket and follows no redirect to another scheme, host or port."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        before = _origin(self.uri)
        found = super().process_redirect(exc)
        if isinstance(found, str) and _origin(found) != before:
            return InvalidHandshake(f"it redirects to another origin, {shown_url(found)}")
        return found


def sessions_url(endpoint: str) -> str:
    """Return the websocket URL of live sessions below ``endpoint``, its query kept.

    Raises InputError for anything that is not an http(s) or ws(s) URL.
    """
    parts = urlsplit(endpoint)
    scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme)
    if scheme is None or not parts.netloc:
        shown = shown_url(endpoint)
        raise InputError(f"endpoint {shown!r} is no url, wanted like http://127.0.0.1:8080/v1")
    path = parts.path.rstrip("/")
    if not path.endswith(SESSIONS_PATH):
        path += SESSIONS_PATH
    return urlunsplit((scheme, parts.netloc, path, parts.query, ""))


def keyed_url(endpoint: str) -> str:
    """Return :func:`sessions_url` of where a key may be sent: over TLS, or to this machine."""
    url = sessions_url(endpoint)
    if url.startswith("ws://") and not _is_loopback(url):
        host = urlsplit(url).hostname
        raise InputError(f"endpoint {host} without TLS: a key would go in clear, want https or wss")
    return url


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "") in ("localhost", "127.0.0.1", "::1")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    default = {"ws": 80, "wss": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or default


def shown_url(url: str) -> str:
    """Return ``url`` for people: without user, password or query, where keys may hide."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))

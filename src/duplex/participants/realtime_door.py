"""Where Realtime sessions are, and opening one over a websocket.

A key never travels in the clear: without TLS only this machine is called. What a
URL must be is checked before anything is opened.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from duplex.errors import InputError
from duplex.participants.transport import Connect, bare_websocket, shown_url
from duplex.protocols.realtime import REALTIME_PATH

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def realtime_url(endpoint: str, model: str) -> str:
    """Return the websocket URL of Realtime sessions below ``endpoint``, or at it.

    Its query is kept and names the model unless it does already. Raises InputError
    for anything that is no http(s) or ws(s) URL, or is plain text to another machine.
    """
    try:
        parts = urlsplit(endpoint)
        scheme, host = _SCHEMES.get(parts.scheme), parts.hostname
        good = bool(host) and parts.port != 0
    except ValueError:
        scheme, host, good = None, None, False
    if scheme is None or not good or not endpoint.isprintable() or " " in endpoint:
        raise InputError(
            f"endpoint {shown_url(endpoint)!r} is no url, wanted like wss://host/v1 or "
            "ws://127.0.0.1:8080/v1/realtime"
        )
    if scheme == "ws" and host not in _LOOPBACK:
        raise InputError(f"endpoint {parts.scheme}://{host}: wanted TLS, a key would go in clear")
    path = parts.path.rstrip("/")
    if not path.endswith(REALTIME_PATH):
        path += REALTIME_PATH
    query = parse_qsl(parts.query, keep_blank_values=True)
    if not any(name in ("model", "deployment", "intent") for name, _ in query):
        query.append(("model", model))
    return urlunsplit((scheme, parts.netloc, path, urlencode(query), ""))


def realtime_websocket(endpoint: str, model: str, api_key: str) -> Connect:
    """Return what opens a Realtime session under ``endpoint``; raises InputError."""
    headers = {"Authorization": f"Bearer {api_key}"}
    return bare_websocket(realtime_url(endpoint, model), headers)

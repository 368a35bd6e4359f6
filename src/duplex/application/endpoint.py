"""Where a remote service that owns delegated work is, and the token it is sent.

HTTPS or WSS; plain text only on this machine. The token comes from the
environment and goes to that one place. It opens nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from duplex.errors import InputError

TOKEN_VARIABLES = ("DUPLEX_ASSISTANT_TOKEN", "OPENAI_CLIENT_ASSISTANT_TOKEN")
"""The first that is set counts; the second is the public harness's name."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One service; ``token`` is empty only on this machine."""

    url: str
    token: str = field(default="", repr=False)

    @property
    def socket(self) -> bool:
        """Whether it is spoken to over a websocket."""
        return self.url.startswith(("ws://", "wss://"))

    @property
    def loopback(self) -> bool:
        return (urlsplit(self.url).hostname or "") in LOOPBACK

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def check_endpoint(url: str) -> None:
    """Raise InputError for an address that may not be used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or parts.scheme not in ("http", "https", "ws", "wss"):
        raise InputError(f"assistant-endpoint {url!r} is no url, wanted https://… or wss://…")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InputError("assistant-endpoint holds a user, password or fragment, want none")
    if parts.scheme in ("http", "ws") and host not in LOOPBACK:
        raise InputError(
            f"assistant-endpoint: {parts.scheme} to {host} would send a call in plain text, "
            "want https or wss; plain text only goes to this machine"
        )


def endpoint(url: str) -> Endpoint:
    """Return the service at ``url`` with its token; raise InputError when it has none."""
    check_endpoint(url)
    token = next((value for name in TOKEN_VARIABLES if (value := _variable(name))), "")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{TOKEN_VARIABLES[0]} is no token, it holds blanks or other letters")
    found = Endpoint(url=url, token=token)
    if not token and not found.loopback:
        raise InputError(f"assistant-endpoint needs a token in {TOKEN_VARIABLES[0]}, found none")
    return found


def tokens() -> tuple[str, ...]:
    """Every token in the environment, to be written nowhere."""
    return tuple(value for name in TOKEN_VARIABLES if (value := _variable(name)))


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()

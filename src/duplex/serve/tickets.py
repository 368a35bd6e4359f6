"""The token and what a browser holds in its place: a cookie made of it.

Compared in constant time, always. The cookie is named after the port, because cookies
are not kept apart by port and two servers on one machine must not sign each other out.
It opens nothing itself; the door and the page's sign-in drive it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

_PURPOSE = b"duplex serve: the page's cookie"


class Tickets:
    """What lets somebody in at one server."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._ticket = hmac.new(self._token, _PURPOSE, sha256).hexdigest()

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.strip().encode("utf-8", "replace"), self._token)

    def is_bearer(self, header: str) -> bool:
        """Whether an ``Authorization`` header holds the token."""
        scheme, _, value = header.partition(" ")
        same = self.is_token(value)
        return same and scheme.lower() == "bearer"

    def is_held(self, host: str, cookies: Iterable[str]) -> bool:
        """Whether one of the ``Cookie`` headers holds this server's cookie."""
        name, found = cookie_name(host), False
        for header in cookies:
            try:
                morsel = SimpleCookie(header).get(name)
            except CookieError:
                continue
            value = "" if morsel is None else morsel.value
            found |= hmac.compare_digest(value.encode("utf-8", "replace"), self._ticket.encode())
        return found

    def cookie(self, host: str) -> str:
        """A ``Set-Cookie`` that signs a browser in until it is closed."""
        return f"{cookie_name(host)}={self._ticket}; Path=/; HttpOnly; SameSite=Strict"


def no_cookie(host: str) -> str:
    """A ``Set-Cookie`` that signs a browser out."""
    return f"{cookie_name(host)}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def cookie_name(host: str) -> str:
    """The cookie of the server at this ``Host``."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"duplex_{port or 80}"

"""Who may come in at a local server's door, whatever path they ask for.

A page in a browser may reach this machine's ports. It cannot leave out its ``Origin``
when it opens a websocket or posts, so whoever names one is refused; and a page whose
name was pointed at this machine afterwards (DNS rebinding) names its own host, so while
a server is bound to loopback only loopback's names are answered. It opens nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """Why somebody is not let in, as an error of the API: always status 403."""

    code: str
    message: str


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own and nobody else's."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def stranger(bound: str, origins: Sequence[str], hosts: Sequence[str]) -> Stranger | None:
    """Say who is not let in by the ``Origin`` and ``Host`` headers of a request; None: come in.

    ``bound`` is the address that the server listens at.
    """
    if origins:
        return Stranger(code="origin_not_allowed", message="browsers are not served here")
    if is_loopback(bound) and (len(hosts) != 1 or not _names_loopback(hosts[0])):
        message = "the host header does not name this machine"
        return Stranger(code="host_not_allowed", message=message)
    return None


def _names_loopback(header: str) -> bool:
    try:
        parts = urlsplit(f"//{header}")
        plain = parts.username is None and not (parts.path or parts.query or parts.fragment)
        return (
            plain and (parts.port is None or parts.port > 0) and is_loopback(parts.hostname or "")
        )
    except ValueError:
        return False

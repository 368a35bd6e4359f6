"""Every value that must never be written: keys of the environment, what addresses carry.

Which variables are keys follows from their names, so that a new one is hidden from the
day it is read. Placeholders that local servers are given (``local``, ``any``) are no
secrets: hiding them would take ordinary words out of every file. It opens nothing;
runs, the local server and the command line hide what it finds.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from duplex.redact import is_secret_key

_OURS = re.compile(r"(OPENAI|DUPLEX|AZURE_OPENAI|TWILIO|GPT_LIVE)_")
_NAMES = re.compile(r".*(_KEY|_TOKEN|_SECRET|_PASSWORD)")
_PLACEHOLDER = re.compile(r"[A-Za-z]{1,7}")
_PLAIN_QUERY = frozenset({"model", "rate_hz", "frame_ms", "sample_rate", "encoding", "language"})
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{12,}")


def environment_secrets(
    environment: Mapping[str, str] = os.environ, also: Iterable[str] = ()
) -> tuple[str, ...]:
    """Values of the variables that hold keys, and of those named in ``also``."""
    named = {name for name in environment if _OURS.match(name) and _NAMES.fullmatch(name)}
    values = (environment.get(name, "").strip() for name in sorted(named | set(also)))
    found = [value for value in values if value and not _PLACEHOLDER.fullmatch(value)]
    for name, value in environment.items():
        if _OURS.match(name) and name.endswith("_URL"):
            found += url_secrets(value)
    return tuple(dict.fromkeys(found))


def url_secrets(*urls: str | None) -> tuple[str, ...]:
    """What addresses hold that must not be shown: users, passwords, tokens of the query."""
    found: list[str] = []
    for url in urls:
        try:
            parts = urlsplit(url or "")
            userinfo = parts.netloc.rpartition("@")[0]
        except ValueError:
            continue
        user, _, password = userinfo.partition(":")
        if userinfo:
            # Sent as an authorization of its own kind, it may come back in that form.
            plain = f"{unquote(user)}:{unquote(password)}".encode()
            found += [unquote(password or user), b64encode(plain).decode("ascii")]
        found += [value for name, value in parse_qsl(parts.query) if _is_token(name, value)]
    return tuple(dict.fromkeys(one for one in found if one))


def _is_token(name: str, value: str) -> bool:
    if name in _PLAIN_QUERY:
        return False
    plain = name.lower()
    named = is_secret_key(name) or plain in ("key", "sig", "signature", "auth", "access")
    return named or _OPAQUE.fullmatch(value) is not None

"""Where a model is served, and with which key it may be asked.

Keys come from the environment only, and a key is never sent where it does not belong:
``OPENAI_API_KEY`` goes to api.openai.com and to the origin of ``OPENAI_BASE_URL``, any
other server gets ``DUPLEX_BACKEND_API_KEY`` or none; a judge has a key of its own first,
``DUPLEX_JUDGE_API_KEY``. Plain HTTP is for loopback, or
must be allowed by name. It opens nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from duplex.errors import InputError

KEY_VARIABLES = ("DUPLEX_BACKEND_API_KEY", "OPENAI_API_KEY", "DUPLEX_JUDGE_API_KEY")
JUDGE = "judge-url"
"""The option whose model has a key of its own."""
OPENAI_URL = "https://api.openai.com/v1"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlace:
    """One model of one server; ``url`` is the base below which paths are appended."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    effort: str | None = None

    @property
    def host(self) -> str:
        """Host and port, which share one rate limit."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def loopback(self) -> bool:
        return (urlsplit(self.url).hostname or "") in LOOPBACK


def place(
    option: str,
    url: str | None,
    model: str,
    *,
    effort: str | None = None,
    insecure: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> ModelPlace:
    """Return where ``model`` is served; ``option`` is what a complaint calls the URL.

    Without a ``url`` it is that of ``OPENAI_BASE_URL``, else OpenAI's own. Raises
    InputError for what is no URL, plain HTTP to elsewhere, or OpenAI without a key.
    """
    own = environment.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL
    where = (url or own).rstrip("/")
    check_url(option, where, insecure=insecure)
    key = environment.get(KEY_VARIABLES[2], "").strip() if option == JUDGE else ""
    key = key or environment.get(KEY_VARIABLES[0], "").strip()
    theirs = _origin(where) in {_origin(OPENAI_URL), _origin(own)}
    if not key and theirs:
        key = environment.get(KEY_VARIABLES[1], "").strip()
    if not key and _origin(where) == _origin(OPENAI_URL):
        raise InputError(f"model {model} of {where} needs a key in OPENAI_API_KEY, found none")
    return ModelPlace(url=where, model=model, key=key, effort=effort)


def check_url(option: str, url: str, *, insecure: bool = False) -> None:
    """Raise InputError unless ``url`` is one a model may be asked at."""
    wanted = "want https://…, or http:// to loopback, such as http://127.0.0.1:8123/v1"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or not url.isprintable() or any(mark in url for mark in " ?#@"):
        raise InputError(f"{option} {_shown(url)!r} is no url of a server; {wanted}")
    if parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK):
        return
    if parts.scheme != "http":
        raise InputError(f"{option} {url!r} is neither http nor https; {wanted}")
    if not insecure:
        raise InputError(
            f"{option} {url} would send a conversation and a key in plain text; {wanted}, "
            "or --allow-plain-http"
        )


def _shown(url: str) -> str:
    """Return a URL without what may be a password or a key in it."""
    return url.partition("?")[0].rpartition("@")[2]


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, parts.port or default

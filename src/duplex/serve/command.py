"""``duplex serve``: the store of runs over HTTP until stopped.

The first line on stdout is the base URL as JSON, flushed, so a script can wait for it;
the token is printed once, on stderr. Loopback unless told otherwise. FastAPI and uvicorn
are an extra and are looked for first.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from duplex.errors import InputError, MissingExtra
from duplex.local.admission import is_loopback
from duplex.run_folder import make_private
from duplex.serve.setting import Setting

if TYPE_CHECKING:
    from fastapi import FastAPI

_SHORTEST = 16
_AT_ONCE = 512
_GRACE_SECONDS = 3
_BEHIND = 10
"""Added to its niceness."""


def command(
    *,
    host: str,
    port: int,
    runs: Path,
    token_env: str | None,
    max_runs: int,
    setting: Setting,
    console: Console,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises DuplexError for what cannot be served.

    ``setting`` is of the runs that LiveKit's clients create here.
    """
    token = _token(token_env)
    app = _app(host, runs, token, token_env, max_runs, setting)
    door = _bound(host, port)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{door.getsockname()[1]}"
    print(json.dumps({"url": url}), flush=True)
    if token_env is None:
        console.print(Text(f"token: {token}"))
        console.print(Text(f"page: {_reached(url)}/?enter={token}"), soft_wrap=True)
    reads = "to write; reading is open here" if is_loopback(host) else "to read and to write"
    console.print(Text(f"serving the runs in {runs}; the token is wanted {reads}"))
    if not is_loopback(host):
        console.print(Text(f"host {host}: what is sent, the token too, is not encrypted"))
    console.print(Text("stop with Ctrl-C"))
    _make_way()
    with door:
        asyncio.run(_serve(app, door))


def _reached(url: str) -> str:
    """Where a browser on this machine finds a server that listens at every address."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _token(variable: str | None) -> str:
    if variable is None:
        return secrets.token_urlsafe(24)
    token = os.environ.get(variable, "").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"token-env {variable}: want a token of at least {_SHORTEST} printable characters in it"
        )
    return token


def _app(
    host: str,
    runs: Path,
    token: str,
    variable: str | None,
    limit: int,
    setting: Setting,
) -> FastAPI:
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"serve needs the extra serve ({error.name} is missing): "
            "pip install 'duplex-voice[serve]'"
        ) from None
    from duplex.serve.app import make_app
    from duplex.serve.launching import Processes
    from duplex.serve.library import Library

    make_private(runs)
    hidden = frozenset() if variable is None else frozenset({variable})
    launcher = Processes(runs, limit=limit, hidden=hidden)
    library = Library(runs)
    creator = setting.creator(library, launcher)
    return make_app(library, launcher, token=token, bound=host, creator=creator)


def _bound(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        door = socket.socket(family, kind, protocol)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(address)
            # Whoever reads the address may come at once, and waits until the server is up.
            door.listen(_AT_ONCE)
        except BaseException:
            door.close()
            raise
    except (OSError, UnicodeError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(f"host {host} port {port}: cannot listen ({reason or error})") from None
    return door


def _make_way() -> None:
    """Let every call on this machine go before the server; a tick must not wait for a reader.

    Threads have priorities of their own on Linux alone, so only there are the runs that the
    launcher begins, from a thread of its own, as quick as any.
    """
    if sys.platform == "linux":
        here = threading.get_native_id()
        own = os.getpriority(os.PRIO_PROCESS, here)
        os.setpriority(os.PRIO_PROCESS, here, min(19, own + _BEHIND))


async def _serve(app: FastAPI, door: socket.socket) -> None:
    import uvicorn

    from duplex.serve.patience import PatientProtocol

    class Server(uvicorn.Server):
        """One whose signals are ours: they end it cleanly, and the command with 0."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http=PatientProtocol,
            lifespan="off",
            limit_concurrency=_AT_ONCE,
            h11_max_incomplete_event_size=16 * 1024,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )

    def leave() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, leave)
    await server.serve(sockets=[door])

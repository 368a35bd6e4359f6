"""``duplex local``: serve the local voice until stopped.

The first line on stdout is the base URL as JSON, printed once the models are
loaded, so a script can wait for it. Loopback unless told otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.errors import InputError
from duplex.local.admission import is_loopback
from duplex.local.engines import Models, SpeechEngines
from duplex.local.faults import parse_fault
from duplex.local.model_brain import HttpModel
from duplex.local.parties import ROLES, party_maker, voice_maker
from duplex.local.server import LocalServer
from duplex.models.client import ModelClient
from duplex.models.place import place
from duplex.models.reach import refuse_unreachable
from duplex.options import checked_seed


def command(
    *,
    host: str,
    port: int,
    role: str,
    api_key_env: str | None,
    faults: Sequence[str],
    seed: int,
    ears_model: Path | None,
    mouth_model: Path | None,
    brain_url: str | None = None,
    brain_model: str | None = None,
    console: Console,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises DuplexError for what cannot be served."""
    if role not in ROLES:
        raise InputError(f'role "{role}" is none of: {", ".join(ROLES)}')
    seed = checked_seed(seed)
    key = _key(api_key_env)
    makers = [parse_fault(text) for text in faults]
    if brain_url is not None and brain_model is None:
        raise InputError("brain-url is given without brain-model, want both")
    where = None if brain_model is None else place("brain-url", brain_url, brain_model)

    async def serve() -> None:
        if where is not None:
            await refuse_unreachable({"brain-url": where})
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stopped.set)
        engines = await SpeechEngines.open(Models(ears=ears_model, mouth=mouth_model))
        client = None if where is None else ModelClient(where)
        if client is not None:
            client.open()
        model = None if client is None else HttpModel(client, live=False)
        try:
            server = LocalServer(
                voice_maker(engines, seed=seed, model=model),
                role=role,
                api_key=key,
                host=host,
                port=port,
                faults=makers,
                make_party=party_maker(engines, seed=seed),
            )
            async with server:
                print(json.dumps({"url": server.url}), flush=True)
                if not is_loopback(host) and key is None:
                    console.print(Text(f"host {host}: anybody who reaches it is served; {_LOCK}"))
                console.print(Text(f"serving the {role} voice, stop with Ctrl-C"))
                await stopped.wait()
        finally:
            if client is not None:
                await client.close()
            await engines.close()

    try:
        asyncio.run(serve())
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"host {host} port {port}: cannot listen ({reason})") from None


_LOCK = "--api-key-env NAME asks for a key"


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InputError(f"api-key-env {variable}: the variable is not set, wanted a key")
    return key

"""Whether anybody answers where a model is said to be, looked up before a call is held.

Any answer will do, an error too: what a server thinks of a request shows when it is
asked. Nothing is sent but one GET without a key. Whoever opens models drives it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import httpx2

from duplex.clock import real_pause
from duplex.errors import InputError
from duplex.models.place import ModelPlace

CONNECT_SECONDS = 5.0
AGAIN_SECONDS = 0.5
"""A server that was started a moment ago is asked once more after this long."""


async def refuse_unreachable(places: Mapping[str, ModelPlace]) -> None:
    """Raise InputError for the first place nobody answers at; the keys are options' names."""
    answered: set[str] = set()
    for option, where in places.items():
        if where.url in answered:
            continue
        why = await _unreachable(where)
        if why is not None:
            await real_pause(AGAIN_SECONDS)
            why = await _unreachable(where)
        if why is not None:
            raise InputError(
                f"{option}: no server answers at {where.url} for model {where.model} ({why}), "
                "want one that runs"
            )
        answered.add(where.url)


async def _unreachable(where: ModelPlace) -> str | None:
    timeout = httpx2.Timeout(CONNECT_SECONDS)
    async with httpx2.AsyncClient(
        timeout=timeout, follow_redirects=False, trust_env=not where.loopback
    ) as http:
        try:
            async with http.stream("GET", f"{where.url}/models"):
                return None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            return _why(error)
        except httpx2.HTTPError:
            # Somebody took the connection; how well they answer shows when they are asked.
            return None


def _why(error: BaseException) -> str:
    """What the system said, which stands below what the libraries made of it."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            # Numbers below zero are the resolver's, whose words are its own.
            number = below.errno or 0
            return (os.strerror(number) if number > 0 else below.strerror).lower()
        below = below.__cause__ or below.__context__
    return " ".join(str(error).split())[:200] or type(error).__name__

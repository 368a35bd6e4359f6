"""Server-sent events of a model's stream: bytes in, JSON objects out.

Only the ``data`` lines matter to model servers; ``[DONE]`` ends a stream. Bounded and
sans-io; a line or an event that is too long, and data that is no JSON object, become
a :class:`Broken`. ``models/client.py`` drives it.
"""

from __future__ import annotations

import json

from duplex.protocols.gpt_live import Broken, read_object
from duplex.values import Json

EVENT_LIMIT = 1 << 20
"""Bytes one event may have."""


class EventReader:
    """Reads one stream; after a Broken it reads no further."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._broken = False

    def take(self, chunk: bytes) -> list[dict[str, Json] | Broken]:
        """Take any piece of the stream and return the events it completed."""
        found: list[dict[str, Json] | Broken] = []
        if self._broken:
            return found
        # A CR at the end may be half of a line's end: it waits for what follows.
        text = self._rest + chunk
        held = b"\r" if text.endswith(b"\r") else b""
        lines = (text[: len(text) - len(held)]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = lines.split(b"\n")
        self._rest = rest + held
        for line in whole:
            self._line(line, found)
        if len(self._rest) + self._size > EVENT_LIMIT:
            self._broken = True
            found.append(Broken(reason=f"an event is longer than {EVENT_LIMIT} bytes"))
        return found

    def _line(self, line: bytes, found: list[dict[str, Json] | Broken]) -> None:
        if line.startswith(b"data:"):
            piece = line[5:].removeprefix(b" ")
            self._data.append(piece)
            self._size += len(piece) + 1
            return
        if line or not self._data:
            return
        data, self._data, self._size = b"\n".join(self._data), [], 0
        if data.strip() != b"[DONE]":
            found.append(read_object(data))


def write_event(event: dict[str, Json]) -> bytes:
    """Return one event as a stream carries it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

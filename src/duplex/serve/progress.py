"""A run's progress as server-sent events, told from its journal until the run is over.

Events are ``run`` (how it stands), ``began`` and ``ended`` (an attempt) and ``over``; a
client that comes back names the last id it has. The stream ends with the run, also with
one whose runner is gone. It reads files and holds nothing open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

from duplex.clock import real_pause, wall_seconds
from duplex.errors import DuplexError
from duplex.inputs import exists, read_bytes
from duplex.journal import NAME as JOURNAL
from duplex.serve.library import Library
from duplex.serve.refusals import Refusal
from duplex.values import Json

LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MOST_STREAMS = 256
_JOURNAL_BYTES = 1 << 28

Entry = tuple[int, str, dict[str, Json]]
"""A line of the journal: its number, its type and its fields."""


Look = tuple[dict[str, Json], list[Entry]]
"""How a run stands, and its journal."""


class Streams:
    """Counts who follows; more than ``MOST_STREAMS`` are refused."""

    def __init__(self) -> None:
        self._open = 0
        self._looks = _Looks()

    def follow(
        self, library: Library, id: str, *, after: int, gone: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[bytes, None]:
        """The events of a run after the one numbered ``after``. Raises Refusal."""
        return self.counted(_events(self._looks, library, id, after, gone))

    def counted(self, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """A stream that counts while somebody takes from it. Raises Refusal."""
        if self._open >= MOST_STREAMS:
            raise Refusal(429, "too_many_streams", f"{MOST_STREAMS} streams are open")
        return self._counted(events)

    async def _counted(self, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        self._open += 1
        try:
            # Whatever the stream keeps is let go with it, not when it is collected.
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._open -= 1


class _Looks:
    """Looks at runs, one for all who follow a run at the same moment."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, asyncio.Task[Look]]] = {}

    async def at(self, library: Library, id: str) -> Look:
        now = wall_seconds()
        begun, task = self._found.get(id, (0.0, None))
        if task is None or (task.done() and now - begun >= LOOK_SECONDS / 2):
            self._found = {key: one for key, one in self._found.items() if not one[1].done()}
            task = asyncio.ensure_future(asyncio.to_thread(_look, library, id))
            self._found[id] = now, task
        # One who leaves must not take the others' look away.
        return await asyncio.shield(task)


async def _events(
    looks: _Looks, library: Library, id: str, after: int, gone: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    told_at = wall_seconds()
    status = ""
    while not gone():
        try:
            row, entries = await looks.at(library, id)
        except (DuplexError, Refusal):
            # The folder was taken away; there is nothing more to tell.
            return
        events = [_event(kind, entry, number) for number, kind, entry in entries if number > after]
        after = max((number for number, _, _ in entries), default=after)
        if row["status"] != status:
            # How it stands comes first at the beginning, and last when it changes.
            at = 0 if status == "" else len(events)
            events.insert(at, _event("run", row))
            status = str(row["status"])
        for event in events:
            yield event
            told_at = wall_seconds()
        if status != "running":
            yield _event("over", {"status": status})
            return
        if wall_seconds() - told_at >= HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            told_at = wall_seconds()
        await real_pause(LOOK_SECONDS)


def _look(library: Library, id: str) -> Look:
    row = library.by_id(id)
    told = library.seen(row).told
    held = 0 if told is None else sum(entry.final for entry in told.ended.values())
    about: dict[str, Json] = {
        "id": row.id,
        "status": row.status,
        "expected": row.expected,
        "held": held,
    }
    return about, entries_of(library.place(row).path / JOURNAL)


def entries_of(journal: Path) -> list[Entry]:
    """What happened to attempts, numbered by the journal's whole lines, which only grow."""
    if not exists(journal):
        return []
    lines = read_bytes(journal, limit=_JOURNAL_BYTES).split(b"\n")[:-1]
    found = []
    for number, line in enumerate(lines):
        try:
            entry: Json = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and (kind := entry.get("type")) in ("began", "ended"):
            found.append((number, str(kind), {k: v for k, v in entry.items() if k != "type"}))
    return found


def _event(kind: str, data: dict[str, Json], number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    body = json.dumps(data, allow_nan=False, ensure_ascii=False)
    return f"{head}event: {kind}\ndata: {body}\n\n".encode("utf-8", "replace")

"""A call in progress as server-sent events, looked at once for all who follow it.

Events are ``call`` (what it is), ``levels``, ``lines``, ``replies``, ``floor`` and
``over``. The next look waits until this one has cost no more than a twentieth of the
time, so a long call is told more slowly and never held up. Whoever follows last takes
what was kept of the call away.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from duplex.clock import real_pause, wall_seconds
from duplex.serve.library import Library, Seen, options_of
from duplex.serve.live.hearing import Heard, Hearing, changed
from duplex.serve.live.levels import STEP_MS
from duplex.serve.progress import HEARTBEAT_SECONDS, Streams
from duplex.serve.refusals import Refusal
from duplex.values import Json, Side

LOOK_SECONDS = 0.5
_SHARE = 20
_CATCH_UP_MS = 15_000
"""How much of the levels somebody who comes later is sent."""


class Calls:
    """Calls that somebody follows."""

    def __init__(self, library: Library, streams: Streams) -> None:
        self._library = library
        self._streams = streams
        self._watches: dict[tuple[str, str], _Watch] = {}

    def follow(self, run: str, call: str) -> AsyncGenerator[bytes, None]:
        """The events of a call until it is over. Raises Refusal."""
        going_on(self._library, run, call)
        return self._streams.counted(self._events(run, call))

    async def _events(self, run: str, call: str) -> AsyncGenerator[bytes, None]:
        key = (run, call)
        watch = self._watches.setdefault(key, _Watch(library=self._library, run=run, call=call))
        watch.followers += 1
        try:
            async for event in _told(watch):
                yield event
        finally:
            watch.followers -= 1
            if not watch.followers:
                self._watches.pop(key, None)


def going_on(library: Library, run: str, call: str) -> Seen:
    """The run of a call that is in progress; raises Refusal when it is not."""
    row = library.by_id(run)
    seen = library.seen(row)
    if any(name == call for _, _, name in seen.in_progress()):
        return seen
    told = seen.told
    if told is not None and (call in told.ended or call in told.opening.calls):
        raise Refusal(409, "call_not_in_progress", "the call is not in progress")
    if told is not None and call in told.began:
        raise Refusal(409, "call_not_in_progress", "the call was cut off")
    raise Refusal(404, "call_not_found", "the run has no such call")


@dataclass(slots=True, kw_only=True)
class _Watch:
    """One call that is looked at, by whoever asks first."""

    library: Library
    run: str
    call: str
    followers: int = 0
    hearing: Hearing | None = None
    heard: Heard = field(default_factory=Heard)
    over: str | None = None
    due: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self) -> None:
        """Bring what is known up to date, unless that was done a moment ago."""
        async with self.lock:
            began = wall_seconds()
            if self.over is not None or began < self.due:
                return
            await asyncio.to_thread(self._look)
            cost = wall_seconds() - began
            self.due = began + (0.0 if self.heard.behind else max(LOOK_SECONDS, cost * _SHARE))

    def _look(self) -> None:
        try:
            seen = going_on(self.library, self.run, self.call)
        except Refusal as refusal:
            # Its last second lies there by now.
            if self.hearing is not None:
                self.heard = self.hearing.look()
            self.over = refusal.message
            return
        if self.hearing is None:
            assert seen.told is not None, "a call in progress has a journal"
            options = options_of(seen.told.opening)
            self.hearing = Hearing(self.library.place(seen.row), self.call, options)
        self.heard = self.hearing.look()


async def _told(watch: _Watch) -> AsyncGenerator[bytes, None]:
    """What one follower is told: everything once, then what changes."""
    yield _event("call", {"run": watch.run, "call": watch.call, "step_ms": STEP_MS})
    before, levels_at = Heard(), None
    told_at = wall_seconds()
    while True:
        await watch.look()
        now = watch.heard
        events = list(_changes(before, now))
        found = None if watch.hearing is None else watch.hearing.levels
        if found is not None:
            there = min(len(one) for one in found.values())
            if levels_at is None:
                levels_at = max(0, there - _CATCH_UP_MS // STEP_MS)
            if there > levels_at:
                sides = {side.label: found[side].since(levels_at) for side in Side}
                events.append(_event("levels", {"from_ms": levels_at * STEP_MS, **sides}))
                levels_at = there
        before = now
        for event in events:
            yield event
            told_at = wall_seconds()
        if watch.over is not None:
            yield _event("over", {"reason": watch.over})
            return
        if wall_seconds() - told_at >= HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            told_at = wall_seconds()
        await real_pause(0.0 if now.behind else LOOK_SECONDS)


def _changes(before: Heard, now: Heard) -> list[bytes]:
    found = []
    for name, old, new in (
        ("lines", before.lines, now.lines),
        ("replies", before.replies, now.replies),
    ):
        at = changed(old, new)
        if at is not None:
            found.append(_event(name, _list(at, new, now if name == "replies" else None)))
    if now.floor is not None and now.floor != before.floor:
        found.append(_event("floor", {**now.floor, "position_ms": now.position_ms}))
    return found


def _list(at: int, entries: Sequence[Json], heard: Heard | None) -> dict[str, Json]:
    """Entries from a place on; what the other side has from there on is dropped."""
    sent: dict[str, Json] = {"from": at, "entries": list(entries[at:])}
    return sent if heard is None else sent | {"median": heard.median}


def _event(kind: str, data: Mapping[str, Json]) -> bytes:
    body = json.dumps(data, allow_nan=False, ensure_ascii=False)
    return f"event: {kind}\ndata: {body}\n\n".encode("utf-8", "replace")

"""Two hundred readers of one server, in a process of their own that lets all others go first.

``python serve_readers.py PORT RUN`` waits until the calls of the run go on, reads until it is
over and prints what it got as JSON. Sockets only, so that it costs little.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from serve_process import got

CALLS = 4
FOLLOW_RUN, FOLLOW_CALL, LISTEN, ASK = 80, 60, 10, 50
READERS = FOLLOW_RUN + FOLLOW_CALL + LISTEN + ASK
ASK_EVERY = 2.0
TOO_LATE = 409
"""The call was over before somebody on a busy machine came to it."""
Json = dict[str, object]


@dataclass(slots=True, kw_only=True)
class Seen:
    """What readers got."""

    statuses: Counter[int] = field(default_factory=Counter)
    runs: list[Counter[str]] = field(default_factory=list)
    calls: list[tuple[str, int, float]] = field(default_factory=list)
    heard: list[int] = field(default_factory=list)


def events_of(answer: bytes) -> list[tuple[str, Json]]:
    """Events of a chunked stream, put together again."""
    body, found = bytearray(), answer
    while found:
        size, _, rest = found.partition(b"\r\n")
        length = int(size, 16)
        body += rest[:length]
        found = rest[length + 2 :]
    told = []
    for block in body.decode().split("\n\n"):
        lines = dict(one.split(": ", 1) for one in block.split("\n") if ": " in one)
        if "event" in lines:
            told.append((lines["event"], json.loads(lines["data"])))
    return told


async def follow_run(port: int, id: str, seen: Seen) -> None:
    status, body = await got(port, f"/api/runs/{id}/events")
    seen.statuses[status] += 1
    seen.runs.append(Counter(name for name, _ in events_of(body)))


async def follow_call(port: int, id: str, name: str, seen: Seen) -> None:
    status, body = await got(port, f"/api/runs/{id}/calls/{name}/live")
    seen.statuses[status] += 1
    if status == TOO_LATE:
        return
    told = events_of(body)
    ends = [
        int(str(data["from_ms"])) + 20 * len(str(data["caller"]["voiced"]))
        for kind, data in told
        if kind == "levels" and isinstance(data["caller"], dict)
    ]
    over = sum(kind == "over" for kind, _ in told)
    seen.calls.append((name, over, max(ends, default=0) / 1000))


async def listen(port: int, id: str, name: str, seen: Seen) -> None:
    status, body = await got(port, f"/api/runs/{id}/calls/{name}/live.wav?from_ms=0")
    seen.statuses[status] += 1
    if status == TOO_LATE:
        return
    seen.heard.append(len(body))


async def ask(port: int, paths: Sequence[str], until: asyncio.Event, seen: Seen) -> None:
    for at in range(1000):
        if until.is_set():
            return
        status, _ = await got(port, paths[at % len(paths)])
        seen.statuses[status] += 1
        await asyncio.sleep(ASK_EVERY)


async def going(port: int, id: str) -> list[str]:
    """The names of the calls once all of them go on."""
    for _ in range(200):
        _, body = await got(port, f"/api/runs/{id}")
        calls = json.loads(body)["calls"]
        names = [one["id"] for one in calls if one["state"] == "in_progress"]
        if len(names) == CALLS:
            return names
        await asyncio.sleep(0.05)
    raise AssertionError("the calls never went on side by side")


async def read_by_many(port: int, id: str) -> Seen:
    seen, over = Seen(), asyncio.Event()
    names = await going(port, id)
    place = f"/runs/{id}"
    paths = ["/", place, f"/api{place}", "/api/runs", f"{place}/calls/{names[0]}", "/runs/run_5"]
    asked = [
        asyncio.create_task(ask(port, paths[n % 6 :] + paths[: n % 6], over, seen))
        for n in range(ASK)
    ]
    await asyncio.gather(
        *(follow_run(port, id, seen) for _ in range(FOLLOW_RUN)),
        *(follow_call(port, id, names[n % CALLS], seen) for n in range(FOLLOW_CALL)),
        *(listen(port, id, names[n % CALLS], seen) for n in range(LISTEN)),
    )
    over.set()
    await asyncio.gather(*asked)
    return seen


if __name__ == "__main__":
    os.nice(15)
    found = asyncio.run(read_by_many(int(sys.argv[1]), sys.argv[2]))
    told = {name: getattr(found, name) for name in ("statuses", "runs", "calls", "heard")}
    print(json.dumps(told))

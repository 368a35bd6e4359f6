"""Calls with a local server that misbehaves, and the table of what each fault comes to.

The calls are whole ones, from options to results, in virtual time or over sockets;
mouths and ears are the parrot's, so that they cost little.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from duplex.local.faults import Plan, parse_fault
from duplex.local.server import LocalServer
from duplex.options import make
from duplex.recording import Recording
from duplex.results import schema
from duplex.runner import Finished, Runner
from duplex.values import Json, Side
from fake_engines import Parrot, speaking
from scenario_files import single, write

PROTOCOLS = ("gpt-live", "realtime")
WISH = "Hello, a table for two on August seventh at seven p.m., please, under the name Maya."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one fault comes to.

    ``seen`` are the faults that the session finds by itself, one of which must be told,
    for GPT-Live and for Realtime; ``stage`` is of the error where the call does not count.
    """

    gpt_live: tuple[str, ...]
    realtime: tuple[str, ...]
    stage: str | None = None

    def seen(self, protocol: str) -> tuple[str, ...]:
        return self.gpt_live if protocol == "gpt-live" else self.realtime


def _row(*codes: str, stage: str | None = None, realtime: tuple[str, ...] | None = None) -> Row:
    return Row(gpt_live=codes, realtime=codes if realtime is None else realtime, stage=stage)


TABLE: dict[str, Row] = {
    "refuse": _row("503", stage="assistant_connection"),
    "429": _row("429"),
    "delay": _row("delayed"),
    "jitter": _row("jitter", "delayed"),
    "stall": _row("stalled"),
    "drop": _row("dropped", stage="session"),
    "half_close": _row("dropped", stage="session"),
    "garbage": _row("unreadable"),
    "oversize": _row("oversize"),
    "odd_bytes": _row("odd_bytes"),
    "duplicate": _row("duplicate_event"),
    "reorder": _row("reordered"),
    "lose_tool_result": _row("tool_result_lost"),
    "answer_after_cancel": _row("unexpected_response", realtime=("answer_after_cancel",)),
    "never_close": _row("close_timeout"),
    "expire": _row("expired", stage="session"),
}


@contextmanager
def misbehaving(*faults: str) -> Iterator[None]:
    """Let the first assistant's server in the block suffer these faults."""
    plans = [parse_fault(text) for text in faults]
    servers = itertools.count()

    class Faulty(LocalServer):
        def __init__(self, *given: object, **options: object) -> None:
            first = options.get("role") == "assistant" and next(servers) == 0
            suffers: list[Plan] = plans if first else []
            super().__init__(*given, **options, faults=suffers)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("duplex.ends.LocalServer", Faulty)
        yield


@dataclass(slots=True)
class Leftovers:
    """Tasks and open files of this process that a run did not take with it."""

    tasks: set[str] = field(default_factory=set)
    files: int = 0


def open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


async def held(
    folder: Path,
    protocol: str,
    *faults: str,
    calls: int = 1,
    booked: bool = False,
    **options: object,
) -> tuple[Finished, Leftovers]:
    """Hold ``calls`` short calls with a caller that has one wish, in one run.

    A ``booked`` call goes on until a table could be booked, others end before that.
    """
    script: list[dict[str, object]] = [{"text": WISH, "action": "OPENING"}]
    if booked:
        script += [
            {"text": "Yes, that's right."},
            {"text": "Goodbye.", "at_ms": 31_000, "action": "STOP"},
        ]
    wishes: dict[str, object] = {"script": script, "first_speaker": "assistant"}
    names = [f"call{number}" for number in range(1, calls + 1)]
    data = write(folder / "in.json", *(single(name, duplex=wishes) for name in names))
    given: dict[str, object] = {
        "data": data,
        "out": folder / "runs",
        "caller": "scripted",
        "clock": "virtual",
        "detector": "rms",
        "drain_ms": 0,
        "max_duration_seconds": 40 if booked else 8,
    }
    if protocol == "realtime":
        given |= {"assistant": "realtime", "endpoint": "local"}
    before, files = asyncio.all_tasks(), open_files()
    with speaking(Parrot()), misbehaving(*faults):
        finished = await Runner(make(given | options)).run()
    await asyncio.sleep(0.05)
    left = {str(task) for task in asyncio.all_tasks() - before}
    return finished, Leftovers(tasks=left, files=open_files() - files)


def told(result: schema.Result) -> list[dict[str, Json]]:
    faults = result.duplex["faults"]
    assert isinstance(faults, list)
    return [fault for fault in faults if isinstance(fault, dict)]


def codes(result: schema.Result) -> set[str]:
    """Codes of the faults that were found; what the server says of itself is left out."""
    return {str(one["code"]) for one in told(result) if "on purpose:" not in str(one["message"])}


def struck_ms(result: schema.Result) -> float:
    """When the server said that it misbehaves."""
    return min(float(str(o["at_ms"])) for o in told(result) if "on purpose:" in str(o["message"]))


def heard_ms(folder: Path, call_id: str, until_ms: float | None = None) -> float:
    """How much of the assistant was heard, by its recording on disk."""
    recording = Recording.load(folder, call_id)
    source = recording.source(Side.ASSISTANT)
    blocks = source[: len(source) // 480 * 480].reshape(-1, 480)
    if until_ms is not None:
        blocks = blocks[: round(until_ms / 20)]
    return 20.0 * int((np.abs(blocks.astype(np.int32)).max(axis=1) > 200).sum())


def events_of(folder: Path, call_id: str) -> list[dict[str, Json]]:
    lines = (folder / "events" / f"{call_id}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]

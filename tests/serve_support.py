"""Servers over made-up stores: folders of finished runs, a launcher that holds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
from fastapi import FastAPI

from duplex.journal import Journal, Opening
from duplex.results import Result, schema
from duplex.run_folder import RunFolder
from duplex.run_lock import RunLock
from duplex.serve.app import make_app
from duplex.serve.launching import checked
from duplex.serve.library import Library
from duplex.wavfile import write_wav
from verdict_runs import call, run

TOKEN = "a-token-of-the-tests-0123"
AUTH = {"authorization": f"Bearer {TOKEN}"}


class Recorded:
    """A launcher that checks options as the real one does, and makes a folder at most."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.asked: list[dict[str, object]] = []

    async def start(self, values: Mapping[str, object]) -> str:
        checked(values)
        self.asked.append(dict(values))
        number = 1
        while (self.runs / f"begun_{number}").exists():
            number += 1
        id = f"begun_{number}"
        begun(self.runs, id, ["booking"])
        return id


def stored(
    runs: Path, id: str, /, *results: Result, day: int = 1, checks: Sequence[str] = (), **plan: str
) -> Path:
    """Write a finished run of these calls."""
    folder = RunFolder(runs / id)
    folder.path.mkdir(parents=True)
    stamp = f"2026-11-{day:02}T00:00:00.000Z"
    ended = f"2026-11-{day:02}T00:01:00.000Z"
    told: dict[str, str] = {"created_at": stamp, "started_at": stamp, "ended_at": ended, **plan}
    made = run(*(results or (call(),)), checks=checks)
    plan_of = made.run.duplex["plan"]
    assert isinstance(plan_of, dict)
    ours = {**made.run.duplex, "plan": {**plan_of, **told}}
    info = made.run.model_copy(update={"id": id, "duplex": ours})
    made = made.model_copy(update={"run": info})
    folder.results.write_text(schema.to_json(made), encoding="utf-8")
    return folder.path


def begun(runs: Path, id: str, calls: list[str], *, resumable: bool = True) -> Journal:
    """A run that has a journal and nothing else; nobody holds its folder."""
    folder = runs / id
    folder.mkdir(parents=True)
    opening = Opening(
        created_at="2026-11-30T00:00:00.000Z",
        options={"data": "/somewhere/restaurant.json", "clock": "virtual", "out": "/elsewhere"},
        scenarios={"booking": "0" * 64},
        calls=calls,
        criteria=[],
        resumable=resumable,
    )
    return Journal.create(folder, opening)


def held(folder: Path) -> RunLock:
    """Hold a run's folder as its runner does."""
    lock = RunLock()
    lock.take(folder)
    return lock


def landed(runs: Path, id: str, journal: Journal, result: Result) -> None:
    """An attempt that is over, of which the run's results do not know yet."""
    case = result.duplex["case"]
    assert isinstance(case, dict)
    name = str(case["call_id"])
    folder = RunFolder(runs / id).audio(name)
    folder.mkdir(parents=True)
    (folder / "conversation.result.json").write_text(result.model_dump_json(), encoding="utf-8")
    journal.began(name, 1, name)
    journal.ended(name, 1, name, final=True)


def sounding(runs: Path, id: str, name: str) -> Path:
    """Sound and a page of a run."""
    import numpy as np

    folder = RunFolder(runs / id).audio(name)
    folder.mkdir(parents=True, exist_ok=True)
    write_wav(folder / "conversation.wav", np.arange(2400, dtype=np.int16), 24_000)
    (runs / id / "viewer.html").write_text("<!doctype html><title>run</title>", encoding="utf-8")
    return folder / "conversation.wav"


def application(runs: Path, *, bound: str = "127.0.0.1") -> tuple[FastAPI, Recorded]:
    runs.mkdir(parents=True, exist_ok=True)
    launcher = Recorded(runs)
    return make_app(Library(runs), launcher, token=TOKEN, bound=bound), launcher


def client(app: FastAPI, **headers: str) -> httpx.AsyncClient:
    """A client without a token, unless its headers say one."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8700", headers=headers)


async def lines_of(answer: httpx.Response) -> list[str]:
    return [line async for line in answer.aiter_lines()]

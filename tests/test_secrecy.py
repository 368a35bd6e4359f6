"""Whole runs into which secrets were planted everywhere: no file and no stream shows one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from duplex import viewer
from duplex.discretion import redactor_of
from duplex.options import make
from duplex.regrading import grade
from duplex.results.schema import Run
from duplex.runner import Finished, Runner
from duplex.values import Event, Json
from duplex.wavfile import write_wav
from fake_engines import Parrot, speaking

TREE = Path(__file__).parents[1]
KEY = "zq-planted-key-0815"
PASSWORD = "pa55-in-the-address"
TOKEN = "t0ken-of-the-query"
PHONE = "415-555-0136"
GUEST = "Philippa Vandenberg"
SECRETS = (KEY, PASSWORD, TOKEN)
AGENT = f"""
import numpy as np

KEY = {KEY!r}

def buzz(rate, ms):
    t = np.arange(rate * ms // 1000) / rate
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    tone = sum(np.sin(2 * np.pi * 110 * k * t) / k for k in range(1, 20))
    return np.rint(4000 * gate * tone).astype(np.int16)

def leaks(call):
    booked = {{"phone": {PHONE!r}, "guest": {{"Guest_Name": {GUEST!r}}}, "note": KEY}}
    call.tell({{"type": "asr_final", "text": "you are Philippa  VANDENBERG, (415) 5550136"}})
    call.tell({{"type": "state", "state": {{KEY: [booked], "digits": 10 ** 5000}}}})
    call.tell({{"type": "tool", "name": "book", "call_id": KEY, "arguments": booked,
               "result": {{"said": f"booked for {GUEST}, call {PHONE}"}}, "error": KEY}})
    call.tell({{"type": "nonsense " + KEY}})
    ticks = iter(range(10**9))
    def hear(heard, rate_hz):
        tick = next(ticks)
        if tick % 150 == 50:
            return buzz(rate_hz, 800)
        if tick == 60:
            call.tell({{"type": "first_token", "text": f"Authorization: Bearer {{KEY}}"}})
        if tick == 120:
            raise ValueError(f"{{KEY}} failed for 4155550136 at https://me:{PASSWORD}@host/?token=abc")
    return hear
"""


def caller(folder: Path) -> Path:
    t = np.arange(24_000) / 24_000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    path = folder / "caller.wav"
    write_wav(path, np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    return path


def shown(folder: Path) -> str:
    """Every file of a run as text, names among it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "viewer.html" for path in files)
    texts = [path.read_bytes().decode("latin-1") for path in files if path.suffix != ".wav"]
    # Sound inside the page is base64, in which any short word may occur.
    return re.sub(r"[A-Za-z0-9+/=]{500,}", "", "\n".join([*texts, *map(str, files)]))


class Looker:
    """Sees what somebody who watches a run sees."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> Looker:
        self.seen.append(title)
        return self

    def finished(self, call_id: str, sentence: str) -> None:
        self.seen.append(sentence)

    def on_event(self, event: Event) -> None:
        self.seen.append(json.dumps(dict(event.fields)))

    def on_tick(self, *_: object) -> None:
        pass


async def leaky(folder: Path, *redact: str) -> tuple[Finished, Looker]:
    (folder / "agents.py").write_text(AGENT, encoding="utf-8")
    values: dict[str, object] = {
        "data": TREE / "scenarios",
        "scenario": ("restaurant_booking_complete",),
        "caller": str(caller(folder)),
        "assistant": f"{folder / 'agents.py'}:leaks",
        "clock": "virtual",
        "max_duration_seconds": 6.0,
        "out": folder / "runs",
        "redact": redact,
    }
    looker = Looker()
    finished = await Runner(make(values), audience=looker).run()
    viewer.build(finished.folder)
    return finished, looker


async def test_nothing_an_agent_knows_of_a_key_stands_in_any_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUPLEX_BACKEND_API_KEY", KEY)
    finished, looker = await leaky(tmp_path)
    told = "\n".join([shown(finished.folder), *looker.seen, finished.run.model_dump_json()])
    assert KEY not in told
    assert PASSWORD not in told
    assert PHONE in told, "what nobody asked to hide stays"
    assert "[redacted]" in told


async def test_private_fields_are_hidden_in_every_spelling_wherever_they_occur(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUPLEX_BACKEND_API_KEY", KEY)
    finished, _ = await leaky(tmp_path, "Phone", "guest-name")
    told = shown(finished.folder) + finished.run.model_dump_json()
    for spelling in (KEY, PHONE, "4155550136", "5550136", "Philippa", "VANDENBERG"):
        assert spelling not in told
    marks = set(re.findall(r"\[redacted \d+\]", told))
    assert len(marks) == 2, marks
    assert finished.run.run.duplex["redaction"] == {"fields": ["Phone", "guest-name"]}


BOOKING: dict[str, object] = {
    "clock": "virtual",
    "detector": "rms",
    "data": TREE / "scenarios",
    "scenario": ("restaurant_booking_complete",),
}


def verdicts(run: Run) -> Json:
    (result,) = run.results
    checks: list[Json] = [[check.id, check.status] for check in result.assessment.checks]
    accuracy = result.metrics.task.tool_accuracy
    return [result.status, checks, accuracy, result.observability.completion.rationale]


async def test_a_call_is_graded_the_same_with_its_values_hidden(tmp_path: Path) -> None:
    runs = []
    for redact in ((), ("guest_name", "date", "party_size", "name")):
        with speaking(Parrot()):
            values = {**BOOKING, "out": tmp_path / str(len(redact)), "redact": redact}
            runs.append(await Runner(make(values)).run())
    plain, hidden = runs
    assert plain.run.results[0].status == "passed"
    assert verdicts(hidden.run) == verdicts(plain.run)
    again = await asyncio.to_thread(grade, hidden.folder)
    assert verdicts(again.run) == verdicts(plain.run)
    viewer.build(hidden.folder)
    executed = plain.run.results[0].observability.tools.executed
    said = {
        str(one.arguments[name])
        for one in executed
        for name in ("guest_name", "date")
        if name in one.arguments
    }
    assert all(value in (plain.folder / "results.json").read_text("utf-8") for value in said)
    assert not [value for value in said if value.lower() in shown(hidden.folder).lower()]


def test_marks_are_the_same_when_a_run_is_read_again() -> None:
    from duplex.scenario import load

    scenarios = load(TREE / "scenarios").scenarios
    one, two = (redactor_of(("name", "date"), scenarios) for _ in range(2))
    text = {"arguments": {"name": "Maya Chen", "date": "2026-08-05"}}
    assert one.json(text) == two.json(text)


async def refusing(connection: ServerConnection) -> None:
    """A service that tells everybody the key it was given."""
    assert connection.request is not None
    given = connection.request.headers["Authorization"]
    await connection.recv()
    error = {
        "type": "invalid_request_error",
        "code": "bad",
        "message": f"no: {given}",
        "param": KEY,
    }
    await connection.send(json.dumps({"type": "error", "error": error}))
    await connection.close(4000, f"refused {KEY} {TOKEN}"[:100])


@pytest.mark.wall
async def test_neither_stream_shows_what_a_service_gives_back(tmp_path: Path) -> None:
    async with serve(refusing, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        command = [
            *(sys.executable, "-m", "duplex", "run", "--assistant", "gpt-live", "--verbose"),
            *("--caller", str(caller(tmp_path)), "--out", str(tmp_path / "runs"), "--json"),
            *("--scenario", "restaurant_booking_complete", "--data", str(TREE / "scenarios")),
            *("--endpoint", f"http://me:{PASSWORD}@127.0.0.1:{port}/v1?api_key={TOKEN}"),
        ]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "OPENAI_API_KEY": KEY},
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 2, err
    (folder,) = (tmp_path / "runs").iterdir()
    told = out.decode() + err.decode() + shown(folder)
    assert "[redacted]" in told
    for secret in SECRETS:
        assert secret not in told, secret
    assert "refused" in told


CRASH = f"""
import logging, os, sys
from duplex import outlets
outlets.guard()
print("out", os.environ["OPENAI_API_KEY"])
logging.getLogger("duplex").error("log %s", os.environ["OPENAI_API_KEY"])
raise RuntimeError("https://me:{PASSWORD}@host/ with " + os.environ["OPENAI_API_KEY"])
"""


async def test_logs_and_tracebacks_hide_keys_too() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CRASH),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert out.decode() == "out [redacted]\n"
    assert "RuntimeError: https://[redacted]@host/ with [redacted]" in err.decode()
    assert KEY not in err.decode()

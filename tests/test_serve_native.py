"""Our own paths: lists, a run, its files, its events, and runs begun and cancelled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from duplex.serve import progress
from serve_support import AUTH, application, begun, client, held, landed, sounding, stored
from verdict_runs import call


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_old", call(), day=20)
    stored(runs, "run_new", call(passed=False, scenario="other"), day=21)
    return runs


async def ids(http: object, query: str) -> list[str]:
    import httpx

    assert isinstance(http, httpx.AsyncClient)
    answer = await http.get(f"/api/runs?until=2026-12-01&{query}")
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["runs"]]


async def test_runs_are_listed_with_the_filters_of_duplex_list(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        assert await ids(http, "") == ["run_new", "run_old"]
        assert await ids(http, "limit=1") == ["run_new"]
        assert await ids(http, "failed=true") == ["run_new"]
        assert await ids(http, "scenario=booking") == ["run_old"]
        assert await ids(http, "status=cancelled") == []
        assert await ids(http, "agent=nobody") == []
        assert await ids(http, "since=2026-11-21") == ["run_new"]
        row = (await http.get("/api/runs?until=2026-12-01")).json()["runs"][0]
    assert row["passed"] is False
    assert "path" not in row


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "until=0001-01-01", "since=2026-02-01&until=2026-01-01", "limit=0"],
)
async def test_a_window_that_is_none_is_refused(runs: Path, query: str) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get(f"/api/runs?{query}")
        assert answer.status_code == 422
        assert answer.json()["type"] == "validation"


async def test_a_run_has_its_verdict_and_calls(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        found = (await http.get("/api/runs/run_new")).json()
        assert (await http.get("/api/runs/run_none")).status_code == 404
    assert found["verdict"]["passed"] is False
    assert [(one["state"], one["passed"]) for one in found["calls"]] == [("over", False)]
    assert found["summary"]["failed"] == 1


async def test_a_run_in_progress_lists_what_goes_on_and_what_waits(runs: Path) -> None:
    journal = begun(runs, "run_live", ["booking.s1", "booking.s2", "booking.s3"])
    landed(runs, "run_live", journal, call())
    journal.began("booking.s2", 1, "booking.s2")
    lock = held(runs / "run_live")
    try:
        async with client(application(runs)[0]) as http:
            found = (await http.get("/api/runs/run_live")).json()
    finally:
        lock.release()
        journal.close()
    assert found["verdict"] is None
    assert found["run"]["status"] == "running"
    assert [one["state"] for one in found["calls"]] == ["over", "in_progress", "waiting"]


async def test_a_run_is_not_over_before_it_is_judged(runs: Path) -> None:
    """Between the journal's last line and the last results nobody reads an end without verdict."""
    journal = begun(runs, "run_live", ["booking.s1"])
    landed(runs, "run_live", journal, call())
    journal.over("completed")
    journal.close()
    lock = held(runs / "run_live")
    async with client(application(runs)[0]) as http:
        try:
            before = (await http.get("/api/runs/run_live")).json()
        finally:
            lock.release()
        await asyncio.sleep(0.25)
        after = (await http.get("/api/runs/run_live")).json()
    assert (before["run"]["status"], before["verdict"]) == ("running", None)
    assert after["run"]["status"] == "completed"
    assert after["verdict"] is not None


async def test_the_report_is_markdown(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_new/report.md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("# run")
    assert "Failed" in answer.text


async def test_sound_comes_whole_and_in_ranges(runs: Path) -> None:
    wav = sounding(runs, "run_old", "booking.s1").read_bytes()
    path = "/api/runs/run_old/calls/booking.s1/audio.wav"
    async with client(application(runs)[0]) as http:
        whole = await http.get(path)
        part = await http.get(path, headers={"range": "bytes=44-143"})
        beyond = await http.get(path, headers={"range": "bytes=9999999-"})
        other = await http.get(f"{path}?what=caller")
        unknown = await http.get(f"{path}?what=journal")
    assert (whole.status_code, whole.content) == (200, wav)
    assert (part.status_code, part.content) == (206, wav[44:144])
    assert part.headers["content-range"] == f"bytes 44-143/{len(wav)}"
    assert (beyond.status_code, other.status_code, unknown.status_code) == (416, 404, 422)


async def test_sound_of_a_call_that_goes_on_is_not_served(runs: Path) -> None:
    journal = begun(runs, "run_live", ["booking.s1"])
    journal.began("booking.s1", 1, "booking.s1")
    journal.close()
    sounding(runs, "run_live", "booking.s1")
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_live/calls/booking.s1/audio.wav")
    assert answer.status_code == 404


async def test_the_page_of_a_run_is_nobodys_origin(runs: Path) -> None:
    sounding(runs, "run_old", "booking")
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_old/viewer.html")
        assert (await http.get("/api/runs/run_new/viewer.html")).status_code == 404
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


async def test_the_results_are_the_file(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_old/results.json")
    assert answer.content == (runs / "run_old" / "results.json").read_bytes()


def told(text: str) -> list[tuple[str, dict[str, object]]]:
    """Kind and data of each event of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


async def test_events_of_a_finished_run_end_at_once(runs: Path) -> None:
    journal = begun(runs, "run_live", ["booking.s1"])
    landed(runs, "run_live", journal, call())
    journal.over("completed")
    journal.close()
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_live/events")
        later = await http.get("/api/runs/run_live/events", headers={"last-event-id": "1"})
        missing = await http.get("/api/runs/run_none/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [kind for kind, _ in told(answer.text)] == ["run", "began", "ended", "over"]
    assert told(answer.text)[-1] == ("over", {"status": "completed"})
    assert [kind for kind, _ in told(later.text)] == ["run", "ended", "over"]
    assert missing.status_code == 404


async def test_events_follow_a_run_to_its_end_with_a_heartbeat(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(progress, "HEARTBEAT_SECONDS", 0.02)
    journal = begun(runs, "run_live", ["booking.s1"])
    lock = held(runs / "run_live")
    app, _ = application(runs)

    async def goes_on() -> None:
        await asyncio.sleep(0.3)
        landed(runs, "run_live", journal, call())
        await asyncio.sleep(0.1)
        journal.over("completed")
        journal.close()
        lock.release()

    async with client(app) as http:
        going = asyncio.create_task(goes_on())
        answer = await http.get("/api/runs/run_live/events")
        await going
    events = told(answer.text)
    assert [kind for kind, _ in events] == ["run", "began", "ended", "run", "over"]
    assert events[0][1]["status"] == "running"
    assert ": still here" in answer.text


async def test_more_streams_than_are_allowed_are_refused(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MOST_STREAMS", 0)
    async with client(application(runs)[0]) as http:
        answer = await http.get("/api/runs/run_old/events")
    assert (answer.status_code, answer.json()["type"]) == (429, "rate_limit")


async def test_a_run_is_begun_with_the_options_of_duplex_run(runs: Path) -> None:
    app, launcher = application(runs)
    async with client(app, **AUTH) as http:
        answer = await http.post("/api/runs", json={"options": {"clock": "virtual", "samples": 3}})
        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/runs/{answer.json()['id']}"
        assert (await http.get(answer.headers["location"])).status_code == 200
    assert launcher.asked == [{"clock": "virtual", "samples": 3}]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"options": []}',
        b'{"options": {"samples": 0}}',
        b'{"options": {"no_such_option": 1}}',
        b'{"options": {"out": "/tmp/elsewhere"}}',
        b'{"options": {"condition": ["no_such_condition"]}}',
        b'{"options": {"clock": "virtual", "assistant": "realtime"}}',
        b'{"options": {"samples": NaN}}',
        b'{"options": {"check": ["response_latency.p95 <= 1e999ms\\ud800"]}}',
        b'{"options": {}, "more": 1}',
    ],
)
async def test_options_that_cannot_be_used_are_refused_in_one_sentence(
    runs: Path, body: bytes
) -> None:
    app, launcher = application(runs)
    async with client(app, **AUTH) as http:
        kind = {"content-type": "application/json"}
        answer = await http.post("/api/runs", content=body, headers=kind)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == "validation"
    assert "\n" not in answer.json()["message"]
    assert launcher.asked == []


async def test_a_body_nested_without_end_is_refused(runs: Path) -> None:
    async with client(application(runs)[0], **AUTH) as http:
        kind = {"content-type": "application/json"}
        for body in (b"[" * 100_000, b'{"options":' * 20_000):
            answer = await http.post("/api/runs", content=body, headers=kind)
            assert answer.status_code in (400, 422)


async def test_cancelling_a_run_asks_it_to_stop(runs: Path) -> None:
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    try:
        async with client(application(runs)[0], **AUTH) as http:
            live = (await http.post("/api/runs/run_live/cancel")).json()
            over = (await http.post("/api/runs/run_old/cancel")).json()
            assert (await http.get("/api/runs/run_live")).json()["stopping"] is True
    finally:
        lock.release()
    assert (live["asked"], over["asked"]) == (True, False)
    assert (runs / "run_live" / "cancel").exists()

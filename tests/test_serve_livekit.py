"""The LiveKit-shaped paths: the published protocol reads every message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from google.protobuf.json_format import ParseDict
from livekit.protocol.agent_simulation import SimulationRun, SimulationRunSummary

from duplex.exports.livekit_ids import run_id
from duplex.serve.livekit_api import buckets
from duplex.store import Store
from serve_support import AUTH, application, begun, client, held, stored
from verdict_runs import call

BASE = "/v0/projects/mine/simulation-runs"
WINDOW = {"startTime": "2026-11-01T00:00:00Z", "endTime": "2026-12-01T00:00:00Z"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_old", call(), call(sample=2), day=1)
    stored(runs, "run_new", call(), call(sample=2, passed=False), day=20)
    return runs


async def ids(http: httpx.AsyncClient, **query: str) -> list[str]:
    answer = await http.get(BASE, params=WINDOW | query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_runs_are_listed_with_counts_without_jobs_and_page_by_page(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        first = (await http.get(BASE, params=WINDOW | {"page.pageSize": "1"})).json()
        (item,) = first["items"]
        more = {"page.cursor": first["pageInfo"]["nextCursor"], "page.pageSize": "1"}
        rest = (await http.get(BASE, params=WINDOW | more)).json()
    assert item["id"] == run_id("run_new")
    assert (item["jobCount"], item["passedCount"], item["failedCount"]) == (2, 1, 1)
    assert isinstance(item["issueCount"], int)
    assert "jobs" not in item
    assert "summary" not in item
    assert first["pageInfo"]["hasMore"] is True
    assert [one["id"] for one in rest["items"]] == [run_id("run_old")]
    assert rest["pageInfo"] == {"nextCursor": "", "hasMore": False}
    for one in (item, *rest["items"]):
        ParseDict(one, SimulationRun())


async def test_filters_and_the_half_open_window(runs: Path) -> None:
    stored(runs, "run_stopped", call(), day=25, status="cancelled")
    agent = Store(runs).rows()[0].agent
    async with client(application(runs)[0]) as http:
        assert await ids(http, status="STATUS_CANCELLED") == [run_id("run_stopped")]
        assert len(await ids(http, agentName=agent)) == 3
        assert await ids(http, agentName=agent[:-1]) == []
        assert await ids(http, mode="SIMULATION_MODE_TEXT") == []
        assert len(await ids(http, mode="SIMULATION_MODE_AUDIO")) == 3
        at = "2026-11-20T00:00:00Z"
        assert run_id("run_new") in await ids(http, startTime=at)
        assert run_id("run_new") not in await ids(http, endTime=at)


@pytest.mark.parametrize(
    "query",
    [
        {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-02-15T00:00:01Z"},
        {"startTime": "2026-02-01T00:00:00Z", "endTime": "2026-01-01T00:00:00Z"},
        {"endTime": "0001-01-01T00:00:00Z"},
        {"startTime": "yesterday"},
        {"page.pageSize": "-1"},
        {"page.cursor": "nothing"},
        {"status": "DONE"},
    ],
)
async def test_what_is_no_list_is_an_invalid_argument(runs: Path, query: dict[str, str]) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get(BASE, params=query)
    assert answer.status_code == 400
    assert answer.json()["code"] == "InvalidArgument"


async def test_a_window_of_45_days_is_not_too_long(runs: Path) -> None:
    query = {"startTime": "2026-10-17T00:00:00Z", "endTime": "2026-12-01T00:00:00Z"}
    async with client(application(runs)[0]) as http:
        assert (await http.get(BASE, params=query)).status_code == 200


async def test_a_run_is_got_with_jobs_and_its_summary_apart(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        run = (await http.get(f"{BASE}/{run_id('run_new')}")).json()["run"]
        summary = (await http.get(f"{BASE}/{run_id('run_new')}/summary")).json()["summary"]
        missing = await http.get(f"{BASE}/SR_nothing")
    read = ParseDict(run, SimulationRun())
    assert read.project_id == "mine"
    assert len(read.jobs) == 2
    told = ParseDict(summary, SimulationRunSummary())
    assert (told.passed, told.failed) == (1, 1)
    assert len(told.issues) == run["issueCount"]
    assert (missing.status_code, missing.json()["code"]) == (404, "NotFound")


async def test_a_run_in_progress_has_no_summary_and_is_cancelled(runs: Path) -> None:
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    place = f"{BASE}/{run_id('run_live')}"
    try:
        async with client(application(runs)[0]) as http:
            run = (await http.get(place)).json()["run"]
            summary = await http.get(f"{place}/summary")
            refused = await http.post(f"{place}:cancel")
            asked = (runs / "run_live" / "cancel").exists()
            done = await http.post(f"{place}:cancel", headers=AUTH)
            over = await http.post(f"{BASE}/{run_id('run_old')}:cancel", headers=AUTH)
    finally:
        lock.release()
    assert run["status"] == "STATUS_RUNNING"
    assert (summary.status_code, summary.json()["code"]) == (400, "FailedPrecondition")
    assert (refused.status_code, asked) == (401, False)
    assert [done.json(), over.json()] == [{}, {}]
    assert (runs / "run_live" / "cancel").exists()
    assert not (runs / "run_old" / "cancel").exists()


async def test_counts_are_the_list_in_buckets(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        found = (await http.get(f"{BASE}:counts", params=WINDOW)).json()
        listed = await ids(http)
        failed = (
            await http.get(f"{BASE}:counts", params=WINDOW | {"status": "STATUS_CANCELLED"})
        ).json()
    assert sum(int(one["count"]) for one in found["buckets"]) == len(listed) == 2
    assert [one["count"] for one in found["buckets"]] == ["1", "1"]
    assert found["buckets"][0]["bucketStart"] == "2026-11-01T00:00:00Z"
    assert found["interval"] == "43200s"
    assert failed["buckets"] == []


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"startTime": "2026-11-01T00:00:00Z"},
        {"endTime": "2026-11-01T00:00:00Z"},
        {"startTime": "2026-11-01T00:00:00Z", "endTime": "2026-11-01T00:00:00Z"},
    ],
)
async def test_counts_want_both_bounds_in_order(runs: Path, query: dict[str, str]) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get(f"{BASE}:counts", params=query)
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidArgument")


@pytest.mark.parametrize("seconds", [1, 59, 61, 3540, 3601, 86_400, 3_888_000, 400_000_000])
@pytest.mark.parametrize("shift", [0, 1, 29.5, 86_399])
def test_no_window_has_more_than_60_buckets_or_one_below_a_minute(
    seconds: int, shift: float
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=shift)
    end = start + timedelta(seconds=seconds)
    width = int(str(buckets([], start, end)["interval"])[:-1])
    first, last = start.timestamp() // width, (end.timestamp() - 1e-3) // width
    assert last - first + 1 <= 60
    assert width >= 60

"""The Roark-shaped paths, read by the published client."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from roark_analytics import APIStatusError, AsyncRoark

from duplex.exports.roark import run_uuid
from serve_support import TOKEN, application, begun, client, held, landed, stored
from test_export_roark import problems
from verdict_runs import call


def roark(app: FastAPI, token: str = TOKEN) -> AsyncRoark:
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app))
    return AsyncRoark(
        bearer_token=token, base_url="http://127.0.0.1:8700", http_client=http, max_retries=0
    )


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_old", call(), call(sample=2), day=1)
    stored(runs, "run_new", call(), call(sample=2, passed=False), day=2)
    return runs


async def test_the_client_lists_runs_newest_first_and_page_by_page(runs: Path) -> None:
    api = roark(application(runs)[0]).simulation_run_plan_job
    first = await api.list(limit=1)
    assert [one.simulation_run_plan_job_id for one in first.data] == [run_uuid("run_new")]
    assert (first.pagination.has_more, first.pagination.total) == (True, 2)
    assert first.pagination.next_cursor is not None
    rest = await api.list(limit=1, after=first.pagination.next_cursor)
    assert [one.simulation_run_plan_job_id for one in rest.data] == [run_uuid("run_old")]
    assert (rest.pagination.has_more, rest.pagination.next_cursor) == (False, None)


async def test_the_client_filters_by_status_plan_and_label(runs: Path) -> None:
    stored(runs, "run_cancelled", call(), day=3, status="cancelled", id="other-plan")
    api = roark(application(runs)[0]).simulation_run_plan_job
    (one,) = (await api.list(status="CANCELLED")).data
    assert one.simulation_run_plan_id == "other-plan"
    assert len((await api.list(simulation_run_plan_id="other-plan")).data) == 1
    assert (await api.list(label_name="nightly")).data == []


async def test_results_hold_the_plans_run_before_against_it(runs: Path) -> None:
    api = roark(application(runs)[0]).simulation_run_plan_job
    found = (await api.get_results(run_uuid("run_new"))).data
    assert found.run.run_number == 2
    assert found.verdict is not None
    assert not found.verdict.passed
    assert found.comparison is not None
    assert found.comparison.baseline_source == "PREVIOUS_RUN"
    assert found.comparison.baseline_run.simulation_run_plan_job_id == run_uuid("run_old")
    assert found.comparison.baseline_run.run_number == 1
    assert found.comparison.call_pass_rate_delta == -50
    assert found.debrief is not None
    assert found.debrief.status == "READY"


async def test_results_are_compared_with_any_run_that_is_named(runs: Path) -> None:
    api = roark(application(runs)[0]).simulation_run_plan_job
    old, new = run_uuid("run_old"), run_uuid("run_new")
    found = (await api.get_results(old, compare_to_job_id=new)).data
    assert found.comparison is not None
    assert found.comparison.baseline_source == "REQUESTED"
    assert found.comparison.call_pass_rate_delta == 50
    assert (await api.get_results(old)).data.comparison is None
    with pytest.raises(APIStatusError) as missing:
        await api.get_results(old, compare_to_job_id="9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d")
    assert missing.value.status_code == 404
    assert missing.value.body == {
        "type": "not_found",
        "code": "resource_not_found",
        "message": "there is no such run",
        "param": "compareToJobId",
    }


async def test_a_run_is_got_with_its_calls(runs: Path) -> None:
    stored(runs, "run_silent", call(outcome="never_spoke"), call(sample=2, condition="coffee_shop"))
    api = roark(application(runs)[0]).simulation_run_plan_job
    found = (await api.get_by_id(run_uuid("run_silent"))).data
    silent, loud = found.simulation_jobs
    assert silent.invalidation is not None
    assert silent.invalidation.reason == "AGENT_NEVER_SPOKE"
    assert loud.invalidation is None
    assert (loud.status, loud.background_noise.background_noise) == ("COMPLETED", "COFFEE_SHOP")
    assert found.attempt_summary.test_case_count == 2
    assert found.verdict is not None
    assert found.pending_retries == []


async def test_a_debrief_is_returned_at_once_and_again(runs: Path) -> None:
    api = roark(application(runs)[0]).simulation_run_plan_job
    first = (await api.create_debrief(run_uuid("run_new"))).data
    again = (await api.create_debrief(run_uuid("run_new"), regenerate=True)).data
    assert first.status == "READY"
    assert first.report is not None
    assert first.report.verdict == "THRESHOLD_FAILED"
    assert first.report.trend is not None
    assert again == first


async def test_a_run_without_a_graded_call_has_no_debrief(runs: Path) -> None:
    stored(runs, "run_empty", call(outcome="not_run"), status="cancelled")
    api = roark(application(runs)[0]).simulation_run_plan_job
    with pytest.raises(APIStatusError) as refused:
        await api.create_debrief(run_uuid("run_empty"))
    assert refused.value.status_code == 409


async def test_starting_a_plan_holds_its_newest_options_again(runs: Path) -> None:
    begun(runs, "run_kept", ["booking"]).close()
    app, launcher = application(runs)
    api = roark(app).simulation_run_plan_job
    newest = (await api.list(limit=1)).data[0]
    assert newest.simulation_run_plan_job_id == run_uuid("run_kept")
    started = (await api.start(newest.simulation_run_plan_id)).data
    assert started.simulation_run_plan_id == newest.simulation_run_plan_id
    assert started.simulation_run_plan_job_id == run_uuid("begun_1")
    assert launcher.asked == [{"data": "/somewhere/restaurant.json", "clock": "virtual"}]


async def test_what_cannot_be_started_is_refused_with_the_reason(runs: Path) -> None:
    begun(runs, "run_secret", ["booking"], resumable=False).close()
    app, launcher = application(runs)
    api = roark(app).simulation_run_plan_job
    plan = (await api.list(limit=1)).data[0].simulation_run_plan_id
    for name, status in ((plan, 400), ("no-such-plan", 404)):
        with pytest.raises(APIStatusError) as refused:
            await api.start(name)
        assert refused.value.status_code == status
    with pytest.raises(APIStatusError) as refused:
        await api.start(plan, variables={"order": "1"})
    assert refused.value.status_code == 400
    assert launcher.asked == []


async def test_cancelling_asks_a_run_to_stop_and_leaves_a_finished_one_alone(runs: Path) -> None:
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    api = roark(application(runs)[0]).simulation_run_plan_job
    try:
        asked = (await api.cancel(run_uuid("run_live"))).data
        assert (asked.cancelled, asked.status) == (True, "CANCELLING")
        assert (runs / "run_live" / "cancel").exists()
        assert (await api.get_by_id(run_uuid("run_live"))).data.status == "CANCELLING"
    finally:
        lock.release()
    done = (await api.cancel(run_uuid("run_new"))).data
    assert (done.cancelled, done.status) == (False, "COMPLETED")
    assert not (runs / "run_new" / "cancel").exists()


async def test_a_run_in_progress_shows_what_has_landed_and_no_verdict(runs: Path) -> None:
    journal = begun(runs, "run_live", ["booking.s1", "booking.s2", "booking.s3"])
    landed(runs, "run_live", journal, call())
    journal.began("booking.s2", 1, "booking.s2")
    lock = held(runs / "run_live")
    app, _ = application(runs)
    api = roark(app).simulation_run_plan_job
    try:
        found = (await api.get_results(run_uuid("run_live"))).data
        async with client(app) as http:
            raw = (await http.get(f"/v1/simulation/plan/job/{run_uuid('run_live')}/results")).json()
        job = (await api.get_by_id(run_uuid("run_live"))).data
    finally:
        lock.release()
        journal.close()
    assert found.run.status == "RUNNING_SIMULATIONS"
    assert (found.verdict, found.sweep_attribution, found.debrief) == (None, None, None)
    assert (found.run.ended_at, found.run.duration_ms) == (None, None)
    assert [one.status for one in found.calls] == ["COMPLETED", "IN_CALL", "QUEUED"]
    assert (found.summary.total_calls, found.summary.evaluated_calls) == (3, 1)
    assert [one.status for one in job.simulation_jobs] == ["COMPLETED", "PROCESSING", "QUEUED"]
    raw["data"].pop("duplex")
    assert list(problems(raw, type(await api.get_results(run_uuid("run_new"))))) == []


async def test_a_run_whose_runner_is_gone_has_failed(runs: Path) -> None:
    journal = begun(runs, "run_gone", ["booking.s1", "booking.s2"])
    landed(runs, "run_gone", journal, call())
    journal.close()
    api = roark(application(runs)[0]).simulation_run_plan_job
    found = (await api.get_results(run_uuid("run_gone"))).data
    assert found.run.status == "FAILED"
    assert found.verdict is not None
    assert found.verdict.failures[0].type == "RUN_NOT_COMPLETED"
    assert [one.status for one in found.calls] == ["COMPLETED"]


async def test_errors_are_roarks_object(runs: Path) -> None:
    (runs / "run_damaged").mkdir()
    (runs / "run_damaged" / "results.json").write_text("{")
    async with client(application(runs)[0]) as http:
        base = "/v1/simulation/plan"
        for path, status, kind in (
            (f"{base}/job/nothing/results", 404, "not_found"),
            (f"{base}/jobs?limit=51", 400, "validation"),
            (f"{base}/jobs?status=DONE", 400, "validation"),
            (f"{base}/jobs?after=nothing", 400, "validation"),
            (f"{base}/job/run_damaged/results", 409, "conflict"),
        ):
            answer = await http.get(path)
            assert answer.status_code == status, path
            assert answer.json()["type"] == kind
            assert {"type", "code", "message"} <= set(answer.json())


async def test_the_client_is_refused_with_a_wrong_token(runs: Path) -> None:
    api = roark(application(runs)[0], token="wrong").simulation_run_plan_job
    with pytest.raises(APIStatusError) as refused:
        await api.list()
    assert refused.value.status_code == 401

"""Whatever is sent, no server error and no status that the description does not name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from serve_support import AUTH, Recorded, application, sounding, stored
from verdict_runs import call

PATHS = (
    "/api/runs",
    "/api/runs/{}",
    "/api/runs/{}/events",
    "/api/runs/{}/report.md",
    "/api/runs/{}/viewer.html",
    "/api/runs/{}/calls/{}/audio.wav",
    "/v1/simulation/plan/jobs",
    "/v1/simulation/plan/job/{}",
    "/v1/simulation/plan/job/{}/results",
    "/v0/projects/{}/simulation-runs/{}",
    "/v0/projects/{}/simulation-runs:counts",
)
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
PLAN = "00000000-0000-5000-8000-000000000000"
WORDS = st.one_of(st.sampled_from(["run_one", "booking.s1", "..", "%2e%2e%2f", "\x00"]), st.text())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[FastAPI, Recorded]:
    runs = tmp_path_factory.mktemp("served") / "runs"
    stored(runs, "run_one", call())
    sounding(runs, "run_one", "booking.s1")
    # Bound elsewhere, so that made-up host names come as far as the paths.
    return application(runs, bound="0.0.0.0")


def operations() -> list[tuple[str, str]]:
    """Method and path of everything that is described."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        app, _ = application(Path(folder))
        paths = app.openapi()["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize("method, path", operations())
def test_what_the_description_allows_and_forbids_is_answered_as_described(
    served: tuple[FastAPI, Recorded], method: str, path: str
) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", served[0], headers=AUTH)
    operation = schema[path][method]
    checks: list[Any] = [schemathesis.checks.CHECKS.get_one(name) for name in CHECKED]

    @given(case=operation.as_strategy(), real=st.booleans())
    @settings(
        max_examples=16,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answered(case: schemathesis.Case[Any], real: bool) -> None:
        if real:
            known = dict.fromkeys(("run", "jobId", "simulationRunId", "projectId"), "run_one")
            known |= {"planId": PLAN, "call": "booking.s1"}
            case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        case.call_and_validate(headers=AUTH, checks=checks)

    answered()


@given(path=st.sampled_from(PATHS), one=WORDS, two=WORDS, query=st.text(max_size=40))
@settings(
    max_examples=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_strange_paths_and_queries_are_no_server_error(
    served: tuple[FastAPI, Recorded], path: str, one: str, two: str, query: str
) -> None:
    from urllib.parse import quote

    http = TestClient(served[0], raise_server_exceptions=False, headers=AUTH)
    address = path.format(quote(one, safe="%"), quote(two, safe="%"))
    for asked in (f"?{quote(query, safe='&=')}", f"?limit={quote(query)}&startTime={quote(query)}"):
        answer = http.get(f"{address}{asked}")
        assert answer.status_code < 500, answer.text


@given(body=st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
@settings(
    max_examples=20,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_strange_bodies_are_no_server_error(served: tuple[FastAPI, Recorded], body: object) -> None:
    app, _ = served
    http = TestClient(app, raise_server_exceptions=False)
    kind = {"content-type": "application/json"}
    sent_to = ("/api/runs", "/v1/simulation/plan/x/job", "/v1/simulation/plan/job/x/debrief")
    created = "/v0/projects/x/simulation-runs"
    more = (
        created,
        f"{created}/x:confirmSourceUpload",
        "/v0/projects/x/scenarios:generateFromSession",
    )
    for path in (*sent_to, *more):
        group = {"mode": "SIMULATION_MODE_AUDIO", "scenarioGroup": {"scenarios": body}}
        for content in (body, {"options": body}, {"options": {"scenario": body}}, group):
            sent = json.dumps(content).encode()
            answer = http.post(path, content=sent, headers=AUTH | kind)
            assert answer.status_code < 500, answer.text

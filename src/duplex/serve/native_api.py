"""Our own paths below ``/api``: runs listed, read, followed, begun and cancelled.

Names are those of the command line and of ``results.json``. It looks things up and
formats; what a run holds and how it is judged is decided below.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import FileResponse

from duplex.errors import InputError
from duplex.report import run_report
from duplex.run_filters import MEANS, Filters, Status, fitting
from duplex.serve import files
from duplex.serve.launching import Launcher
from duplex.serve.library import Library, strict
from duplex.serve.progress import Streams
from duplex.serve.refusals import Refusal, refusing
from duplex.stopping import ask_to_stop
from duplex.store import Row
from duplex.values import Json
from duplex.verdict.block import attempts_json, summary_json, verdict_json
from duplex.verdict.verdict import attempts, summarise

_JSON = "application/json"
RunId = Annotated[str, Path(alias="run", max_length=200, description="A run's id.")]


def _named(name: str, *, longest: int | None = 200) -> object:
    """A filter of lists as ``duplex list`` has it."""
    return Query(max_length=longest, description=MEANS[name])


_EVENT: dict[str, object] = {
    "schema": {
        "type": "object",
        "properties": {
            "event": {"enum": ["run", "began", "ended", "over"]},
            "data": {"type": "string", "description": "An object as JSON."},
        },
    }
}
_OBJECT: dict[str, object] = {"schema": {"type": "object"}}
_BINARY: dict[str, object] = {"schema": {"type": "string", "format": "binary"}}


class RunRow(BaseModel):
    """One run as a list shows it, as ``duplex list --json`` has it but for its path."""

    model_config = ConfigDict(extra="forbid")

    id: str
    status: Status
    created_at: str
    ended_at: str | None
    plan_id: str
    name: str | None
    agent: str
    condition: str
    mode: str
    passed: bool | None = Field(description="The verdict; null without one.")
    score: float | None = Field(description="Per cent; null when nothing was evaluated.")
    total: int
    passed_calls: int
    failed_calls: int
    infrastructure_errors: int
    expected: int
    scenarios: list[str]
    problem: str | None


class RunRows(BaseModel):
    runs: list[RunRow]


class RunCall(BaseModel):
    """A call: over when it has an outcome, else going on or waiting."""

    id: str
    scenario: str | None
    state: Literal["over", "in_progress", "waiting"]
    outcome: str | None
    passed: bool | None
    duration_ms: int | None


class RunDetail(BaseModel):
    """A run so far; ``verdict`` is null until it is over, and without a check to judge."""

    run: RunRow
    stopping: bool
    summary: dict[str, JsonValue]
    attempts: dict[str, JsonValue]
    verdict: dict[str, JsonValue] | None
    calls: list[RunCall]


class NewRun(BaseModel):
    """Options of ``duplex run`` by their names in ``duplex.toml``; ``out`` is the server's."""

    model_config = ConfigDict(extra="forbid")

    options: dict[str, JsonValue] = Field(
        default={}, examples=[{"scenario": ["restaurant_booking_complete"], "clock": "virtual"}]
    )


class Begun(BaseModel):
    id: str
    status: Status


class Cancelled(BaseModel):
    """``asked`` is false when the run was over already, which is no error."""

    id: str
    asked: bool
    status: Status


def routes(library: Library, launcher: Launcher, streams: Streams) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(prefix="/api", tags=["Native"])
    _reading(api, library, streams)
    _changing(api, library, launcher)
    _serving(api, library)
    return api


def _reading(api: APIRouter, library: Library, streams: Streams) -> None:
    @api.get("/runs", response_model=RunRows, responses=refusing(422), summary="List runs")
    def listed(
        since: Annotated[str | None, _named("since")] = None,
        until: Annotated[str | None, _named("until")] = None,
        status: Annotated[Status | None, _named("status", longest=None)] = None,
        agent: Annotated[str | None, _named("agent")] = None,
        scenario: Annotated[str | None, _named("scenario")] = None,
        failed: Annotated[bool, _named("failed", longest=None)] = False,
        limit: Annotated[int, Query(ge=1, le=500, description=MEANS["limit"])] = 50,
    ) -> Response:
        filters = Filters(
            since=since,
            until=until,
            status=status,
            agent=agent,
            scenario=scenario,
            failed=failed,
            limit=limit,
        )
        try:
            found = fitting(library.rows(), filters)
        except InputError as error:
            raise Refusal(422, "invalid_parameter", str(error)) from None
        return Response(strict({"runs": [_row(row) for row in found]}), media_type=_JSON)

    @api.get(
        "/runs/{run}", response_model=RunDetail, responses=refusing(404, 409, 422), summary="A run"
    )
    def one(run: RunId) -> Response:
        return Response(strict(_detail(library, library.by_id(run))), media_type=_JSON)

    @api.get(
        "/runs/{run}/events",
        response_class=StreamingResponse,
        responses={
            **refusing(404, 422, 429),
            200: {
                "description": "Server-sent events `run`, `began`, `ended` and `over`; the stream "
                "ends with the run.",
                "content": {"text/event-stream": _EVENT},
            },
        },
        summary="Follow a run",
    )
    async def events(
        run: RunId,
        last: Annotated[
            int | None, Header(alias="Last-Event-ID", ge=0, le=2**53, description="Go on after it.")
        ] = None,
    ) -> Response:
        row = library.by_id(run)
        told = streams.follow(library, row.id, after=last or 0)
        return StreamingResponse(told, media_type="text/event-stream")


def _changing(api: APIRouter, library: Library, launcher: Launcher) -> None:
    @api.post(
        "/runs",
        status_code=201,
        response_model=Begun,
        responses=refusing(400, 408, 413, 422, 429, 503),
        summary="Begin a run",
    )
    async def begin(body: NewRun) -> Response:
        id = await launcher.start(body.options)
        library.changed()
        answer: dict[str, Json] = {"id": id, "status": library.by_id(id).status}
        place = {"location": f"/api/runs/{id}"}
        return Response(strict(answer), 201, media_type=_JSON, headers=place)

    @api.post(
        "/runs/{run}/cancel",
        response_model=Cancelled,
        responses=refusing(400, 404, 408, 409, 413, 422),
        summary="Stop a run that has not finished",
    )
    def cancel(run: RunId) -> Response:
        row = library.by_id(run)
        running = row.status == "running"
        if running:
            ask_to_stop(library.place(row))
        answer: dict[str, Json] = {"id": row.id, "asked": running, "status": row.status}
        return Response(strict(answer), media_type=_JSON)


def _serving(api: APIRouter, library: Library) -> None:
    @api.get(
        "/runs/{run}/report.md",
        response_class=Response,
        responses={
            **refusing(404, 409, 422),
            200: {"description": "The report.", "content": {"text/markdown": _BINARY}},
        },
        summary="A run's report as Markdown",
    )
    def report(run: RunId) -> Response:
        text = run_report.as_markdown(library.results(library.by_id(run)))
        body = text.encode("utf-8", "replace")
        return Response(body, media_type="text/markdown; charset=utf-8")

    @api.get(
        "/runs/{run}/results.json",
        response_class=FileResponse,
        responses={**refusing(404, 416, 422), **_file("application/json")},
        summary="A run's results as they stand on disk",
    )
    def results(run: RunId) -> Response:
        return files.results(library, library.by_id(run))

    @api.get(
        "/runs/{run}/viewer.html",
        response_class=FileResponse,
        responses={**refusing(404, 416, 422), **_file("text/html")},
        summary="A run's page",
    )
    def viewer(run: RunId) -> Response:
        return files.viewer(library, library.by_id(run))

    @api.get(
        "/runs/{run}/calls/{call}/audio.wav",
        response_class=FileResponse,
        responses={**refusing(404, 409, 416, 422), **_file("audio/wav")},
        summary="A call's sound",
    )
    def audio(
        run: RunId,
        call: Annotated[str, Path(max_length=200, description="A call's id.")],
        what: files.Sound = "conversation",
    ) -> Response:
        return files.sound(library, library.by_id(run), call, what)


def _file(kind: str) -> dict[int | str, dict[str, object]]:
    content = {"content": {kind: _OBJECT if kind == _JSON else _BINARY}}
    return {
        200: {"description": "The file.", **content},
        206: {"description": "The range that was asked for.", **content},
        400: {"description": "A `Range` that cannot be read.", "content": {"text/plain": _BINARY}},
    }


def _row(row: Row) -> dict[str, Json]:
    found = {name: value for name, value in asdict(row).items() if name != "path"}
    return found | {"scenarios": list(row.scenarios)}


def _detail(library: Library, row: Row) -> dict[str, Json]:
    subject, seen = library.subject(row), library.seen(row)
    run, verdict = subject.run, subject.verdict
    calls: list[Json] = [
        {
            "id": case.call_id,
            "scenario": case.scenario,
            "state": "over",
            "outcome": case.outcome,
            "passed": case.passed,
            "duration_ms": case.duration_ms,
        }
        for case in run.cases
    ]
    going = [(call, "in_progress") for _, _, call in seen.in_progress()]
    going += [(case, "waiting") for case in seen.waiting()]
    unknown = dict.fromkeys(("scenario", "outcome", "passed", "duration_ms"))
    calls += [{**unknown, "id": call, "state": state} for call, state in going]
    return {
        "run": _row(row),
        "stopping": seen.stopping,
        "summary": summary_json(summarise(run.cases, subject.criteria)),
        "attempts": attempts_json(attempts(run)),
        "verdict": None if verdict is None else verdict_json(verdict),
        "calls": calls,
    }

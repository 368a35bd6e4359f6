"""The Roark-shaped paths: list, get, results, start, cancel and debrief of runs.

The published client, its base URL pointed here, is the reader. Every answer is
``{"data": …}``; errors are Roark's object. A plan is what stored runs share, and
starting one holds its newest run's options again.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, JsonValue

from duplex.exports import roark
from duplex.serve import roark_job
from duplex.serve.launching import Launcher
from duplex.serve.library import Library, Seen, strict
from duplex.serve.plans import again
from duplex.serve.refusals import Refusal, refusing
from duplex.stopping import ask_to_stop
from duplex.store import Row
from duplex.values import Json

_PLAN = "/v1/simulation/plan"
_JSON = "application/json"
JobId = Annotated[str, Path(alias="jobId", max_length=200)]


class Data(BaseModel):
    """``data`` holds the object."""

    model_config = ConfigDict(extra="forbid")

    data: dict[str, JsonValue]


class Pagination(BaseModel):
    total: int
    hasMore: bool
    nextCursor: str | None


class Listed(BaseModel):
    """Runs newest first, and how to go on."""

    data: list[dict[str, JsonValue]]
    pagination: Pagination


class Start(BaseModel):
    """Values for variables; scenarios here have none, so only an empty set is taken."""

    variables: dict[str, JsonValue] | list[dict[str, JsonValue]] | None = None


class Regenerate(BaseModel):
    """A debrief is written anew from the same numbers either way."""

    regenerate: bool = False


def _data(value: dict[str, Json]) -> Response:
    return Response(strict({"data": value}), media_type=_JSON)


def routes(library: Library, launcher: Launcher) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(tags=["Roark-shaped"])

    @api.get(f"{_PLAN}/jobs", response_model=Listed, responses=refusing(400), summary="List runs")
    def listed(
        limit: Annotated[int, Query(ge=1, le=50)] = 20,
        after: Annotated[str | None, Query(max_length=200)] = None,
        status: Annotated[roark_job.Status | None, Query()] = None,
        plan: Annotated[str | None, Query(alias="simulationRunPlanId", max_length=200)] = None,
        label_id: Annotated[str | None, Query(alias="labelId", max_length=200)] = None,
        label_name: Annotated[str | None, Query(alias="labelName", max_length=200)] = None,
    ) -> Response:
        labelled = label_id is not None or label_name is not None
        found = [] if labelled else _fitting(library, status=status, plan=plan)
        page = _after(found, after)
        shown = page[:limit]
        more = len(page) > len(shown)
        answer: dict[str, Json] = {
            "data": [roark_job.entry(seen) for seen in shown],
            "pagination": {
                "total": len(found),
                "hasMore": more,
                "nextCursor": roark.run_uuid(shown[-1].row.id) if more else None,
            },
        }
        return Response(strict(answer), media_type=_JSON)

    @api.get(
        f"{_PLAN}/job/{{jobId}}",
        response_model=Data,
        responses=refusing(400, 404, 409),
        summary="Get a run with its calls",
    )
    def got(job_id: JobId) -> Response:
        row = library.by_uuid(job_id)
        return _data(roark_job.job(library.subject(row), library.seen(row)))

    @api.get(
        f"{_PLAN}/job/{{jobId}}/results",
        response_model=Data,
        responses=refusing(400, 404, 409),
        summary="Get a run's results",
    )
    def results(
        job_id: JobId,
        compare_to: Annotated[str | None, Query(alias="compareToJobId", max_length=200)] = None,
    ) -> Response:
        row = library.by_uuid(job_id)
        named = compare_to is not None
        baseline = (
            library.before(row)
            if compare_to is None
            else library.by_uuid(compare_to, param="compareToJobId")
        )
        subject = library.subject(row, baseline, named=named)
        found = roark_job.results(subject, library.seen(row))
        return _data(_compared(found, baseline, library, named=named))

    @api.post(
        f"{_PLAN}/{{planId}}/job",
        status_code=201,
        response_model=Data,
        responses=refusing(400, 404, 408, 413, 422, 429, 503),
        summary="Hold a plan again",
    )
    async def start(
        plan_id: Annotated[str, Path(alias="planId", max_length=200)], body: Start | None = None
    ) -> Response:
        if body is not None and body.variables:
            raise Refusal(
                400, "no_variables", "scenarios here have no variables", param="variables"
            )
        id = await launcher.start(_again(library, plan_id))
        library.changed()
        seen = library.seen(library.by_id(id))
        kept = ("simulationRunPlanJobId", "simulationRunPlanId", "status", "createdAt")
        entry = roark_job.entry(seen)
        answer = strict({"data": {name: entry[name] for name in kept}})
        return Response(answer, 201, media_type=_JSON)

    @api.post(
        f"{_PLAN}/job/{{jobId}}/cancel",
        response_model=Data,
        responses=refusing(400, 404, 408, 409, 413),
        summary="Stop a run that has not finished",
    )
    def cancel(job_id: JobId) -> Response:
        row = library.by_uuid(job_id)
        running = row.status == "running"
        if running:
            ask_to_stop(library.place(row))
        seen = library.seen(row)
        return _data(
            {
                "simulationRunPlanJobId": roark.run_uuid(row.id),
                "cancelled": running,
                "status": "CANCELLING" if running else roark_job.status_of(seen),
            }
        )

    @api.post(
        f"{_PLAN}/job/{{jobId}}/debrief",
        response_model=Data,
        responses=refusing(400, 404, 408, 409, 413),
        summary="Ask for a run's debrief",
    )
    def debrief(job_id: JobId, body: Regenerate | None = None) -> Response:
        row = library.by_uuid(job_id)
        if row.status == "running":
            raise Refusal(409, "run_not_settled", "the run is not over")
        found = roark.data(library.subject(row, library.before(row)))["debrief"]
        if not isinstance(found, dict):
            raise Refusal(409, "nothing_graded", "no call of the run was graded")
        return _data(found)

    return api


def _fitting(library: Library, *, status: str | None, plan: str | None) -> list[Seen]:
    found = []
    for row in library.rows():
        if row.status == "damaged" or (plan is not None and row.plan_id != plan):
            continue
        seen = library.seen(row) if row.status == "running" else Seen.settled(row)
        if status is None or roark_job.status_of(seen) == status:
            found.append(seen)
    return found


def _after(found: list[Seen], cursor: str | None) -> list[Seen]:
    """What follows the run a cursor names; raises Refusal."""
    if cursor is None:
        return found
    for at, seen in enumerate(found):
        if roark.run_uuid(seen.row.id) == cursor:
            return found[at + 1 :]
    raise Refusal(400, "invalid_parameter", "the cursor names no run of this list", param="after")


def _again(library: Library, plan: str) -> dict[str, object]:
    """The options of a plan's newest run; raises Refusal."""
    rows = [row for row in library.rows() if row.plan_id == plan]
    if not rows:
        raise Refusal(404, "resource_not_found", "there is no run of such a plan", param="planId")
    return again(library, rows)


def _compared(
    found: dict[str, Json], baseline: Row | None, library: Library, *, named: bool
) -> dict[str, Json]:
    """The comparison with what only the store knows of the baseline."""
    comparison = found["comparison"]
    if baseline is None or not isinstance(comparison, dict):
        return found
    told = comparison.get("baselineRun")
    run = dict(told) if isinstance(told, dict) else {}
    run["runNumber"] = library.number(baseline)
    source = "REQUESTED" if named else "PREVIOUS_RUN"
    return found | {"comparison": {**comparison, "baselineRun": run, "baselineSource": source}}

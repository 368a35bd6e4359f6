"""LiveKit-shaped paths: runs listed, counted, read and cancelled, and their summaries.

There is one project, by whatever name it is asked for. Messages are those of
``exports/livekit.py``; errors carry Google's codes. A list has no jobs and no
summaries. Runs are begun elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, JsonValue

from duplex.clock import utc_seconds
from duplex.exports import livekit
from duplex.exports.livekit_ids import run_id
from duplex.serve.library import Library, strict
from duplex.serve.refusals import Refusal, refusing
from duplex.stopping import ask_to_stop
from duplex.store import Row
from duplex.values import Json

WINDOW = timedelta(days=45)
MOST_BUCKETS = 60
_BASE = "/v0/projects/{projectId}/simulation-runs"
_PAGE, _MOST = 20, 100
_KEPT = 64
_JSON = "application/json"
_WIDTHS = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_STATUSES = {
    "running": "STATUS_RUNNING",
    "completed": "STATUS_COMPLETED",
    "cancelled": "STATUS_CANCELLED",
}

Project = Annotated[str, Path(alias="projectId", max_length=200)]
RunId = Annotated[str, Path(alias="simulationRunId", max_length=200)]
Status = Literal[
    "STATUS_PENDING_UPLOAD",
    "STATUS_GENERATING",
    "STATUS_RUNNING",
    "STATUS_SUMMARIZING",
    "STATUS_COMPLETED",
    "STATUS_FAILED",
    "STATUS_CANCELLED",
]
Mode = Literal["SIMULATION_MODE_UNSPECIFIED", "SIMULATION_MODE_TEXT", "SIMULATION_MODE_AUDIO"]
_StatusQuery = Annotated[Status | None, Query()]
_ModeQuery = Annotated[Mode | None, Query()]
_Text = Annotated[str | None, Query(max_length=200)]
_Start = Annotated[str | None, Query(alias="startTime", max_length=64)]
_End = Annotated[str | None, Query(alias="endTime", max_length=64)]
_Agent = Annotated[str | None, Query(alias="agentName", max_length=200)]


class PageInfo(BaseModel):
    nextCursor: str
    hasMore: bool


class RunItems(BaseModel):
    items: list[dict[str, JsonValue]]
    pageInfo: PageInfo


class OneRun(BaseModel):
    run: dict[str, JsonValue]


class OneSummary(BaseModel):
    summary: dict[str, JsonValue]


class Bucket(BaseModel):
    bucketStart: str
    count: str


class Buckets(BaseModel):
    """Those that hold a run, ascending."""

    buckets: list[Bucket]
    interval: str


class Nothing(BaseModel):
    """An empty object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which runs are meant; the window is half open."""

    start: datetime
    end: datetime
    status: str | None
    agent: str | None
    mode: str | None

    def fits(self, row: Row) -> bool:
        made = _made(row)
        return (
            made is not None
            and self.start <= made < self.end
            and self.status in (None, _status(row))
            and self.agent in (None, row.agent)
            and self.mode != "SIMULATION_MODE_TEXT"
        )


class Documents:
    """Runs in LiveKit's shape, those asked for last kept for as long as nothing changed."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = Lock()
        self._kept: OrderedDict[str, dict[str, Json]] = OrderedDict()

    def of(self, row: Row, project: str) -> dict[str, Json]:
        """``{"version", "run", "summary"?}`` of a run."""
        key = f"{row.id} {self._library.stamp(row)}"
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            place = self._library.place(row).path
            found = livekit.report(self._library.subject(row), place)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        run = found["run"]
        assert isinstance(run, dict)
        return {**found, "run": {**run, "projectId": project}}


def routes(library: Library) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(tags=["LiveKit-shaped"])
    documents = Documents(library)
    _many(api, library, documents)
    _single(api, library, documents)
    return api


def _many(api: APIRouter, library: Library, documents: Documents) -> None:
    @api.get(_BASE, response_model=RunItems, responses=refusing(400, 409), summary="List runs")
    def listed(
        project: Project,
        cursor: Annotated[str | None, Query(alias="page.cursor", max_length=200)] = None,
        size: Annotated[int, Query(alias="page.pageSize", ge=0, le=2**31 - 1)] = 0,
        start: _Start = None,
        end: _End = None,
        status: _StatusQuery = None,
        agent: _Agent = None,
        mode: _ModeQuery = None,
    ) -> Response:
        window = _window(start, end)
        wanted = Wanted(
            start=window[0], end=window[1], status=status, agent=agent or None, mode=mode
        )
        found = _after([row for row in library.rows() if wanted.fits(row)], cursor)
        shown = found[: min(size or _PAGE, _MOST)]
        more = len(found) > len(shown)
        info: dict[str, Json] = {
            "nextCursor": run_id(shown[-1].id) if more else "",
            "hasMore": more,
        }
        items: list[Json] = [_item(documents.of(row, project)) for row in shown]
        return _answer({"items": items, "pageInfo": info})

    @api.get(
        f"{_BASE}:counts", response_model=Buckets, responses=refusing(400), summary="Count runs"
    )
    def counted(
        project: Project,
        start: _Start = None,
        end: _End = None,
        status: _StatusQuery = None,
        agent: _Agent = None,
        mode: _ModeQuery = None,
    ) -> Response:
        if start is None or end is None:
            missing = "startTime" if start is None else "endTime"
            raise _invalid(f"{missing} is missing, both bounds are required", missing)
        first, last = _moment(start, "startTime"), _moment(end, "endTime")
        if last <= first:
            raise _invalid("endTime is not after startTime", "endTime")
        wanted = Wanted(start=first, end=last, status=status, agent=agent or None, mode=mode)
        return _answer(buckets([row for row in library.rows() if wanted.fits(row)], first, last))


def _single(api: APIRouter, library: Library, documents: Documents) -> None:
    @api.get(
        f"{_BASE}/{{simulationRunId}}",
        response_model=OneRun,
        responses=refusing(400, 404, 409),
        summary="Get a run",
    )
    def got(project: Project, id: RunId) -> Response:
        return _answer({"run": documents.of(_row(library, id), project)["run"]})

    @api.get(
        f"{_BASE}/{{simulationRunId}}/summary",
        response_model=OneSummary,
        responses=refusing(400, 404, 409),
        summary="Get a run's summary",
    )
    def summary(project: Project, id: RunId) -> Response:
        row = _row(library, id)
        if row.status == "running":
            raise Refusal(400, "FailedPrecondition", "the run is in progress")
        found = documents.of(row, project).get("summary")
        if not isinstance(found, dict):
            raise Refusal(404, "NotFound", "the run has no summary")
        return _answer({"summary": found})

    @api.post(
        f"{_BASE}/{{simulationRunId}}:cancel",
        response_model=Nothing,
        responses=refusing(400, 404, 408, 409, 413),
        summary="Stop a run that has not finished",
    )
    def cancel(project: Project, id: RunId) -> Response:
        row = _row(library, id)
        if row.status == "running":
            ask_to_stop(library.place(row))
        return _answer({})


def _answer(value: dict[str, Json]) -> Response:
    return Response(strict(value), media_type=_JSON)


def _item(document: dict[str, Json]) -> Json:
    """A run as a list has it: its counts, but neither jobs nor scenarios."""
    run = document["run"]
    assert isinstance(run, dict)
    group = run.get("scenarioGroup")
    kept = {name: value for name, value in run.items() if name != "jobs"}
    if isinstance(group, dict):
        kept["scenarioGroup"] = {name: value for name, value in group.items() if name == "name"}
    return kept


def _row(library: Library, id: str) -> Row:
    for row in library.rows():
        if id in (run_id(row.id), row.id):
            return row
    raise Refusal(404, "NotFound", "there is no such run")


def _after(rows: Sequence[Row], cursor: str | None) -> Sequence[Row]:
    if not cursor:
        return rows
    for at, row in enumerate(rows):
        if run_id(row.id) == cursor:
            return rows[at + 1 :]
    raise _invalid("the cursor names no run of this list", "page.cursor")


def _status(row: Row) -> str:
    return _STATUSES.get(row.status, "STATUS_FAILED")


def _window(start: str | None, end: str | None) -> tuple[datetime, datetime]:
    """The window that is meant. Raises Refusal for one longer than 45 days, or empty."""
    last = datetime.fromtimestamp(utc_seconds(), UTC) if not end else _moment(end, "endTime")
    try:
        first = last - WINDOW if not start else _moment(start, "startTime")
    except OverflowError:
        raise _invalid("endTime is too early for a window before it", "endTime") from None
    if last <= first:
        raise _invalid("endTime is not after startTime", "endTime")
    if last - first > WINDOW:
        raise _invalid(f"the window is longer than {WINDOW.days} days", "startTime")
    return first, last


def buckets(rows: Sequence[Row], start: datetime, end: datetime) -> dict[str, Json]:
    """A histogram of these runs: at most 60 buckets of a minute or more, empty ones left out.

    Widths are whole minutes, hours or days, and buckets begin at their multiples (UTC).
    """
    first, last = start.timestamp(), end.timestamp()
    days = math.ceil((last - first) / 86_400 / (MOST_BUCKETS - 1))
    width = next(
        (one for one in _WIDTHS if math.ceil(last / one) - math.floor(first / one) <= MOST_BUCKETS),
        86_400 * max(days, 1),
    )
    counts: Counter[int] = Counter()
    for row in rows:
        made = _made(row)
        if made is not None:
            counts[math.floor(made.timestamp() / width)] += 1
    told: list[Json] = [
        {"bucketStart": _stamp(at * width), "count": str(counts[at])} for at in sorted(counts)
    ]
    return {"buckets": told, "interval": f"{width}s"}


def _stamp(seconds: int) -> str:
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return then.isoformat().replace("+00:00", "Z")


def _made(row: Row) -> datetime | None:
    try:
        return _aware(row.created_at) if row.status != "damaged" else None
    except ValueError:
        return None


def _moment(text: str, name: str) -> datetime:
    try:
        return _aware(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _invalid(f"{name} is no time, want like 2026-01-15T00:00:00Z", name) from None


def _aware(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _invalid(message: str, param: str) -> Refusal:
    return Refusal(400, "InvalidArgument", message, param=param)

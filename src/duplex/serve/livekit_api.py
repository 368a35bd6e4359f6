"""LiveKit's reads: runs listed, counted and shown, and their summaries.

There is one project, by whatever name it is asked for. Messages are those of
``exports/livekit.py``; errors carry Google's codes. A list has no jobs and no
summaries. Runs are created and cancelled in ``livekit_writes.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, JsonValue

from duplex.clock import utc_seconds
from duplex.serve.library import strict
from duplex.serve.livekit_entries import Entries, Entry, aware
from duplex.serve.livekit_writes import BASE, Project, RunId
from duplex.serve.refusals import Refusal, refusing
from duplex.serve.requests import Mode
from duplex.values import Json

WINDOW = timedelta(days=45)
MOST_BUCKETS = 60
_PAGE, _MOST = 20, 100
_JSON = "application/json"
_WIDTHS = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
Status = Literal[
    "STATUS_PENDING_UPLOAD",
    "STATUS_GENERATING",
    "STATUS_RUNNING",
    "STATUS_SUMMARIZING",
    "STATUS_COMPLETED",
    "STATUS_FAILED",
    "STATUS_CANCELLED",
]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which runs are meant; the window is half open."""

    start: datetime
    end: datetime
    status: str | None
    agent: str | None
    mode: str | None

    def fits(self, one: Entry) -> bool:
        return (
            self.start <= one.made < self.end
            and self.status in (None, one.status)
            and self.agent in (None, one.agent)
            and self.mode != "SIMULATION_MODE_TEXT"
        )


def routes(entries: Entries) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(tags=["LiveKit-shaped"])
    _many(api, entries)
    _single(api, entries)
    return api


def _many(api: APIRouter, entries: Entries) -> None:
    @api.get(BASE, response_model=RunItems, responses=refusing(400, 409), summary="List runs")
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
        found = _after([one for one in entries.all() if wanted.fits(one)], cursor)
        shown = found[: min(size or _PAGE, _MOST)]
        more = len(found) > len(shown)
        info: dict[str, Json] = {
            "nextCursor": shown[-1].id if more else "",
            "hasMore": more,
        }
        items: list[Json] = [_item(entries.run(one, project)) for one in shown]
        return _answer({"items": items, "pageInfo": info})

    @api.get(
        f"{BASE}:counts", response_model=Buckets, responses=refusing(400), summary="Count runs"
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
        return _answer(
            buckets([one.made for one in entries.all() if wanted.fits(one)], first, last)
        )


def _single(api: APIRouter, entries: Entries) -> None:
    @api.get(
        f"{BASE}/{{simulationRunId}}",
        response_model=OneRun,
        responses=refusing(400, 404, 409),
        summary="Get a run",
    )
    def got(project: Project, id: RunId) -> Response:
        return _answer({"run": entries.run(entries.by_id(id), project)})

    @api.get(
        f"{BASE}/{{simulationRunId}}/summary",
        response_model=OneSummary,
        responses=refusing(400, 404, 409),
        summary="Get a run's summary",
    )
    def summary(project: Project, id: RunId) -> Response:
        entry = entries.by_id(id)
        if not entry.over:
            raise Refusal(400, "FailedPrecondition", "the run is in progress")
        found = entries.summary(entry)
        if found is None:
            raise Refusal(404, "NotFound", "the run has no summary")
        return _answer({"summary": found})


def _answer(value: dict[str, Json]) -> Response:
    return Response(strict(value), media_type=_JSON)


def _item(run: dict[str, Json]) -> Json:
    """A run as a list has it: its counts, but neither jobs nor scenarios."""
    group = run.get("scenarioGroup")
    kept = {name: value for name, value in run.items() if name != "jobs"}
    if isinstance(group, dict):
        kept["scenarioGroup"] = {name: value for name, value in group.items() if name == "name"}
    return kept


def _after(found: Sequence[Entry], cursor: str | None) -> Sequence[Entry]:
    if not cursor:
        return found
    for at, one in enumerate(found):
        if one.id == cursor:
            return found[at + 1 :]
    raise _invalid("the cursor names no run of this list", "page.cursor")


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


def buckets(times: Sequence[datetime], start: datetime, end: datetime) -> dict[str, Json]:
    """A histogram of these times: at most 60 buckets of a minute or more, empty ones left out.

    Widths are whole minutes, hours or days, and buckets begin at their multiples (UTC).
    """
    first, last = start.timestamp(), end.timestamp()
    days = math.ceil((last - first) / 86_400 / (MOST_BUCKETS - 1))
    width = next(
        (one for one in _WIDTHS if math.ceil(last / one) - math.floor(first / one) <= MOST_BUCKETS),
        86_400 * max(days, 1),
    )
    counts: Counter[int] = Counter()
    for made in times:
        counts[math.floor(made.timestamp() / width)] += 1
    told: list[Json] = [
        {"bucketStart": _stamp(at * width), "count": str(counts[at])} for at in sorted(counts)
    ]
    return {"buckets": told, "interval": f"{width}s"}


def _stamp(seconds: int) -> str:
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return then.isoformat().replace("+00:00", "Z")


def _moment(text: str, name: str) -> datetime:
    try:
        return aware(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _invalid(f"{name} is no time, want like 2026-01-15T00:00:00Z", name) from None


def _invalid(message: str, param: str) -> Refusal:
    return Refusal(400, "InvalidArgument", message, param=param)

"""LiveKit's writes: a run created, confirmed and cancelled, a scenario of a recorded call.

Requests are read by ``requests.py``, runs begun by ``creating.py``. With a model a call's
scenario is written by it, without one from the call's own words. Nothing is idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, JsonValue

from duplex.errors import DuplexError
from duplex.exports.livekit_chat import Tool, tools_in
from duplex.exports.livekit_ids import room_id, run_id, run_of_room, scenario_of_room, some
from duplex.exports.said import SaidLine, said_in
from duplex.exports.scenarios import scenarios_held
from duplex.results.stored import home
from duplex.scenario import Scenario
from duplex.serve.creating import Creator
from duplex.serve.door import UPLOADS
from duplex.serve.from_session import callers, history, scenario_json
from duplex.serve.library import Library, strict
from duplex.serve.livekit_entries import Entries
from duplex.serve.refusals import Refusal, refusing
from duplex.serve.requests import ConfirmBody, CreateBody, SessionBody, precondition
from duplex.serve.simulations import ARCHIVE
from duplex.stopping import ask_to_stop
from duplex.values import Json
from duplex.verdict.case import Case

BASE = "/v0/projects/{projectId}/simulation-runs"
_JSON = "application/json"

Project = Annotated[str, Path(alias="projectId", max_length=200)]
RunId = Annotated[str, Path(alias="simulationRunId", max_length=200)]


class PresignedPost(BaseModel):
    """Where the archive goes, and the fields that go before it."""

    url: str
    values: dict[str, str]


class Created(BaseModel):
    simulationRunId: str
    presignedPostRequest: PresignedPost | None = None


class Nothing(BaseModel):
    """An empty object."""


class OneScenario(BaseModel):
    scenario: dict[str, JsonValue]


def routes(entries: Entries, creator: Creator) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(tags=["LiveKit-shaped"])
    _creating(api, entries, creator)
    _writing(api, entries, creator)
    return api


def _creating(api: APIRouter, entries: Entries, creator: Creator) -> None:
    @api.post(
        BASE,
        response_model=Created,
        response_model_exclude_none=True,
        responses=refusing(400, 408, 409, 413, 429, 503),
        summary="Create a run",
    )
    async def create(request: Request, project: Project, body: CreateBody) -> Created:
        record, ticket = await creator.create(project, body)
        if ticket is None:
            return Created(simulationRunId=record.id)
        values = {"key": f"{project}/{record.id}/{ARCHIVE}", "ticket": ticket}
        url = str(request.base_url).rstrip("/") + UPLOADS + record.id
        return Created(
            simulationRunId=record.id, presignedPostRequest=PresignedPost(url=url, values=values)
        )

    @api.post(
        f"{BASE}/{{simulationRunId}}:confirmSourceUpload",
        response_model=Nothing,
        responses=refusing(400, 404, 408, 409, 413),
        summary="Confirm a source, and have its scenarios written",
    )
    async def confirm(project: Project, id: RunId, body: ConfirmBody) -> Response:
        entry = await asyncio.to_thread(entries.by_id, id)
        if entry.record is None or entry.record.state != "pending":
            raise precondition("the run is not pending")
        await creator.confirm(entry.record, body)
        return _answer({})


def _writing(api: APIRouter, entries: Entries, creator: Creator) -> None:
    @api.post(
        f"{BASE}/{{simulationRunId}}:cancel",
        response_model=Nothing,
        responses=refusing(400, 404, 408, 409, 413),
        summary="Stop a run that has not finished",
    )
    async def cancel(project: Project, id: RunId) -> Response:
        entry = await asyncio.to_thread(entries.by_id, id)
        if entry.record is not None and entry.row is None:
            await creator.give_up(entry.record)
            # It may have begun in the last moment.
            entry = await asyncio.to_thread(entries.by_id, id)
        if entry.row is not None and entry.status == "STATUS_RUNNING":
            ask_to_stop(entries.library.place(entry.row))
        return _answer({})

    @api.post(
        "/v0/projects/{projectId}/scenarios:generateFromSession",
        response_model=OneScenario,
        responses=refusing(400, 404, 408, 409, 413, 503),
        summary="Write a scenario of a recorded call",
    )
    async def generate(project: Project, body: SessionBody) -> Response:
        session = await asyncio.to_thread(_session, entries.library, body.roomId)
        id = scenario_of_room(body.roomId)
        if creator.writer is None:
            told = scenario_json(id, session.case, session.lines, session.scenario)
            return _answer({"scenario": told})
        try:
            draft = await creator.writer.from_call(history(session.lines, session.tools))
        except DuplexError as error:
            raise Refusal(503, "Unavailable", str(error)) from None
        own = scenario_json(id, session.case, session.lines, session.scenario)
        written = some(
            label=draft.label,
            instructions=draft.instructions,
            agentExpectations=draft.agent_expectations,
        )
        return _answer({"scenario": own | written})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A recorded call, as far as a scenario is written of it."""

    case: Case
    lines: Sequence[SaidLine]
    tools: Sequence[Tool]
    scenario: Scenario | None


def _session(library: Library, room: str) -> _Session:
    """Find a call by its room; raises Refusal."""
    wanted = run_of_room(room)
    for row in library.rows():
        if run_id(row.id) != wanted or row.status == "damaged":
            continue
        run, folder = library.subject(row).run, home(library.place(row).path)
        for case in run.cases:
            if room_id(row.id, case) != room or case.outcome == "not_run":
                continue
            lines = said_in(folder, case.call_id)
            if not callers(lines):
                raise precondition("nobody knows what was said in this call")
            held = scenarios_held(run.run, folder).get(case.scenario)
            tools = tools_in(folder, case.call_id)
            return _Session(case=case, lines=lines, tools=tools, scenario=held)
    raise Refusal(404, "NotFound", "there is no such recorded call")


def _answer(value: dict[str, Json]) -> Response:
    return Response(strict(value), media_type=_JSON)

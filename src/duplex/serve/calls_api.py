"""Paths of one call: its own page, and what it sounds and reads like while it goes on.

It looks calls up among the run's own and hands on what ``viewer`` and ``live`` make.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from duplex.results import schema
from duplex.results.stored import call_id
from duplex.serve.files import FRAMED
from duplex.serve.library import Library
from duplex.serve.live.following import Calls
from duplex.serve.live.streaming import Hear, sound
from duplex.serve.progress import Streams
from duplex.serve.refusals import Refusal, refusing
from duplex.store import Row
from duplex.verdict.gather import gather
from duplex.viewer import build_call

_RunId = Annotated[str, Path(alias="run", max_length=200, description="A run's id.")]
_CallId = Annotated[str, Path(alias="call", max_length=200, description="A call's id.")]
_BINARY: dict[str, object] = {"schema": {"type": "string", "format": "binary"}}
_EVENTS: dict[str, object] = {
    "schema": {
        "type": "object",
        "properties": {
            "event": {"enum": ["call", "levels", "lines", "replies", "floor", "over"]},
            "data": {"type": "string", "description": "An object as JSON."},
        },
    }
}


def routes(library: Library, streams: Streams) -> APIRouter:
    """The paths over one library."""
    api = APIRouter(prefix="/api", tags=["Native"])
    calls = Calls(library, streams)

    @api.get(
        "/runs/{run}/calls/{call}/viewer.html",
        response_class=Response,
        responses={
            **refusing(404, 409, 422),
            200: {"description": "The page.", "content": {"text/html": _BINARY}},
        },
        summary="A call's page",
    )
    def viewer(run: _RunId, call: _CallId) -> Response:
        row = library.by_id(run)
        found, index = call_of(library, row, call)
        pieces = build_call(library.place(row).path, found, index)
        content = "".join(pieces).encode("utf-8", "replace")
        return Response(content, media_type="text/html; charset=utf-8", headers=FRAMED)

    @api.get(
        "/runs/{run}/calls/{call}/live",
        response_class=StreamingResponse,
        responses={
            **refusing(404, 409, 422, 429),
            200: {
                "description": "Server-sent events `call`, `levels`, `lines`, `replies`, `floor` "
                "and `over`; the stream ends with the call.",
                "content": {"text/event-stream": _EVENTS},
            },
        },
        summary="Follow a call in progress",
    )
    def live(run: _RunId, call: _CallId) -> Response:
        return StreamingResponse(calls.follow(run, call), media_type="text/event-stream")

    @api.get(
        "/runs/{run}/calls/{call}/live.wav",
        response_class=StreamingResponse,
        responses={
            **refusing(404, 409, 422, 429),
            200: {
                "description": "PCM16 as it is recorded; the stream ends with the call.",
                "content": {"audio/wav": _BINARY},
            },
        },
        summary="Listen to a call in progress",
    )
    def heard(
        run: _RunId,
        call: _CallId,
        hear: Hear = "both",
        from_ms: Annotated[
            int | None,
            Query(ge=0, le=86_400_000, description="From there; unset: from now."),
        ] = None,
    ) -> Response:
        stream = sound(library, streams, run, call, hear, from_ms)
        return StreamingResponse(stream, media_type="audio/wav")

    return api


def call_of(library: Library, row: Row, call: str) -> tuple[schema.Run, int]:
    """A call that is over, as its run's results and its place in them; raises Refusal."""
    run = library.results(row)
    folder = library.place(row).path
    for index, case in enumerate(gather(run).cases):
        if call in (case.call_id, call_id(folder, case.result)):
            return run, index
    raise Refusal(404, "call_not_found", "the run has no such call that is over")

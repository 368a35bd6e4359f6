"""The address that a source is uploaded to: open to whoever brings the run's ticket, once.

The archive is read through before it is kept, so what cannot be used is refused at once and
may be sent again with the same ticket. The form itself is taken by ``uploads.py``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from duplex.errors import InputError
from duplex.inputs import reason
from duplex.serve.archive import read_source
from duplex.serve.door import UPLOADS
from duplex.serve.refusals import Refusal, refusing
from duplex.serve.requests import invalid, precondition
from duplex.serve.simulations import ARCHIVE, Record, Simulations
from duplex.serve.uploads import received

MOST_UPLOADS = 4
_FORM: dict[str, object] = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "ticket": {"type": "string"},
        "file": {"type": "string", "format": "binary"},
    },
    "required": ["ticket", "file"],
}


class _Going:
    """The uploads under way at one server, at most ``MOST_UPLOADS``."""

    def __init__(self, simulations: Simulations) -> None:
        self._simulations = simulations
        self._count = 0

    async def take(self, request: Request, id: str) -> None:
        """Take one upload and keep it. Raises Refusal, and leaves nothing then."""
        mine: list[tuple[Record, FilePath]] = []

        def admit(fields: Mapping[str, str]) -> FilePath:
            record = self._simulations.admits(id, fields.get("ticket", ""))
            if record is None:
                raise Refusal(403, "PermissionDenied", "no run waits for this upload")
            if self._count >= MOST_UPLOADS:
                raise Refusal(429, "ResourceExhausted", f"{MOST_UPLOADS} uploads are under way")
            self._count += 1
            path = self._simulations.upload_path(record)
            mine.append((record, path))
            return path

        try:
            await received(request.headers, _pieces(request), admit)
            for record, path in mine:
                await asyncio.to_thread(self._keep, record, path)
        except OSError as error:
            message = f"the archive cannot be kept: {reason(error)}"
            raise Refusal(503, "Unavailable", message) from None
        except ClientDisconnect:
            raise Refusal(400, "InvalidArgument", "the client left in the middle") from None
        finally:
            self._count -= len(mine)
            for _, path in mine:
                with suppress(OSError):
                    path.unlink()

    def _keep(self, record: Record, path: FilePath) -> None:
        try:
            read_source(path, lambda _: False)
        except InputError as error:
            raise invalid(str(error), "file") from None
        record, lock = self._simulations.claim(record)
        try:
            if record.uploaded:
                raise precondition("the run has its source")
            try:
                os.replace(path, self._simulations.place(record) / ARCHIVE)
            except FileNotFoundError:
                raise precondition("the run waits for no source any more") from None
            self._simulations.put(record.model_copy(update={"uploaded": True}))
        finally:
            lock.release()


def routes(simulations: Simulations) -> APIRouter:
    """The path over one folder of records."""
    api = APIRouter(tags=["LiveKit-shaped"])
    going = _Going(simulations)

    @api.post(
        f"{UPLOADS}{{simulationRunId}}",
        status_code=204,
        response_class=Response,
        responses=refusing(400, 408, 409, 413, 429, 503),
        openapi_extra={
            "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
        },
        summary="Upload a source",
    )
    async def upload(
        request: Request,
        id: Annotated[str, Path(alias="simulationRunId", max_length=200)],
    ) -> Response:
        try:
            await going.take(request, id)
        except Refusal as refusal:
            # What is left of a body that was not read cannot be another request.
            close = {"connection": "close"}
            return JSONResponse(refusal.body(), refusal.status, headers=close)
        return Response(status_code=204)

    return api


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    async for piece in request.stream():
        yield piece

"""The application: three dialects behind one door, with every fault as an error object.

Made from a library, a launcher and a token; it opens no socket. ``command.py`` and
tests drive it.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from duplex.errors import DuplexError
from duplex.serve import (
    calls_api,
    livekit_api,
    livekit_uploads,
    livekit_writes,
    native_api,
    roark_api,
)
from duplex.serve.creating import Creator
from duplex.serve.door import UPLOADS, Door
from duplex.serve.launching import Launcher
from duplex.serve.library import Library
from duplex.serve.livekit_entries import Entries
from duplex.serve.pages import refused
from duplex.serve.pages.routes import routes as page_routes
from duplex.serve.progress import Streams
from duplex.serve.refusals import Refusal, error_object
from duplex.serve.tickets import Tickets

_ABOUT = (
    "Runs of full-duplex voice-agent calls: read while they are in progress, begun and "
    "cancelled. Reading needs no token on loopback; whatever writes needs `Authorization: "
    "Bearer …`. Errors are `{type, code, message, param?}` on every path."
)

_SHAPED = ("/v0/", "/v1/")
"""Others' paths, in which whatever is not valid is a 400."""


def make_app(
    library: Library,
    launcher: Launcher,
    *,
    token: str,
    bound: str,
    creator: Creator | None = None,
) -> FastAPI:
    """The application of one server; ``bound`` is the address it is reached at.

    ``creator`` is who creates runs as LiveKit does, one without a model unless given.
    """
    creator = creator or Creator.plain(library, launcher)
    entries = Entries(library, creator.simulations)
    app = FastAPI(
        title="duplex",
        version="1",
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    streams = Streams()
    app.include_router(native_api.routes(library, launcher, streams))
    app.include_router(calls_api.routes(library, streams))
    app.include_router(roark_api.routes(library, launcher))
    app.include_router(livekit_api.routes(entries))
    app.include_router(livekit_writes.routes(entries, creator))
    app.include_router(livekit_uploads.routes(creator.simulations))
    app.include_router(page_routes(library, launcher, Tickets(token)))
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DuplexError, _unreadable)
    app.add_exception_handler(Exception, _unforeseen)
    app.add_middleware(Door, token=token, bound=bound)
    describe = app.openapi

    def described() -> dict[str, object]:
        return _declared(describe())

    app.openapi = described  # type: ignore[method-assign]
    return app


def _declared(schema: dict[str, object]) -> dict[str, object]:
    """The description with how to authorize, and without what FastAPI adds for itself."""
    paths, parts = schema["paths"], schema["components"]
    assert isinstance(paths, dict)
    assert isinstance(parts, dict)
    parts["securitySchemes"] = {"Bearer": {"type": "http", "scheme": "bearer"}}
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    for path, methods in paths.items():
        for method, operation in methods.items():
            if path.startswith(_SHAPED) and "planId" not in path:
                operation["responses"].pop("422", None)
            operation["security"] = [{"Bearer": []}] if method == "post" else [{}, {"Bearer": []}]
            if path.startswith(UPLOADS):
                operation["security"] = [{}]
    return schema


def _answer(
    request: Request, status: int, code: str, message: str, param: str | None = None
) -> Response:
    """An error object, or its page where a person reads."""
    if refused.is_shown(request):
        return refused.shown(request, status, f"{param}: {message}" if param else message)
    return JSONResponse(error_object(status, code, message, param=param), status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _answer(request, error.status, error.code, error.message, error.param)


async def _invalid(request: Request, error: Exception) -> Response:
    """What FastAPI found wrong: the first place, in one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    path, said = request.url.path, str(first["msg"])
    status = 400 if path.startswith(_SHAPED) else 422
    code = "InvalidArgument" if path.startswith("/v0/") else "invalid_parameter"
    return _answer(request, status, code, f"{said[:1].lower()}{said[1:]}", where or None)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: "resource_not_found", 405: "method_not_allowed"}
    code = said.get(error.status_code, "invalid_request")
    answer = _answer(request, error.status_code, code, str(error.detail).lower())
    answer.headers.update(dict(error.headers or {}))
    return answer


async def _unreadable(request: Request, error: Exception) -> Response:
    return _answer(request, 409, "run_unreadable", str(error))


async def _unforeseen(request: Request, error: Exception) -> Response:
    return _answer(request, 500, "internal_error", "the server could not answer; its log says why")

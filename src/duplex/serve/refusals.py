"""What a request is refused with: one error object for every path.

The object is Roark's ``{type, code, message, param?}``, below ``/api`` too, so that a
client reads one shape. A message is one sentence and names nothing secret.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from duplex.screen import plain
from duplex.values import Json

Kind = Literal[
    "validation",
    "authentication",
    "forbidden",
    "not_found",
    "conflict",
    "rate_limit",
    "internal",
]
_KINDS: dict[int, Kind] = {
    401: "authentication",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    429: "rate_limit",
    500: "internal",
    503: "internal",
}
_MEANINGS = {
    400: "The request is not valid.",
    401: "A token is wanted, or the one given is wrong.",
    403: "The request came from another site, or under a foreign host name.",
    404: "There is no such thing in the store.",
    408: "The body took too long to arrive.",
    409: "The run is not in a state in which this can be done.",
    413: "The body is too large.",
    416: "The range lies outside the file.",
    422: "A value is not one that can be used.",
    429: "Too many of these are under way.",
    503: "The run did not begin in time, the model could not be used, or the disk is full.",
}
_LONGEST = 600


class ErrorBody(BaseModel):
    """Why a request was refused."""

    model_config = ConfigDict(extra="forbid")

    type: Kind
    code: str
    message: str
    param: str | None = None


class Refusal(Exception):
    """Ends a request with a status and an error object."""

    def __init__(self, status: int, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param

    def body(self) -> dict[str, Json]:
        return error_object(self.status, self.code, self.message, param=self.param)


def error_object(
    status: int, code: str, message: str, *, param: str | None = None
) -> dict[str, Json]:
    """The error object; text that a terminal could obey is made harmless, and is bounded."""
    found: dict[str, Json] = {
        "type": _KINDS.get(status, "validation"),
        "code": code,
        "message": plain(message)[:_LONGEST].encode("utf-8", "replace").decode(),
    }
    return found if param is None else found | {"param": param}


def refusing(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Declare statuses of an operation, as FastAPI's ``responses``."""
    return {
        status: {"model": ErrorBody, "description": _MEANINGS[status]}
        for status in sorted({401, 403, *statuses})
    }

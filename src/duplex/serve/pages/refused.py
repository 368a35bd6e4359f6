"""What a browser is shown where a program has an error object: the same sentence, and a way on.

Others' paths have no pages: whatever asks there is a program. It decides nothing.
"""

from __future__ import annotations

from fastapi import Request, Response

from duplex.screen import plain
from duplex.serve.pages.frame import page
from duplex.serve.pages.markup import tag

_PROGRAMS = ("/v0/", "/v1/", "/static/", "/openapi.json")
_HEADS = {
    401: "Not signed in",
    403: "Not allowed",
    404: "There is nothing here",
    405: "There is nothing here",
    409: "This cannot be shown",
    429: "Too much at once",
    500: "The server could not answer",
}


def is_shown(request: Request) -> bool:
    """Whether a person is there to read it."""
    wanted = request.headers.get("accept", "")
    return "text/html" in wanted and not request.url.path.startswith(_PROGRAMS)


def shown(request: Request, status: int, message: str) -> Response:
    """The page of a refusal."""
    head = _HEADS.get(status, "That cannot be used")
    sentence = f"{message[:1].upper()}{message[1:]}".rstrip(".") + "."
    return page(
        request,
        head,
        tag("h1", head),
        tag("p", plain(sentence), class_="error", role="alert"),
        tag("p", tag("a", "To the runs", href="/", class_="button")),
        status=status,
    )

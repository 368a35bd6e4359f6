"""The frame around every page: head, navigation, policy, and the files that go with it.

The policy lets through this server's own files and nothing else, no inline script and
no inline style. A page says who may write from it; it keeps nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from fastapi import Request, Response

from duplex.serve.pages.markup import Child, Markup, address, document, joined, tag

STATIC: Mapping[str, str] = {
    "icon.svg": "image/svg+xml",
    "page.css": "text/css; charset=utf-8",
    "run.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
}
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    # Without it a form of ours would be sent with the origin "null".
    "referrer-policy": "same-origin",
}
Crumb = tuple[str, str]


def static(name: str) -> Response:
    """One of the page's own files; ``name`` is a key of STATIC."""
    content = files("duplex.serve.pages").joinpath("static", name).read_bytes()
    headers = {"cache-control": "no-cache"}
    return Response(content, media_type=STATIC[name], headers=headers)


def page(
    request: Request,
    title: str,
    *content: Child,
    crumbs: Sequence[Crumb] = (),
    script: str | None = None,
    status: int = 200,
    wide: bool = False,
) -> Response:
    """A page; ``crumbs`` lead to it from the list of runs, ``script`` is one of STATIC."""
    head = joined(
        tag("link", rel="stylesheet", href="/static/page.css"),
        tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        None if script is None else tag("script", src=f"/static/{script}", defer=True),
    )
    body = joined(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _top(request, crumbs),
        tag("main", *content, id="content", tabindex="-1", class_="wide" if wide else None),
    )
    text = document(f"{title} – duplex", head, body).encode("utf-8", "replace")
    return Response(text, status, media_type="text/html; charset=utf-8", headers=_HEADERS)


def signed_in(request: Request) -> bool:
    """Whether what this page sends may write."""
    return bool(getattr(request.state, "signed_in", False))


def hidden_form(action: str, words: str, *, class_: str = "", **fields: str) -> Markup:
    """A button that sends one thing."""
    return tag(
        "form",
        [tag("input", type="hidden", name=name, value=value) for name, value in fields.items()],
        tag("button", words, class_=class_ or None),
        method="post",
        action=action,
    )


def _top(request: Request, crumbs: Sequence[Crumb]) -> Markup:
    here = request.url.path
    links = [
        tag("a", words, href=place, aria_current="page" if here == place else None)
        for words, place in (("Runs", "/"), ("New run", "/new"))
    ]
    account = (
        hidden_form("/sign-out", "Sign out", class_="plain")
        if signed_in(request)
        else tag("a", "Sign in", href=address("sign-in"))
    )
    trail = [
        tag("li", tag("a", words, href=place, aria_current="page" if last else None))
        for at, (words, place) in enumerate(crumbs)
        for last in [at == len(crumbs) - 1]
    ]
    return joined(
        tag(
            "header",
            tag(
                "a",
                tag("span", class_="mark", aria_hidden="true"),
                "duplex",
                href="/",
                class_="brand",
            ),
            tag("nav", links, account, aria_label="Main"),
            class_="top",
        ),
        tag("nav", tag("ol", trail), aria_label="Where this is", class_="crumbs")
        if trail
        else None,
    )

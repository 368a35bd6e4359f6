"""Where the token becomes a cookie, and back: sign in and out. It formats one small form."""

from __future__ import annotations

from duplex.serve.pages.markup import Child, tag


def content(*, wrong: bool) -> list[Child]:
    """The page."""
    box = tag(
        "input",
        type="password",
        name="token",
        required=True,
        autocomplete="current-password",
        maxlength=500,
        autofocus=True,
    )
    hint = tag("small", "duplex serve printed it when it started; the link beside it signs in too.")
    label = tag("label", tag("span", "Token"), box, hint, class_="all")
    button = tag("div", tag("button", "Sign in", class_="main"), class_="all")
    return [
        tag("h1", "Sign in"),
        tag("p", "That is not this server's token.", class_="error", role="alert")
        if wrong
        else None,
        tag("form", label, button, method="post", action="/sign-in", class_="grid panel"),
    ]

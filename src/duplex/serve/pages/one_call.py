"""The page of one call: the viewer in a frame when it is over, a live page while it goes on.

The frame is a sandbox: what is in it is nobody's origin. A live page holds places that
its script fills; it formats nothing that was said.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.serve.pages.markup import Child, Markup, address, tag
from duplex.serve.pages.words import options
from duplex.store import Row

_HEAR = (("both", "both sides"), ("caller", "the caller"), ("assistant", "the assistant"))


def over(row: Row, call: str, calls: Sequence[str], at_ms: int | None) -> list[Child]:
    """A call that is over; ``calls`` are all of its run, in order."""
    viewer = address("api", "runs", row.id, "calls", call, "viewer.html")
    moment = "" if at_ms is None else f"#call=1&t={at_ms}"
    at = calls.index(call) if call in calls else 0
    near = [("‹ Previous call", calls[at - 1])] if at else []
    near += [("Next call ›", calls[at + 1])] if at + 1 < len(calls) else []
    steps = [
        tag("a", words, href=address("runs", row.id, "calls", other), class_="button")
        for words, other in near
    ]
    alone = tag(
        "a", "Alone", href=viewer, class_="button", aria_label="This call alone in the window"
    )
    frame = tag(
        "iframe",
        src=viewer + moment,
        title=f"Viewer of {call}",
        sandbox="allow-scripts allow-downloads",
        allow="autoplay",
    )
    return [tag("div", tag("h1", call, class_="unseen"), steps, alone, class_="bar row"), frame]


def live(run: str, call: str) -> list[Child]:
    """A call in progress."""
    place = ("api", "runs", run, "calls", call)
    return [
        tag("h1", call),
        tag(
            "p", "This page needs its script to show a call in progress.", class_="error", id="none"
        ),
        tag(
            "section",
            _now(),
            _meters(),
            tag("canvas", id="strip", aria_hidden="true"),
            _shares(),
            class_="panel",
            id="live",
            aria_label="Who speaks",
            data_events=address(*place, "live"),
            data_sound=address(*place, "live.wav"),
        ),
        tag("p", id="over", class_="error", role="status", hidden=True),
        tag("div", _transcript(), _replies(), class_="pair"),
    ]


def _now() -> list[Child]:
    pick = tag("select", options(_HEAR, None), id="hear", aria_label="Whom to hear")
    listen = tag(
        "button", "Listen", type="button", id="listen", aria_pressed="false", class_="main"
    )
    return [
        tag(
            "div",
            tag("span", "0:00", id="clock"),
            tag("span", "waiting for sound", id="who"),
            tag("span", listen, " ", pick, class_="row"),
            class_="live-top",
        ),
        tag("audio", id="sound", preload="none"),
    ]


def _meters() -> list[Child]:
    return [
        tag(
            "div",
            tag("span", side.capitalize()),
            tag("div", tag("i", id=f"{side}-level", class_=side), class_="lane"),
            tag("span", "", id=f"{side}-says", class_="hint"),
            class_="meter",
        )
        for side in ("caller", "assistant")
    ]


def _shares() -> list[Child]:
    names = ("caller", "assistant", "both")
    bars = [tag("i", id=f"floor-{name}", class_=f"i-{name}") for name in names]
    words = [
        tag("span", tag("i", class_=f"i-{name}"), tag("span", "", id=f"share-{name}"))
        for name in names
    ]
    return [
        tag("div", bars, class_="floor", id="floor", role="img", aria_label="Floor so far"),
        tag("p", words, tag("span", "", id="share-silence"), class_="key"),
    ]


def _transcript() -> Markup:
    log = tag("ol", id="lines", class_="log", role="log", aria_live="polite", tabindex="0")
    follow = tag("label", tag("input", type="checkbox", id="follow", checked=True), " follow")
    head = tag("h2", "Transcript", id="lines-title")
    return tag(
        "section",
        tag("div", head, follow, class_="row spaced"),
        log,
        class_="panel",
        aria_labelledby="lines-title",
    )


def _replies() -> Markup:
    return tag(
        "section",
        tag("h2", "Latency of replies", id="replies-title"),
        tag("p", "No reply yet.", id="median", class_="muted"),
        tag("ol", id="replies", class_="replies"),
        tag(
            "p",
            "Measured on the sound so far; a reply that goes on may still move.",
            class_="hint",
        ),
        class_="panel",
        aria_labelledby="replies-title",
    )

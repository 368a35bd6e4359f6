"""HTML that is put together, never pasted: whatever is not markup already is escaped.

A tag's children are markup or text; text loses what could end a line or turn one around,
and every character that means something is escaped. An address must begin at this
server's root. It knows no page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import quote, urlencode

from duplex.metrics.transcript import one_line

_EMPTY = frozenset({"meta", "link", "input", "br", "line", "circle", "rect", "path", "polyline"})
_ADDRESSES = ("href", "src", "action")


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML; only this module makes any."""

    text: str


Child = Markup | str | int | None | Iterable["Child"]
Value = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """An element: ``tag("a", "words", href="/", class_="x", aria_current="page")``.

    An attribute that is None or False is left out, one that is True has no value.
    """
    head = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}"
    if name in _EMPTY:
        assert not children, name
        # Inside a drawing nothing but this ends an element that holds nothing.
        return Markup(f"{head}/>")
    return Markup(f"{head}>{joined(*children).text}</{name}>")


def joined(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup("".join(_text(child) for child in children))


def document(title: str, head: Markup, body: Markup) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"{tag('title', title).text}{head.text}</head><body>{body.text}</body></html>\n"
    )


def address(*parts: str, **query: str | int | None) -> str:
    """A path below the root, every part quoted: ``address("runs", id)``."""
    path = "/" + "/".join(quote(part.encode("utf-8", "replace"), safe="") for part in parts)
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child.text
    if isinstance(child, str | int):
        return escape(_spaced(str(child)))
    return "".join(_text(one) for one in child)


def _spaced(text: str) -> str:
    """One harmless line; blanks at its ends stay, because markup may follow."""
    middle = one_line(text)
    before = " " if text[:1].isspace() else ""
    after = " " if middle and text[-1:].isspace() else ""
    return f"{before}{middle}{after}"


def _attribute(name: str, value: Value) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    said = one_line(value) if isinstance(value, str) else str(value)
    if name in _ADDRESSES:
        ours = said.startswith(("/", "#", "?")) and not said.startswith(("//", "/\\"))
        assert ours, f"{name} leads elsewhere"
    assert not name.startswith("on"), name
    assert name != "style", "the policy lets no style attribute through"
    return f' {name}="{escape(said)}"'

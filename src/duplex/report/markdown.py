"""Markdown from rows: tables whose cells hold any text without becoming markup.

Text comes from files, wires and people; nothing in it may end a cell, start a
tag or a link. Reports drive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duplex.screen import plain

_MARKS = "\\`*_[]<>|#&!~"


def cell(text: str) -> str:
    """One line of text that is nothing but text."""
    shown = " ".join(plain(text).split())
    return "".join(f"\\{char}" if char in _MARKS else char for char in shown)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with its lines; empty when there is no row."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    if not lines:
        return []
    return [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *lines]


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A heading and what stands below; nothing when that is nothing."""
    return [f"## {title}", "", *lines, ""] if lines else []

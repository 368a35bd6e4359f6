"""HTML for a notebook's cell: text and tables, every word escaped.

One element with its looks inside it: no script, no style sheet, no address, and no
colour of its own, so that it reads on light and dark pages alike. It holds no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from duplex.viewer.reading import clean
from duplex.viewer.rows import Row

ROWS = 20
"""Rows of one table that are shown; how many more there are is said."""
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;background:none;color:inherit"
_LINE = ";border-top:1px solid rgba(128,128,128,.35)"


def block(title: str, note: str, *parts: str) -> str:
    """One thing shown: a sentence, where it comes from, and what stands below."""
    head = f"<strong>{word(title)}</strong>"
    below = f'<div style="opacity:.75">{word(note)}</div>' if note else ""
    return (
        '<div style="max-width:64em;overflow-x:auto;overflow-wrap:anywhere">'
        f"<div>{head}</div>{below}{''.join(parts)}</div>"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, most: int = ROWS) -> str:
    """A table of text; no more than ``most`` rows."""
    shown = [list(row) for row in rows]
    head = "".join(f'<th scope="col" style="{_CELL}">{word(name)}</th>' for name in headings)
    body = "".join(_row([word(cell) for cell in row]) for row in shown[:most])
    left = len(shown) - most
    more = f'<div style="opacity:.75">and {left} more</div>' if left > 0 else ""
    return (
        '<table style="border-collapse:collapse;margin:.4em 0"><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def figures(rows: Sequence[Row]) -> str:
    """Rows of metrics: a name that tells its meaning, the value, and what belongs to it."""
    body = "".join(_row(_figure(row)) for row in rows)
    return f'<table style="border-collapse:collapse;margin:.4em 0"><tbody>{body}</tbody></table>'


def folded(summary: str, content: str) -> str:
    """Content that a click unfolds."""
    return f"<details><summary>{word(summary)}</summary>{content}</details>"


def lines(told: Iterable[str]) -> str:
    """Sentences below one another."""
    return "".join(f"<div>{word(line)}</div>" for line in told)


def word(text: str) -> str:
    """Text as harmless HTML: nothing in it is markup, and nothing turns a line around."""
    return escape(clean(text))


def _figure(row: Row) -> list[str]:
    name = f'<span title="{word(row.meaning)}">{word(row.name)}</span>' if row.meaning else ""
    value = word(row.value) if row.known else f'<span style="opacity:.65">{word(row.value)}</span>'
    details = "<br>".join(word(one) for one in row.details)
    return [name or word(row.name), value, f'<small style="opacity:.75">{details}</small>']


def _row(cells: Sequence[str]) -> str:
    """A row of cells that are HTML already."""
    inside = "".join(f'<td style="{_CELL}{_LINE}">{cell}</td>' for cell in cells)
    return f"<tr>{inside}</tr>"

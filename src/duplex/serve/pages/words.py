"""Words and marks that several pages share: a verdict, a status, a table.

Colour never tells alone: every mark has its word. It formats and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duplex.serve.pages.markup import Child, Markup, tag
from duplex.store import Row

_STATUS = {"running": "running", "completed": "other", "cancelled": "other"}
_OUTCOMES = {
    "counted": "",
    "never_spoke": "never spoke",
    "invalidated": "does not count",
    "not_run": "not held",
}


def verdict_pill(passed: bool | None) -> Markup | None:
    """Passed or failed; None without a verdict."""
    if passed is None:
        return None
    word = "passed" if passed else "failed"
    return tag("span", f"{'✓' if passed else '✕'} {word}", class_=f"pill {word}")


def run_pill(row: Row) -> Markup:
    """A run's verdict, else where it stands."""
    found = verdict_pill(row.passed) if row.status != "running" else None
    words = row.status.replace("_", " ")
    return found or tag("span", words, class_=f"pill {_STATUS.get(row.status, 'trouble')}")


def call_words(passed: bool | None, outcome: str) -> Markup:
    """What became of a call."""
    if outcome == "counted" and passed is not None:
        word = "passed" if passed else "failed"
        return tag("span", f"{'✓' if passed else '✕'} {word}", class_=word)
    return tag("span", f"! {_OUTCOMES.get(outcome) or 'not graded'}", class_="trouble")


def day(stamp: str) -> Markup | str:
    """A moment as a list shows it."""
    if not stamp:
        return "–"
    return tag("time", stamp[:16].replace("T", " "), datetime=stamp)


def share_words(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1f} %"


def table(
    names: Sequence[str], rows: Iterable[Sequence[Child]], *, caption: str | None = None
) -> Markup:
    """A table whose cells know their headings, for where there is no room for columns."""
    head = [tag("th", name.capitalize(), scope="col") for name in names]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            [
                tag("td", cell, data_name=name)
                for name, cell in zip(names[1:], row[1:], strict=True)
            ],
        )
        for row in rows
    ]
    return tag(
        "table",
        None if caption is None else tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
        class_="stack",
    )


def section(title: str, *content: Child, id: str) -> Markup:
    """A part of a page under a heading; ``id`` names it for links and for its renewal."""
    return tag(
        "section",
        tag("h2", title, id=f"{id}-title"),
        *content,
        class_="panel",
        id=id,
        aria_labelledby=f"{id}-title",
        data_part=True,
    )


def options(values: Iterable[tuple[str, str]], chosen: str | None) -> list[Markup]:
    """Choices of a select: value and words."""
    return [tag("option", words, value=value, selected=value == chosen) for value, words in values]

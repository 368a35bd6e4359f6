"""A run as one Markdown page: verdict, debrief, comparison, calls, and its worst moments.

Made for a pipeline's step summary and for pull requests. Everything that came from
a peer is text and nothing else; the drawing is an SVG of its own making.
"""

from __future__ import annotations

from collections.abc import Iterator

from duplex.counting import counted
from duplex.debrief import Debrief
from duplex.exports.subject import Subject
from duplex.report import run_report
from duplex.report.markdown import cell, section, table
from duplex.verdict.comparison import Comparison
from duplex.verdict.incidents import Incident, incidents

_WORST = 10
_RANK = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}


def summary(subject: Subject) -> str:
    """The whole page; ends with a line break."""
    lines: list[str] = []
    if subject.debrief is not None:
        lines += _debrief(subject.debrief)
    if subject.comparison is not None:
        lines += _comparison(subject.comparison)
    lines += section("Worst moments", table(("call", "when", "what", "id"), _moments(subject)))
    page = run_report.as_markdown(subject.run.run).rstrip().split("\n")
    head = next((at for at, line in enumerate(page) if line.startswith("## ")), len(page))
    return "\n".join([*page[:head], *lines, *page[head:]]).rstrip() + "\n"


def worst(subject: Subject, *, placed: bool = False) -> list[Incident]:
    """The gravest incidents of a run, the gravest first; ``placed``: those with a time only."""
    found = incidents(subject.run, subject.criteria)
    wanted = [one for one in found if not placed or one.start_ms is not None]
    return sorted(wanted, key=lambda one: _RANK[one.severity])[:_WORST]


def _moments(subject: Subject) -> Iterator[tuple[str, ...]]:
    for one in worst(subject):
        when = "" if one.start_ms is None else f"{one.start_ms / 1000:.1f} s"
        yield one.call_id, when, one.sentence, one.id


def _debrief(found: Debrief) -> list[str]:
    lines = [cell(found.summary), ""]
    lines += [line for text in found.paragraphs for line in (cell(text), "")]
    for heading, body in found.sections:
        lines += [f"**{cell(heading)}.** {cell(body)}", ""]
    themes = [
        (
            theme.title,
            theme.severity.lower(),
            f"{theme.affected} of {counted(theme.total, 'call')}",
            (theme.lifecycle or "").lower(),
            theme.analysis,
        )
        for theme in found.themes
    ]
    lines += section("Themes", table(("theme", "severity", "calls", "", "what"), themes))
    well = [f"- {cell(one.title)}. {cell(one.body)}" for one in found.went_well]
    lines += section("Went well", well)
    advice = [f"{one.order}. {cell(one.title)}. {cell(one.body)}" for one in found.recommendations]
    return lines + section("Recommendations", advice)


def _comparison(found: Comparison) -> list[str]:
    rows = [
        (one.label, one.direction, "" if one.adjusted_p is None else f"{one.adjusted_p:.3g}")
        for one in found.deltas
        if one.direction in ("worse", "better")
    ]
    title = f"Against {found.baseline.run_id}"
    none = [found.nothing_seen, *(f"- {cell(text)}" for text in found.caveats)]
    return section(cell(title), table(("what", "", "corrected p"), rows) or none)

"""The parts of a run's page that tell what it means: debrief, comparison, list of calls.

Formatting only: words come from the debrief and the comparison as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duplex import comparing
from duplex.debrief import Debrief
from duplex.debrief.values import Span
from duplex.exports.subject import Subject
from duplex.serve.library import SETTLED, Library, Seen
from duplex.serve.pages.markup import Child, Markup, address, tag
from duplex.serve.pages.words import call_words, options, section, table
from duplex.store import Row
from duplex.verdict.comparison import Comparison
from duplex.verdict.readings import find, read
from duplex.viewer import say

_MOST_SPANS = 12
_MOST_RUNS = 60


def debrief(found: Debrief, run: str) -> Markup:
    """What a run means, with the places to listen to."""
    parts: list[Child] = [tag("p", one) for one in found.paragraphs]
    parts += [[tag("h3", heading), tag("p", body)] for heading, body in found.sections]
    if live := [theme for theme in found.themes if theme.affected]:
        parts.append(tag("h3", "Themes"))
        items = []
        for theme in live:
            how = f"{theme.severity.lower()}, {theme.affected} of {theme.total} calls"
            items.append(
                tag(
                    "li",
                    tag("b", theme.title),
                    tag("span", f" {how}", class_="muted"),
                    tag("p", theme.analysis),
                    _spans(theme.spans, run),
                )
            )
        parts.append(tag("ul", items, class_="plain"))
    themes = {theme.title for theme in found.themes}
    others = tuple(one for one in found.findings if one.title not in themes)
    for title, findings in (("Findings", others), ("Went well", found.went_well)):
        if findings:
            listed = [tag("li", tag("b", one.title), " ", one.body) for one in findings]
            parts += [tag("h3", title), tag("ul", listed, class_="plain")]
    if found.recommendations:
        steps = [tag("li", tag("b", one.title), " ", one.body) for one in found.recommendations]
        parts += [tag("h3", "What to do"), tag("ol", steps)]
    return section("Debrief", *parts, id="debrief")


def _spans(spans: Sequence[Span], run: str) -> Markup | None:
    if not spans:
        return None
    links = [
        tag(
            "a",
            f"▸ {one.call_id} {'' if one.start_ms is None else say.clock(one.start_ms)}",
            href=place_of(run, one.call_id, one.start_ms),
        )
        for one in spans[:_MOST_SPANS]
    ]
    return tag("p", [[link, " "] for link in links])


def place_of(run: str, call: str, at_ms: float | None = None) -> str:
    """A call's page, at a moment of it."""
    return address("runs", run, "calls", call, t=None if at_ms is None else round(at_ms))


def comparison(
    library: Library, row: Row, found: Comparison | None, problem: str | None, against: Row | None
) -> Markup:
    """The comparison, and a choice of another run to compare with."""
    parts: list[Child] = [tag("p", problem, class_="error") if problem else None]
    if found is not None:
        parts.append(tag("p", tag("b", comparing.headline(found))))
        rows = [_compared(cells) for cells in comparing.rows(found)]
        parts.append(table(comparing.HEADINGS, rows))
        parts += [tag("p", caveat, class_="hint") for caveat in comparing.caveats(found)]
    elif problem is None:
        parts.append(tag("p", "No earlier run of this plan is here.", class_="muted"))
    others = [one for one in library.rows() if one.status in SETTLED and one.id != row.id]
    # Runs of the same plan come first: those are the ones that can be compared pair by pair.
    others.sort(key=lambda one: one.plan_id != row.plan_id)
    if others:
        shown = [(one.id, _choice(one, row)) for one in others[:_MOST_RUNS]]
        chosen = None if against is None else against.id
        pick = tag("select", options(shown, chosen), name="against")
        label = tag("label", tag("span", "Compare with"), pick)
        button = tag("button", "Compare")
        place = address("runs", row.id)
        parts.append(
            tag("form", label, button, method="get", action=f"{place}#comparison", class_="filters")
        )
    title = "Comparison" if against is None else f"Against {against.id}"
    return section(title, *parts, id="comparison")


def _choice(one: Row, row: Row) -> str:
    plan = "" if one.plan_id == row.plan_id else " (another plan)"
    return f"{one.id}, {one.created_at[:16].replace('T', ' ')}{plan}"


def _compared(cells: Sequence[str]) -> Sequence[Child]:
    *figures, last = cells
    return (*figures, tag("span", last, class_=last if last in ("better", "worse") else "muted"))


def calls(subject: Subject, seen: Seen) -> Markup:
    """Every attempt that is over, those that go on, and those that wait."""
    rows = [*_over(subject), *_going(seen)]
    if not rows:
        words = "No call has begun." if seen.running else "No call came to its end."
        return section("Calls", tag("p", words, class_="muted"), id="calls")
    names = ("call", "state", "median reply", "duration", "why")
    return section("Calls", table(names, rows), id="calls")


def _over(subject: Subject) -> Iterable[Sequence[Child]]:
    run = subject.run.run_id
    names = {one.id: one.name for one in subject.criteria}
    for case in subject.run.cases:
        median = read(find("response_latency.p50"), case.result)
        failed = "; ".join(
            f"{names.get(one.id, one.id)}: {one.reason}"
            if one.reason
            else names.get(one.id, one.id)
            for one in case.checks
            if one.passed is False
        )
        why = case.result.error.message if case.result.error is not None else failed
        yield (
            tag("a", case.call_id, href=place_of(run, case.call_id)),
            call_words(case.passed, case.outcome),
            say.ms(median) if isinstance(median, int | float) else "–",
            "–" if case.duration_ms is None else f"{case.duration_ms / 1000:.1f} s",
            why,
        )


def _going(seen: Seen) -> Iterable[Sequence[Child]]:
    for _, _, call in seen.in_progress():
        watch = tag("a", "watch", href=place_of(seen.row.id, call), aria_label=f"watch {call}")
        yield call, (tag("span", "● in progress", class_="running"), " ", watch), "", "", ""
    for case in seen.waiting():
        yield case, tag("span", "waiting", class_="muted"), "", "", ""

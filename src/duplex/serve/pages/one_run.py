"""The page of one run: its verdict in a sentence, then everything that stands behind it.

Parts have ids, so that a script can renew them while the run goes on. It asks the
library and formats what it is given.
"""

from __future__ import annotations

from pathlib import Path

from duplex.errors import DuplexError
from duplex.exports.subject import Subject
from duplex.inputs import exists
from duplex.results.run import headline
from duplex.serve.library import Library, Seen
from duplex.serve.pages import judged, told
from duplex.serve.pages.frame import hidden_form
from duplex.serve.pages.markup import Child, Markup, address, tag
from duplex.serve.pages.words import day, run_pill
from duplex.serve.refusals import Refusal
from duplex.store import Row


def content(library: Library, row: Row, against: str | None, *, may: bool) -> list[Child]:
    """The page of a run, held against its plan's run before or the one that is named."""
    seen = library.seen(row)
    subject, baseline, problem = _compared(library, row, against)
    over = subject.verdict is not None and bool(subject.run.cases)
    return [
        _head(subject, seen, library.place(row).path, may=may),
        *judged.parts(subject),
        told.debrief(subject.debrief, row.id) if subject.debrief is not None else None,
        told.comparison(library, row, subject.comparison, problem, baseline) if over else None,
        told.calls(subject, seen),
    ]


def _compared(
    library: Library, row: Row, against: str | None
) -> tuple[Subject, Row | None, str | None]:
    """The run with what it is compared with, and why it could not be."""
    if against:
        try:
            other = library.by_id(against)
            return library.subject(row, other, named=True), other, None
        except (Refusal, DuplexError) as error:
            return library.subject(row), None, str(error)
    before = library.before(row) if row.status != "running" else None
    try:
        subject = library.subject(row, before)
    except (Refusal, DuplexError):
        return library.subject(row), None, None
    return subject, before if subject.comparison is not None else None, None


def sentence(subject: Subject, row: Row) -> str:
    """What came out, in one sentence."""
    if row.status == "running":
        held = sum(case.final for case in subject.run.cases)
        return f"{held} of {subject.run.expected} test cases held so far."
    if row.status == "interrupted":
        held = sum(case.final for case in subject.run.cases)
        return (
            f"Interrupted: {held} of {subject.run.expected} test cases were held, then its runner "
            "was gone."
        )
    if subject.verdict is not None and not subject.verdict.passed:
        reasons = "; ".join(one.sentence for one in subject.verdict.failures)
        return f"Not passed: {reasons}."
    return headline(subject.run.run) if subject.run.cases else "No call was held."


def _head(subject: Subject, seen: Seen, folder: Path, *, may: bool) -> Markup:
    row = seen.row
    going = row.status == "running"
    facts = [
        tag("span", part, class_="muted")
        for part in (day(row.created_at), row.agent, row.condition, f"{row.mode} run")
        if part
    ]
    held = sum(case.final for case in subject.run.cases)
    progress = tag(
        "progress", value=held, max=max(subject.run.expected, 1), aria_label="Test cases held"
    )
    return tag(
        "section",
        tag("h1", sentence(subject, row)),
        tag("p", run_pill(row), judged.score_words(subject)[1:], facts, class_="row"),
        progress if going else None,
        tag("p", "It was asked to stop.", class_="hint") if going and seen.stopping else None,
        _resume(seen),
        _actions(row, seen, folder, may=may),
        id="head",
        data_part=True,
        data_run=row.id,
        data_status=row.status,
        aria_live="polite",
    )


def _resume(seen: Seen) -> Markup | None:
    """How a run whose runner is gone goes on."""
    if seen.row.status != "interrupted" or seen.told is None or not seen.told.opening.resumable:
        return None
    return tag("p", tag("code", f"duplex resume {seen.row.id}"), " goes on with it.", class_="hint")


def _actions(row: Row, seen: Seen, folder: Path, *, may: bool) -> Markup:
    place = ("api", "runs", row.id)
    links = [tag("a", "Report", href=address(*place, "report.md"), class_="button")]
    files = (("results.json", "results.json"), ("One page with sound", "viewer.html"))
    links += [
        tag("a", words, href=address(*place, name), class_="button")
        for words, name in files
        if exists(folder / name)
    ]
    if not may:
        links.append(tag("a", "Sign in to change it", href="/sign-in", class_="hint"))
    elif row.status == "running" and not seen.stopping:
        links.append(hidden_form(address("runs", row.id, "cancel"), "Cancel", class_="danger"))
    elif row.status != "running" and seen.told is not None and seen.told.opening.resumable:
        links.append(hidden_form(address("runs", row.id, "again"), "Hold it again"))
    return tag("div", links, class_="row")

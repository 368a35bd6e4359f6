"""A run as a table for spreadsheets: a row for every call, a column for every reading.

What was not measured is empty. The first columns are those that ``duplex
attribute`` wants too, so a run's table can be analysed again after it was edited.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from duplex.exports.subject import Subject
from duplex.report.spreadsheet import text_cell
from duplex.verdict.case import Case, Reading
from duplex.verdict.readings import METRICS, find, read

CHECK = "check: "
"""What the heading of a check begins with."""
_ABOUT = (
    "run",
    "call",
    "scenario",
    "arm",
    "sample",
    "attempt",
    "final",
    "seed",
    "condition",
    "persona",
    "agent",
    "outcome",
    "status",
    "passed",
    "started_at",
    "duration_ms",
    "audio",
)


def table(subject: Subject) -> str:
    """The whole file, heading included."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([text_cell(name) for name in columns(subject)])
    for row in rows(subject):
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def columns(subject: Subject) -> list[str]:
    """The headings: what tells a call, its checks, and every metric that any call has."""
    checks = [f"{CHECK}{one.name}" for one in subject.criteria]
    return [*_ABOUT, *checks, *_metrics(subject)]


def rows(subject: Subject) -> Iterator[list[Reading]]:
    """One row a call, a value for each of :func:`columns`; None was not measured."""
    names = [find(name) for name in _metrics(subject)]
    for case in subject.run.cases:
        said = {one.id: one.passed for one in case.checks}
        verdicts = [said.get(one.id) for one in subject.criteria]
        yield [*_about(subject, case), *verdicts, *(read(name, case.result) for name in names)]


def _metrics(subject: Subject) -> list[str]:
    return [name for name in METRICS if _measured(name, subject)]


def _measured(name: str, subject: Subject) -> bool:
    return any(read(find(name), case.result) is not None for case in subject.run.cases)


def _about(subject: Subject, case: Case) -> tuple[Reading, ...]:
    return (
        subject.run.run_id,
        case.call_id,
        case.scenario,
        case.arm.key if case.arm else None,
        case.sample,
        case.attempt,
        case.final,
        case.seed,
        case.condition,
        case.persona,
        case.agent,
        case.outcome,
        case.result.status,
        case.passed,
        case.started_at,
        case.duration_ms,
        case.result.artifacts.conversation_audio,
    )


def _cell(value: Reading) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_cell(value) if isinstance(value, str) else f"{value:.10g}"

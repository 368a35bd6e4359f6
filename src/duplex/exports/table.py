"""A run as a table for spreadsheets: a row for every call, a column for every reading.

What was not measured is empty. The first columns are those that ``duplex
attribute`` wants too, so a run's table can be analysed again after it was edited.
"""

from __future__ import annotations

import csv
import io

from duplex.exports.subject import Subject
from duplex.report.spreadsheet import text_cell
from duplex.verdict.case import Case, Reading
from duplex.verdict.readings import METRICS, find, read

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
    checks = [f"check: {one.name}" for one in subject.criteria]
    metrics = [name for name in METRICS if _measured(name, subject)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([text_cell(name) for name in (*_ABOUT, *checks, *metrics)])
    for case in subject.run.cases:
        said = {one.id: one.passed for one in case.checks}
        verdicts = [_cell(said.get(one.id)) for one in subject.criteria]
        values = [_cell(read(find(name), case.result)) for name in metrics]
        writer.writerow([*_about(subject, case), *verdicts, *values])
    return out.getvalue()


def _measured(name: str, subject: Subject) -> bool:
    return any(read(find(name), case.result) is not None for case in subject.run.cases)


def _about(subject: Subject, case: Case) -> list[str]:
    told: tuple[Reading, ...] = (
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
    return [_cell(value) for value in told]


def _cell(value: Reading) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_cell(value) if isinstance(value, str) else f"{value:.10g}"

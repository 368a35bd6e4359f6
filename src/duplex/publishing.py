"""What a finished run leaves for pipelines and people: report, JUnit, step summary.

Written beside the results once the run is over; in a GitHub pipeline the report is
also put into the job's summary. A file that cannot be written here costs no run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from duplex.debrief import Debrief
from duplex.errors import DuplexError
from duplex.exports.junit import junit
from duplex.exports.moments_svg import moments_svg
from duplex.exports.roark_debrief import debrief_json
from duplex.exports.subject import Subject, subject_of
from duplex.exports.summary import summary, worst
from duplex.results import schema
from duplex.run_folder import RunFolder
from duplex.values import Json

REPORT, JUNIT, MOMENTS, DEBRIEF = "report.md", "junit.xml", "moments.svg", "debrief.json"
_SUMMARY_BYTES = 1_000_000
"""A job's summary may be 1 MiB; what is longer is left out whole."""


def publish(run: schema.Run, folder: Path) -> None:
    """Write what can be written; nothing here can fail a run."""
    with suppress(DuplexError, OSError):
        place, subject = RunFolder(folder), subject_of(run)
        _written(place, subject)
        _step_summary(summary(subject))


def _written(place: RunFolder, subject: Subject) -> None:
    drawing = moments_svg(subject, worst(subject, placed=True))
    report = summary(subject)
    if drawing is not None:
        place.write_text(place.path / MOMENTS, drawing)
        report += f"\n![Worst moments]({MOMENTS})\n"
    place.write_text(place.path / REPORT, report)
    place.write_text(place.path / JUNIT, junit(subject))
    if subject.debrief is not None:
        place.write_json(place.path / DEBRIEF, _debrief(subject, subject.debrief))


def _debrief(subject: Subject, debrief: Debrief) -> dict[str, Json]:
    """The debrief with its spans, by call ids of the folder."""
    made = subject.run.ended_at or subject.run.created_at
    spans: dict[str, Json] = {
        theme.slug: [
            {
                "call_id": span.call_id,
                "start_ms": span.start_ms,
                "end_ms": span.end_ms,
                "incident": span.incident,
            }
            for span in theme.spans
        ]
        for theme in debrief.themes
    }
    report = debrief_json(debrief, subject.run.run_id, made)
    return report | {"duplex": {"spans": spans}}


def _step_summary(report: str) -> None:
    """Append to the job's summary where GitHub says it is."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place or len(report.encode()) > _SUMMARY_BYTES:
        return
    with Path(place).open("a", encoding="utf-8") as file:
        file.write(report)

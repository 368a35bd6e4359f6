"""A measurement as Markdown: the same sentence, rows and words as on the terminal.

Pure formatting. Nothing is left out because it was not measured: it says so,
with its reason. ``measuring.py`` drives it.
"""

from __future__ import annotations

from duplex.metrics.measurement import Measurement
from duplex.report import words_report
from duplex.report.limits import HEADINGS
from duplex.report.markdown import cell, section, table
from duplex.report.measure_report import (
    TIMES,
    basis,
    checks,
    ledger,
    sentence,
    times_measured,
)


def as_markdown(found: Measurement) -> str:
    """All of it; ends with a line break."""
    lines = [
        f"# {cell(found.file)} ({found.duration_ms / 1000:.1f} s)",
        "",
        cell(sentence(found)),
        "",
        f"Input: **{found.health.verdict.value}**",
        "",
    ]
    said = [reason.text for reason in found.health.reasons] + list(found.health.notes)
    if said:
        lines += [*(f"- {cell(line)}" for line in said), ""]
    lines += section("Checks", table(HEADINGS, [row.cells() for row in checks(found)]))
    if found.timing is not None:
        rows, notes = times_measured(found.timing)
        told = [*table(TIMES, rows), *([""] if rows and notes else [])]
        lines += section("Times", [*told, *(f"- {cell(note)}" for note in notes)])
    lines += section("Ledger", table(("caller turns", ""), ledger(found)))
    if found.words is not None:
        lines += section("Words", words_report.as_markdown(found.words))
    lines += section("Basis", table(("basis", ""), basis(found)))
    return "\n".join(lines).rstrip() + "\n"

"""Measurements for spreadsheets: one row per file, metric and statistic.

What was not measured has an empty value and a reason; a file that was refused
has one row that says so. It reads the measurement's own JSON, so no number can
differ from it. ``measuring.py`` drives it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

from duplex.metrics.measurement import Measurement
from duplex.report.entries import Entry, entries
from duplex.report.spreadsheet import text_cell
from duplex.values import Json

COLUMNS = ("file", "block", "metric", "stat", "value", "unit", "n", "plus_minus_ms", "why_empty")


def write_csv(found: Iterable[Measurement], out: TextIO) -> None:
    """Write a header and all rows."""
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for measurement in found:
        writer.writerows(rows(measurement))


def rows(found: Measurement) -> Iterator[dict[str, str]]:
    """The rows of one recording."""
    document = found.as_json()
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    file = text_cell(found.file)
    yield {
        "file": file,
        "block": "health",
        "metric": "verdict",
        "value": found.health.verdict.value,
        "why_empty": text_cell(found.health.refusal or ""),
    }
    told = [("reason", reason.code, reason.text) for reason in found.health.reasons]
    told += [("note", str(at), text) for at, text in enumerate(found.health.notes)]
    for metric, stat, text in told:
        yield {
            "file": file,
            "block": "health",
            "metric": metric,
            "stat": stat,
            "value": text_cell(text),
        }
    for block in ("contract", "timing", "words"):
        content = document[block]
        if isinstance(content, dict):
            for entry in entries(block, content, unknown):
                yield {"file": file, **_cells(entry)}


def _cells(entry: Entry) -> dict[str, str]:
    return {
        "block": entry.block,
        "metric": entry.metric,
        "stat": entry.stat,
        "value": "" if entry.value is None else _cell(entry.value),
        "unit": entry.unit,
        "n": "" if entry.n is None else _cell(entry.n),
        "plus_minus_ms": "" if entry.plus_minus_ms is None else _cell(entry.plus_minus_ms),
        "why_empty": text_cell(entry.why_empty),
    }


def _cell(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_cell(value) if isinstance(value, str) else str(value)

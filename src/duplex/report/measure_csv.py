"""Measurements for spreadsheets: one row per file, metric and statistic.

What was not measured has an empty value and a reason; a file that was refused
has one row that says so. It reads the measurement's own JSON, so no number can
differ from it. ``measuring.py`` drives it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from duplex.metrics.definitions import DEFINITIONS
from duplex.metrics.measurement import Measurement
from duplex.report.spreadsheet import text_cell
from duplex.values import Json

COLUMNS = ("file", "block", "metric", "stat", "value", "unit", "n", "plus_minus_ms", "why_empty")
_SKIPPED = frozenset(
    {
        "turns",
        "segments",
        "backchannels",
        "sounds",
        "unknown",
        "policy",
        "per_turn",
        "spans",
        "text",
        "utterances",
        "entities",
        "libraries",
    }
)
_NOT_STATS = frozenset({"n", "plus_minus_ms", "ci95_of", "resampled"})


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
            for row in _block(block, content, unknown):
                yield {"file": file, **row}


def _block(
    block: str, content: Mapping[str, Json], unknown: Mapping[str, Json]
) -> Iterator[dict[str, str]]:
    for metric, value in content.items():
        if metric in _SKIPPED:
            continue
        unit = DEFINITIONS[metric].unit if block == "timing" and metric in DEFINITIONS else ""
        for stat, leaf, n, width in _leaves(metric, value):
            pointer = f"/{block}/{stat}"
            yield {
                "block": block,
                "metric": metric,
                "stat": stat.removeprefix(metric).lstrip("/").replace("/", "."),
                "value": "" if leaf is None else _cell(leaf),
                "unit": unit,
                "n": "" if n is None else _cell(n),
                "plus_minus_ms": "" if width is None else _cell(width),
                "why_empty": text_cell(_reason(pointer, unknown)) if leaf is None else "",
            }


def _leaves(
    path: str, value: Json, n: Json = None, width: Json = None
) -> Iterator[tuple[str, Json, Json, Json]]:
    """Every single value below a metric, with the n and ± that stand beside it."""
    if isinstance(value, dict):
        n, width = value.get("n", n), value.get("plus_minus_ms", width)
        for name, item in value.items():
            if name not in _NOT_STATS and name not in _SKIPPED:
                yield from _leaves(f"{path}/{name}", item, n, width)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}/{index}", item, n, width)
    else:
        yield path, value, n, width


def _reason(pointer: str, unknown: Mapping[str, Json]) -> str:
    """Why a value is null: its own reason or that of what holds it."""
    while pointer:
        if pointer in unknown:
            return str(unknown[pointer])
        pointer = pointer.rpartition("/")[0]
    return "not measured"


def _cell(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_cell(value) if isinstance(value, str) else str(value)

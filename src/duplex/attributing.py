"""``duplex attribute``: the analysis of a sweep on any table of calls.

Reads CSV with the columns ``call,value,outcome,check,passed``, one row for each
check of a call, and prints the attribution as JSON, one line a file. The first
value in a file is its baseline.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from duplex.counting import counted
from duplex.errors import InputError
from duplex.inputs import read_text
from duplex.results.outcome import Outcome
from duplex.values import Json
from duplex.verdict.attribution import Sweep, SweptCall, SweptValue, attribute
from duplex.verdict.attribution_json import sweep_json

COLUMNS = ("call", "value", "outcome", "check", "passed")
_BYTES = 256 << 20
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


def command(paths: Sequence[Path]) -> None:
    """Print one object a file. Raises InputError naming the file and line that is wrong."""
    found = [attribution(path) for path in paths]
    for one in found:
        print(json.dumps(one, allow_nan=False, ensure_ascii=False))


def attribution(path: Path) -> dict[str, Json]:
    """The attribution of one file, as JSON."""
    return sweep_json(analysed(path))


def analysed(path: Path) -> Sweep:
    """Read a file and analyse it."""
    calls: dict[str, SweptCall] = {}
    checks: dict[str, None] = {}
    for line, row in _rows(path):
        call = _call(path, line, row, calls)
        if row["check"]:
            _verdict(path, line, row, call)
            checks[row["check"]] = None
    if not calls:
        raise InputError(f"table {path}: it holds no call")
    values = dict.fromkeys(call.value for call in calls.values())
    swept = [SweptValue(key=value, value=value, label=value) for value in values]
    return attribute(swept, tuple(calls.values()), tuple(checks))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    text = read_text(path, f"table {path}", limit=_BYTES)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        heading = [name.strip() for name in next(reader, [])]
        if sorted(heading) != sorted(COLUMNS):
            wanted = ",".join(COLUMNS)
            raise InputError(f"table {path}: columns are {','.join(heading)}, want {wanted}")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(heading):
                raise InputError(
                    f"table {path}: line {reader.line_num} has {counted(len(cells), 'cell')}, "
                    f"want {len(heading)}"
                )
            row = {name: cell.strip() for name, cell in zip(heading, cells, strict=True)}
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"table {path}: line {reader.line_num}: {error}") from None


def _call(path: Path, line: int, row: dict[str, str], calls: dict[str, SweptCall]) -> SweptCall:
    outcome = _OUTCOMES.get(row["outcome"])
    if outcome is None:
        raise InputError(
            f'table {path}: line {line}: outcome "{row["outcome"]}" is none of '
            f"{', '.join(_OUTCOMES)}"
        )
    for name in ("call", "value"):
        if not row[name]:
            raise InputError(f"table {path}: line {line}: {name} is empty")
    call = calls.setdefault(row["call"], SweptCall(value=row["value"], outcome=outcome))
    if (call.value, call.outcome) != (row["value"], outcome):
        raise InputError(
            f'table {path}: line {line}: call "{row["call"]}" has another value or outcome above'
        )
    return call


def _verdict(path: Path, line: int, row: dict[str, str], call: SweptCall) -> None:
    """Take a row's check; one that could not be graded has an empty ``passed``."""
    said = row["passed"].lower()
    if not said:
        return
    if said not in _TRUTH:
        raise InputError(
            f'table {path}: line {line}: passed "{row["passed"]}" is neither true nor false'
        )
    if row["check"] in call.checks:
        raise InputError(
            f'table {path}: line {line}: call "{row["call"]}" has check "{row["check"]}" twice'
        )
    call.checks[row["check"]] = _TRUTH[said]

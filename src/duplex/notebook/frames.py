"""Data frames of results: one row a call, a turn or a value. Needs pandas.

Values are those of the results, unrounded; what was not measured is missing, never
zero. ``Run``, ``Call`` and ``Metrics`` drive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from duplex.exports import table
from duplex.exports.subject import subject_of
from duplex.notebook.metrics import Block, Metrics
from duplex.report.entries import Entry
from duplex.results import schema
from duplex.values import Json
from duplex.verdict.readings import METRICS
from duplex.viewer.reading import number, objects

_NUMBER, _COUNT, _TRUTH, _WORD = "Float64", "Int64", "boolean", "string"
TURN_COLUMNS = {
    "side": _WORD,
    "start_ms": _NUMBER,
    "end_ms": _NUMBER,
    "voice_ms": _NUMBER,
    "overlap_ms": _NUMBER,
    "response_latency_ms": _NUMBER,
    "plus_minus_ms": _NUMBER,
    "unreliable": _TRUTH,
    "kind": _WORD,
    "answers": _COUNT,
    "outcome": _WORD,
    "answered_by": _COUNT,
    "waited_ms": _NUMBER,
    "barge_in": _TRUTH,
    "yielded": _TRUTH,
    "stop_after_ms": _NUMBER,
    "turn_taking_score": _NUMBER,
    "cut_ins": _COUNT,
    "actions": _WORD,
}
"""Columns that a frame of turns always has, behind ``call`` and ``turn``; others follow."""
_CALL_COLUMNS = {
    "sample": _COUNT,
    "attempt": _COUNT,
    "seed": _COUNT,
    "final": _TRUTH,
    "passed": _TRUTH,
    "duration_ms": _NUMBER,
}
_METRIC_COLUMNS = {
    "block": _WORD,
    "metric": _WORD,
    "stat": _WORD,
    "value": _NUMBER,
    "text": _WORD,
    "unit": _WORD,
    "n": _COUNT,
    "plus_minus_ms": _NUMBER,
    "why_empty": _WORD,
}
_OF_OUTPUT = {"COUNT": _COUNT, "BOOLEAN": _TRUTH, "NUMERIC": _NUMBER, "OFFSET": _NUMBER}


def of_calls(run: schema.Run, ids: Sequence[str]) -> pd.DataFrame:
    """One row a call, the columns of ``duplex export --as csv``; ``ids`` are the calls' own."""
    subject = subject_of(run)
    names = table.columns(subject)
    kinds = dict.fromkeys(names, _WORD) | _CALL_COLUMNS
    kinds |= {name: _TRUTH for name in names if name.startswith(table.CHECK)}
    kinds |= {name: _OF_OUTPUT[METRICS[name].output] for name in names if name in METRICS}
    frame = _framed([dict(zip(names, row, strict=True)) for row in table.rows(subject)], kinds)
    frame["call"] = pd.array(list(ids), dtype="string")
    frame["started_at"] = pd.to_datetime(frame["started_at"], utc=True, errors="coerce")
    return frame


def of_turns(calls: Mapping[str, Block]) -> pd.DataFrame:
    """One row a turn of either side; ``turn`` is what ``answers`` and ``answered_by`` refer to."""
    rows = [
        {"call": name, "turn": at, **{key: _flat(value) for key, value in turn.items()}}
        for name, block in calls.items()
        for at, turn in enumerate(objects(block.get("turns")))
    ]
    kinds = {"call": _WORD, "turn": _COUNT, **TURN_COLUMNS}
    others = sorted({key for row in rows for key in row} - set(kinds))
    kinds |= {key: _NUMBER if key.endswith("_ms") else _WORD for key in others}
    return _framed(rows, kinds)


def of_metrics(found: Metrics) -> pd.DataFrame:
    """One row a value; ``value`` holds numbers, ``text`` what is none."""
    return _framed([_told(entry) for entry in found.entries], _METRIC_COLUMNS)


def _told(entry: Entry) -> Mapping[str, Json]:
    number = isinstance(entry.value, int | float)
    return {
        "block": entry.block,
        "metric": entry.metric,
        "stat": entry.stat,
        "value": float(entry.value) if isinstance(entry.value, int | float) else None,
        "text": None if number or entry.value is None else str(entry.value),
        "unit": entry.unit,
        "n": entry.n,
        "plus_minus_ms": entry.plus_minus_ms,
        "why_empty": entry.why_empty,
    }


def _flat(value: Json) -> Json:
    """A list, such as a turn's actions, as one word."""
    if isinstance(value, list | dict):
        inner: Iterable[Json] = value if isinstance(value, list) else value.values()
        return " ".join(str(one) for one in inner)
    return value


def _framed(rows: Sequence[Mapping[str, Json]], kinds: Mapping[str, str]) -> pd.DataFrame:
    """A frame whose columns have these types, whatever is in it; what does not fit is missing."""
    cells = [[_fitting(row.get(name), kind) for name, kind in kinds.items()] for row in rows]
    frame = pd.DataFrame(cells, columns=list(kinds), dtype=object)
    return frame.astype(dict(kinds))


def _fitting(value: Json, kind: str) -> Json:
    if value is None or (kind == _TRUTH) != isinstance(value, bool):
        return str(value) if kind == _WORD and value is not None else None
    if kind == _WORD:
        return str(value)
    if kind == _TRUTH:
        return value
    found = number(value)
    return None if found is None else found if kind == _NUMBER else int(found)

"""How well an edge is known: from the edge detector's visibility deficit to ± ms.

The widths are a table by deficit, fitted on planted conversations and kept in
``data/edge_intervals.json``, each the quantile of the errors that were seen
there. A width is never made up: above the last row an edge is unreliable and
has none. ``detect.py`` drives it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TypedDict

from duplex.values import EdgeError

Row = tuple[float, float]
"""Deficits below the first, in dB, have the half width of the second, in ms."""


class _Entry(TypedDict):
    below_db: float
    plus_minus_ms: float


def edge_error(name: str, deficit_db: float, *, masked: bool, unreliable: bool) -> EdgeError:
    """The width of one ``onset`` or ``offset``."""
    if unreliable:
        return EdgeError(masked=masked, unreliable=True)
    for below_db, width_ms in _rows(name):
        if deficit_db < below_db:
            return EdgeError(plus_minus_ms=width_ms, masked=masked)
    return EdgeError(masked=masked, unreliable=True)


@cache
def _rows(name: str) -> tuple[Row, ...]:
    text = files("duplex").joinpath("data/edge_intervals.json").read_text(encoding="utf-8")
    entries: list[_Entry] = json.loads(text)[name]
    return tuple((row["below_db"], row["plus_minus_ms"]) for row in entries)

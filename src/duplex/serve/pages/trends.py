"""How the runs of one plan, or the calls of one scenario, went from run to run.

Takes settled runs, asks the verdict's own aggregates for their numbers and keeps those
while a run's files stay as they are. Reading only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from duplex.errors import DuplexError
from duplex.serve.library import SETTLED, Library
from duplex.serve.pages.charts import Point, Share
from duplex.serve.pages.markup import address
from duplex.serve.refusals import Refusal
from duplex.store import Row
from duplex.verdict.aggregates import aggregates
from duplex.verdict.block import judged

MOST_RUNS = 30
_KEPT = 512


class Trends:
    """Points of trends over one library, read once."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = Lock()
        self._points: OrderedDict[tuple[str, str, str | None], Point | None] = OrderedDict()

    def points(self, rows: Sequence[Row], scenario: str | None = None) -> list[Point]:
        """The newest settled ones of these runs, oldest first."""
        settled = [row for row in rows if row.status in SETTLED][:MOST_RUNS]
        found = [self._point(row, scenario) for row in reversed(settled)]
        return [point for point in found if point is not None]

    def _point(self, row: Row, scenario: str | None) -> Point | None:
        key = (row.id, self._library.stamp(row), scenario)
        with self._lock:
            if key in self._points:
                self._points.move_to_end(key)
                return self._points[key]
        point = self._read(row, scenario)
        with self._lock:
            self._points[key] = point
            while len(self._points) > _KEPT:
                self._points.popitem(last=False)
        return point

    def _read(self, row: Row, scenario: str | None) -> Point | None:
        """What a run adds to a trend; None for one that held nothing of it."""
        try:
            run, criteria, _ = judged(self._library.results(row))
        except (DuplexError, Refusal):
            return None
        cases = [one for one in run.final if scenario in (None, one.scenario)]
        if not cases:
            return None
        graded = [one.passed for one in cases if one.evaluated]
        found = {one.id: one for one in aggregates(cases, criteria)}
        replies = found.get("response_latency")
        numbers = None if replies is None else replies.numbers
        share = Share(name=row.id, passed=sum(one is True for one in graded), graded=len(graded))
        return Point(
            href=address("runs", row.id),
            share=replace(share, name=f"{row.id}, {row.created_at[:10]}"),
            median_ms=None if numbers is None else numbers.median,
            p95_ms=None if numbers is None else numbers.p95,
            verdict=row.passed,
        )

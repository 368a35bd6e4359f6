"""``duplex list``, ``show`` and ``cancel``: runs found again, one looked at, one stopped.

Reads the store and prints; a run is stopped by a file that its runner looks for,
so any process may ask and none is killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.counting import counted
from duplex.errors import InputError
from duplex.report import run_report
from duplex.report.verdict_report import verdict_lines
from duplex.results import schema
from duplex.results.run import headline
from duplex.results.stored import load_results
from duplex.run_filters import Filters, fitting
from duplex.run_folder import RunFolder
from duplex.screen import plain
from duplex.stopping import ask_to_stop
from duplex.store import Row, Store, find_run
from duplex.store.index import row_now
from duplex.verdict.block import judged
from duplex.verdict.incidents import incidents

_COLUMNS = ("run", "when", "status", "verdict", "score", "calls", "agent", "condition")


def rows(folder: Path, filters: Filters, *, now: datetime | None = None) -> list[Row]:
    """The runs below ``folder`` that fit, newest first. Raises InputError for a wrong filter."""
    return fitting(Store(folder).rows(), filters, now=now)


def list_runs(folder: Path, filters: Filters, *, as_json: bool, console: Console) -> None:
    found = rows(folder, filters)
    if as_json:
        print(json.dumps([asdict(row) for row in found], ensure_ascii=False, allow_nan=False))
        return
    if not found:
        console.print(Text(f"no run in {folder} fits; see duplex list --help"))
        return
    for line in _table([_COLUMNS, *(_cells(row) for row in found)]):
        console.print(Text(plain(line)))
    if any(row.status == "interrupted" for row in found):
        console.print(Text("interrupted: duplex resume RUN holds the calls that are missing"))


def show(run: Path, folder: Path, *, as_json: bool, markdown: bool, console: Console) -> None:
    """Print one run again, as it was told when it ended."""
    place = find_run(run, folder)
    row = row_now(place)
    if not (place / "results.json").exists():
        if row.problem:
            raise InputError(row.problem)
        console.print(Text(_going(row)))
        return
    results = load_results(place / "results.json")
    if as_json:
        print(schema.to_json(results))
    elif markdown:
        print(run_report.as_markdown(results), end="")
    else:
        if row.status in ("running", "interrupted"):
            console.print(Text(plain(_going(row)), style="bold"))
        console.print(Text(plain(headline(results)), style="bold"))
        for line in run_report.short(results):
            console.print(Text(plain(line)))
        for line in (*verdict_lines(results), *_incidents(results)):
            console.print(Text(plain(line)))
        console.print(Text(f"results: {place / 'results.json'}"))
        console.print(Text(f"status: {row.status}"))


def _going(row: Row) -> str:
    """How far a run is that is not told whole, and what goes on with it."""
    held = f"{row.total} of {counted(row.expected, 'call')} held"
    mends = {"running": "", "interrupted": f"; duplex resume {row.path} goes on with it"}
    mend = mends.get(row.status, "; duplex resume writes its results")
    return f"{row.id} is {row.status}: {held}{mend}"


def _incidents(results: schema.Run) -> Iterator[str]:
    """What went wrong, each with its id for ``scenario from-run``."""
    cases, criteria, _ = judged(results)
    for one in incidents(cases, criteria):
        at = "" if one.start_ms is None else f" at {one.start_ms / 1000:.1f} s"
        yield f"incident {one.id}: {one.call_id}{at}: {one.sentence}"


def cancel(run: Path, folder: Path, console: Console) -> None:
    """Ask a run to stop; a run that is over stays as it is."""
    place = find_run(run, folder)
    row = row_now(place)
    if row.problem:
        raise InputError(row.problem)
    if row.status != "running":
        console.print(Text(f"{row.id} is {row.status}; there is nothing to cancel"))
        return
    ask_to_stop(RunFolder.open(place))
    console.print(Text(f"{row.id}: asked to stop; calls in progress end and keep what there is"))


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "passed", False: "failed", None: "–"}[row.passed]
    whole = row.status != "interrupted" and row.total
    calls = f"{row.passed_calls}/{whole or row.expected}"
    score = "–" if row.score is None else f"{row.score:.1f}"
    when = row.created_at[:16].replace("T", " ") or "–"
    return (row.id, when, row.status, verdict, score, calls, row.agent, row.condition)


def _table(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]

"""``duplex list``, ``show`` and ``cancel``: runs found again, one looked at, one stopped.

Reads the store and prints; a run is stopped by a file that its runner looks for,
so any process may ask and none is killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.clock import utc_seconds
from duplex.counting import counted
from duplex.errors import InputError
from duplex.report import run_report
from duplex.report.verdict_report import verdict_lines
from duplex.results import schema
from duplex.results.run import headline
from duplex.results.stored import load_results
from duplex.run_folder import RunFolder
from duplex.screen import plain
from duplex.stopping import ask_to_stop
from duplex.store import Row, Store, find_run
from duplex.store.index import row_of
from duplex.verdict.block import judged
from duplex.verdict.incidents import incidents

WINDOW_DAYS = 45
_COLUMNS = ("run", "when", "status", "verdict", "score", "calls", "agent", "condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a list shows: half open in time, every filter that is given must fit."""

    since: str | None = None
    until: str | None = None
    status: str | None = None
    agent: str | None = None
    scenario: str | None = None
    failed: bool = False
    limit: int = 50


def rows(folder: Path, filters: Filters, *, now: datetime | None = None) -> list[Row]:
    """The runs below ``folder`` that fit, newest first. Raises InputError for a wrong window."""
    return fitting(Store(folder).rows(), filters, now=now)


def fitting(rows: Iterable[Row], filters: Filters, *, now: datetime | None = None) -> list[Row]:
    """Those of these rows that fit, in their order. Raises InputError for a wrong window."""
    end = _moment(filters.until, "until") or (
        now or datetime.fromtimestamp(utc_seconds(), UTC)
    ) + timedelta(days=1)
    try:
        start = _moment(filters.since, "since") or end - timedelta(days=WINDOW_DAYS)
    except OverflowError:
        raise InputError(f'until "{filters.until}" is too early for a window before it') from None
    if start >= end:
        raise InputError(f"the window ends ({end:%Y-%m-%d}) before it begins ({start:%Y-%m-%d})")
    found = []
    for row in rows:
        made = _made(row)
        if made is not None and not start <= made < end:
            continue
        if _fits(row, filters):
            found.append(row)
    return found[: filters.limit]


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


def show(run: Path, folder: Path, *, as_json: bool, markdown: bool, console: Console) -> None:
    """Print one run again, as it was told when it ended."""
    place = find_run(run, folder)
    if not (place / "results.json").exists():
        row = row_of(place)
        if row.problem:
            raise InputError(row.problem)
        held = f"{row.total} of {counted(row.expected, 'call')} held"
        mend = "" if row.status == "running" else "; duplex resume writes its results"
        console.print(Text(f"{row.id} is {row.status}: {held}{mend}"))
        return
    results = load_results(place / "results.json")
    if as_json:
        print(schema.to_json(results))
    elif markdown:
        print(run_report.as_markdown(results), end="")
    else:
        console.print(Text(plain(headline(results)), style="bold"))
        for line in run_report.short(results):
            console.print(Text(plain(line)))
        for line in (*verdict_lines(results), *_incidents(results)):
            console.print(Text(plain(line)))
        console.print(Text(f"results: {place / 'results.json'}"))
        console.print(Text(f"status: {row_of(place).status}"))


def _incidents(results: schema.Run) -> Iterator[str]:
    """What went wrong, each with its id for ``scenario from-run``."""
    cases, criteria, _ = judged(results)
    for one in incidents(cases, criteria):
        at = "" if one.start_ms is None else f" at {one.start_ms / 1000:.1f} s"
        yield f"incident {one.id}: {one.call_id}{at}: {one.sentence}"


def cancel(run: Path, folder: Path, console: Console) -> None:
    """Ask a run to stop; a run that is over stays as it is."""
    place = find_run(run, folder)
    row = _now(place)
    if row.status != "running":
        console.print(Text(f"{row.id} is {row.status}; there is nothing to cancel"))
        return
    ask_to_stop(RunFolder.open(place))
    console.print(Text(f"{row.id}: asked to stop; calls in progress end and keep what there is"))


def _now(place: Path) -> Row:
    parent = place.resolve().parent
    for row in Store(parent).rows():
        if row.id == place.resolve().name:
            return row
    raise InputError(f"run {place} has neither results nor a journal")


def _fits(row: Row, filters: Filters) -> bool:
    return (
        (filters.status is None or row.status == filters.status)
        and (filters.agent is None or row.agent == filters.agent)
        and (filters.scenario is None or filters.scenario in row.scenarios)
        and (not filters.failed or row.passed is False)
    )


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


def _made(row: Row) -> datetime | None:
    try:
        made = datetime.fromisoformat(row.created_at.replace("Z", "+00:00"))
    except ValueError:
        return None
    return made if made.tzinfo else made.replace(tzinfo=UTC)


def _moment(text: str | None, name: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f'{name} "{text}" is no date, want for example 2026-08-01 or 2026-08-01T12:00'
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

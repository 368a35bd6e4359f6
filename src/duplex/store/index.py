"""An SQLite index of the runs below one folder, rebuilt from them at any time.

The folders are the truth: a row is read again whenever the run's files changed,
a row whose folder is gone is dropped, and an index that is damaged, locked or
cannot be written is made anew or done without. Reading only, beside the index.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from duplex.errors import DuplexError, InputError
from duplex.inputs import is_folder
from duplex.journal import NAME as JOURNAL
from duplex.journal import Told
from duplex.journal import read as read_journal
from duplex.results import schema
from duplex.results.stored import load_results
from duplex.run_lock import is_running
from duplex.verdict.block import judged
from duplex.verdict.verdict import summarise

NAME = ".duplex-index.sqlite"
_VERSION = 1
_RESULTS = "results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run as a list shows it.

    ``status`` is running, interrupted (its runner is gone and calls are missing),
    completed, failed, timed_out, cancelled, or damaged (its files cannot be read).
    ``passed`` is None without a verdict; ``score`` is in per cent.
    """

    id: str
    path: str
    status: str
    created_at: str
    ended_at: str | None
    plan_id: str
    name: str | None
    agent: str
    condition: str
    mode: str
    passed: bool | None
    score: float | None
    total: int
    passed_calls: int
    failed_calls: int
    infrastructure_errors: int
    expected: int
    scenarios: tuple[str, ...] = ()
    problem: str | None = None


class Store:
    """The runs below a folder."""

    def __init__(self, folder: Path) -> None:
        if not is_folder(folder):
            raise InputError(f"runs {folder} is no folder")
        self.folder = folder

    def rows(self) -> list[Row]:
        """Every run, newest first; the index is brought up to date on the way."""
        stamps = dict(_stamps(self.folder))
        with closing(_opened(self.folder)) as index:
            known = {
                id: (stamp, row)
                for id, stamp, row in index.execute("SELECT id, stamp, row FROM runs")
            }
            found, changed = [], []
            for id, stamp in stamps.items():
                have = known.get(id)
                if have is not None and have[0] == stamp:
                    row = _row_from(have[1])
                else:
                    row = row_of(self.folder / id)
                    changed.append((id, stamp, json.dumps(asdict(row))))
                found.append(_live(self.folder, row))
            gone = [(id,) for id in known if id not in stamps]
            if changed or gone:
                with suppress(sqlite3.Error), index:
                    index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", changed)
                    index.executemany("DELETE FROM runs WHERE id = ?", gone)
        return sorted(found, key=lambda row: (row.created_at, row.id), reverse=True)


def find_run(name: str | Path, folder: Path) -> Path:
    """A run's folder by its path, or by its id below ``folder``; raises InputError."""
    path = Path(name)
    if is_folder(path):
        return path
    if is_folder(folder / path) and path.name == str(name):
        return folder / path
    raise InputError(f"run {name}: there is no such folder, here or in {folder}")


def row_of(folder: Path) -> Row:
    """Read one run's folder."""
    try:
        told = read_journal(folder) if (folder / JOURNAL).exists() else None
        if (folder / _RESULTS).exists():
            return _from_results(folder, load_results(folder / _RESULTS), told)
        if told is None:
            raise InputError(f"run {folder} has neither results nor a journal")
        return _from_journal(folder, told)
    except DuplexError as error:
        return _damaged(folder, str(error))


def row_now(folder: Path) -> Row:
    """Read one run's folder, and whether somebody holds it."""
    place = folder.resolve()
    return _live(place.parent, row_of(place))


def _from_results(folder: Path, run: schema.Run, told: Told | None) -> Row:
    cases, checks, verdict = judged(run)
    summary = summarise(cases.cases, checks)
    agents = sorted({case.agent for case in cases.cases})
    return Row(
        id=folder.name,
        path=str(folder),
        status=_status(told) if told is not None else cases.status,
        created_at=cases.created_at,
        ended_at=cases.ended_at,
        plan_id=cases.plan_id,
        name=cases.plan_name,
        agent=", ".join(agents) or "–",
        condition=run.run.configuration.audio_condition,
        mode=run.run.execution_mode,
        passed=None if verdict is None else verdict.passed,
        score=None if summary.score is None else round(summary.score, 1),
        total=run.summary.total,
        passed_calls=run.summary.passed,
        failed_calls=run.summary.failed,
        infrastructure_errors=run.summary.infrastructure_errors,
        expected=cases.expected,
        scenarios=tuple(sorted({case.scenario for case in cases.cases})),
    )


def _from_journal(folder: Path, told: Told) -> Row:
    options = told.opening.options
    return Row(
        id=folder.name,
        path=str(folder),
        status=_status(told),
        created_at=told.opening.created_at,
        ended_at=None if told.over is None else told.over.at,
        plan_id="",
        name=None,
        agent=str(options.get("assistant", "local")),
        condition=" + ".join(map(str, _listed(options.get("condition")))) or "clean",
        mode="offline" if options.get("clock") == "virtual" else "live",
        passed=None,
        score=None,
        total=sum(entry.final for entry in told.ended.values()),
        passed_calls=0,
        failed_calls=0,
        infrastructure_errors=0,
        expected=len(told.opening.calls),
        scenarios=tuple(sorted(told.opening.scenarios)),
    )


def _damaged(folder: Path, problem: str) -> Row:
    return Row(
        id=folder.name,
        path=str(folder),
        status="damaged",
        created_at="",
        ended_at=None,
        plan_id="",
        name=None,
        agent="–",
        condition="–",
        mode="–",
        passed=None,
        score=None,
        total=0,
        passed_calls=0,
        failed_calls=0,
        infrastructure_errors=0,
        expected=0,
        problem=problem,
    )


def _status(told: Told) -> str:
    return "interrupted" if told.over is None else told.over.status


def _live(folder: Path, row: Row) -> Row:
    """A run that nobody finished is running while somebody holds its folder."""
    if row.status != "interrupted":
        return row
    place = folder / row.id
    if not is_running(place):
        # Its runner may have finished it and left since the row was read.
        return row_of(place) if _finished(place) else row
    return _row_from(json.dumps(asdict(row) | {"status": "running"}))


def _finished(place: Path) -> bool:
    try:
        return read_journal(place).over is not None
    except DuplexError:
        return False


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _row_from(text: str) -> Row:
    stored = json.loads(text)
    return Row(**{**stored, "scenarios": tuple(stored["scenarios"])})


def _stamps(folder: Path) -> Iterator[tuple[str, str]]:
    """Each run's folder and what tells that its files changed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not _is_text(entry.name) or not entry.is_dir():
                continue
            marks = []
            for name in (_RESULTS, JOURNAL):
                with suppress(OSError):
                    about = os.stat(os.path.join(entry.path, name))
                    marks.append(f"{name}:{about.st_mtime_ns}:{about.st_size}:{about.st_ino}")
            if marks:
                yield entry.name, " ".join(marks)


def _is_text(name: str) -> bool:
    """Whether a name can be written and asked for: one of other bytes names no run."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _opened(folder: Path) -> sqlite3.Connection:
    """The folder's index; a damaged one is made anew, and memory serves where none can be."""
    path = folder / NAME
    for _ in range(2):
        try:
            return _connected(str(path))
        except sqlite3.DatabaseError:
            with suppress(OSError):
                path.unlink()
    return _connected(":memory:")


def _connected(path: str) -> sqlite3.Connection:
    index = sqlite3.connect(path, timeout=2.0)
    try:
        (version,) = index.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            with index:
                index.execute("DROP TABLE IF EXISTS runs")
                index.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, stamp TEXT, row TEXT)")
                index.execute(f"PRAGMA user_version = {_VERSION}")
        index.execute("SELECT id, stamp, row FROM runs LIMIT 1").fetchall()
    except sqlite3.Error:
        index.close()
        raise
    return index

"""Runs found again: listed, filtered, rebuilt from their folders, damaged or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from duplex.errors import InputError
from duplex.journal import NAME as JOURNAL
from duplex.journal import Journal, Opening
from duplex.listing import cancel, rows
from duplex.results.schema import to_json
from duplex.run_filters import Filters
from duplex.run_folder import RunFolder
from duplex.run_lock import RunLock
from duplex.stopping import StopFile
from duplex.store import Store, find_run
from duplex.store.index import NAME
from verdict_runs import call, run

NOW = datetime(2026, 8, 20, tzinfo=UTC)


def stored(
    folder: Path, id: str, *, passed: bool = True, created_at: str = "2026-08-01T00:00:00Z"
) -> Path:
    made = run(call(passed=passed), created_at=created_at)
    told = made.model_copy(update={"run": made.run.model_copy(update={"id": id})})
    place = folder / id
    place.mkdir(parents=True)
    (place / "results.json").write_text(to_json(told))
    return place


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    lock = RunLock()
    lock.take(folder)
    try:
        yield
    finally:
        lock.release()


def opening(*calls: str) -> Opening:
    return Opening(
        created_at="2026-08-01T00:00:00.000Z",
        options={"assistant": "local", "clock": "virtual"},
        scenarios={"booking": "0" * 64},
        calls=list(calls),
        criteria=[],
    )


def test_runs_are_listed_newest_first_with_their_verdicts(tmp_path: Path) -> None:
    stored(tmp_path, "a", created_at="2026-08-01T00:00:00Z")
    stored(tmp_path, "b", created_at="2026-08-02T00:00:00Z", passed=False)
    found = Store(tmp_path).rows()
    assert [(row.id, row.passed, row.score) for row in found] == [("b", False, 0), ("a", True, 100)]


def test_a_changed_or_lost_run_is_seen_at_once(tmp_path: Path) -> None:
    place = stored(tmp_path, "a")
    assert Store(tmp_path).rows()[0].passed is True
    (place / "results.json").write_text(to_json(run(call(passed=False))))
    assert Store(tmp_path).rows()[0].passed is False
    (place / "results.json").unlink()
    assert Store(tmp_path).rows() == []


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"x" * 200])
def test_a_damaged_index_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    stored(tmp_path, "a")
    before = Store(tmp_path).rows()
    (tmp_path / NAME).write_bytes(damage)
    assert Store(tmp_path).rows() == before
    assert Store(tmp_path).rows() == before


def test_a_damaged_run_is_listed_as_such(tmp_path: Path) -> None:
    place = stored(tmp_path, "a")
    (place / "results.json").write_text("{")
    (row,) = Store(tmp_path).rows()
    assert row.status == "damaged"
    assert row.problem is not None


def test_a_folder_that_is_no_run_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert Store(tmp_path).rows() == []


def test_a_folder_whose_name_is_no_text_hides_no_other_run(tmp_path: Path) -> None:
    stored(tmp_path, "a")
    stored(tmp_path, "b").rename(tmp_path / "\udcff")
    assert [row.id for row in Store(tmp_path).rows()] == ["a"]


def test_a_run_without_its_runner_is_interrupted_and_with_it_running(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.mkdir()
    Journal.create(place, opening("booking")).close()
    assert Store(tmp_path).rows()[0].status == "interrupted"
    with locked(place):
        assert Store(tmp_path).rows()[0].status == "running"
    assert Store(tmp_path).rows()[0].status == "interrupted"


def test_filters_and_the_half_open_window(tmp_path: Path) -> None:
    stored(tmp_path, "old", created_at="2026-06-01T00:00:00Z")
    stored(tmp_path, "first", created_at="2026-08-01T00:00:00Z")
    stored(tmp_path, "last", created_at="2026-08-10T00:00:00Z", passed=False)

    def ids(**filters: object) -> list[str]:
        return [row.id for row in rows(tmp_path, Filters(**filters), now=NOW)]  # type: ignore[arg-type]

    assert ids() == ["last", "first"]
    assert ids(since="2026-08-01", until="2026-08-10") == ["first"]
    assert ids(since="2026-01-01") == ["last", "first", "old"]
    assert ids(failed=True) == ["last"]
    assert ids(agent="other") == []
    assert ids(limit=1) == ["last"]
    with pytest.raises(InputError, match="before it begins"):
        ids(since="2026-08-10", until="2026-08-01")
    with pytest.raises(InputError, match="no date"):
        ids(since="yesterday")
    with pytest.raises(InputError, match="none of: running, interrupted"):
        ids(status="broken")


def test_a_thousand_runs_are_read_from_the_index_and_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = to_json(run(call()))
    for n in range(1000):
        place = tmp_path / f"run_{n}"
        place.mkdir()
        (place / "results.json").write_text(text)
    assert len(Store(tmp_path).rows()) == 1000

    def never(_: Path) -> None:
        raise AssertionError("a run that did not change was read again")

    monkeypatch.setattr("duplex.store.index.row_of", never)
    assert len(Store(tmp_path).rows()) == 1000


def test_a_run_is_found_by_path_and_by_id(tmp_path: Path) -> None:
    place = stored(tmp_path, "a")
    assert find_run(place, Path("elsewhere")) == place
    assert find_run("a", tmp_path) == place
    for name in ("b", "../a", ""):
        with pytest.raises(InputError, match="no such folder"):
            find_run(name or "missing", tmp_path / "none")


def test_a_second_runner_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match="has a runner already"):
        RunLock().take(tmp_path)
    with locked(tmp_path):
        pass


def test_only_a_run_in_progress_is_asked_to_stop(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.mkdir()
    Journal.create(place, opening("booking")).close()
    folder, said = RunFolder.open(place), Console(quiet=True)
    cancel(place, tmp_path, said)
    assert not StopFile(folder)()
    with locked(place):
        cancel(place, tmp_path, said)
        assert StopFile(folder)()
    StopFile(folder).clear()
    assert not StopFile(folder)()


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, opening("a", "b"))
    journal.began("a", 1, "a")
    journal.ended("a", 1, "a", final=False)
    journal.ended("a", 2, "a.a2", final=True)
    journal.over("cancelled", "the user")
    journal.close()
    again = Journal.reopen(tmp_path)
    assert [one.call for one in again.told.attempts("a")] == ["a", "a.a2"]
    assert again.told.over is not None
    assert again.told.over.reason == "the user"


@pytest.mark.parametrize(
    "tail", [b'{"type":"ended","case":"b","att', b"}{\n", b"\xff\xfe\n", b'{"type":"what"}\n']
)
def test_a_half_written_line_is_set_aside_and_the_rest_kept(tmp_path: Path, tail: bytes) -> None:
    """Field case NVIDIA-AI-Blueprints/nemotron-voice-agent#120."""
    journal = Journal.create(tmp_path, opening("a", "b"))
    journal.ended("a", 1, "a", final=True)
    journal.close()
    path = tmp_path / JOURNAL
    path.write_bytes(path.read_bytes() + tail)
    again = Journal.reopen(tmp_path)
    again.ended("b", 1, "b", final=True)
    again.close()
    told = Journal.reopen(tmp_path).told
    assert sorted(told.ended) == ["a", "b"]
    assert told.damaged == []
    assert tail.strip() in (tmp_path / "journal.damaged").read_bytes()
    for line in path.read_bytes().splitlines():
        json.loads(line)


def test_a_journal_without_its_first_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("{}\n")
    with pytest.raises(InputError, match="line 1"):
        Journal.reopen(tmp_path)

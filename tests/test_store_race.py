"""A run that ends while it is being listed is never told as one whose runner is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from duplex.run_lock import is_running
from duplex.store import Store
from serve_support import begun, held


def test_a_run_that_ends_between_two_looks_is_completed_and_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    journal = begun(runs, "run_live", ["booking"])
    lock = held(runs / "run_live")

    def ends_first(folder: Path) -> bool:
        if journal.told.over is None:
            journal.over("completed")
            journal.close()
            lock.release()
        return is_running(folder)

    monkeypatch.setattr("duplex.store.index.is_running", ends_first)
    assert [row.status for row in Store(runs).rows()] == ["completed"]


def test_a_run_whose_runner_is_gone_stays_interrupted(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    begun(runs, "run_killed", ["booking"]).close()
    assert [row.status for row in Store(runs).rows()] == ["interrupted"]

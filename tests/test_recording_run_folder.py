"""The folder of a run: its name, its modes, its whole files."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from duplex.errors import InputError
from duplex.run_folder import RunFolder, make_private, safe_name
from duplex.wavfile import WriteFailed


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("live", "name", "pattern"),
    [
        (True, None, r"run_live_\d{8}_\d{6}_[0-9a-f]{6}"),
        (False, "nightly", r"nightly_offline_\d{8}_\d{6}_[0-9a-f]{6}"),
    ],
)
def test_a_run_is_named_by_kind_time_and_id(
    tmp_path: Path, live: bool, name: str | None, pattern: str
) -> None:
    run = RunFolder.create(tmp_path / "deep" / "out", live=live, name=name)
    assert re.fullmatch(pattern, run.id)
    assert run.path.parent == tmp_path / "deep" / "out"
    assert mode(run.path) == 0o700
    assert mode(tmp_path / "deep") == 0o700


def test_runs_of_one_second_get_different_folders(tmp_path: Path) -> None:
    assert len({RunFolder.create(tmp_path, live=True).path for _ in range(20)}) == 20


def test_a_run_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True, name="../../evil")
    assert run.path.parent == tmp_path


def test_files_lie_where_the_interface_says(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True)
    assert run.relative(run.audio("a.s2")) == "audio/a.s2"
    assert run.relative(run.events("a.s2")) == "events/a.s2.jsonl"
    assert run.relative(run.transcript("a.s2")) == "transcripts/a.s2.json"
    assert run.relative(run.results) == "results.json"


def test_json_is_strict_private_and_whole(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True, secrets=["hunter22"])
    run.write_json(run.results, {"rate": float("nan"), "who": "hunter22", "text": "\ud800 é"})
    assert json.loads(run.results.read_text("utf-8")) == {
        "rate": None,
        "who": "[redacted]",
        "text": "\ufffd é",
    }
    assert mode(run.results) == 0o600
    assert [file.name for file in run.path.iterdir()] == ["results.json"]


def test_a_rewrite_replaces_the_file_at_once(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True)
    run.write_json(run.results, {"a": 1})
    with run.results.open() as old:
        run.write_json(run.results, {"a": 2})
        assert json.load(old) == {"a": 1}
    assert json.loads(run.results.read_text()) == {"a": 2}


def test_texts_make_their_folders(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True)
    path = run.audio("x") / "conversation.transcript.txt"
    run.write_text(path, "USER 0..1ms: hi\n")
    assert path.read_text() == "USER 0..1ms: hi\n"
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, live=True)
    (run.path / "results.json").mkdir()
    with pytest.raises(WriteFailed, match=r"results\.json cannot be written"):
        run.write_json(run.results, {})
    assert [file.name for file in run.path.iterdir()] == ["results.json"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises((InputError, WriteFailed), match="out"):
        RunFolder.create(tmp_path / "out", live=True)
    with pytest.raises(InputError, match="is a file"):
        make_private(tmp_path / "out")


def test_opening_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none is no folder"):
        RunFolder.open(tmp_path / "none")


@pytest.mark.parametrize("name", ["restaurant_booking_complete", "a.s1", "b-2.a3", "X"])
def test_harmless_ids_are_their_own_names(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a b", "é", "\ud800", "x" * 300])
def test_other_ids_become_harmless_and_stay_apart(name: str) -> None:
    made = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}", made)
    assert made != safe_name(name + "x")

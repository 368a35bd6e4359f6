"""Whatever somebody names as input: a regular file, or one sentence and exit code 2."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duplex.cli import app
from duplex.errors import InputError
from duplex.inputs import entries, exists, is_file, is_folder, opened, read_bytes, read_text

READERS: dict[str, tuple[list[str], str]] = {
    "a scenario to validate": (["scenario", "validate"], "in.json"),
    "a scenario to run": (["run", "--data"], "in.yaml"),
    "a config": (["run", "--config"], "in.toml"),
    "a caller's recording": (["run", "--caller"], "in.wav"),
    "an application": (["run", "--application"], "in.py"),
    "timelines": (["measure", "--timeline"], "in.jsonl"),
    "a recording to measure": (["measure"], "in.wav"),
}


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    """A reader that would wait for ever fails instead."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError("the reader waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def special(kind: str, path: Path) -> Iterator[Path]:
    """Put something at ``path`` that is no regular file."""
    match kind:
        case "pipe":
            os.mkfifo(path)
            yield path
        case "device":
            path.symlink_to("/dev/zero")
            yield path
        case "socket":
            with socket.socket(socket.AF_UNIX) as served:
                before = Path.cwd()
                os.chdir(path.parent)  # a socket's name is short
                try:
                    served.bind(path.name)
                finally:
                    os.chdir(before)
                yield path


def duplex(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"OPENAI_API_KEY": None})


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_is_refused_at_once(name: str, kind: str, tmp_path: Path) -> None:
    command, file = READERS[name]
    with special(kind, tmp_path / file) as path:
        done = duplex(*command, str(path))
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "is no regular file but a" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("option", ["--labels", "--timeline"])
def test_a_pipe_beside_the_recording_is_refused_too(option: str, tmp_path: Path) -> None:
    told = "no regular file but a pipe; save what comes"
    with special("pipe", tmp_path / "in") as path, pytest.raises(InputError, match=told):
        read_text(path, option)


def test_a_recording_in_a_scenario_must_be_a_regular_file(tmp_path: Path) -> None:
    file = special("pipe", tmp_path / "in.wav")
    with file as path, pytest.raises(InputError, match="a pipe"), opened(path):
        raise AssertionError("it was opened")


@pytest.mark.parametrize("name", ["x" * 300, "loop", "null\0byte"])
@pytest.mark.parametrize("ask", [exists, is_file, is_folder, read_bytes, entries])
def test_a_path_the_system_will_not_look_at_is_one_sentence(
    ask: object, name: str, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert callable(ask)
    with pytest.raises(InputError, match=r"cannot be read|is no path"):
        ask(tmp_path / name)


@pytest.mark.parametrize("name", READERS)
def test_a_name_too_long_for_the_system_gives_no_traceback(name: str, tmp_path: Path) -> None:
    command, file = READERS[name]
    done = duplex(*command, str(tmp_path / ("x" * 300) / file))
    assert done.exit_code == 2, done.output
    assert "file name too long" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_what_may_not_be_read_is_one_sentence() -> None:
    """As a user without rights: folders and files, to read and to write."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        place.chmod(0o755)
        closed, wav = place / "closed", place / "in.wav"
        closed.mkdir()
        (closed / "in.json").write_text("{}", encoding="utf-8")
        wav.write_bytes(b"RIFF")
        wav.chmod(0)
        closed.chmod(0)
        command = [sys.executable, "-c", WITHOUT_RIGHTS, str(closed), str(wav)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=60, check=False, cwd="/"
            )
        finally:
            closed.chmod(0o700)
    assert done.stdout == "told\n", done.stderr


WITHOUT_RIGHTS = """
import os, sys
from typer.testing import CliRunner
import duplex.measuring, duplex.running, duplex.scenario, duplex.viewer
from duplex.cli import app
from duplex.errors import DuplexError
from duplex.run_folder import RunFolder
closed, wav = sys.argv[1:]
if os.geteuid() == 0:
    os.seteuid(65534)
for command in (
    ["scenario", "validate", closed],
    ["scenario", "validate", closed + "/in.json"],
    ["run", "--data", closed],
    ["run", "--config", closed + "/in.toml"],
    ["run", "--caller", wav],
    ["measure", wav],
    ["measure", closed],
    ["measure", "--timeline", closed + "/in.jsonl"],
    ["view", closed],
):
    done = CliRunner().invoke(app, command)
    lines = done.stderr.strip().splitlines()
    assert done.exit_code == 2, (command, done.output, done.exc_info)
    assert len(lines) == 1 and "permission denied" in lines[0], (command, done.stderr)
for out in (closed, closed + "/deeper", closed + "/in.json"):
    try:
        RunFolder.create(out, live=True)
    except DuplexError as error:
        assert "permission denied" in str(error), error
    else:
        raise AssertionError(out)
print("told")
"""

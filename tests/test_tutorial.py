"""The tutorial from its first to its last line: its files are written, its commands run.

Voices are fakes that understand each other, so that a call costs a second; what the page
prints is what real ones gave.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup
from typer.testing import CliRunner

from duplex.cli import app
from fake_engines import Parrot, speaking

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TO_INSTALL = {"make demo", ". .venv/bin/activate"}
"""What a test of an installation does: .ci/run begins with it."""
PLUGINS = ("-q", "-p", "no:duplex", "-p", "duplex.pytest_plugin", "-p", "no:cacheprovider")
SAMPLES, FEWER = "samples = 8", "samples = 2"
"""Calls cost a second each even so; two of them show what the page says, but for a comparison."""
SPOKEN = """
import pytest
from fake_engines import Parrot, speaking

@pytest.fixture(autouse=True)
def _fakes():
    with speaking(Parrot()):
        yield
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One block of the page: a file to write, or commands to run."""

    kind: str
    name: str
    content: str


STEPS = [Step(kind=a, name=b, content=c) for a, b, c in BLOCK.findall(PAGE)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with speaking(Parrot()):
        yield tmp_path


def run(line: str) -> str:
    """Run one line of the page, and say what it printed; its code is the one the page says."""
    command, _, comment = line.partition("  #")
    wanted = re.search(r"exit code (\d)", comment)
    words = shlex.split(command)
    env = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [word for word in words if word.split("=")[0] not in env]
    assert words[0] == "duplex", line
    here = [
        found
        for word in words[1:]
        for found in (sorted(map(str, Path().glob(word))) or [word] if "*" in word else [word])
    ]
    done = CliRunner().invoke(app, here, env=env)
    code = int(wanted[1]) if wanted and words[1] != "compare" else 0
    assert done.exit_code == code, (line, done.output)
    return done.output


def test_every_command_of_the_page_does_what_the_page_says(place: Path) -> None:
    printed = []
    for step in STEPS:
        if step.name:
            path = place / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content.replace(SAMPLES, FEWER), encoding="utf-8")
        elif step.kind == "sh":
            for line in step.content.splitlines():
                if line not in TO_INSTALL and not line.startswith("pytest "):
                    printed.append(run(line))
    assert sorted(path.name for path in place.glob("*.png")) == ["first.png"]
    told = "\n".join(printed)
    assert SAMPLES in PAGE
    for sentence in re.findall(
        r"^(?:\d of \d calls passed|verdict: |check: [^t]|failed: ).*$", PAGE, re.MULTILINE
    ):
        assert sentence.replace("8 of 8", "2 of 2").replace("0 of 8", "0 of 2") in told
    assert "Too few calls to see a difference." in told


def test_its_own_test_passes(place: Path) -> None:
    for step in STEPS:
        if step.name.endswith(".py"):
            (place / step.name).write_text(step.content, encoding="utf-8")
    (place / "conftest.py").write_text(SPOKEN, encoding="utf-8")
    (command,) = re.findall(r"^pytest (.+)$", PAGE, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *command.split()],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_commands_of_its_pipeline_exist() -> None:
    (text,) = [step.content for step in STEPS if step.kind == "yaml"]
    steps = yaml.safe_load(text)["jobs"]["calls"]["steps"]
    lines = [step["run"] for step in steps if step.get("run", "").startswith("duplex ")]
    assert lines
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for line in lines:
        _, verb, *words = shlex.split(line)
        flags = {flag for param in root.commands[verb].params for flag in param.opts}
        assert {word for word in words if word.startswith("-")} <= flags


def test_every_verb_it_names_exists() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for verb in re.findall(r"`duplex (\w+)", PAGE):
        assert verb in root.commands

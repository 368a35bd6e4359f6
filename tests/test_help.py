"""What --help says in 80 columns: an example a verb that can be copied, and nothing is cut off."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from duplex.cli import app
from duplex.cli.cards import UNDER
from duplex.cli.headings import HEADINGS


def verbs(group: TyperGroup, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        if isinstance(command, TyperGroup):
            yield from verbs(command, (*before, name))


ROOT = typer.main.get_command(app)
assert isinstance(ROOT, TyperGroup)
VERBS = [(), *verbs(ROOT)]


def help_of(verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [*verb, "--help"])
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_has_an_example_on_one_line_whose_options_exist(
    verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = help_of(verb, monkeypatch)
    examples = re.findall(r"^ +Example: (duplex .+)$", shown, re.MULTILINE)
    assert examples, shown
    for example in examples:
        words = shlex.split(example)[1:]
        assert words[: len(verb)] == list(verb)
        of = help_of(tuple(words[: 2 if words[0] == "scenario" else 1]), monkeypatch)
        for word in words:
            if word.startswith("--"):
                assert re.search(rf"(^| ){re.escape(word)}\b", of, re.MULTILINE), word
    body = shown.split("\n\n", 1)[1]
    assert not re.search(r"\.\.\.$", body, re.MULTILINE), "a sentence that was cut off"


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_nothing_but_an_example_is_wider_than_the_terminal(
    verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = help_of(verb, monkeypatch).splitlines()
    assert [line for line in lines if len(line) > 80 and "Example: " not in line] == []


def test_every_option_of_run_stands_under_a_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(ROOT, TyperGroup)
    params = {str(param.name) for param in ROOT.commands["run"].params} - {"config"}
    named = [name for names in HEADINGS.values() for name in names]
    assert sorted(named) == sorted(params)
    shown = help_of(("run",), monkeypatch)
    assert re.findall(r"^(\S.*):$", shown, re.MULTILINE) == [*HEADINGS, "Options"]


def test_every_option_of_talk_stands_under_a_heading() -> None:
    assert isinstance(ROOT, TyperGroup)
    params = {str(param.name) for param in ROOT.commands["talk"].params} - {"config"}
    assert sorted(name for names in UNDER.values() for name in names) == sorted(params)

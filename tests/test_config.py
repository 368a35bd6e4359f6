"""Every option of every verb may stand in a TOML file; what cannot be there is named here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from duplex.cli import app
from duplex.cli.config import LEFT
from duplex.options import RunOptions

NOT_IN_A_FILE = {"config": "it names the file", "help": "it asks for this page"}


def verbs(group: TyperGroup, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from verbs(command, (*before, name))
        else:
            yield (*before, name)


ROOT = typer.main.get_command(app)
assert isinstance(ROOT, TyperGroup)
VERBS = list(verbs(ROOT))


def command_of(verb: tuple[str, ...]) -> TyperCommand:
    found: object = ROOT
    for name in verb:
        assert isinstance(found, TyperGroup)
        found = found.commands[name]
    assert isinstance(found, TyperCommand)
    return found


def valued(verb: tuple[str, ...]) -> dict[str, tuple[str, object]]:
    """Each option by its flag's name: the parameter's name, and a value it may have."""
    command = command_of(verb)
    assert command.callback is not None
    hints = get_type_hints(command.callback)
    values: dict[str, tuple[str, object]] = {}
    for param in command.params:
        if param.param_type_name != "option" or param.name in NOT_IN_A_FILE:
            continue
        assert param.name is not None
        hint = str(hints[param.name])
        value: object = "some"
        number = param.default if isinstance(param.default, int) else 12
        for kind, one in (("bool", True), ("int", number), ("float", 1.5)):
            value = one if kind in hint else value
        if "list" in hint:
            value = [value]
        values[param.opts[-1].lstrip("-")] = (param.name, value)
    return values


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_option_of_every_verb_can_stand_in_a_file(
    tmp_path: Path, verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = valued(verb)
    config = tmp_path / "duplex.toml"
    lines = [f"{flag} = {json.dumps(value)}" for flag, (_, value) in values.items()]
    config.write_text(f"[{'.'.join(verb)}]\n" + "\n".join(lines), encoding="utf-8")
    command = command_of(verb)
    seen: list[typer.Context] = []

    def noted(ctx: typer.Context) -> None:
        seen.append(ctx)

    monkeypatch.setattr(command, "invoke", noted)
    wanted = [param for param in command.params if param.param_type_name == "argument"]
    arguments = ["x" for param in wanted if param.required]
    ROOT.main([*verb, "--config", str(config), *arguments], "duplex", standalone_mode=False)
    (ctx,) = seen
    left = ctx.meta[LEFT]
    for flag, (name, value) in values.items():
        if verb in (("run",), ("talk",)) and name in RunOptions.model_fields:
            assert left[name] == value, flag
            continue
        source = ctx.get_parameter_source(name)
        assert source is not None, flag
        assert source.name == "DEFAULT_MAP", flag
        got = ctx.params[name]
        assert str(got) == str(value) or list(map(str, got)) == value, flag


def test_the_command_line_wins_and_a_flag_can_be_turned_off(tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text("[doctor]\njson = true\n[noise]\njson = true\nrate-hz = 8000\n")
    runner = CliRunner()
    assert runner.invoke(app, ["noise", "--config", str(config)]).stdout.startswith("[")
    done = runner.invoke(app, ["noise", "cafe", "--config", str(config), "--rate-hz", "1"])
    assert done.exit_code == 2, "the flag's own value counts, and is refused"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nois]\n", "unknown table [nois], did you mean [noise]"),
        ("[noise]\njsn = true\n", "noise.jsn is unknown, did you mean json"),
        ("[noise]\nname = 'cafe'\n", "noise.name is unknown"),
        ("[noise]\nconfig = 'x'\n", "noise.config is unknown"),
        ("[noise]\njson = 1\n", "noise.json is 1, wanted true or false"),
        ("[noise]\nrate_hz = true\n", "noise.rate_hz is True, wanted a whole number"),
        ("[noise]\nrate_hz = '8000'\n", "noise.rate_hz is '8000', wanted a whole number"),
        ("[noise]\nout = ''\n", "noise.out is empty, want a value"),
        ("[degrade]\n[noise]\nout = ['a']\n", "noise.out is ['a'], wanted a text"),
        ("noise = 3\n", "noise is int, wanted a table"),
        ("[noise\n", "duplex.toml: "),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    ],
)
def test_what_a_file_says_wrongly_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["noise", "--config", str(config)])
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_list_is_wanted_where_a_flag_may_be_repeated(tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text("[degrade]\ncondition = 'noisy'\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["degrade", "a", "b", "--config", str(config)])
    assert "degrade.condition is 'noisy', wanted a list" in done.stderr


def test_a_run_says_that_a_check_is_a_list(tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text("[run]\ncheck = 'turns <= 3'\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["run", "--config", str(config)])
    assert done.exit_code == 2
    assert done.stderr == "duplex: option check: got 'turns <= 3'; want a list\n"

"""The command as a person meets it: one clear sentence, the right exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from socket import socket

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from duplex.cli import app
from duplex.cli.shared import named
from duplex.metrics.timeline import measure_file
from duplex.wavfile import write_wav
from verdict_runs import call, run

TREE = Path(__file__).parents[1]
DATA = TREE / "tests" / "data"


def duplex(*arguments: str, **environment: str) -> Result:
    """Run the command in this process, from the top of the tree, without keys."""
    keys = [name for name in os.environ if name.startswith("OPENAI_")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(TREE)
        clean: dict[str, str | None] = dict.fromkeys(keys)
        return CliRunner().invoke(app, list(arguments), env=clean | environment)


BAD = {
    "an unknown scenario lists the nearest": (
        ["run", "--scenario", "restaurant_boking_complete"],
        "nearest: restaurant_booking_complete",
    ),
    "a data file that is not there": (["run", "--data", "nowhere.json"], "no such file"),
    "a clock that does not exist": (["run", "--clock", "fast"], "'wall' or 'virtual'"),
    "an assistant that does not exist": (["run", "--assistant", "x"], "none of: local"),
    "a tick out of range": (["run", "--transport-ms", "5"], "greater than or equal to 10"),
    "a condition that does not exist": (["run", "--condition", "loud"], "does not exist"),
    "a recording that is not there": (["run", "--caller", "gone.wav"], "no such file"),
    "a remote session on the virtual clock": (
        ["run", "--clock", "virtual", "--caller", "gpt-live"],
        "use --clock wall",
    ),
    "a Realtime session on the virtual clock names the voice that can": (
        ["run", "--clock", "virtual", "--assistant", "realtime"],
        "or --endpoint local: the same protocol with the embedded voice",
    ),
    "a real session without a key": (["run", "--assistant", "gpt-live"], "OPENAI_API_KEY"),
    "a config that is not there": (["run", "--config", "gone.toml"], "cannot be read"),
    "an application that is not there": (["run", "--application", "gone:app"], "no module named"),
    "timelines that are not there": (["measure", "--timeline", "gone.jsonl"], "cannot be read"),
    "a role that does not exist": (["local", "--role", "judge"], "none of: assistant, caller"),
    "a fault that does not exist": (["local", "--fault", "fire"], "wanted one of"),
    "a key variable that is not set": (["local", "--api-key-env", "NO_SUCH_KEY"], "not set"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence_and_exit_code_2(name: str, tmp_path: Path) -> None:
    arguments, wanted = BAD[name]
    if arguments[0] == "run":
        arguments = [*arguments, "--out", str(tmp_path / "runs")]
    done = duplex(*arguments)
    assert done.exit_code == 2, done.stderr
    assert done.stdout == ""
    assert wanted in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "runs").exists(), "a run that cannot start leaves no folder"


def test_a_config_gives_options_and_the_command_line_wins(tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text('[run]\nclock = "sideways"\nscenario = ["nobody"]\n', encoding="utf-8")
    refused = duplex("run", "--config", str(config))
    assert "sideways" in refused.stderr
    won = duplex("run", "--config", str(config), "--clock", "virtual")
    assert 'no scenario "nobody"' in won.stderr
    config.write_text("[run]\nscenari = []\n", encoding="utf-8")
    assert "did you mean scenario" in duplex("run", "--config", str(config)).stderr


def test_a_config_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "deep.toml"
    config.write_text("a = " + "[" * 5000 + "]" * 5000, encoding="utf-8")
    done = duplex("run", "--config", str(config))
    assert done.exit_code == 2
    assert "nested too deeply" in done.stderr


def test_a_condition_a_scenario_asks_for_must_exist(tmp_path: Path) -> None:
    source = json.loads((TREE / "scenarios/restaurant_booking_complete.json").read_text("utf-8"))
    source["duplex"] = {"conditions": ["nosie,snr=5"]}
    file = tmp_path / "noisy.json"
    file.write_text(json.dumps(source), encoding="utf-8")
    done = duplex("run", "--data", str(file), "--out", str(tmp_path / "runs"))
    assert done.exit_code == 2
    assert "nosie" in done.stderr
    assert "did you mean noise" in done.stderr


@pytest.mark.parametrize("wav", ["silent", "empty", "text"])
def test_a_caller_recording_that_holds_nothing_is_refused_before_any_call(
    tmp_path: Path, wav: str
) -> None:
    path = tmp_path / f"{wav}.wav"
    if wav == "text":
        path.write_text("hello", encoding="utf-8")
    else:
        write_wav(path, np.zeros(2400 if wav == "silent" else 0, np.int16), 24_000)
    done = duplex("run", "--caller", str(path), "--out", str(tmp_path / "runs"))
    assert done.exit_code == 2, done.stderr
    assert not (tmp_path / "runs").exists()


def test_nobody_reading_stderr_stops_no_talk() -> None:
    program = (
        "import os, sys; read, write = os.pipe(); os.close(read); os.dup2(write, 2);"
        "from duplex.cli import talk; console = talk();"
        "console.print('x'); console.print('y'); print('went on')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "went on"


def test_measure_timeline_prints_one_json_object_a_line() -> None:
    fixture = next(iter(sorted(DATA.glob("contract-2.0*.jsonl"))))
    done = duplex("measure", "--timeline", str(fixture))
    assert done.exit_code == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == list(measure_file(fixture))


def test_the_module_is_the_command() -> None:
    command = [sys.executable, "-m", "duplex", "run", "--scenario", "nobody"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=TREE
    )
    assert done.returncode == 2
    assert 'no scenario "nobody"' in done.stderr


def test_a_closed_stdout_ends_the_command_without_a_traceback() -> None:
    fixture = next(iter(sorted(DATA.glob("contract-2.0*.jsonl"))))
    command = f"{sys.executable} -m duplex measure --timeline {fixture} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False, cwd=TREE
    )
    assert json.loads(done.stdout)["id"]
    assert "Traceback" not in done.stderr


def test_scenario_validate_says_how_many_are_valid() -> None:
    done = duplex("scenario", "validate", "scenarios")
    assert done.exit_code == 0
    assert "8 scenarios, all valid" in done.stderr


def test_the_doctor_finds_what_a_call_needs_and_never_shows_a_key() -> None:
    done = duplex("doctor", OPENAI_API_KEY="sk-secret-value")
    assert done.exit_code == 0, done.stdout
    assert "compiled core: built" in done.stdout
    assert "OPENAI_API_KEY: present" in done.stdout
    assert "sk-secret-value" not in done.stdout + done.stderr


@pytest.mark.parametrize("verb", [[], ["run"], ["local"], ["measure"], ["doctor"]])
def test_every_verb_has_help_with_an_example(verb: list[str]) -> None:
    done = duplex(*verb, "--help")
    assert done.exit_code == 0
    assert verb == [] or "Example:" in done.stdout


def test_a_run_is_named_by_its_id_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "run_a").mkdir(parents=True)
    (tmp_path / "runs" / "run_b").mkdir()
    (tmp_path / "run_b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert named(Path("run_a")) == Path("runs/run_a")
    assert named(Path("run_b")) == Path("run_b"), "a folder that is there is meant"
    assert named(Path("run_c")) == Path("run_c")
    assert named(None) is None
    for verb in (["view"], ["resume"], ["remeasure"], ["grade"], ["compare", "runs/run_b"]):
        told = CliRunner().invoke(app, [*verb, "run_a"])
        assert (told.exit_code, "runs/run_" in told.stderr) == (2, True), (verb, told.stderr)


def test_an_address_where_nobody_listens_is_said_in_words(tmp_path: Path) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}/"
        one = ["--scenario", "restaurant_booking_complete", "--out", str(tmp_path)]
        told = duplex("run", "--assistant", address, *one)
    assert told.exit_code == 2
    assert "cannot be reached: nobody listens there" in " ".join(told.stderr.split())


def test_what_list_and_show_tell_can_be_piped(tmp_path: Path) -> None:
    folder = tmp_path / "run_live_20260801_120000_3f2a1b"
    folder.mkdir()
    (folder / "results.json").write_text(run(call()).model_dump_json(by_alias=True))
    listed = duplex("list", "--runs", str(tmp_path), "--since", "2000-01-01")
    shown = duplex("show", str(folder))
    assert (listed.exit_code, shown.exit_code) == (0, 0), listed.stderr + shown.stderr
    assert folder.name in listed.stdout
    assert "ledger: " in shown.stdout
    assert listed.stderr == shown.stderr == ""
    for way in ("--json", "--markdown"):
        assert "status: " not in duplex("show", str(folder), way).stdout

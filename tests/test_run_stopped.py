"""A run that is stopped, or that the disk fails, keeps and lists what there is."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from duplex import viewer
from duplex.errors import DuplexError
from duplex.options import make
from duplex.results import Run, exit_code, headline
from duplex.results.schema import read_run
from duplex.runner import Finished, Runner
from duplex.values import Json
from fake_engines import Parrot, speaking

TREE = Path(__file__).parents[1]
THREE = ("restaurant_booking_complete", "restaurant_slot_taken", "restaurant_interruption")
CALL = ("clock", "virtual"), ("detector", "rms"), ("data", TREE / "scenarios")


def runner(out: Path, *scenarios: str) -> Runner:
    return Runner(make({**dict(CALL), "scenario": scenarios, "out": out}))


async def held(runner: Runner) -> Finished:
    with speaking(Parrot()):
        return await runner.run()


def written(out: Path) -> Run:
    [folder] = out.iterdir()
    return read_run((folder / "results.json").read_text(encoding="utf-8"))


async def test_calls_that_were_not_held_stand_in_the_results_as_not_run(tmp_path: Path) -> None:
    run = runner(tmp_path / "runs", *THREE)
    finished: list[str] = []

    class Audience:
        def opened(self, *_: object) -> None:
            return None

        def finished(self, call_id: str, _: str) -> None:
            finished.append(call_id)

    run.audience = Audience()  # type: ignore[assignment]
    run._stop = lambda: bool(finished)
    done = await held(run)
    assert [result.scenario_id for result in done.run.results] == list(THREE)
    told = [(result.status, result.duplex["outcome"]) for result in done.run.results]
    assert told == [("passed", "counted")] + [("infrastructure_error", "not_run")] * 2
    missed = done.run.results[1]
    assert missed.error is not None
    assert missed.error.stage == "not_run"
    assert missed.artifacts.conversation_audio is None
    reasons = missed.duplex["unknown"]
    assert isinstance(reasons, dict)
    assert set(reasons.values()) == {"the run was over before this call was held"}
    assert "/metrics/audio/response_rate" in reasons
    assert written(tmp_path / "runs") == done.run
    assert exit_code(done.run) == 1
    assert headline(done.run) == "1 of 3 calls passed, 2 could not be counted."
    assert "restaurant_slot_taken" in viewer.build(done.folder).read_text(encoding="utf-8")


async def test_a_full_disk_is_one_sentence_and_keeps_what_was_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite

    def full(fd: int, data: bytes, offset: int) -> int:
        name = os.readlink(f"/proc/self/fd/{fd}")
        if "slot_taken" in name and offset > 400_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DuplexError, match="the disk is full"):
        await held(runner(tmp_path / "runs", *THREE[:2]))
    results = written(tmp_path / "runs").results
    assert [result.duplex["outcome"] for result in results] == ["counted", "not_run"]
    [folder] = (tmp_path / "runs").iterdir()
    sound = folder / "audio" / "restaurant_slot_taken" / "conversation.wav"
    assert sound.stat().st_size > 400_000


async def test_what_the_system_refuses_in_mid_run_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "audio.wav")

    monkeypatch.setattr("duplex.holding.assess", gone)
    with pytest.raises(DuplexError, match=r"^audio\.wav: input/output error$"):
        await held(runner(tmp_path / "runs", THREE[0]))


STOPPED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from fake_engines import Parrot, speaking
from duplex import running
from duplex.cli import talk
from duplex.options import make
from duplex.call import Call
number = int(sys.argv[3])
append = Call._tick
def tick(self):
    append(self)
    if self._engine.position == 24_000 * 3:
        os.kill(os.getpid(), number)
Call._tick = tick
options = make({"clock": "virtual", "detector": "rms", "data": sys.argv[4], "out": sys.argv[2]})
with speaking(Parrot()):
    sys.exit(running.command(options, console=talk(), as_json=False, verbose=False))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_every_way_to_be_stopped_leaves_results(name: str, tmp_path: Path) -> None:
    number = vars(signal)[name]
    arguments = [str(TREE / "tests"), str(tmp_path / "runs"), str(int(number))]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *arguments, str(TREE / "scenarios")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    results = written(tmp_path / "runs").results
    outcomes = [result.duplex["outcome"] for result in results]
    rest = len(list((TREE / "scenarios").glob("*.json"))) - 1
    assert outcomes == ["invalidated", *["not_run"] * rest], done.stderr
    first = results[0].error
    assert first is not None
    assert first.stage == "user_stopped"
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder
# Whoever started the tests in the background told all their children to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
wanted = sys.argv[1]
class Knock(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
        return None
sys.meta_path.insert(0, Knock())
from duplex.__main__ import main
sys.argv[1:] = ["scenario", "validate", sys.argv[2]]
main()
"""


@pytest.mark.parametrize("module", ["duplex.cli", "typer", "duplex.scenario", "yaml", "pydantic"])
def test_ctrl_c_while_it_loads_is_quiet(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, str(TREE / "scenarios")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_without_an_interrupt_the_command_works_and_errors_keep_their_code() -> None:
    command = [sys.executable, "-m", "duplex", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found: Json = json.loads(done.stdout)
    assert found
    command = [sys.executable, "-m", "duplex", "measure"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 2


def test_a_terminal_that_is_gone_stops_no_talk() -> None:
    program = (
        "import os, sys; leader, follower = os.openpty(); os.dup2(follower, 2);"
        "os.close(follower); os.close(leader);"
        "from duplex.cli import talk; console = talk();"
        "console.print('x'); console.print('y'); print('went on')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "went on"

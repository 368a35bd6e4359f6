"""What runs of many calls must bear: kills, checks that look alike, folders that are none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from duplex import worker as worker_module
from duplex.clock import real_pause, wall_seconds
from duplex.errors import InputError
from duplex.exports.junit import junit
from duplex.exports.roark import report
from duplex.exports.subject import subject_of
from duplex.listing import cancel, list_runs, rows, show
from duplex.metrics.differences import differences
from duplex.options import RunOptions, make
from duplex.results.schema import to_json
from duplex.run_filters import Filters
from duplex.run_lock import RunLock, WorkersLock
from duplex.runner import Runner
from duplex.running import command, table
from duplex.sweeping import parse
from duplex.verdict.criteria import pinned, read_check, shown
from plan_runs import options, runner
from verdict_runs import call, run

ENDLESS = """
import os, time

def blocks(call):
    open(os.path.join(os.path.dirname(__file__), "held"), "w").write(str(os.getpid()))
    time.sleep(600)
"""


def started(folder: Path, factory: str, **more: object) -> subprocess.Popen[bytes]:
    """A runner in a process of its own."""
    given = RunOptions.model_validate(options(folder, factory, **more))
    text = given.model_dump_json(include=given.model_fields_set)
    code = (
        "import asyncio, json, sys\n"
        "from duplex.runner import Runner\n"
        "from duplex.options import make\n"
        "asyncio.run(Runner(make(json.loads(sys.argv[1]))).run())\n"
    )
    return subprocess.Popen([sys.executable, "-c", code, text], start_new_session=True)


def seen(look: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether something comes true in time."""

    async def looking() -> bool:
        end = wall_seconds() + seconds
        while wall_seconds() < end:
            if look():
                return True
            await real_pause(0.05)
        return False

    return asyncio.run(looking())


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no groups there")
def test_a_worker_whose_agent_blocks_leaves_after_its_runner_was_killed(tmp_path: Path) -> None:
    process = started(tmp_path, "answers", assistant=f"{tmp_path / 'e.py'}:blocks", workers=2)
    (tmp_path / "e.py").write_text(ENDLESS)
    held = tmp_path / "held"
    try:
        assert seen(lambda: held.exists() and held.read_text().isdigit())
        worker = int(held.read_text())
        assert os.getpgid(worker) != os.getpgid(process.pid)  # a terminal's Ctrl-C is not its own
    finally:
        process.kill()
        process.wait()
    assert seen(lambda: not alive(worker), 30.0)


def test_a_worker_leaves_though_its_runner_was_killed_before_it_could_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner it was told is not its parent any more; the call it holds never ends."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left: Future[int] = Future()

    async def never_ends(_: Path) -> None:
        assert await asyncio.to_thread(left.result, 30.0) == 1

    monkeypatch.setattr(worker_module, "_LEAVE_SECONDS", 0.0)
    monkeypatch.setattr(worker_module, "serve", never_ends)
    monkeypatch.setattr(os, "_exit", left.set_result)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path), str(gone.pid)])
    worker_module.main()


@pytest.mark.skipif(sys.platform == "win32", reason="no lock is inherited there")
async def test_a_run_is_taken_up_only_once_the_last_worker_has_left(tmp_path: Path) -> None:
    first, second = WorkersLock(), WorkersLock()
    await first.take(tmp_path)
    inherited = first.inherited
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=subprocess.PIPE, pass_fds=inherited
    )
    first.release()
    waiting = asyncio.create_task(second.take(tmp_path))
    await real_pause(0.3)
    assert not waiting.done()
    await worker.communicate(b"\n")
    await asyncio.wait_for(waiting, 10.0)
    second.release()


async def test_a_run_that_is_over_and_is_taken_up_again_stays_as_it_was(tmp_path: Path) -> None:
    first = await runner(tmp_path).run()
    again = await Runner.taking_up(first.folder).run()
    mine, then = again.run.run.duplex["plan"], first.run.run.duplex["plan"]
    assert mine == then
    journal = (first.folder / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["type"] for line in journal].count("over") == 1


def test_the_command_leaves_a_report_and_junit(tmp_path: Path) -> None:
    given = make(options(tmp_path))
    code = command(given, console=Console(quiet=True), as_json=False, verbose=False)
    (folder,) = (tmp_path / "runs").iterdir()
    assert code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"report.md", "junit.xml", "debrief.json", "viewer.html"} <= names


def test_a_folder_that_is_no_run_cannot_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither results nor a journal"):
        cancel(tmp_path / "empty", tmp_path, Console(quiet=True))


@pytest.mark.parametrize(
    "checks",
    [
        ("tool_calls + turns <= 5", "tool_calls - turns <= 5"),
        ("tool_calls * turns <= 5", "tool_calls / turns <= 5"),
        ("turn_taking_score >= -1", "turn_taking_score >= 1"),
        ("response_rate >= 99.91%", "response_rate >= 99.94%"),
        ("turn_taking_score >= 0.00001", "turn_taking_score >= 0"),
        ("greeting_latency <= 0.25ms", "greeting_latency <= 0.21ms"),
        ("скорость: turns <= 5", "ответ: turns <= 6"),
        ("response_latency < 1s", "response_latency <= 1s"),
    ],
)
def test_checks_that_differ_have_ids_and_names_of_their_own(checks: tuple[str, str]) -> None:
    _, one, other = pinned(checks)
    assert one.id != other.id
    assert one.name != other.name


def test_two_names_of_one_id_are_told_apart_from_a_check_given_twice() -> None:
    with pytest.raises(InputError, match='its id a_b is that of "a b" too'):
        pinned(("a b: turns <= 5", "a-b: turns <= 6"))
    with pytest.raises(InputError, match="it is there twice"):
        pinned(("turns <= 5", "turns  <= 5"))


def test_a_limit_beyond_all_numbers_is_refused_and_an_endless_reading_is_shown() -> None:
    with pytest.raises(InputError, match="400 digits"):
        read_check(f"response_latency <= {'9' * 400}ms")
    assert shown(float("inf"), "ms") == shown(float("nan"), "") == "no number"


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("calls", [2, 3, 5])
def test_few_calls_of_one_build_seldom_look_like_a_change(calls: int, paired: bool) -> None:
    """By design at most one in twenty; a bootstrap alone says so of half of two calls a side."""
    draw = np.random.Generator(np.random.PCG64(5))
    flagged = covered = 0
    for trial in range(60):
        sides = draw.gamma(4, 100, (2, calls, 1)) + draw.gamma(2, 60, (2, calls, 4))
        now, then = ([tuple(call) for call in side] for side in sides)
        (mean, *_) = differences(now, then, paired=paired, seed=str(trial))
        assert mean.p is not None
        assert mean.ci95 is not None
        flagged += mean.p <= 0.05
        covered += mean.ci95[0] <= 0 <= mean.ci95[1]
    assert flagged <= 8
    assert covered >= 51


def test_a_change_that_so_few_calls_cannot_show_is_said_to_be_none() -> None:
    (mean, *_) = differences(
        [[900.0]] * 5, [[400.0], [401.0]] * 2 + [[402.0]], paired=True, seed=""
    )
    assert mean.p is not None
    assert mean.p > 0.05
    assert mean.detectable is None


@pytest.mark.parametrize(
    "sweep", ["noisy.snr=10,20,10.0", "condition=clean,none", "noisy.snr=none,off,3"]
)
def test_one_line_spelled_twice_is_no_sweep(sweep: str) -> None:
    with pytest.raises(InputError, match="are the same"):
        parse(sweep)


@pytest.mark.parametrize("rate", [7, float("nan"), "all"])
def test_a_run_somebody_edited_is_damaged_and_hides_no_other(tmp_path: Path, rate: object) -> None:
    for name, edited in (("good", 1.0), ("bad", rate)):
        (tmp_path / name).mkdir()
        document = json.loads(to_json(run(call())))
        document["run"]["duplex"]["plan"]["pass_rate"] = edited
        (tmp_path / name / "results.json").write_text(json.dumps(document))
    found = {row.id: row.status for row in rows(tmp_path, Filters(since="2000-01-01"))}
    assert found == {"good": "completed", "bad": "damaged"}


def test_a_run_whose_results_are_gone_tells_what_was_held(tmp_path: Path) -> None:
    finished = asyncio.run(runner(tmp_path).run())
    (finished.folder / "results.json").unlink()
    console = Console(record=True, width=200, quiet=False, file=(tmp_path / "said").open("w"))
    show(finished.folder, tmp_path, as_json=False, markdown=False, console=console)
    assert "is completed: 2 of 2 calls held; duplex resume writes its results" in (
        console.export_text()
    )


def test_a_run_that_was_killed_is_said_to_be_interrupted(tmp_path: Path) -> None:
    place = asyncio.run(runner(tmp_path).run()).folder
    journal = place / "journal.jsonl"
    journal.write_bytes(b"\n".join(journal.read_bytes().splitlines()[:-1]) + b"\n")
    document = json.loads((place / "results.json").read_text())
    document["run"]["duplex"]["plan"]["status"] = "running"
    (place / "results.json").write_text(json.dumps(document))

    def shown() -> str:
        console = Console(record=True, width=1000, quiet=False, file=(tmp_path / "said").open("w"))
        show(place, tmp_path, as_json=False, markdown=False, console=console)
        list_runs(place.parent, Filters(), as_json=False, console=console)
        return console.export_text()

    told = shown()
    assert f"is interrupted: 2 of 2 calls held; duplex resume {place} goes on with it" in told
    assert "status: interrupted" in told
    assert "interrupted: duplex resume RUN holds the calls that are missing" in told
    lock = RunLock()
    lock.take(place)
    told = shown()
    lock.release()
    assert "is running: 2 of 2 calls held" in told
    assert "resume" not in told


def test_of_many_calls_the_terminal_shows_those_that_did_not_pass() -> None:
    few = [call(sample=n, passed=n != 2) for n in range(1, 6)]
    assert len(list(table(run(*few), every=False))) == 1 + 5
    many = run(*(call(sample=n, passed=n % 20 != 0) for n in range(1, 101)))
    told = list(table(many, every=False))
    assert [line.split()[0] for line in told[1:6]] == [f"booking.s{n}" for n in range(20, 101, 20)]
    assert told[-1] == "not shown: 95 calls that passed; --verbose shows every one"
    assert len(list(table(many, every=True))) == 1 + 100
    broken = run(*(call(sample=n, passed=n > 60) for n in range(1, 101)))
    assert list(table(broken, every=False))[-1] == (
        "not shown: 40 calls that passed and 20 more that did not; --verbose shows every one"
    )


def test_moments_and_names_that_are_none_spoil_no_export() -> None:
    made = run(call())
    plan = made.run.duplex["plan"]
    assert isinstance(plan, dict)
    plan |= {"started_at": "yesterday", "ended_at": "2026-13-45", "created_at": "now"}
    named = made.run.model_copy(update={"id": "run\x1b[31m\x00]]>"})
    subject = subject_of(made.model_copy(update={"run": named}))
    ET.fromstring(junit(subject))
    about = report(subject)["data"]
    assert isinstance(about, dict)
    assert isinstance(about["run"], dict)
    assert about["run"]["durationMs"] is None

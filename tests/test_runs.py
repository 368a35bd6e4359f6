"""Many calls as one run: samples, sweeps, retries, an early end, and being taken up again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from duplex import listing
from duplex.errors import InputError
from duplex.journal import NAME as JOURNAL
from duplex.journal import read
from duplex.options import make
from duplex.results import Run, exit_code
from duplex.results.schema import read_run
from duplex.run_filters import Filters
from duplex.run_lock import RunLock
from duplex.runner import Runner
from plan_runs import TREE, block, call_ids, case_of, options, runner


def stored(folder: Path) -> Run:
    return read_run((folder / "results.json").read_text())


def waveform(folder: Path, call: str) -> bytes:
    return (folder / "audio" / call / "conversation.wav").read_bytes()


async def test_samples_have_ids_and_seeds_of_their_own_and_stand_in_order(tmp_path: Path) -> None:
    done = await runner(tmp_path, samples=2, concurrency=3).run()
    assert call_ids(done.run.results) == [
        "restaurant_booking_complete.s1",
        "restaurant_booking_complete.s2",
        "restaurant_slot_taken.s1",
        "restaurant_slot_taken.s2",
    ]
    assert [case_of(one)["seed"] for one in done.run.results] == [7, 8, 7, 8]
    assert [one.duplex["sample"] for one in done.run.results] == [1, 2, 1, 2]
    for call in call_ids(done.run.results):
        assert waveform(done.folder, call)
    assert stored(done.folder) == done.run


async def test_one_sample_of_one_scenario_keeps_its_plain_id(tmp_path: Path) -> None:
    done = await runner(tmp_path, scenario=("restaurant_booking_complete",)).run()
    assert call_ids(done.run.results) == ["restaurant_booking_complete"]


async def test_a_sweep_holds_every_arm_with_the_same_seeds_and_attributes(tmp_path: Path) -> None:
    done = await runner(
        tmp_path, sweep="noisy.snr=none,20", samples=3, check=("response_latency.p50 <= 1s",)
    ).run()
    cases = [case_of(one) for one in done.run.results]
    assert [case["condition"] for case in cases] == ["clean"] * 6 + ["noisy,snr=20"] * 6
    assert [case["seed"] for case in cases[:6]] == [case["seed"] for case in cases[6:]]
    sweep = block(done.run.run.duplex["sweep"])
    assert isinstance(sweep["values"], list)
    assert [block(value)["counted"] for value in sweep["values"]] == [6, 6]
    assert done.run.run.configuration.audio_condition == "mixed"


async def test_a_sweep_of_assistants_tells_the_slower_one(tmp_path: Path) -> None:
    agents = tmp_path / "agents.py"
    done = await runner(
        tmp_path,
        sweep=f"assistant={agents}:answers,{agents}:slow",
        samples=4,
        check=("Quick: response_latency.p50 <= 1s",),
    ).run()
    sweep = block(done.run.run.duplex["sweep"])
    assert isinstance(sweep["checks"], list)
    quick = next(block(one) for one in sweep["checks"] if block(one)["metricName"] == "Quick")
    assert quick["attribution"] == "PROPERTY_ATTRIBUTABLE"
    assert isinstance(quick["worseValues"], list)
    assert block(quick["worseValues"][0])["value"] == f"{agents}:slow"


def test_a_sweep_too_small_to_compare_is_refused_unless_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fewer than 5"):
        runner(tmp_path, sweep="noisy.snr=none,20", samples=2)
    runner(tmp_path, sweep="noisy.snr=none,20", samples=2, small_sweep=True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sweep": "noisy.snr=10"}, "two or more"),
        ({"sweep": "noisy.snr=10,10"}, "twice"),
        ({"sweep": "nosy.snr=10,20"}, "did you mean noisy"),
        ({"sweep": "colour=red,blue"}, "no property"),
        ({"sweep": "persona.pace=slow,sluggish"}, "sluggish"),
        ({"sweep": "voice=cedar,marin", "voice": "cedar"}, "voice is swept and --voice gives it"),
        ({"sweep": "condition=clean|telephony", "condition": ("noisy",)}, "--condition gives it"),
        ({"check": ("response_latency <= 5",)}, "no unit of time"),
        ({"check": ("loudness <= 5ms",)}, "unknown"),
        ({"samples": 0}, "samples"),
        ({"pass_rate": 1.5}, "pass-rate"),
        ({"workers": 2, "concurrency": 2}, "one call at a time"),
        ({"workers": 2, "redact": ("phone",)}, "one process only"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_is_opened(
    more: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        Runner(make(options(tmp_path) | more))
    assert not (tmp_path / "runs").exists()


async def test_only_a_silent_agent_is_tried_again_and_the_last_attempt_counts(
    tmp_path: Path,
) -> None:
    done = await runner(
        tmp_path, "wakes", scenario=("restaurant_booking_complete",), silent_retries=3
    ).run()
    assert call_ids(done.run.results) == [
        "restaurant_booking_complete",
        "restaurant_booking_complete.a2",
        "restaurant_booking_complete.a3",
    ]
    assert [case_of(one)["final"] for one in done.run.results] == [False, False, True]
    attempts = block(done.run.run.duplex["attempts"])
    assert attempts == {
        "test_cases": 1, "attempts": 3, "silent": 2, "retries": 2, "still_silent": 0,
    }  # fmt: skip


async def test_an_agent_that_stays_silent_fails_the_run_by_its_own_kind(tmp_path: Path) -> None:
    done = await runner(
        tmp_path, "silent", scenario=("restaurant_booking_complete",), silent_retries=1
    ).run()
    assert len(done.run.results) == 2
    verdict = block(done.run.run.duplex["verdict"])
    assert isinstance(verdict["failures"], list)
    assert [block(one)["kind"] for one in verdict["failures"]] == [
        "AGENT_NEVER_SPOKE",
        "METRIC_NOT_EVALUATED",
    ]
    assert exit_code(done.run) == 1


async def test_a_run_ends_early_when_the_agent_is_plainly_broken(tmp_path: Path) -> None:
    done = await runner(tmp_path, "silent", samples=4).run()
    outcomes = [one.duplex["outcome"] for one in done.run.results]
    assert outcomes == ["never_spoke"] * 3 + ["not_run"] * 5
    error = done.run.results[-1].error
    assert error is not None
    assert "never reached a speaking agent" in error.message
    assert block(done.run.run.duplex["plan"])["status"] == "failed"
    told = await runner(tmp_path, "silent", samples=2, early_stop=False).run()
    assert [one.duplex["outcome"] for one in told.run.results] == ["never_spoke"] * 4


async def test_a_threshold_decides_the_verdict_and_the_exit_code(tmp_path: Path) -> None:
    done = await runner(
        tmp_path,
        "slow",
        check=("response_latency.p50 <= 1s",),
        scenario=("restaurant_booking_complete",),
    ).run()
    checks = block(done.run.run.duplex["verdict"])["checks"]
    assert isinstance(checks, list)
    assert block(checks[1])["passed"] is False
    assert exit_code(done.run) == 1


async def test_a_run_stopped_lists_every_call_once_and_is_taken_up_again(tmp_path: Path) -> None:
    asked = False

    def stop() -> bool:
        return asked

    class Audience:
        def opened(self, *_: object) -> None:
            return None

        def finished(self, *_: object) -> None:
            nonlocal asked
            asked = True

    first = runner(tmp_path, samples=3)
    first._stop = stop
    first.audience = Audience()  # type: ignore[assignment]
    stopped = await first.run()
    assert [one.duplex["outcome"] for one in stopped.run.results].count("counted") == 1
    assert block(stopped.run.run.duplex["plan"])["status"] == "cancelled"
    before = waveform(stopped.folder, "restaurant_booking_complete.s1")

    done = await Runner.taking_up(stopped.folder).run()
    assert done.folder == stopped.folder
    assert [one.duplex["outcome"] for one in done.run.results] == ["counted"] * 6
    assert len(set(call_ids(done.run.results))) == 6
    assert block(done.run.run.duplex["plan"])["status"] == "completed"
    assert waveform(done.folder, "restaurant_booking_complete.s1") == before
    again = await Runner.taking_up(stopped.folder).run()
    assert again.run.results == done.run.results


async def test_a_call_that_was_cut_off_is_set_aside_and_held_again(tmp_path: Path) -> None:
    done = await runner(tmp_path, samples=2).run()
    lost = "restaurant_slot_taken.s2"
    (done.folder / "audio" / lost / "conversation.result.json").unlink()
    path = done.folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not (b'"ended"' in line and lost.encode() in line)]
    path.write_bytes(b"".join(kept)[:-20])  # and the last line is torn
    again = await Runner.taking_up(done.folder).run()
    assert call_ids(again.run.results) == call_ids(done.run.results)
    assert again.run.results[:3] == done.run.results[:3]
    assert waveform(done.folder, lost)
    (aside,) = (done.folder / "interrupted").iterdir()
    assert (aside / lost / "conversation.wav").exists()


async def test_a_call_whose_folder_is_whole_is_not_held_again(tmp_path: Path) -> None:
    done = await runner(tmp_path).run()
    path = done.folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"ended"' not in line))
    again = await Runner.taking_up(done.folder).run()
    assert again.run.results == done.run.results
    assert not (done.folder / "interrupted").exists()


async def test_a_folder_that_somebody_edited_is_refused(tmp_path: Path) -> None:
    done = await runner(tmp_path).run()
    audio = done.folder / "audio" / "restaurant_slot_taken"
    (audio / "conversation.result.json").write_text("{")
    with pytest.raises(InputError, match="gone or damaged"):
        await Runner.taking_up(done.folder).run()
    path = done.folder / JOURNAL
    first, rest = path.read_bytes().split(b"\n", 1)
    opening = json.loads(first)
    opening["scenarios"]["restaurant_slot_taken"] = "0" * 64
    path.write_bytes(json.dumps(opening).encode() + b"\n" + rest)
    with pytest.raises(InputError, match="not what it was"):
        Runner.taking_up(done.folder)


async def test_a_second_runner_on_one_folder_is_refused(tmp_path: Path) -> None:
    done = await runner(tmp_path).run()
    lock = RunLock()
    lock.take(done.folder)
    with pytest.raises(InputError, match="has a runner already"):
        await Runner.taking_up(done.folder).run()
    lock.release()


async def test_a_run_asked_to_stop_from_outside_ends_as_cancelled(tmp_path: Path) -> None:
    from duplex.run_folder import RunFolder
    from duplex.stopping import NAME, ask_to_stop

    class Audience:
        def opened(self, *_: object) -> None:
            return None

        def finished(self, *_: object) -> None:
            (place,) = [one for one in (tmp_path / "runs").iterdir() if one.is_dir()]
            ask_to_stop(RunFolder.open(place))
            time.sleep(0.6)  # it looks twice a second

    first = runner(tmp_path, samples=3)
    first.audience = Audience()  # type: ignore[assignment]
    done = await first.run()
    assert block(done.run.run.duplex["plan"])["status"] == "cancelled"
    assert not (done.folder / NAME).exists()
    assert listing.rows(tmp_path / "runs", Filters())[0].status == "cancelled"


async def test_workers_hold_the_same_calls_with_the_same_bytes(tmp_path: Path) -> None:
    alone = await runner(tmp_path, samples=2).run()
    shared = await runner(tmp_path, samples=2, workers=2).run()
    assert call_ids(shared.run.results) == call_ids(alone.run.results)
    for call in call_ids(alone.run.results):
        assert waveform(shared.folder, call) == waveform(alone.folder, call)
    assert [one.status for one in shared.run.results] == [one.status for one in alone.run.results]


async def test_a_worker_that_dies_loses_no_call(tmp_path: Path) -> None:
    done = await runner(tmp_path, "dies", samples=2, workers=2).run()
    assert [one.duplex["outcome"] for one in done.run.results] == ["counted"] * 4
    assert (done.folder / "interrupted").exists()


def test_a_run_killed_at_any_moment_is_finished_by_resume(tmp_path: Path) -> None:
    """Field case UKGovernmentBEIS/inspect_ai#5213."""
    given = options(tmp_path, samples=4)
    command = [sys.executable, "-m", "duplex", "run", "--clock", "virtual", "--samples", "4"]
    for name in ("data", "caller", "assistant", "first_speaker", "out"):
        command += [f"--{name.replace('_', '-')}", str(given[name])]
    for scenario in ("restaurant_booking_complete", "restaurant_slot_taken"):
        command += ["--scenario", scenario]
    command += ["--max-duration-seconds", "6"]
    environment = os.environ | {"PYTHONPATH": str(TREE / "src")}
    moment = random.Random(4)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    place = tmp_path / "runs"
    while not (place.exists() and any(one.name[0] != "." for one in place.iterdir())):
        time.sleep(0.01)
    (folder,) = [one for one in place.iterdir() if one.name[0] != "."]
    for _ in range(3):
        time.sleep(moment.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        held = set(read(folder).ended)
        process = subprocess.Popen(
            [sys.executable, "-m", "duplex", "resume", str(folder)],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(1.0)
        assert held <= set(read(folder).ended)
    assert process.wait() in (0, 1)
    done = stored(folder)
    assert len(done.results) == 8
    assert len(set(call_ids(done.results))) == 8
    assert {one.duplex["outcome"] for one in done.results} == {"counted"}
    for call in call_ids(done.results):
        assert waveform(folder, call)

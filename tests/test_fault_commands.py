"""The commands themselves, against each other: ``duplex run`` calls a ``duplex local`` that fails.

Two processes and real speech engines, so only a few rows of the table are held here,
with a server that is killed among them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from duplex.values import Json
from duplex.wavfile import WavWriter
from fault_calls import heard_ms

pytestmark = [pytest.mark.wall, pytest.mark.speech]
START_SECONDS = 120
CALL_SECONDS = 9
DUPLEX = [sys.executable, "-m", "duplex"]


@contextmanager
def serving(*faults: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A ``duplex local`` with these faults: its base URL and its process."""
    options = [part for fault in faults for part in ("--fault", fault)]
    server = subprocess.Popen(
        [*DUPLEX, "local", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield str(json.loads(server.stdout.readline())["url"]), server
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def calling(folder: Path, url: str, protocol: str) -> subprocess.Popen[bytes]:
    """A ``duplex run`` of one short call to that server; a tone is the caller."""
    wav = folder / "caller.wav"
    tone = np.sin(np.arange(24_000) * 0.1) * np.sin(np.arange(24_000) * 0.001) * 9_000
    writer = WavWriter(wav, rate_hz=24_000, channels=1)
    writer.append(tone.astype(np.int16))
    writer.close()
    options = ["--max-duration-seconds", str(CALL_SECONDS), "--caller", str(wav), "--json"]
    options += ["--scenario", "restaurant_booking_complete", "--first-speaker", "assistant"]
    options += ["--assistant", protocol, "--endpoint", url, "--out", str(folder / "runs")]
    environment = {**os.environ, "OPENAI_API_KEY": "any"}
    return subprocess.Popen(
        [*DUPLEX, "run", *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def result_of(folder: Path) -> tuple[Path, dict[str, Json]]:
    (run,) = (folder / "runs").glob("run_*")
    (result,) = json.loads((run / "results.json").read_text())["results"]
    return run, result


def ended(process: subprocess.Popen[bytes], folder: Path) -> tuple[int, Path, dict[str, Json]]:
    """Wait for a run's end; a machine too busy to hold its call tells nothing of faults."""
    code = process.wait(timeout=CALL_SECONDS + 90)
    run, result = result_of(folder)
    error = result["error"]
    if isinstance(error, dict) and error["stage"] == "platform_late":
        pytest.skip("this machine was too busy to hold the call")
    return code, run, result


@pytest.mark.parametrize(
    ("fault", "protocol", "code"),
    [
        ("drop", "gpt-live", "dropped"),
        ("expire", "realtime", "expired"),
    ],
)
def test_a_fault_that_ends_a_call_is_exit_2_with_its_stage(
    tmp_path: Path, fault: str, protocol: str, code: str
) -> None:
    with serving(fault) as (url, _):
        exit_code, run, result = ended(calling(tmp_path, url, protocol), tmp_path)
    assert exit_code == 2
    assert result["status"] == "infrastructure_error"
    error = result["error"]
    assert isinstance(error, dict)
    assert error["stage"] == "session"
    assert code in json.dumps(result["duplex"])
    assert (run / "events" / "restaurant_booking_complete.jsonl").stat().st_size > 0
    assert heard_ms(run, "restaurant_booking_complete") >= 500


def test_faults_that_are_survived_stand_in_the_result(tmp_path: Path) -> None:
    with serving("429", "garbage", "oversize") as (url, _):
        exit_code, run, result = ended(calling(tmp_path, url, "realtime"), tmp_path)
    assert exit_code in (0, 1)
    assert result["error"] is None
    told = json.dumps(result["duplex"])
    assert all(f'"code": "{code}"' in told for code in ("429", "unreadable", "oversize"))
    assert heard_ms(run, "restaurant_booking_complete") >= 500


def test_a_server_that_is_killed_in_mid_call_leaves_what_was_heard(tmp_path: Path) -> None:
    with serving() as (url, server):
        call = calling(tmp_path, url, "gpt-live")
        for _ in range(START_SECONDS * 10):
            found = list((tmp_path / "runs").glob("run_*/events/*.jsonl"))
            if (found and '"segment"' in found[0].read_text()) or call.poll() is not None:
                break
            time.sleep(0.1)
        server.send_signal(signal.SIGKILL)
        exit_code, run, result = ended(call, tmp_path)
    assert exit_code == 2
    error = result["error"]
    assert isinstance(error, dict)
    assert error["stage"] == "session"
    assert heard_ms(run, "restaurant_booking_complete") > 0

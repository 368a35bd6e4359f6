"""A disk that is full, a file that may not grow, a reader that left: one sentence, nothing lost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex.results.schema import read_run
from duplex.wavfile import read_wav, write_wav

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX systems")
TREE = Path(__file__).parents[1]
AGENT = """
import numpy as np

def agent(call):
    ticks = iter(range(10**9))
    t = np.arange(call.rate_hz) / call.rate_hz
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    tone = sum(np.sin(2 * np.pi * 110 * k * t) / k for k in range(1, 20))
    buzz = np.rint(4000 * gate * tone).astype(np.int16)
    return lambda heard, rate_hz: buzz if next(ticks) % 150 == 50 else None
"""


def command(folder: Path, *more: str) -> list[str]:
    (folder / "agents.py").write_text(AGENT, encoding="utf-8")
    t = np.arange(24_000) / 24_000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    write_wav(folder / "caller.wav", np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    return [
        *(sys.executable, "-m", "duplex", "run", "--data", str(TREE / "scenarios")),
        *("--scenario", "restaurant_booking_complete", "--scenario", "restaurant_slot_taken"),
        *("--caller", str(folder / "caller.wav"), "--assistant", f"{folder / 'agents.py'}:agent"),
        *("--clock", "virtual", "--max-duration-seconds", "5", "--out", str(folder / "runs")),
        *more,
    ]


def limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [60_000, 300_000])
def test_a_file_that_may_not_grow_ends_the_run_with_one_sentence(tmp_path: Path, size: int) -> None:
    done = subprocess.run(
        command(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: limited(size),
    )
    assert done.returncode == 2, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("duplex: ")]
    assert len(told) == 1, done.stderr
    assert "cannot be written: file too large" in told[0]
    assert "Traceback" not in done.stderr
    for path in (tmp_path / "runs").rglob("*"):
        if path.suffix == ".wav":
            assert not read_wav(path).warnings, path
        elif path.suffix == ".jsonl":
            assert all(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        assert path.suffix != ".tmp", path


def test_a_run_whose_reader_left_is_whole_and_has_its_own_code(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, "--json", "--run-name", "left"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(120) == 1, told
    (folder,) = (tmp_path / "runs").glob("left_*")
    assert f"nobody reads stdout any more; the run is whole in {folder}" in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    assert len(read_run((folder / "results.json").read_text(encoding="utf-8")).results) == 2
    assert (folder / "viewer.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "duplex", "noise", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "duplex: stdout cannot be written: no space left on device\n"

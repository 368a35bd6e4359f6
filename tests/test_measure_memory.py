"""Measuring takes the memory of what it finds, not of the audio it hears."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from stimuli import LENGTH, conversation, noise, pcm

RATE = 8_000
PEAK = r"""
import re, sys
from duplex.measuring import measure
found = measure(sys.argv[1])
assert found.timing is not None, found.health.refusal
assert len(found.timing.latencies) == int(sys.argv[2]), len(found.timing.latencies)
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


def recording(path: Path, minutes: int, subtype: str) -> Path:
    """The same 20 s of conversation again and again, over a noise floor."""
    left, right = conversation(RATE)
    floors = (noise(LENGTH, -70, seed=seed, rate=RATE) for seed in (1, 2))
    part = np.stack([pcm(wave + floor) for wave, floor in zip((left, right), floors, strict=True)])
    with soundfile.SoundFile(path, "w", RATE, 2, subtype=subtype) as file:
        for _ in range(minutes * 60 // int(LENGTH)):
            file.write(part.T)
    return path


def peak_kib(path: Path, minutes: int) -> int:
    """Peak resident memory of a process that measures the file and does nothing else."""
    exchanges = 4 * minutes * 60 // int(LENGTH)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), str(exchanges)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize(("name", "subtype"), [("a.wav", "PCM_16"), ("a.flac", "PCM_16")])
def test_twelve_minutes_take_hardly_more_memory_than_three(
    tmp_path: Path, name: str, subtype: str
) -> None:
    short, long = (
        peak_kib(recording(tmp_path / f"{minutes}{name}", minutes, subtype), minutes)
        for minutes in (3, 12)
    )
    audio = 9 * 60 * RATE * 4 // 1024
    # What is found grows with the call, a few figures for 10 ms; a copy of the audio would be all.
    assert long - short < audio / 2
    assert long / short < 1.2

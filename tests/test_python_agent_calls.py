"""Whole runs with a Python agent in virtual time: the same twice, and never lost."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from duplex.options import make
from duplex.runner import Finished, Runner
from duplex.wavfile import write_wav

TREE = Path(__file__).parents[1]
AGENT = """
import sys
import numpy as np

def buzz(rate, ms):
    t = np.arange(rate * ms // 1000) / rate
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    tone = sum(np.sin(2 * np.pi * 110 * k * t) / k for k in range(1, 20))
    return np.rint(4000 * gate * tone).astype(np.int16)

def talks(call):
    call.tell({"type": "state", "state": {"calls": 1}})
    ticks = iter(range(10**9))
    def hear(heard, rate_hz):
        tick = next(ticks)
        if tick % 150 == 50:
            return buzz(rate_hz, 800)
        if tick == 100:
            sys.exit("I have had enough")
        if tick == 120:
            raise ValueError("oh no")
    return hear

def silent(call):
    def hear(heard, rate_hz):
        raise RuntimeError("never a word")
    return hear
"""


async def run(folder: Path, factory: str, name: str) -> Finished:
    (folder / "agents.py").write_text(AGENT, encoding="utf-8")
    t = np.arange(24_000) / 24_000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    caller = folder / f"{name}.wav"
    write_wav(caller, np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    values: dict[str, object] = {
        "data": TREE / "scenarios",
        "scenario": ("restaurant_booking_complete",),
        "caller": str(caller),
        "assistant": f"{folder / 'agents.py'}:{factory}",
        "clock": "virtual",
        "max_duration_seconds": 25.0,
        "out": folder / name,
    }
    return await Runner(make(values)).run()


def sound(finished: Finished) -> str:
    (path,) = finished.folder.glob("audio/*/conversation.wav")
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_what_an_agent_raises_is_recorded_and_the_run_is_the_same_twice(
    tmp_path: Path,
) -> None:
    one, two = [await run(tmp_path, "talks", name) for name in ("one", "two")]
    (result,) = one.run.results
    assert result.status == "failed", result.error
    faults = result.duplex["faults"]
    assert isinstance(faults, list)
    told = [(fault["stage"], fault["code"]) for fault in faults if isinstance(fault, dict)]
    assert told == [("agent", "SystemExit"), ("agent", "ValueError")]
    assert result.observability.interaction.audio_source == "recording_python"
    assert sound(one) == sound(two)
    checks = {check.id: check for check in result.assessment.checks}
    assert checks["delegation_policy"].status == "not_applicable"
    # It reported a state, so it is taken at its word: nothing was booked.
    assert checks["application_state"].status == "failed"


async def test_an_agent_that_only_fails_never_spoke(tmp_path: Path) -> None:
    finished = await run(tmp_path, "silent", "runs")
    (result,) = finished.run.results
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "assistant_opening"
    assert result.duplex["outcome"] == "never_spoke"
    faults = result.duplex["faults"]
    assert isinstance(faults, list)
    assert ("agent", "RuntimeError") in [
        (fault["stage"], fault["code"]) for fault in faults if isinstance(fault, dict)
    ]


async def test_a_factory_that_fails_ends_one_call_and_no_run(tmp_path: Path) -> None:
    finished = await run(tmp_path, "buzz", "runs")
    (result,) = finished.run.results
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "assistant_connection"
    assert "the factory failed" in result.error.message


@pytest.mark.parametrize("factory", ["missing", "sys"])
async def test_a_name_that_is_no_factory_is_refused_before_any_call(
    tmp_path: Path, factory: str
) -> None:
    from duplex.errors import InputError

    with pytest.raises(InputError, match="assistant"):
        await run(tmp_path, factory, "runs")
    assert not (tmp_path / "runs").exists()

"""Runs of many cheap calls: a recorded caller, a Python agent, virtual time, no engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from duplex.options import make
from duplex.results import Result
from duplex.runner import Runner
from duplex.values import Json
from duplex.wavfile import write_wav

TREE = Path(__file__).parents[1]
SCENARIOS = ("restaurant_booking_complete", "restaurant_slot_taken")
AGENT = '''
import os
import numpy as np

def buzz(rate, ms):
    t = np.arange(rate * ms // 1000) / rate
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    tone = sum(np.sin(2 * np.pi * 110 * k * t) / k for k in range(1, 20))
    return np.rint(4000 * gate * tone).astype(np.int16)

def answers_after(ms):
    def answers(call):
        loud = quiet = 0
        def hear(heard, rate_hz):
            nonlocal loud, quiet
            if np.abs(heard).max(initial=0) > 3000:
                loud, quiet = loud + 1, 0
            elif loud > 20:
                quiet += 1
                if quiet == ms // 20:
                    loud = quiet = 0
                    return buzz(rate_hz, 600)
        return hear
    return answers

answers = answers_after(400)
slow = answers_after(1600)

def silent(call):
    return lambda heard, rate_hz: None

def wakes(call):
    """Says nothing on the first two calls that are held at all."""
    path = os.path.join(os.path.dirname(__file__), "woken")
    with open(path, "a") as file:
        file.write("x")
    return answers(call) if os.path.getsize(path) > 2 else silent(call)

def dies(call):
    """Ends its process on the first call."""
    path = os.path.join(os.path.dirname(__file__), "died")
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(9)
    return answers(call)
'''


def options(folder: Path, factory: str = "answers", **more: object) -> dict[str, object]:
    """Options of a run whose agent is ``factory``; its files lie in ``folder``."""
    (folder / "agents.py").write_text(AGENT, encoding="utf-8")
    caller = folder / "caller.wav"
    if not caller.exists():
        t = np.arange(24_000) / 24_000
        voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
        gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
        write_wav(caller, np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    return {
        "data": TREE / "scenarios",
        "scenario": SCENARIOS,
        "caller": str(caller),
        "assistant": f"{folder / 'agents.py'}:{factory}",
        "first_speaker": "caller",
        "clock": "virtual",
        "max_duration_seconds": 6.0,
        "silent_retry_backoff_seconds": 0.0,
        "out": folder / "runs",
        **more,
    }


def runner(folder: Path, factory: str = "answers", **more: object) -> Runner:
    asked = options(folder, factory, **more)
    if str(more.get("sweep", "")).startswith("assistant="):
        del asked["assistant"]
    return Runner(make(asked))


def case_of(result: Result) -> Mapping[str, Json]:
    case = result.duplex["case"]
    assert isinstance(case, dict)
    return case


def call_ids(results: list[Result]) -> list[str]:
    return [str(case_of(result)["call_id"]) for result in results]


def block(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value

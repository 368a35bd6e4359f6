"""Whole calls over real sockets with a server that misbehaves: nothing is lost, nothing hangs.

The assistant is a tone that greets when asked to; the caller is a script. What
is tested is what the call makes of each fault, on the wall clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import WallClock
from duplex.hangup import Policy
from duplex.local.faults import parse_fault
from duplex.local.server import LocalServer
from duplex.participants.base import Pcm
from duplex.participants.live import Limits, LiveSession
from duplex.participants.scripted import Scripted
from duplex.participants.transport import websocket
from duplex.recording import CallRecorder, Recording
from duplex.values import Side
from gpt_live_voices import ToneVoice

RATE = 24_000
pytestmark = pytest.mark.wall


async def held_once(
    folder: Path, *faults: str, seconds: float = 3.0, key: str = "k", wanted: str | None = None
) -> tuple[CallEnd, Recording, float]:
    """Hold one short call against a faulty server; also tell how long it took."""
    async with LocalServer(
        lambda config, role: ToneVoice(config, tone_ms=1200),
        api_key=wanted,
        faults=[parse_fault(f) for f in faults],
    ) as server:
        clock = WallClock(RATE)
        assistant = LiveSession(
            side=Side.ASSISTANT,
            connect=websocket(server.url, key),
            opening="hello",
            limits=Limits(finish_ms=1500),
        )
        # A caller that is never finished: the call lasts until its limit.
        caller = Scripted(Side.CALLER, [(10**9, np.zeros(1, np.int16))])
        plan = CallPlan(
            call_id="c",
            scenario_id="c",
            first_speaker="assistant",
            hold_ms=(0, 120),
            policy=Policy(max_duration_ms=round(seconds * 1000)),
        )
        recorder = CallRecorder(folder, "c", rate_hz=RATE)
        call = Call(plan, caller=caller, assistant=assistant, clock=clock, recorder=recorder)
        began = asyncio.get_running_loop().time()
        end = await asyncio.wait_for(call.hold(), seconds + 15)
        took = asyncio.get_running_loop().time() - began
    return end, Recording.load(folder, "c"), took


async def held(
    folder: Path, *faults: str, key: str = "k", wanted: str | None = None, seconds: float = 3
) -> tuple[CallEnd, Recording, float]:
    """The same, again where this machine was too busy to hold it: that is no peer's fault."""
    for attempt in range(3):
        found = await held_once(
            folder / f"attempt{attempt}", *faults, key=key, wanted=wanted, seconds=seconds
        )
        if found[0].fault is None or found[0].fault.stage != "platform_late":
            break
    return found


def codes(recording: Recording) -> Sequence[str]:
    return [fault.code for fault in recording.faults]


def voiced_seconds(recording: Recording) -> float:
    loud = np.abs(recording.source(Side.ASSISTANT).astype(np.int32)) > 200
    return float(loud.sum()) / RATE


def _sounding(recording: Recording) -> Pcm:
    """From the assistant's first to its last sample that is not zero."""
    tone = recording.source(Side.ASSISTANT)
    loud = np.flatnonzero(tone)
    return tone[loud[0] : loud[-1] + 1]


async def test_without_a_fault_the_call_runs_to_its_limit(tmp_path: Path) -> None:
    end, recording, _ = await held(tmp_path)
    assert end.reason == "duration_limit"
    assert voiced_seconds(recording) > 0.3
    assert recording.duration == end.position == 3 * RATE


async def test_a_refused_key_names_the_stage_and_keeps_the_events(tmp_path: Path) -> None:
    end, recording, took = await held(tmp_path, key="wrong", wanted="right")
    assert end.fault is not None
    assert (end.fault.stage, end.fault.code) == ("assistant_connection", "401")
    assert recording.termination_reason == "error"
    assert took < 5


async def test_a_server_that_leaves_mid_call_ends_it_with_what_was_heard(tmp_path: Path) -> None:
    end, recording, _ = await held(tmp_path, "drop", seconds=8)
    assert end.fault is not None
    assert (end.fault.stage, end.fault.code) == ("session", "dropped")
    assert end.position < 8 * RATE
    assert voiced_seconds(recording) > 0.2


async def test_a_stall_neither_lengthens_the_recording_nor_doubles_late_audio(
    tmp_path: Path,
) -> None:
    _, plain, _ = await held(tmp_path / "plain", seconds=7)
    end, stalled, took = await held(tmp_path / "stalled", "stall,seconds=3", seconds=7)
    assert end.reason == "duration_limit"
    assert stalled.duration == 7 * RATE
    assert took < 7 + 4
    assert "stalled" in codes(stalled)
    assert voiced_seconds(stalled) == pytest.approx(voiced_seconds(plain), abs=0.15)


async def test_garbage_is_recorded_and_the_call_goes_on(tmp_path: Path) -> None:
    end, recording, _ = await held(tmp_path, "garbage")
    assert end.reason == "duration_limit"
    assert codes(recording)
    assert not any(item.fatal for item in recording.faults)
    assert voiced_seconds(recording) > 1.0


async def test_odd_byte_splits_lose_no_sample_and_swap_no_bytes(tmp_path: Path) -> None:
    _, plain, _ = await held(tmp_path / "plain")
    _, odd, _ = await held(tmp_path / "odd", "odd_bytes")
    np.testing.assert_array_equal(_sounding(odd), _sounding(plain))


async def test_a_server_that_never_closes_cannot_keep_the_run(tmp_path: Path) -> None:
    end, recording, took = await held(tmp_path, "never_close")
    assert end.reason == "duration_limit"
    assert took < 3 + 1.5 + 3
    assert "close_timeout" in codes(recording)
    assert recording.ended


async def test_the_next_call_is_unaffected_and_no_task_is_left(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    await held(tmp_path / "bad", "drop", seconds=6)
    end, recording, _ = await held(tmp_path / "good", seconds=2)
    assert end.reason == "duration_limit"
    assert voiced_seconds(recording) > 0.3
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()

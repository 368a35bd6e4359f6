"""Calls over real sockets with a server that misbehaves: nothing is lost, nothing hangs.

The same table as in ``test_fault_table.py``, on the wall clock: short calls, several side
by side, whose assistant greets and whose caller is silent. What asserts on time has bounds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import WallClock
from duplex.hangup import Policy
from duplex.local.faults import FAULTS, parse_fault
from duplex.local.parties import party_maker
from duplex.local.server import LocalServer
from duplex.participants.live import Limits, LiveSession
from duplex.participants.realtime import RealtimeSession
from duplex.participants.realtime_door import realtime_websocket
from duplex.participants.scripted import Scripted
from duplex.participants.transport import websocket
from duplex.recording import CallRecorder, Recording
from duplex.values import Side
from fake_engines import Parrot, _Engines
from fault_calls import PROTOCOLS, TABLE, open_files
from gpt_live_voices import ToneVoice

RATE = 24_000
SECONDS = 4.0
FINISH_MS = 1_000
ATTEMPTS = 4
BATCH = 4
UNSEEN = {("lose_tool_result", "realtime")}
"""A caller that says nothing has no work done."""
QUICK = {
    "stall": "stall,seconds=2.3,after_ms=500",
    "jitter": "jitter,ms=2500,after_ms=300",
    "refuse": "refuse",
    "429": "429,retry_after=0.2",
    "lose_tool_result": "lose_tool_result,after_ms=20",
}
pytestmark = pytest.mark.wall


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One call that was held, and how long that took in seconds."""

    end: CallEnd
    recording: Recording
    took: float

    @property
    def late(self) -> bool:
        """Whether this machine was too busy for it, which is no peer's fault."""
        return self.end.fault is not None and self.end.fault.stage == "platform_late"

    @property
    def codes(self) -> set[str]:
        return {one.code for one in self.recording.faults if "on purpose:" not in one.message}

    def voiced_seconds(self) -> float:
        loud = np.abs(self.recording.source(Side.ASSISTANT).astype(np.int32)) > 200
        return float(loud.sum()) / RATE


def session(protocol: str, url: str, key: str) -> LiveSession | RealtimeSession:
    if protocol == "realtime":
        connect = realtime_websocket(url, "m", key)
        return RealtimeSession(side=Side.ASSISTANT, connect=connect, opening="Say: Hello to you.")
    return LiveSession(
        side=Side.ASSISTANT,
        connect=websocket(url, key),
        opening="hello and delegate",
        limits=Limits(finish_ms=FINISH_MS),
    )


async def held(
    folder: Path, protocol: str, *faults: str, seconds: float = SECONDS, key: str = "k"
) -> Outcome:
    """Hold one short call against a server that suffers ``faults``."""
    parrot = Parrot()
    engines = _Engines(parrot, parrot)
    async with LocalServer(
        lambda config, role: ToneVoice(config, tone_ms=3_000, hz=307.0, wordy=True),
        make_party=party_maker(engines, seed=3),  # type: ignore[arg-type]
        api_key="k",
        faults=[parse_fault(text) for text in faults],
    ) as server:
        # A caller that is never finished: the call lasts until its limit.
        caller = Scripted(Side.CALLER, [(10**9, np.zeros(1, np.int16))])
        plan = CallPlan(
            call_id="c",
            scenario_id="c",
            first_speaker="assistant",
            hold_ms=(0, 120 if protocol == "gpt-live" else 0),
            policy=Policy(max_duration_ms=round(seconds * 1000)),
        )
        call = Call(
            plan,
            caller=caller,
            assistant=session(protocol, server.url, key),
            clock=WallClock(RATE),
            recorder=CallRecorder(folder, "c", rate_hz=RATE),
        )
        began = asyncio.get_running_loop().time()
        end = await asyncio.wait_for(call.hold(), seconds + 30)
        took = asyncio.get_running_loop().time() - began
    return Outcome(end=end, recording=Recording.load(folder, "c"), took=took)


async def held_in_time(folder: Path, protocol: str, *faults: str, **options: float) -> Outcome:
    """The same, again where this machine was too busy to hold it."""
    for attempt in range(ATTEMPTS):
        found = await held(folder / f"attempt{attempt}", protocol, *faults, **options)  # type: ignore[arg-type]
        if not found.late:
            break
    return found


def quick(name: str) -> str:
    return QUICK.get(name, f"{name},after_ms=500")


def checked(name: str, protocol: str, found: Outcome) -> None:
    """One row of the table."""
    row, faults = TABLE[name], found.recording.faults
    seconds = 7.5 if name == "lose_tool_result" else SECONDS
    if (name, protocol) not in UNSEEN:
        assert found.codes & set(row.seen(protocol)), (name, faults)
    assert found.took < seconds + 5, name
    assert found.recording.ended, name
    assert found.recording.duration == found.end.position, name
    if row.stage is None:
        assert (found.end.reason, found.end.fault) == ("duration_limit", None), name
        assert found.voiced_seconds() > 0.3, name
        return
    assert found.end.fault is not None, name
    assert found.end.fault.stage == row.stage, name
    assert found.end.position < seconds * RATE, name
    if FAULTS[name].make is not None:
        assert found.voiced_seconds() > 0.1, name


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("batch", range(0, len(TABLE), BATCH))
async def test_every_fault_on_the_wall_is_named_bounded_and_gone(
    tmp_path: Path, batch: int, protocol: str
) -> None:
    names = list(TABLE)[batch : batch + BATCH]
    before, files = asyncio.all_tasks(), open_files()
    found = await asyncio.gather(
        *(
            held_in_time(
                tmp_path / name,
                protocol,
                quick(name),
                seconds=7.5 if name == "lose_tool_result" else SECONDS,
            )
            for name in names
        )
    )
    for name, outcome in zip(names, found, strict=True):
        if outcome.late:
            pytest.skip(f"this machine was too busy for {name}, {ATTEMPTS} times over")
        checked(name, protocol, outcome)
    await asyncio.sleep(0.2)
    assert asyncio.all_tasks() - before == set()
    assert open_files() <= files


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_refused_key_names_the_stage_and_keeps_the_events(
    tmp_path: Path, protocol: str
) -> None:
    found = await held(tmp_path, protocol, key="wrong")
    assert found.end.fault is not None
    assert (found.end.fault.stage, found.end.fault.code) == ("assistant_connection", "401")
    assert found.recording.termination_reason == "error"
    assert found.took < 5


async def test_a_host_that_stays_busy_is_given_up_in_time(tmp_path: Path) -> None:
    found = await held(tmp_path, "gpt-live", "429,times=1000,retry_after=30")
    assert found.end.fault is not None
    assert (found.end.fault.stage, found.end.fault.code) == ("assistant_connection", "429")
    assert found.took < 5


async def test_odd_byte_splits_lose_no_sample_and_swap_no_bytes(tmp_path: Path) -> None:
    plain, odd = await asyncio.gather(
        held_in_time(tmp_path / "plain", "gpt-live"),
        held_in_time(tmp_path / "odd", "gpt-live", "odd_bytes,after_ms=100"),
    )
    tones = []
    for found in (plain, odd):
        tone = found.recording.source(Side.ASSISTANT)
        tones.append(tone[np.flatnonzero(tone)[0] :][: RATE * 2])
    np.testing.assert_array_equal(tones[0], tones[1])

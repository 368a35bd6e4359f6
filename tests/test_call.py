"""The loop: what two participants say is on the recording where it was put."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import Clock, VirtualClock, WallClock
from duplex.errors import SessionError
from duplex.hangup import Policy
from duplex.participants.base import Incoming, Participant
from duplex.participants.scripted import Scripted
from duplex.recording import CallRecorder, Recording
from duplex.run_folder import RunFolder
from duplex.values import Action, Happening, Json, RemoteFault, Side, Span, Utterance
from stimuli import pcm, voiced

RATE = 24_000
ASSISTANT_AT, CALLER_AT = 4801, 40_007


GREETING, REQUEST = (pcm(voiced(seconds, pitch=hz)) for seconds, hz in ((1.25, 200), (1.5, 140)))


def parties() -> tuple[Scripted, Scripted]:
    span = Span(start=CALLER_AT, end=CALLER_AT + len(REQUEST))
    label = Utterance(side=Side.CALLER, text="a table", span=span, action=Action.OPENING)
    caller = Scripted(Side.CALLER, [(CALLER_AT, REQUEST)], [label])
    return caller, Scripted(Side.ASSISTANT, [(ASSISTANT_AT, GREETING)])


def plan(transport_ms: int = 20, **policy: int) -> CallPlan:
    return CallPlan(
        call_id="c", scenario_id="c", transport_ms=transport_ms, policy=Policy(**policy)
    )


async def hold(
    folder: Path,
    caller: Participant,
    assistant: Participant,
    a_plan: CallPlan | None = None,
    clock: Clock | None = None,
) -> tuple[CallEnd, Recording]:
    recorder = CallRecorder(folder, "c", rate_hz=RATE)
    call = Call(
        a_plan or plan(),
        caller=caller,
        assistant=assistant,
        clock=clock or VirtualClock(RATE),
        recorder=recorder,
    )
    end = await call.hold()
    return end, Recording.load(folder, "c")


async def test_a_scripted_pair_lands_sample_for_sample(tmp_path: Path) -> None:
    end, recording = await hold(tmp_path, *parties())
    assert end.reason == "response_completed"
    conversation = recording.conversation()
    for channel, at, said in ((0, CALLER_AT, REQUEST), (1, ASSISTANT_AT, GREETING)):
        expected = np.zeros(len(conversation), np.int16)
        expected[at : at + len(said)] = said
        np.testing.assert_array_equal(conversation[:, channel], expected)
    np.testing.assert_array_equal(recording.source(Side.CALLER), conversation[:, 0])
    (utterance,) = recording.spoken_by(Side.CALLER)
    assert (utterance.span.start, utterance.span.end) == (CALLER_AT, CALLER_AT + len(REQUEST))
    assert utterance.action is Action.OPENING


@pytest.mark.parametrize("transport_ms", [10, 137, 200])
async def test_the_transport_tick_changes_no_sample_and_no_segment(
    tmp_path: Path, transport_ms: int
) -> None:
    _, base = await hold(tmp_path / "base", *parties())
    _, other = await hold(tmp_path / "other", *parties(), plan(transport_ms))
    shared = min(base.duration, other.duration)
    np.testing.assert_array_equal(base.conversation()[:shared], other.conversation()[:shared])
    assert base.segments == other.segments


async def test_two_virtual_calls_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        await hold(tmp_path / name, *parties())
    for file in ("audio/c/conversation.wav", "events/c.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


async def test_the_end_is_silence_after_the_last_word_and_counts_add_up(tmp_path: Path) -> None:
    end, recording = await hold(tmp_path, *parties(), plan(quiet_ms=600, drain_ms=900))
    tail = end.position - (CALLER_AT + len(REQUEST))
    assert 0 <= tail - 1500 * RATE // 1000 <= 2 * 480
    counts = recording.counts
    assert counts is not None
    shares = [counts[name] for name in ("caller_only", "assistant_only", "overlap", "silence")]
    assert sum(s for s in shares if isinstance(s, int)) == counts["position"] == end.position


class Failing(Scripted):
    """Cannot be reached."""

    async def start(self, clock: Clock) -> None:
        raise SessionError("assistant: no", stage="assistant_connection", code="401")


class Faulty(Scripted):
    """Tells of a fault in its peer after a while, fatal or not."""

    def __init__(self, fatal: bool) -> None:
        super().__init__(Side.ASSISTANT, [(ASSISTANT_AT, GREETING)])
        self._fatal = fatal
        self._ticks = 0

    def collect(self) -> Sequence[Incoming]:
        self._ticks += 1
        if self._ticks != 50:
            return super().collect()
        fault = RemoteFault(
            side=self.side, stage="session", code="gone", message="it left", fatal=self._fatal
        )
        return [*super().collect(), fault]


class Late(Scripted):
    """Its speech engine falls behind what it declared."""

    def collect(self) -> Sequence[Incoming]:
        fields: dict[str, Json] = {"what": "decode", "late_ms": 1501}
        return [*super().collect(), Happening(type="voice.late", fields=fields)]


async def test_a_side_that_cannot_be_reached_ends_the_call_with_its_stage(tmp_path: Path) -> None:
    caller, _ = parties()
    end, recording = await hold(tmp_path, caller, Failing(Side.ASSISTANT, []))
    assert end.fault is not None
    assert (end.fault.stage, end.fault.code, end.position) == ("assistant_connection", "401", 0)
    assert recording.fatal_fault is not None
    assert recording.termination_reason == "error"


async def test_a_fault_is_recorded_and_only_a_fatal_one_ends_the_call(tmp_path: Path) -> None:
    caller, _ = parties()
    end, recording = await hold(tmp_path / "passing", caller, Faulty(fatal=False))
    assert end.reason == "response_completed"
    assert [fault.code for fault in recording.faults] == ["gone"]
    caller, _ = parties()
    end, recording = await hold(tmp_path / "fatal", caller, Faulty(fatal=True))
    assert end.reason == "error"
    assert 49 * 480 <= end.position <= 51 * 480
    assert recording.duration == end.position


async def test_speech_much_later_than_declared_is_the_platforms_fault(tmp_path: Path) -> None:
    caller, _ = parties()
    end, _ = await hold(tmp_path, caller, Late(Side.ASSISTANT, []))
    assert end.fault is not None
    assert end.fault.stage == "platform_late"


async def test_an_assistant_never_heard_is_named(tmp_path: Path) -> None:
    caller, _ = parties()
    silent = Scripted(Side.ASSISTANT, [])
    end, _ = await hold(tmp_path, caller, silent, plan(opening_ms=3000))
    assert end.fault is not None
    assert end.fault.stage == "assistant_opening"


@pytest.mark.wall
async def test_on_the_wall_clock_a_call_takes_its_own_time(tmp_path: Path) -> None:
    clock = WallClock(RATE)
    end, recording = await hold(tmp_path, *parties(), plan(quiet_ms=100, drain_ms=100), clock=clock)
    elapsed = clock.elapsed()
    assert elapsed is not None
    assert elapsed >= end.position / RATE
    assert end.reason == "response_completed"
    assert recording.clock == "wall"


def test_the_events_file_is_strict_json_with_rising_seq(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(hold(tmp_path, *parties()))
    lines = RunFolder(tmp_path).events("c").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert records[0]["type"] == "call.started"
    assert records[-1]["type"] == "call.ended"

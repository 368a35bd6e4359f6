"""Planted audio lies at the planted sample of a virtual call's recording, bit for bit.

Placement in virtual time is exact: whoever speaks, at any transport tick and
session rate. What is planted is noise, of which no two samples in a row repeat,
so a shift by one sample or a rounding of one bit cannot pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.call import Call, CallPlan
from duplex.clock import VirtualClock
from duplex.detect import segments
from duplex.hangup import Policy
from duplex.participants.base import Participant, Pcm
from duplex.participants.scripted import Scripted
from duplex.participants.wav import Cue, WavParticipant
from duplex.recording import CallRecorder, Recording
from duplex.resample import resample
from duplex.values import Side
from duplex.wavfile import write_wav
from stimuli import pcm, speechlike

RATE = 24_000
TICKS_MS = (10, 20, 137, 200)
FRAME = RATE // 400


def grains(length: int, seed: int) -> Pcm:
    """Loud noise without a zero, int16."""
    found = np.random.default_rng(seed).integers(-20_000, 20_000, length).astype(np.int16)
    found[found == 0] = 1
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Audio of one side and the sample it must lie at."""

    side: Side
    at: int
    pcm: Pcm


def held(
    folder: Path,
    caller: Participant,
    assistant: Participant,
    *,
    transport_ms: int,
    rate_hz: int = RATE,
    hold_ms: int = 0,
    lasts_ms: int = 6_000,
) -> Recording:
    plan = CallPlan(
        call_id="c",
        scenario_id="c",
        rate_hz=rate_hz,
        transport_ms=transport_ms,
        hold_ms=(0, hold_ms),
        policy=Policy(drain_ms=60_000, max_duration_ms=lasts_ms),
    )
    clock = VirtualClock(rate_hz)
    recorder = CallRecorder(folder, "c", rate_hz=rate_hz)
    call = Call(plan, caller=caller, assistant=assistant, clock=clock, recorder=recorder)
    asyncio.run(call.hold())
    return Recording.load(folder, "c")


def assert_lies_there(recording: Recording, planted: Sequence[Planted]) -> None:
    """Both the stems and the conversation hold the planted audio, and nothing besides."""
    conversation = recording.conversation()
    for side in Side:
        wanted = np.zeros(len(conversation), np.int16)
        for piece in planted:
            if piece.side is side:
                wanted[piece.at : piece.at + len(piece.pcm)] = piece.pcm
        np.testing.assert_array_equal(conversation[:, side], wanted)
        np.testing.assert_array_equal(recording.source(side), wanted)


@pytest.mark.parametrize("transport_ms", TICKS_MS)
@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_scripted_audio_lies_where_it_was_planted(
    tmp_path: Path, transport_ms: int, rate_hz: int
) -> None:
    random = np.random.default_rng(transport_ms + rate_hz)
    planted = []
    for side in Side:
        at = int(random.integers(1, 300))
        for seed in range(4):
            piece = grains(int(random.integers(1, rate_hz)), seed)
            planted.append(Planted(side=side, at=at, pcm=piece))
            at += len(piece) + int(random.integers(0, rate_hz // 2))
    caller, assistant = (
        Scripted(side, [(piece.at, piece.pcm) for piece in planted if piece.side is side])
        for side in Side
    )
    recording = held(
        tmp_path, caller, assistant, transport_ms=transport_ms, rate_hz=rate_hz, lasts_ms=7_000
    )
    assert_lies_there(recording, planted)


@settings(max_examples=25, deadline=None)
@given(
    at=st.integers(0, RATE),
    length=st.integers(1, RATE),
    transport_ms=st.integers(10, 200),
    side=st.sampled_from(Side),
)
def test_any_sample_at_any_tick_is_exact(
    tmp_path_factory: pytest.TempPathFactory, at: int, length: int, transport_ms: int, side: Side
) -> None:
    planted = Planted(side=side, at=at, pcm=grains(length, at))
    sides = [Scripted(who, [(at, planted.pcm)] if who is side else []) for who in Side]
    folder = tmp_path_factory.mktemp("call")
    recording = held(folder, sides[0], sides[1], transport_ms=transport_ms, lasts_ms=2_100)
    assert_lies_there(recording, [planted])


@pytest.mark.parametrize("transport_ms", TICKS_MS)
@pytest.mark.parametrize(("at_ms", "file_hz"), [(0, RATE), (1, RATE), (333, RATE), (777, 8_000)])
def test_a_recording_as_caller_lies_where_it_was_planted(
    tmp_path: Path, transport_ms: int, at_ms: int, file_hz: int
) -> None:
    spoken = grains(file_hz + 7, at_ms)
    write_wav(tmp_path / "caller.wav", spoken, file_hz)
    caller = WavParticipant(
        Side.CALLER, tmp_path / "caller.wav", cue=Cue(at_ms=at_ms, answer_ms=200)
    )
    answer = Planted(side=Side.ASSISTANT, at=60_001, pcm=grains(5_003, 9))
    recording = held(
        tmp_path,
        caller,
        Scripted(Side.ASSISTANT, [(answer.at, answer.pcm)]),
        transport_ms=transport_ms,
    )
    said = resample(spoken, file_hz, RATE)
    assert_lies_there(
        recording, [Planted(side=Side.CALLER, at=at_ms * RATE // 1000, pcm=said), answer]
    )


@pytest.mark.parametrize("transport_ms", TICKS_MS)
def test_a_recording_that_waits_for_an_opening_says_where_it_lies(
    tmp_path: Path, transport_ms: int
) -> None:
    spoken = grains(RATE, 3)
    write_wav(tmp_path / "caller.wav", spoken, RATE)
    cue = Cue(silence_ms=300, answer_ms=200)
    caller = WavParticipant(Side.CALLER, tmp_path / "caller.wav", cue=cue, text="hello")
    opening = Planted(side=Side.ASSISTANT, at=4_801, pcm=grains(9_001, 4))
    recording = held(
        tmp_path,
        caller,
        Scripted(Side.ASSISTANT, [(opening.at, opening.pcm)]),
        transport_ms=transport_ms,
    )
    (label,) = recording.spoken_by(Side.CALLER)
    assert label.span.length == len(spoken)
    assert label.span.start >= opening.at + len(opening.pcm) + 300 * RATE // 1000
    assert_lies_there(
        recording, [Planted(side=Side.CALLER, at=label.span.start, pcm=spoken), opening]
    )


def test_a_hold_moves_all_of_a_side_by_itself_and_nothing_else(tmp_path: Path) -> None:
    said = grains(RATE, 1)
    caller = Planted(side=Side.CALLER, at=1_201, pcm=grains(RATE, 2))
    recording = held(
        tmp_path,
        Scripted(Side.CALLER, [(caller.at, caller.pcm)]),
        Scripted(Side.ASSISTANT, [(7_207, said)]),
        transport_ms=20,
        hold_ms=120,
    )
    moved = Planted(side=Side.ASSISTANT, at=7_207 + 120 * RATE // 1000, pcm=said)
    assert_lies_there(recording, [caller, moved])


@pytest.mark.parametrize("transport_ms", TICKS_MS)
def test_edges_found_in_a_call_are_those_of_the_clip_alone(
    tmp_path: Path, transport_ms: int
) -> None:
    clip = pcm(speechlike(1.3, 11))
    alone = segments(np.concatenate([clip, np.zeros(RATE, np.int16)]), RATE, "edge")
    places = {Side.CALLER: 12_013, Side.ASSISTANT: 60_029}
    caller, assistant = (Scripted(side, [(places[side], clip)]) for side in Side)
    recording = held(tmp_path, caller, assistant, transport_ms=transport_ms)
    for side in Side:
        found = [segment.span for segment in recording.segments if segment.side is side]
        assert len(found) == len(alone) == 1
        assert abs(found[0].start - places[side] - alone[0].start) <= FRAME
        assert abs(found[0].end - places[side] - alone[0].end) <= FRAME

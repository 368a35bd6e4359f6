"""Faults people reported in public, as conversations of their whole kind.

Each test plants the reported situation over a range of positions, not at one;
comments name the report. Cases about pacing, padding or providers are tested
where those live: here is what a right recording of them must measure as.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.metrics.live_facts import ClockFacts, InterruptedReply, LiveFacts
from duplex.metrics.speech import SpokenSegment
from duplex.metrics.timing import timing
from duplex.values import Side
from timing_scenes import (
    RATE,
    at,
    latencies,
    measured,
    outcomes,
    paused,
    speech,
    turns,
)

tenths = st.integers(3, 30).map(lambda n: n / 10)


@settings(max_examples=25, deadline=None)
@given(delay=st.integers(60, 499).map(lambda n: n / 100), silence=st.integers(50, 300))
def test_an_unanswered_last_turn_never_disappears(delay: float, silence: int) -> None:
    # ServiceNow/eva#70
    second = 2 + delay + 4
    end = second + 2 + silence / 10
    block = measured([(0, 2), (second, second + 2)], [(2 + delay, second - 1)], end)
    assert latencies(block) == [pytest.approx(delay * 1000)]
    assert block.response_latency.n == 1
    assert (block.response_rate.numerator, block.response_rate.denominator) == (1, 2)
    assert outcomes(block) == ["answered", "unanswered"]
    assert block.responses.fates[1].waited == pytest.approx(at(silence / 10), abs=1)


@settings(max_examples=25, deadline=None)
@given(lateness=st.integers(0, 60).map(lambda n: n / 10), into=tenths)
def test_an_interruption_lies_where_both_speak_and_nowhere_else(
    lateness: float, into: float
) -> None:
    # langwatch/scenario#467
    starts = 2.3 + lateness
    block = measured([(0, 1), (starts + into, starts + into + 2)], [(starts, starts + 9)], 20)
    (barge_in,) = block.yielding.barge_ins
    assert barge_in.onset == at(starts + into)
    assert block.floor.overlap == at(starts + into + 2) - at(starts + into)


def test_a_trigger_that_never_came_true_leaves_no_interruption() -> None:
    # langwatch/scenario#467
    assert measured([(0, 1), (2, 4)], [], 20).yielding.barge_ins == ()


@settings(max_examples=25, deadline=None)
@given(lead=st.integers(1, 100).map(lambda n: n / 100))
def test_an_opening_collision_keeps_its_sign(lead: float) -> None:
    # CALLE-AI/awesome-phone-call-agents#415
    block = measured([(0.5, 2.0)], [(2.0 - lead, 4.0)], 5)
    assert block.talk.turns[Side.CALLER][0].start < block.talk.turns[Side.ASSISTANT][0].start
    assert block.floor.overlap == pytest.approx(at(lead), abs=1)
    assert latencies(block) == [pytest.approx(-lead * 1000, abs=0.05)]
    assert block.greeting_latency is None


@settings(max_examples=25, deadline=None)
@given(start=st.integers(0, 20).map(lambda n: n / 10))
def test_an_assistant_that_opens_the_call_has_no_latency(start: float) -> None:
    # CALLE-AI/awesome-phone-call-agents#415
    block = measured([(start + 2, start + 3)], [(start, start + 1.5)], start + 4)
    assert latencies(block) == [None]
    assert block.response_latency.mean is None
    assert block.greeting_latency == at(start)


@settings(max_examples=25, deadline=None)
@given(before=st.integers(0, 400), after=st.integers(0, 400))
def test_padded_segments_stay_inside_the_recording(before: int, after: int) -> None:
    # snakers4/silero-vad#500
    pad = SpokenSegment(start=-before * 24, end=RATE + after * 24)
    block = timing(dataclasses.replace(speech([], [], 1.0), caller=(pad,)))
    assert [(v.start, v.end) for v in block.talk.voices[Side.CALLER]] == [(0, RATE)]
    assert block.floor.duration == RATE


def test_a_missing_end_event_does_not_lengthen_a_latency() -> None:
    # egma-ai/egma#274: what is heard decides, not when the harness stopped waiting
    block = measured([(0, 2)], [(2.5, 4)], 9.0)
    assert latencies(block) == [pytest.approx(500)]


@settings(max_examples=25, deadline=None)
@given(gap=st.integers(21, 90).map(lambda n: n / 100))
def test_caller_speech_after_the_assistant_ended_interrupts_nothing(gap: float) -> None:
    # openai/openai-agents-js#523
    block = measured([(2 + gap, 3 + gap)], [(0, 2)], 6)
    assert block.yielding.barge_ins == ()
    assert block.responses.mispredictions == 0
    assert block.yield_rate.value is None


@pytest.mark.parametrize("length", [0.02, 0.09, 0.149])
@pytest.mark.parametrize("place", [0.0, 0.5, 2.0, 3.95, 4.5])
def test_a_click_is_no_turn_and_no_interruption(length: float, place: float) -> None:
    # aplisay/llm-agent#243
    block = measured([(place, place + length)], [(0, 4)], 9)
    assert block.talk.turns[Side.CALLER] == ()
    assert block.yielding.barge_ins == ()
    assert block.yielding.events == ()
    assert turns(block, Side.ASSISTANT) == [(0, 4)]


def test_clicks_answer_nothing_and_hold_nothing_open() -> None:
    # aplisay/llm-agent#243
    block = measured([(0, 2), (3, 3.09)], [(2.2, 2.3), (4, 5)], 9)
    assert latencies(block) == [pytest.approx(2_000)]


def test_no_speech_is_never_a_clean_zero() -> None:
    # screenpipe/screenpipe#2046: nothing found is unknown, with a reason
    block = measured([], [], 9)
    document = block.as_json()
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    for name in ("response_latency", "response_rate", "talk_ratio", "overlap_ratio"):
        assert f"/{name}" in unknown
    assert unknown["/response_latency"] == "no caller turn was found"
    assert document["talk_ratio"] is None


def test_a_reply_after_a_flush_is_measured_where_it_was_heard() -> None:
    # gradio-app/fastrtc#99
    block = measured([(0, 0.9), (1.6, 2.1)], [(1.0, 2.0), (2.5, 4)], 6)
    assert latencies(block)[-1] == pytest.approx(400)
    assert turns(block, Side.ASSISTANT)[-1] == (2.5, 4)


@pytest.mark.parametrize("tools", [[], [(2.0, 2.5)], [(0, 5)]])
@pytest.mark.parametrize("lead", [0.3, 0.5, 1.0, 2.0])
def test_a_cut_in_counts_with_or_without_a_tool(
    lead: float, tools: list[tuple[float, float]]
) -> None:
    # ServiceNow/eva#112
    block = measured([(0, 4)], [(4 - lead, 6)], 8, tools=tools)
    assert block.responses.mispredictions == 1
    assert block.floor.overlap == at(4) - at(4 - lead)


@settings(max_examples=25, deadline=None)
@given(
    waits=st.lists(st.integers(21, 90).map(lambda n: n / 10), min_size=1, max_size=5),
    delay=st.integers(10, 400),
)
def test_a_middle_turn_without_a_reply_is_superseded_not_overwritten(
    waits: list[float], delay: int
) -> None:
    # comet-ml/opik#8419
    caller, position = [], 0.0
    for wait in [*waits, 0.0]:
        caller.append((position, position + 2))
        position += 2 + wait
    last = caller[-1][1] + delay / 1000
    block = measured(caller, [(last, last + 2)], last + 3)
    assert outcomes(block) == ["unanswered"] * len(waits) + ["answered"]
    assert [fate.waited for fate in block.responses.fates[:-1]] == [
        pytest.approx(at(wait), abs=1) for wait in waits
    ]
    assert latencies(block) == [pytest.approx(delay, abs=0.05)]


def test_an_interrupted_reply_counts_what_was_heard_of_it() -> None:
    # twilio/twilio-agent-connect-python#118
    facts = LiveFacts(
        tick=480,
        clock=ClockFacts(
            discarded_samples=at(3.8),
            interrupted=(InterruptedReply(heard_ms=1_200, received_ms=5_000),),
        ),
    )
    block = timing(speech([(4.0, 5.5)], [(3.0, 4.2)], 9), facts=facts)
    assert block.floor.overlap == at(0.2)
    assert block.floor.assistant + block.floor.overlap == at(1.2)
    clock = block.as_json()["clock"]
    assert isinstance(clock, dict)
    assert clock["discarded_samples"] == 91_200
    assert clock["interrupted_replies"] == [{"heard_ms": 1_200, "received_ms": 5_000}]


def test_a_turn_that_the_provider_failed_to_answer_is_not_held_against_the_agent() -> None:
    # livekit/agents#2967
    caller, assistant = [(0.0, 2.0), (5.0, 7.0), (12.0, 14.0)], [(2.5, 4.0), (14.5, 16.0)]
    failed = LiveFacts(tick=480, failures=((at(7.6), "rate_limit_exceeded"),))
    block = timing(speech(caller, assistant, 17), facts=failed)
    assert outcomes(block) == ["answered", "excluded", "answered"]
    assert block.responses.fates[1].why == "the provider failed: rate_limit_exceeded"
    assert (block.response_rate.numerator, block.response_rate.denominator) == (2, 2)
    # An answer that came all the same counts, whenever it failed before.
    answered = LiveFacts(tick=480, failures=((at(2.1), "server_error"),))
    assert outcomes(timing(speech(caller, assistant, 17), facts=answered))[0] == "answered"


def test_one_continuous_reply_is_one_segment_without_underrun() -> None:
    # ServiceNow/eva#176, openclaw/openclaw#119086, coval-ai/benchmarks#205: padding and clock
    # steps are the call's to report; the timeline itself knows neither
    facts = LiveFacts(tick=480, clock=ClockFacts(underrun_samples=0, late_ticks=0))
    heard = speech([(0, 1)], [(1.5, 4.5)], 6)
    assert turns(timing(heard, facts=facts), Side.ASSISTANT) == [(1.5, 4.5)]
    assert latencies(timing(heard, facts=facts)) == latencies(timing(heard))


@settings(max_examples=40, deadline=None)
@given(
    gaps=st.lists(st.integers(-450, 3_000), min_size=2, max_size=9),
    lengths=st.lists(st.integers(1_700, 4_000), min_size=10, max_size=10),
)
def test_planted_gaps_come_back_as_latencies(gaps: list[int], lengths: list[int]) -> None:
    # sides in turn, gaps planted in milliseconds: every assistant start has its gap as latency
    sides: list[list[SpokenSegment]] = [[], []]
    end = 0
    for index, length in enumerate(lengths[: len(gaps) + 1]):
        start = end + (gaps[index - 1] * 24 if index else 0)
        end = start + length * 24
        sides[index % 2].append(SpokenSegment(start=start, end=end))
    heard = dataclasses.replace(
        speech([], [], 0), duration=end, caller=tuple(sides[0]), assistant=tuple(sides[1])
    )
    assert latencies(timing(heard)) == [pytest.approx(gap) for gap in gaps[::2]]


def test_two_turns_the_detector_glued_are_two() -> None:
    # 350 ms of overlap on both sides leave a pause of 130 ms, less than the detector's hangover
    block = measured([paused(0, 5, (2.0, 2.13))], [(1.65, 2.48 + 0.4)], 8)
    assert turns(block, Side.CALLER) == [(0, 2), (2.13, 5)]
    assert latencies(block) == [pytest.approx(-350)]

"""The block as JSON: shape, reasons for nulls, live facts, and pinned definitions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math

import pytest
from hypothesis import given, settings

from duplex.metrics.definitions import DEFINITIONS, digest
from duplex.metrics.live_facts import (
    ClockFacts,
    InterruptedReply,
    LiveFacts,
    ReplyArrival,
    SentAudio,
)
from duplex.metrics.speech import SoundKind, Speech
from duplex.metrics.timing import TimingBlock, timing
from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy
from duplex.values import Action, Json
from timing_scenes import at, conversations, label, measured, nulls, sound, speech, sure

PINNED_DEFINITIONS = {
    "1.0": "14020dd343da109db46074858d6f1eed97ef60f3965e617f95712be196a1a719",
}
PINNED_BLOCK = {
    "1.0": "ec5d69948f6c015572d90626a58a232982094f48c0bd8504f60b362b394f829c",
}


def member(document: Json, *names: str | int) -> Json:
    for name in names:
        if isinstance(name, int):
            assert isinstance(document, list)
            document = document[name]
        else:
            assert isinstance(document, dict)
            document = document[name]
    return document


def full_call() -> TimingBlock:
    """A call in which everything happens once."""
    return timing(
        speech(
            [
                sure(1.0, 3.0, 4, 6),
                sure(6.0, 6.4, 4, 6),
                sure(9.5, 12.0, 4, 6),
                sure(16, 18, 4, 6),
                sure(19.9, 20, 4, 6),
                sure(26, 27, 4, 6),
            ],
            [
                sure(0.1, 0.8, 2, 2),
                sure(3.4, 7.5, 2, 2),
                sure(8.3, 10.1, 2, 2),
                sure(12.7, 15, 2, 2),
                sure(17.2, 19.0, 2, 2),
            ],
            34,
            labels=[label(6, 6.4, Action.BACKCHANNEL), label(16, 18, Action.CORRECT)],
            sounds=[sound(14, 14.2, SoundKind.TIC), sound(22, 22.9, SoundKind.SIDE_SPEECH)],
            tools=[(11.9, 12.4)],
            tick_ms=1.0,
        )
    )


def live() -> LiveFacts:
    return LiveFacts(
        tick=480,
        replies=(
            ReplyArrival(
                heard_at=at(2.58),
                first_byte_ms=2_300,
                first_audio_ms=2_410,
                hold_ms=100,
                wait_ms=-10,
            ),
        ),
        sent=(SentAudio(start=at(2.0), end=at(2.02), late_ms=3),),
        clock=ClockFacts(
            caller_drift_ppm=12.5,
            assistant_drift_ppm=math.nan,
            late_ticks=3,
            late_p99_ms=4.5,
            late_max_ms=11,
            underrun_samples=0,
            idle_samples=480,
            discarded_samples=0,
            interrupted=(InterruptedReply(heard_ms=880),),
        ),
    )


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_every_null_has_its_reason_and_no_reason_lacks_its_null(found: Speech) -> None:
    document = timing(found).as_json()
    unknown = document.pop("unknown")
    assert isinstance(unknown, dict)
    empty = nulls(document)
    for pointer in empty:
        parts = pointer.split("/")
        above = {"/".join(parts[:depth]) for depth in range(2, len(parts) + 1)}
        assert above & unknown.keys(), pointer
    for pointer, reason in unknown.items():
        assert reason
        assert any(f"{null}/".startswith(f"{pointer}/") for null in empty), pointer
    json.dumps(document, allow_nan=False)


def test_the_block_has_the_names_of_the_interface() -> None:
    document = full_call().as_json()
    assert set(DEFINITIONS) | {
        "timing_version",
        "detector",
        "policy",
        "turn_taking",
        "unknown",
    } == set(document)
    floor = member(document, "floor")
    assert isinstance(floor, dict)
    assert set(floor) == {
        "caller_ms",
        "assistant_ms",
        "overlap_ms",
        "silence_ms",
    }
    spread = member(document, "response_latency")
    assert isinstance(spread, dict)
    assert {"mean", "p50", "p95", "p99", "min", "max", "n", "plus_minus_ms", "ci95"} <= set(spread)
    turns = member(document, "turns")
    assert isinstance(turns, list)
    for turn in turns:
        assert isinstance(turn, dict)
        assert {
            "side",
            "start_ms",
            "end_ms",
            "response_latency_ms",
            "overlap_ms",
            "yielded",
        } <= set(turn)


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_what_the_block_says_agrees_with_itself(found: Speech) -> None:
    document = timing(found).as_json()
    turns = member(document, "turns")
    assert isinstance(turns, list)
    seen = [t["response_latency_ms"] for t in turns if isinstance(t, dict)]
    known = [value for value in seen if isinstance(value, float)]
    assert len(known) == member(document, "response_latency", "n")
    if known:
        mean = member(document, "response_latency", "mean")
        assert mean == pytest.approx(sum(known) / len(known), abs=0.002)
    starts = [t["start_ms"] for t in turns if isinstance(t, dict)]
    assert starts == sorted(starts, key=lambda value: float(str(value)))
    for index, turn in enumerate(turns):
        assert isinstance(turn, dict)
        if turn["side"] == "caller" and isinstance(turn["answered_by"], int):
            assert member(document, "turns", turn["answered_by"], "answers") == index


def test_live_facts_split_the_heard_latency() -> None:
    block = timing(speech([(0, 2.005)], [(2.6, 4)], 6), facts=live())
    (turn,) = block.relay.replies
    # the caller's last sample was due when its tick ended, at 2 020 ms, and left 3 ms later
    assert turn.first_byte_ms == pytest.approx(277)
    assert turn.first_audio_ms == pytest.approx(387)
    document = block.as_json()
    assert member(document, "relay", "hold_ms", "mean") == 100
    assert member(document, "relay", "tick_wait_ms", "mean") == 15 - 10
    assert member(document, "relay", "transport_ms", "mean") == 3
    assert member(document, "relay", "total_ms", "mean") == 108
    assert member(document, "relay", "assistant_own_ms", "mean") == 595 - 108
    assert member(document, "first_byte_latency", "p50") == 277
    assert member(document, "turns", 1, "relay_ms") == 108
    assert member(document, "turns", 1, "assistant_own_ms") == 595 - 108


def test_without_word_of_sending_messages_are_ticks_sent_on_time() -> None:
    facts = dataclasses.replace(live(), sent=(SentAudio(start=0, end=480, late_ms=3),))
    block = timing(speech([(0, 2.005)], [(2.6, 4)], 6), facts=facts)
    (turn,) = block.relay.replies
    assert turn.transport_ms is None
    assert turn.first_audio_ms == pytest.approx(390)
    assert turn.relay_ms == pytest.approx(105)
    assert member(block.as_json(), "unknown", "/relay/transport_ms")


def test_the_clock_reports_itself_and_says_what_it_does_not_know() -> None:
    document = timing(speech([(0, 2)], [(2.6, 4)], 6), facts=live()).as_json()
    clock = member(document, "clock")
    assert isinstance(clock, dict)
    assert clock["drift_ppm"] == {"caller": 12.5, "assistant": None}
    assert clock["late_ticks"] == {"count": 3, "p99_ms": 4.5, "max_ms": 11}
    unknown = member(document, "unknown")
    assert isinstance(unknown, dict)
    assert "/clock/drift_ppm/assistant" in unknown
    assert "/clock/interrupted_replies/0/received_ms" in unknown


def test_a_recording_alone_knows_no_relay_and_no_clock() -> None:
    document = measured([(0, 2)], [(2.6, 4)], 6).as_json()
    unknown = member(document, "unknown")
    assert isinstance(unknown, dict)
    assert document["clock"] is None
    for pointer in ("/clock", "/first_byte_latency", "/first_audio_latency", "/relay/hold_ms"):
        assert pointer in unknown


def test_an_arrival_that_is_not_finite_poisons_nothing() -> None:
    arrivals = (
        ReplyArrival(heard_at=at(2.6), first_byte_ms=math.nan, first_audio_ms=2_500),
        ReplyArrival(heard_at=at(6.6), first_byte_ms=6_300, first_audio_ms=math.inf),
    )
    found = speech([(0, 2), (5, 6)], [(2.6, 4), (6.6, 8)], 9)
    block = timing(found, facts=LiveFacts(tick=480, replies=arrivals))
    assert (block.relay.first_byte.n, block.relay.first_byte.invalid) == (1, 1)
    assert block.relay.first_byte.mean == pytest.approx(300)
    json.dumps(block.as_json(), allow_nan=False)


def test_an_arrival_belongs_to_the_reply_it_was_heard_in() -> None:
    arrivals = (ReplyArrival(heard_at=at(6.58), first_audio_ms=6_400),)
    found = speech([(0, 2), (5, 6)], [(2.6, 4), (6.6, 8)], 9)
    block = timing(found, facts=LiveFacts(tick=480, replies=arrivals))
    assert [reply.first_audio_ms for reply in block.relay.replies] == [None, pytest.approx(400)]


def test_what_came_in_during_one_reply_is_not_the_next_ones() -> None:
    arrivals = tuple(ReplyArrival(heard_at=at(s), first_audio_ms=s * 1000) for s in (2.6, 3.9))
    found = speech([(0, 2), (4.1, 5.2)], [(2.6, 4), (5.6, 7)], 9)
    block = timing(found, facts=LiveFacts(tick=480, replies=arrivals))
    assert [reply.first_audio_ms for reply in block.relay.replies] == [pytest.approx(600), None]


def test_facts_of_the_call_move_no_heard_number() -> None:
    found = speech([(0, 2)], [(2.6, 4)], 6)
    plain, with_facts = timing(found), timing(found, facts=live())
    assert plain.response_latency == with_facts.response_latency
    assert plain.talk == with_facts.talk


def test_another_policy_is_another_ruler_and_is_written_down() -> None:
    found = speech([(0, 2)], [(5.5, 7)], 9)
    strict = TimingPolicy(response_deadline_ms=3_000)
    assert (timing(found).ledger.late, timing(found, strict).ledger.late) == (0, 1)
    assert member(timing(found, strict).as_json(), "policy", "response_deadline_ms") == 3_000


def test_every_kind_of_row_is_filled_by_a_full_call() -> None:
    block = full_call()
    assert dataclasses.asdict(block.ledger) == {
        "attempted": 4,
        "answered": 3,
        "late": 0,
        "unanswered": 1,
        "censored": 0,
        "excluded": 0,
    }
    assert block.yield_rate.value == 1.0
    assert block.responses.mispredictions == 1
    assert [block.selectivity(n).denominator for n in ("backchannel", "vocal_tic")] == [1, 1]
    assert len(block.responses.awkward) == 1
    assert block.response_latency.plus_minus == pytest.approx(math.hypot(6, 2) + 1)


def test_definitions_and_policy_change_only_with_the_version() -> None:
    assert digest() == PINNED_DEFINITIONS[TIMING_VERSION]


def test_numbers_change_only_with_the_version() -> None:
    written = json.dumps(full_call().as_json(), sort_keys=True)
    assert hashlib.sha256(written.encode()).hexdigest() == PINNED_BLOCK[TIMING_VERSION]


def test_a_definition_is_one_sentence_with_a_source() -> None:
    for name, entry in DEFINITIONS.items():
        assert entry.sentence.endswith("."), name
        assert ". " not in entry.sentence, name
        assert entry.source, name

"""Latency, early starts, interruptions, and turns nobody answered."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.metrics.intervals import Runs
from duplex.metrics.responses import Outcome, ReplyKind, responses_of
from duplex.metrics.speech import EdgeError, Sound, SoundKind, Speech, SpokenSegment
from duplex.metrics.timing import timing
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.turns import Turn, silences
from duplex.values import Action, Side, Span, Utterance
from timing_scenes import (
    RATE,
    at,
    conversations,
    label,
    latencies,
    measured,
    outcomes,
    sound,
    speech,
    sure,
)


def test_latency_runs_from_the_callers_end_to_the_assistants_start() -> None:
    assert latencies(measured([(0, 2)], [(2.6, 4)], 6)) == [pytest.approx(600)]


def test_latency_counts_from_the_last_caller_voice_backchannels_included() -> None:
    block = measured([(0, 2), (3, 3.3)], [(4, 6)], 8, labels=[label(3, 3.3, Action.BACKCHANNEL)])
    assert latencies(block) == [pytest.approx(700)]


@pytest.mark.parametrize(
    ("lead", "latency", "kind"),
    [(1.0, -1_000, "early_start"), (0.02, -20, "early_start"), (1.001, None, "interruption")],
)
def test_a_start_before_the_callers_end_is_early_up_to_a_second(
    lead: float, latency: float | None, kind: str
) -> None:
    block = measured([(0, 4)], [(4 - lead, 7)], 8)
    assert latencies(block) == [latency if latency is None else pytest.approx(latency)]
    assert block.responses.replies[0].kind.value == kind
    assert outcomes(block) == ["answered"]


@pytest.mark.parametrize(("kept", "count"), [(0.3, 1), (0.299, 0)])
def test_a_misprediction_needs_the_caller_to_keep_the_floor(kept: float, count: int) -> None:
    block = measured([(0, 4)], [(4 - kept, 7)], 8)
    assert block.responses.mispredictions == count


def test_an_interruption_that_gives_way_answers_nothing() -> None:
    block = measured([(0, 5)], [(2, 3.2), (5.5, 7)], 8)
    assert latencies(block) == [None, pytest.approx(500)]
    assert block.responses.fates[0].reply == 1
    assert block.responses.mispredictions == 1


def test_every_start_inside_a_caller_turn_is_counted() -> None:
    block = measured([(0, 9)], [(2, 3.2), (5, 6.2)], 12)
    assert block.responses.mispredictions == 2
    assert block.agent_interruption.value == 2.0


def test_an_assistant_that_speaks_first_greets_and_has_no_latency() -> None:
    block = measured([(3, 4)], [(0.5, 2), (4.5, 6)], 8)
    assert latencies(block) == [None, pytest.approx(500)]
    assert block.responses.replies[0].kind is ReplyKind.GREETING
    assert block.greeting_latency == at(0.5)


def test_a_caller_first_call_has_no_greeting() -> None:
    assert measured([(0, 1)], [(2, 3)], 5).greeting_latency is None


def test_a_turn_is_answered_once_and_later_speech_has_no_latency() -> None:
    block = measured(
        [(0, 2), (5, 5.3)],
        [(2.5, 4), (5.1, 8)],
        9,
        labels=[label(0, 2, Action.SPEAK), label(5, 5.3, Action.BACKCHANNEL)],
    )
    assert latencies(block) == [pytest.approx(500)]
    assert len(block.responses.replies) == 1


def test_speech_that_nobody_asked_for_has_no_latency() -> None:
    talk = measured([(0, 2)], [(2.5, 4), (6, 7)], 9).talk
    (turn,) = talk.turns[Side.ASSISTANT]
    parts = tuple(Turn(side=Side.ASSISTANT, voices=(voice,)) for voice in turn.voices)
    parted = dataclasses.replace(talk, turns={**talk.turns, Side.ASSISTANT: parts})
    replies = responses_of(parted, TimingPolicy()).replies
    assert [reply.kind for reply in replies] == [ReplyKind.REPLY, ReplyKind.UNPROMPTED]
    assert replies[1].latency is None


@pytest.mark.parametrize(
    ("start", "outcome"), [(6.999, "answered"), (7.0, "answered"), (7.001, "late")]
)
def test_a_late_reply_keeps_its_latency_and_is_unanswered_by_the_deadline(
    start: float, outcome: str
) -> None:
    block = measured([(0, 2)], [(start, 9)], 12)
    assert outcomes(block) == [outcome]
    assert latencies(block) == [pytest.approx((start - 2) * 1000)]
    unanswered = block.as_json()["unanswered_turns"]
    assert isinstance(unanswered, dict)
    assert unanswered["count"] == (outcome == "late")


@pytest.mark.parametrize(("duration", "outcome"), [(6.9, "censored"), (7.0, "unanswered")])
def test_a_call_that_ends_before_the_deadline_censors_the_turn(
    duration: float, outcome: str
) -> None:
    block = measured([(0, 2)], [], duration)
    assert outcomes(block) == [outcome]
    assert block.responses.fates[0].waited == at(duration) - at(2)
    assert block.response_rate.denominator == (outcome == "unanswered")


def test_a_closing_is_owed_no_reply_but_keeps_the_latency_of_one() -> None:
    labels = [label(0, 2, Action.STOP)]
    assert outcomes(measured([(0, 2)], [], 20, labels=labels)) == ["excluded"]
    answered = measured([(0, 2)], [(2.5, 3)], 20, labels=labels)
    assert outcomes(answered) == ["excluded"]
    assert latencies(answered) == [pytest.approx(500)]


def test_a_request_with_a_goodbye_in_the_same_turn_is_owed_a_reply() -> None:
    labels = [label(0, 2, Action.SPEAK), label(2.5, 3, Action.STOP)]
    assert outcomes(measured([(0, 2), (2.5, 3)], [], 20, labels=labels)) == ["unanswered"]


def test_a_barge_in_nobody_stops_for_is_not_lost() -> None:
    assert outcomes(measured([(4, 6)], [(0, 12)], 20)) == ["unanswered"]


def test_a_sound_while_the_caller_waits_does_not_end_the_wait() -> None:
    block = measured([(0, 2)], [(4, 6)], 8, sounds=[sound(3, 3.2, SoundKind.TIC)])
    assert latencies(block) == [pytest.approx(2_000)]


@pytest.mark.parametrize(
    ("reply", "spans"),
    [(4.999, []), (5.0, [(2.0, 5.0)]), (9.0, [(2.0, 9.0)])],
)
def test_silence_is_awkward_from_three_seconds_while_a_reply_is_owed(
    reply: float, spans: list[tuple[float, float]]
) -> None:
    block = measured([(0, 2)], [(reply, 10), (18, 19)], 20)
    assert block.responses.awkward == tuple((at(a), at(b)) for a, b in spans)


def test_silence_after_the_last_answer_is_nobodys_fault() -> None:
    assert measured([(0, 2)], [(2.5, 4)], 30).responses.awkward == ()


def test_a_turn_is_owed_nothing_once_the_caller_took_the_next() -> None:
    block = measured([(0, 2), (6, 8)], [(8.5, 10)], 30)
    assert block.responses.awkward == ((at(2), at(6)),)


def test_silence_after_a_goodbye_is_not_awkward() -> None:
    labels = [label(0, 2, Action.STOP)]
    assert measured([(0, 2)], [], 30, labels=labels).responses.awkward == ()


def test_voice_of_the_caller_breaks_an_awkward_silence() -> None:
    block = measured([(0, 2), (4.5, 5)], [(7.5, 9)], 10)
    assert block.responses.awkward == ()


def test_the_width_of_a_latency_is_that_of_both_edges_and_the_tick() -> None:
    found = speech([sure(0, 2, 9, 3)], [sure(2.5, 4, 4, 9)], 6, tick_ms=2.5)
    assert timing(found).responses.replies[0].plus_minus_ms == pytest.approx(math.hypot(3, 4) + 2.5)


@pytest.mark.parametrize(
    "edge",
    [
        EdgeError(plus_minus_ms=None),
        EdgeError(plus_minus_ms=math.nan),
        EdgeError(plus_minus_ms=3, unreliable=True),
    ],
)
def test_a_latency_from_an_edge_nobody_vouches_for_has_no_width(edge: EdgeError) -> None:
    caller = dataclasses.replace(sure(0, 2, 1, 1), offset=edge)
    block = timing(speech([caller], [sure(2.5, 4, 1, 1)], 6))
    assert latencies(block) == [pytest.approx(500)]
    assert block.response_latency.plus_minus is None
    assert block.response_latency.unreliable == int(edge.unreliable)


@settings(max_examples=80, deadline=None)
@given(conversations())
def test_every_caller_turn_has_one_fate_and_the_ledger_balances(found: Speech) -> None:
    block = timing(found)
    ledger = block.ledger
    parts = (ledger.answered, ledger.late, ledger.unanswered, ledger.censored, ledger.excluded)
    assert sum(parts) == ledger.attempted == len(block.talk.turns[Side.CALLER])
    answers = [r.answers for r in block.responses.replies if r.answers is not None]
    assert len(answers) == len(set(answers))
    for index, fate in enumerate(block.responses.fates):
        assert (fate.reply is not None) == (index in answers)
        if fate.outcome in (Outcome.UNANSWERED, Outcome.CENSORED):
            assert fate.waited is not None


@settings(max_examples=80, deadline=None)
@given(conversations())
def test_a_latency_is_the_distance_to_a_caller_edge_and_never_too_negative(found: Speech) -> None:
    block = timing(found)
    starts = [turn.start for turn in block.talk.turns[Side.ASSISTANT]]
    ends = {voice.end for voice in block.talk.heard(Side.CALLER)}
    for start, reply in zip(starts, block.responses.replies, strict=True):
        if reply.latency is None:
            continue
        assert start - reply.latency in ends
        assert reply.latency >= -RATE
        assert not any(start - reply.latency < end <= start for end in ends)


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_awkward_silences_are_silent_and_long(found: Speech) -> None:
    block = timing(found)
    quiet: Runs = silences(block.talk)
    for start, end in block.responses.awkward:
        assert end - start >= 3 * RATE
        assert any(a <= start and end <= b for a, b in quiet)


def shifted(found: Speech, by: int) -> Speech:
    def moved(segments: tuple[SpokenSegment, ...]) -> tuple[SpokenSegment, ...]:
        return tuple(
            dataclasses.replace(
                part,
                start=part.start + by,
                end=part.end + by,
                pauses=tuple((a + by, b + by) for a, b in part.pauses),
            )
            for part in segments
        )

    def span(old: Span) -> Span:
        return Span(start=old.start + by, end=old.end + by)

    labels: tuple[Utterance, ...] = tuple(
        dataclasses.replace(item, span=span(item.span)) for item in found.labels
    )
    sounds: tuple[Sound, ...] = tuple(
        dataclasses.replace(item, span=span(item.span)) for item in found.sounds
    )
    return dataclasses.replace(
        found,
        duration=found.duration + by,
        caller=moved(found.caller),
        assistant=moved(found.assistant),
        labels=labels,
        sounds=sounds,
    )


def mirrored_order(found: Speech) -> Speech:
    return dataclasses.replace(
        found,
        caller=found.caller[::-1],
        assistant=(*found.assistant[::-1], *found.assistant),
        labels=found.labels[::-1],
        sounds=found.sounds[::-1],
    )


def faster(found: Speech) -> Speech:
    """The same call at twice the rate."""

    def doubled(segments: tuple[SpokenSegment, ...]) -> tuple[SpokenSegment, ...]:
        return tuple(
            dataclasses.replace(
                part,
                start=2 * part.start,
                end=2 * part.end,
                pauses=tuple((2 * a, 2 * b) for a, b in part.pauses),
            )
            for part in segments
        )

    return dataclasses.replace(
        found,
        rate_hz=2 * RATE,
        duration=2 * found.duration,
        caller=doubled(found.caller),
        assistant=doubled(found.assistant),
        labels=tuple(
            dataclasses.replace(item, span=Span(start=2 * item.span.start, end=2 * item.span.end))
            for item in found.labels
        ),
        sounds=tuple(
            dataclasses.replace(item, span=Span(start=2 * item.span.start, end=2 * item.span.end))
            for item in found.sounds
        ),
    )


@settings(max_examples=40, deadline=None)
@given(conversations(), st.integers(1, 40))
def test_a_call_that_starts_later_has_the_same_metrics(found: Speech, ticks: int) -> None:
    block, later = timing(found), timing(shifted(found, ticks * RATE // 5))
    assert later.responses.replies == tuple(
        dataclasses.replace(r, anchor=None if r.anchor is None else r.anchor + ticks * RATE // 5)
        for r in block.responses.replies
    )
    assert later.response_latency == block.response_latency
    assert later.responses.fates == block.responses.fates
    assert [e.error for e in later.yielding.events] == [e.error for e in block.yielding.events]
    assert later.taking == block.taking
    assert later.panel == block.panel


@pytest.mark.parametrize("change", [mirrored_order, faster])
@settings(max_examples=30, deadline=None)
@given(found=conversations())
def test_neither_order_nor_rate_of_the_input_moves_a_number(
    change: Callable[[Speech], Speech], found: Speech
) -> None:
    assert timing(change(found)).as_json() == timing(found).as_json()


def hung_over(found: Speech, hangover: int) -> Speech:
    """The same voice from a detector that closes later: near segments become one with a pause."""

    def joined(segments: tuple[SpokenSegment, ...]) -> tuple[SpokenSegment, ...]:
        out: list[SpokenSegment] = []
        for part in segments:
            if out and part.start - out[-1].end < hangover:
                gap = (out[-1].end, part.start)
                out[-1] = dataclasses.replace(
                    out[-1], end=part.end, pauses=(*out[-1].pauses, gap, *part.pauses)
                )
            else:
                out.append(part)
        return tuple(out)

    return dataclasses.replace(
        found, caller=joined(found.caller), assistant=joined(found.assistant)
    )


@settings(max_examples=50, deadline=None)
@given(conversations(apart=11), st.sampled_from((260, 590, 2_500)))
def test_a_longer_hangover_moves_nothing(found: Speech, hangover_ms: int) -> None:
    longer = hung_over(found, hangover_ms * RATE // 1000)
    assert timing(longer).as_json() == timing(found).as_json()

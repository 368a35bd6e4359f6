"""Barge-ins, false yields and selectivity."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from duplex.metrics.speech import SoundKind, Speech
from duplex.metrics.timing import TimingBlock, timing
from duplex.values import Action, Side
from timing_scenes import RATE, at, conversations, label, measured, sound

TIC, SIDE_SPEECH = SoundKind.TIC, SoundKind.SIDE_SPEECH


def stops(block: TimingBlock) -> list[tuple[int, bool | None]]:
    """Milliseconds until the assistant stopped, and whether that was a yield."""
    return [(round(b.stop_after * 1000 / RATE), b.yielded) for b in block.yielding.barge_ins]


def errors(block: TimingBlock) -> list[bool | None]:
    return [event.error for event in block.yielding.events]


def test_time_to_yield_runs_from_the_callers_start_to_the_assistants_stop() -> None:
    block = measured([(4, 7)], [(1, 4.6), (8, 10)], 12)
    assert stops(block) == [(600, True)]
    assert block.time_to_yield.mean == pytest.approx(600)
    assert block.yield_rate.value == 1.0


@pytest.mark.parametrize(("stop", "yielded"), [(6.0, True), (6.001, False)])
def test_a_stop_within_two_seconds_is_a_yield(stop: float, yielded: bool) -> None:
    block = measured([(4, 9)], [(1, stop), (10, 12)], 14)
    assert [found for _, found in stops(block)] == [yielded]
    assert block.time_to_yield.n == int(yielded)


@pytest.mark.parametrize(("resumes", "stop"), [(4.899, 6_000), (4.9, 300)])
def test_speech_that_resumes_within_600_ms_never_stopped(resumes: float, stop: int) -> None:
    block = measured([(4, 11)], [(1, 4.3), (resumes, 10)], 14)
    assert stops(block) == [(stop, stop <= 2_000)]


def test_an_answer_soon_after_the_caller_finished_is_no_resumption() -> None:
    block = measured([(4, 4.6)], [(1, 4.5), (4.9, 8)], 10, labels=[label(4, 4.6, Action.INTERRUPT)])
    assert stops(block) == [(500, True)]


def test_speech_while_the_assistant_is_silent_interrupts_nobody() -> None:
    block = measured([(3, 4)], [(0, 2)], 6)
    assert stops(block) == []
    assert block.responses.mispredictions == 0


def test_a_caller_that_starts_as_the_assistant_ends_interrupts_nobody() -> None:
    assert stops(measured([(2, 4)], [(0, 2)], 6)) == []


def test_a_goodbye_over_the_assistant_needs_no_yield() -> None:
    assert stops(measured([(2, 4)], [(0, 5)], 6, labels=[label(2, 4, Action.STOP)])) == []


@pytest.mark.parametrize(("duration", "yielded"), [(5.0, None), (6.5, False)])
def test_an_assistant_cut_off_by_the_end_of_the_call_has_neither_yielded_nor_not(
    duration: float, yielded: bool | None
) -> None:
    block = measured([(4, 9)], [(1, 9)], duration)
    assert [found for _, found in stops(block)] == [yielded]
    assert block.yield_rate.denominator == (yielded is not None)


def test_a_backchannel_is_no_barge_in() -> None:
    assert stops(measured([(2, 2.5)], [(0, 5)], 6)) == []


@pytest.mark.parametrize(
    ("stop", "error"), [(2.999, True), (3.0, True), (3.001, False), (6.0, False)]
)
def test_stopping_within_a_second_of_a_backchannel_is_a_false_yield(
    stop: float, error: bool
) -> None:
    labels = [label(2, 2.4, Action.BACKCHANNEL)]
    block = measured([(2, 2.4)], [(0, stop)], 9, labels=labels)
    assert errors(block) == [error]
    assert (block.false_yield.numerator, block.false_yield.denominator) == (int(error), 1)
    assert block.selectivity("backchannel").value == 1.0 - error


@pytest.mark.parametrize(("resumes", "error"), [(3.099, False), (3.1, True)])
def test_a_false_yield_needs_600_ms_of_quiet(resumes: float, error: bool) -> None:
    labels = [label(2, 2.4, Action.BACKCHANNEL)]
    assert errors(measured([(2, 2.4)], [(0, 2.5), (resumes, 6)], 9, labels=labels)) == [error]


def test_quiet_that_the_call_cut_short_proves_nothing() -> None:
    labels = [label(2, 2.4, Action.BACKCHANNEL)]
    block = measured([(2, 2.4)], [(0, 2.5)], 3.0, labels=labels)
    assert errors(block) == [None]
    assert block.false_yield.denominator == 0


@pytest.mark.parametrize("kind", [TIC, SIDE_SPEECH])
def test_going_on_through_a_sound_counts_as_right(kind: SoundKind) -> None:
    block = measured([], [(0, 8)], 10, sounds=[sound(2, 2.3, kind), sound(5, 5.3, kind)])
    name = "vocal_tic" if kind is TIC else "non_directed"
    rate = block.selectivity(name)
    assert (rate.numerator, rate.denominator) == (2, 2)
    assert (block.false_yield.numerator, block.false_yield.denominator) == (0, 2)


@pytest.mark.parametrize(("start", "error"), [(5.3, True), (5.301, False)])
def test_answering_a_sound_within_two_seconds_of_it_is_an_error(start: float, error: bool) -> None:
    block = measured([], [(0, 1), (start, 9)], 12, sounds=[sound(3, 3.3, TIC)])
    assert errors(block) == [error]
    assert block.false_yield.denominator == 0


def test_silence_after_a_sound_is_right() -> None:
    block = measured([], [(0, 1)], 12, sounds=[sound(3, 3.3, SIDE_SPEECH)])
    assert block.selectivity("non_directed").value == 1.0


def test_a_call_that_ends_before_the_window_proves_nothing() -> None:
    assert errors(measured([], [(0, 1)], 5.2, sounds=[sound(3, 3.3, TIC)])) == [None]
    assert errors(measured([], [(0, 1)], 5.3, sounds=[sound(3, 3.3, TIC)])) == [False]


def test_a_reply_that_was_owed_is_no_answer_to_a_cough() -> None:
    block = measured([(0, 2)], [(3, 5)], 8, sounds=[sound(2.4, 2.6, TIC)])
    assert errors(block) == [None]
    assert block.selectivity("vocal_tic").denominator == 0


def test_a_reply_to_what_the_caller_said_next_is_no_answer_to_a_cough() -> None:
    block = measured([(0, 1), (4, 4.8)], [(1.5, 2), (5, 7)], 9, sounds=[sound(3, 3.2, TIC)])
    assert errors(block) == [False]


def test_a_backchannel_into_silence_is_no_opportunity() -> None:
    labels = [label(4, 4.3, Action.BACKCHANNEL)]
    block = measured([(4, 4.3)], [(0, 2)], 9, labels=labels)
    assert errors(block) == [None]


def test_a_labelled_backchannel_too_short_for_a_segment_is_still_heard_as_one() -> None:
    labels = [label(2, 2.2, Action.BACKCHANNEL)]
    assert errors(measured([(2, 2.12)], [(0, 2.5)], 9, labels=labels)) == [True]


@settings(max_examples=80, deadline=None)
@given(conversations())
def test_what_counts_as_yield_and_error_adds_up(found: Speech) -> None:
    block = timing(found)
    for barge_in in block.yielding.barge_ins:
        turn = block.talk.turns[Side.CALLER][barge_in.turn]
        assert turn.start == barge_in.onset < barge_in.stop
        assert any(
            voice.start < barge_in.onset < voice.end for voice in block.talk.heard(Side.ASSISTANT)
        )
        if barge_in.yielded:
            assert barge_in.stop_after <= at(2)
    known = [event for event in block.yielding.events if event.error is not None]
    by_kind = [block.selectivity(name) for name in ("backchannel", "vocal_tic", "non_directed")]
    assert sum(rate.denominator for rate in by_kind) == len(known)
    wrong = sum(rate.denominator - rate.numerator for rate in by_kind)
    assert wrong == sum(bool(event.error) for event in known)
    assert block.false_yield.numerator <= wrong

"""What is a turn, a backchannel, a sound or a blip."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from duplex.metrics.intervals import total
from duplex.metrics.speech import SoundKind, Speech, SpokenSegment, tidy
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.turns import talk_of
from duplex.metrics.voices import VoiceKind
from duplex.values import Action, Side
from timing_scenes import (
    RATE,
    at,
    conversations,
    label,
    latencies,
    measured,
    paused,
    segment,
    sound,
    speech,
    turns,
)

CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT


def kinds(found: Speech, side: Side = CALLER) -> list[str]:
    return [voice.kind.value for voice in talk_of(found, TimingPolicy()).voices[side]]


def test_segments_across_a_pause_are_one_turn_when_nobody_took_the_floor() -> None:
    block = measured([(0, 1), (1.5, 3)], [(4, 5), (7.5, 9)], 10)
    assert turns(block, CALLER) == [(0, 3)]
    assert turns(block, ASSISTANT) == [(4, 9)]


def test_a_caller_who_is_ignored_and_speaks_again_makes_a_second_turn() -> None:
    assert turns(measured([(0, 1), (3, 4)], [], 5), CALLER) == [(0, 4)]
    assert turns(measured([(0, 1), (3.001, 4)], [], 5), CALLER) == [(0, 1), (3.001, 4)]


def test_an_assistant_that_pauses_for_long_goes_on_with_its_turn() -> None:
    assert turns(measured([], [(0, 1), (9, 10)], 12), ASSISTANT) == [(0, 10)]


def test_a_start_in_the_pause_takes_the_floor() -> None:
    block = measured([(0, 2), (2.9, 4)], [(2.6, 3.4)], 5)
    assert turns(block, CALLER) == [(0, 2), (2.9, 4)]


@pytest.mark.parametrize(("held", "parted"), [(0.149, False), (0.15, True)])
def test_holding_150_ms_of_the_pause_takes_the_floor(held: float, parted: bool) -> None:
    block = measured([(0, 2), (2.8, 4)], [(0.9, 2 + held)], 5)
    assert len(turns(block, CALLER)) == (2 if parted else 1)


def test_a_backchannel_does_not_take_the_floor() -> None:
    block = measured([(2.0, 2.4)], [(0, 2.1), (2.5, 5)], 6)
    assert turns(block, ASSISTANT) == [(0, 5)]
    assert turns(block, CALLER) == []


@pytest.mark.parametrize(
    ("caller", "assistant", "kind"),
    [
        ((2, 3), [(0, 5)], "backchannel"),
        ((2, 3.001), [(0, 5)], "turn"),
        ((2, 2.149), [(0, 5)], "blip"),
        ((2, 2.15), [(0, 5)], "backchannel"),
        ((2.2, 2.6), [(0, 2), (2.9, 4)], "backchannel"),
        ((2.201, 2.6), [(0, 2), (2.9, 4)], "turn"),
        ((2.2, 2.6), [(0, 2), (2.901, 4)], "turn"),
        ((2, 2.5), [(0, 2.5)], "turn"),
        ((2, 2.5), [(0, 2.501)], "backchannel"),
        ((2, 2.5), [(2, 5)], "turn"),
        ((2, 2.5), [(3, 5)], "turn"),
    ],
)
def test_short_speech_inside_the_other_turn_is_a_backchannel(
    caller: tuple[float, float], assistant: list[tuple[float, float]], kind: str
) -> None:
    assert kinds(speech([caller], assistant, 6)) == [kind]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("mm-hm", "backchannel"), ("oh, I see", "turn"), ("that's right", "backchannel")],
)
def test_more_than_two_words_are_no_backchannel(text: str, kind: str) -> None:
    assert kinds(speech([segment(2, 2.6, text)], [(0, 5)], 6)) == [kind]


def test_the_assistant_can_backchannel_too_and_interrupts_nobody() -> None:
    block = measured([(0, 5)], [(2, 2.5), (5.4, 7)], 8)
    assert turns(block, ASSISTANT) == [(5.4, 7)]
    assert block.responses.mispredictions == 0
    assert latencies(block) == [pytest.approx(400)]


def test_the_callers_label_wins_and_both_answers_are_kept() -> None:
    found = speech(
        [(2, 2.4), (7, 9)],
        [(0, 5), (6, 12)],
        13,
        labels=[label(1.9, 2.5, Action.INTERRUPT), label(7, 9, Action.BACKCHANNEL)],
    )
    voices = talk_of(found, TimingPolicy()).voices[CALLER]
    assert [voice.kind for voice in voices] == [VoiceKind.TURN, VoiceKind.BACKCHANNEL]
    assert [voice.inferred for voice in voices] == [VoiceKind.BACKCHANNEL, VoiceKind.TURN]


def test_a_segment_takes_the_label_that_covers_most_of_it() -> None:
    found = speech(
        [(0, 3)],
        [],
        4,
        labels=[
            label(0, 0.5, Action.BACKCHANNEL),
            label(0.5, 3, Action.CORRECT),
            label(2.9, 20, Action.STOP),
        ],
    )
    assert talk_of(found, TimingPolicy()).voices[CALLER][0].label is Action.CORRECT


def test_a_sound_the_caller_placed_is_no_turn() -> None:
    found = speech(
        [(1, 1.3), (3, 4)],
        [],
        5,
        sounds=[sound(1, 1.3, SoundKind.TIC), sound(2.9, 4.1, SoundKind.SIDE_SPEECH)],
    )
    assert kinds(found) == ["tic", "side_speech"]
    assert talk_of(found, TimingPolicy()).turns[CALLER] == ()


@pytest.mark.parametrize(("share", "kind"), [(0.6, "tic"), (0.4, "turn")])
def test_a_sound_must_make_up_most_of_a_segment_to_be_it(share: float, kind: str) -> None:
    found = speech([(1, 2)], [], 5, sounds=[sound(0.9, 1 + share, SoundKind.TIC)])
    assert kinds(found) == [kind]


def test_sides_that_alternate_quickly_do_not_make_each_other_backchannels() -> None:
    found = speech([(0, 0.5), (1.1, 1.5)], [(0.6, 1.0), (1.6, 2.0)], 4)
    assert kinds(found, ASSISTANT) == ["backchannel", "turn"]
    assert kinds(found, CALLER) == ["turn", "turn"]


@pytest.mark.parametrize("action", [Action.SPEAK, None])
def test_a_click_is_kept_as_a_segment_and_is_nothing_else(action: Action | None) -> None:
    labels = [] if action is None else [label(1.9, 2.2, action)]
    block = measured([(2, 2.09)], [(0, 4)], 5, labels=labels)
    assert turns(block, CALLER) == []
    assert block.yielding.barge_ins == ()
    segments = block.as_json()["segments"]
    assert isinstance(segments, list)
    assert len(segments) == 2


def test_pauses_inside_a_segment_are_no_voice() -> None:
    assert kinds(speech([paused(2, 2.3, (2.1, 2.26))], [], 4)) == ["blip"]


def test_a_segment_is_split_where_the_other_side_held_the_floor() -> None:
    block = measured([paused(0, 4, (2.0, 2.19))], [(1.65, 3.0)], 6)
    assert turns(block, CALLER) == [(0, 2), (2.19, 4)]
    assert latencies(block) == [pytest.approx(-350)]


def test_a_pause_shorter_than_taking_the_floor_splits_when_a_turn_lies_across_it() -> None:
    block = measured([paused(0, 4, (2.0, 2.13))], [(1.4, 2.48)], 6)
    assert turns(block, CALLER) == [(0, 2), (2.13, 4)]


def test_a_breath_under_a_talking_assistant_splits_nothing() -> None:
    block = measured([paused(2, 5, (3.0, 3.13))], [(0, 6)], 8)
    assert turns(block, CALLER) == [(2, 5)]


def test_a_breath_while_the_assistant_ends_what_it_was_saying_splits_nothing() -> None:
    block = measured([paused(2.5, 5, (3.0, 3.13))], [(2.2, 3.9)], 8)
    assert turns(block, CALLER) == [(2.5, 5)]


def test_a_start_at_the_very_end_of_the_pause_comes_too_late_to_take_the_floor() -> None:
    assert turns(measured([(0, 2), (2.8, 4)], [(2.8, 5)], 6), CALLER) == [(0, 4)]


def test_a_faltering_assistant_has_not_given_its_turn_up() -> None:
    block = measured([(4, 7)], [(2, 4.3), (4.7, 6)], 9)
    assert turns(block, ASSISTANT) == [(2, 6)]


def test_an_assistant_that_falls_silent_after_a_barge_in_starts_a_new_turn() -> None:
    block = measured([(4.2, 4.6)], [(0, 5), (6, 8)], 9, labels=[label(4.2, 4.6, Action.INTERRUPT)])
    assert turns(block, ASSISTANT) == [(0, 5), (6, 8)]
    assert latencies(block) == [None, pytest.approx(1_400)]


def test_an_assistant_that_answered_a_broken_turn_pauses_within_its_own() -> None:
    block = measured([(0, 2), (2.1, 4)], [(1.5, 5), (6, 8)], 9)
    assert turns(block, CALLER) == [(0, 4)]
    assert turns(block, ASSISTANT) == [(1.5, 8)]


def test_segments_outside_the_call_are_cut_to_it() -> None:
    raw = [SpokenSegment(start=-7_200, end=RATE), SpokenSegment(start=3 * RATE, end=9 * RATE)]
    found = tidy(raw, 4 * RATE)
    assert [(part.start, part.end) for part in found] == [(0, RATE), (3 * RATE, 4 * RATE)]


def test_a_segment_inside_another_shortens_nothing() -> None:
    found = tidy([segment(0, 3), segment(1, 2)], at(9))
    assert [(part.start, part.end) for part in found] == [(0, at(3))]


def test_segments_that_overlap_or_repeat_are_one() -> None:
    raw = [segment(1, 2), segment(0, 1.5), segment(1, 2), segment(3, 3)]
    assert [(part.start, part.end) for part in tidy(raw, at(9))] == [(0, at(2))]


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_turns_of_a_side_are_apart_in_order_and_made_of_its_voice(found: Speech) -> None:
    policy = TimingPolicy()
    talk = talk_of(found, policy)
    for side in Side:
        ends = 0
        for turn in talk.turns[side]:
            assert ends <= turn.start < turn.end
            ends = turn.end
            assert all(voice.kind is VoiceKind.TURN for voice in turn.voices)
        members = [voice for turn in talk.turns[side] for voice in turn.voices]
        claims = [v for v in talk.voices[side] if v.kind is VoiceKind.TURN]
        assert members == claims


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_splitting_loses_no_voice_but_pauses(found: Speech) -> None:
    talk = talk_of(found, TimingPolicy())
    for side in Side:
        before = tidy(found.side(side), found.duration)
        lost = sum(part.end - part.start for part in before) - total(talk.runs(side))
        assert 0 <= lost <= sum(total(part.pauses) for part in before)


def test_milliseconds_become_the_nearest_sample() -> None:
    assert [samples(ms, 44_100) for ms in (0, 150, 1_000)] == [0, 6_615, 44_100]

"""The tick panel: the leaderboard's definitions, quirks and all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from duplex.metrics.intervals import Runs
from duplex.metrics.speech import SoundKind, Speech
from duplex.metrics.tick_panel import TickPanel, TickTrack, panel_of, ticks_of
from duplex.metrics.timing import timing
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.turns import talk_of
from duplex.values import Action, Side
from timing_scenes import conversations, label, sound, speech


def track(
    caller: Runs,
    assistant: Runs,
    ticks: int = 100,
    *,
    backchannels: tuple[int, ...] = (),
    tics: Runs = (),
    side_speech: Runs = (),
) -> TickPanel:
    return panel_of(
        TickTrack(
            tick_s=0.2,
            caller=caller,
            assistant=assistant,
            ticks=ticks,
            backchannels=frozenset(backchannels),
            tics=tics,
            side_speech=side_speech,
        )
    )


def test_a_response_is_counted_with_its_latency_in_whole_ticks() -> None:
    found = track(((0, 10), (30, 40)), ((13, 20), (41, 50)))
    assert found.response_latencies_s == pytest.approx((0.6, 0.2))
    assert found.as_json()["R_R"] == 1.0


def test_a_reply_in_the_very_tick_after_the_turn_leaves_it_out() -> None:
    assert track(((30, 40),), ((40, 50),)).response_latencies_s == ()


def test_a_caller_who_must_speak_again_was_not_answered() -> None:
    found = track(((0, 10), (30, 40)), ((45, 50),))
    assert (len(found.response_latencies_s), found.no_response) == (1, 1)


def test_an_assistant_that_starts_with_the_callers_next_turn_still_answered() -> None:
    found = track(((0, 10), (30, 40)), ((30, 35),))
    assert found.response_latencies_s == pytest.approx((4.0,))
    assert found.no_response == 0


def test_a_last_turn_nobody_answers_counts_nowhere() -> None:
    found = track(((0, 10),), ())
    assert (found.response_latencies_s, found.no_response) == ((), 0)
    assert found.as_json()["R_R"] is None


def test_a_turn_that_ends_under_the_assistant_is_left_out() -> None:
    found = track(((0, 10), (60, 70)), ((5, 15), (72, 80)))
    assert found.response_latencies_s == pytest.approx((0.4,))


@pytest.mark.parametrize(("stop", "yields"), [(29, [0.9 * 2]), (30, [])])
def test_one_silent_tick_in_two_seconds_is_a_yield(stop: int, yields: list[float]) -> None:
    found = track(((20, 50),), ((0, stop), (stop + 1, 60)))
    assert list(found.yield_latencies_s) == pytest.approx(yields)
    assert found.no_yield == (not yields)


def test_starts_while_the_caller_speaks_are_interruptions() -> None:
    found = track(((0, 10), (30, 40)), ((8, 12), (42, 50)))
    assert found.agent_interruptions == 1
    assert found.as_json()["I_A"] == 1.0


@pytest.mark.parametrize(("stop", "right"), [(24, 0), (25, 1), (60, 1)])
def test_a_backchannel_is_right_when_no_tick_of_a_second_is_silent(stop: int, right: int) -> None:
    assert track(((20, 22),), ((0, stop),), backchannels=(20,)).backchannels == (right, 1)


@pytest.mark.parametrize(("start", "right"), [(32, 0), (33, 1)])
def test_a_sound_into_silence_is_right_when_nobody_answers_for_two_seconds(
    start: int, right: int
) -> None:
    assert track((), ((start, 40),), tics=((20, 22),)).tics == (right, 1)
    assert track((), ((start, 40),), side_speech=((20, 22),)).side_speech == (right, 1)


def test_a_sound_outside_speech_that_the_assistant_talks_through_counts_nowhere() -> None:
    assert track((), ((0, 60),), tics=((20, 22),)).tics == (0, 0)
    assert track((), ((0, 25),), tics=((20, 22),)).tics == (0, 1)


def test_a_sound_inside_caller_speech_counts_either_way() -> None:
    assert track(((20, 30),), ((0, 60),), tics=((22, 23),)).tics == (1, 1)


def test_the_tick_of_hanging_up_is_no_speech() -> None:
    assert track(((0, 10), (99, 100)), ((12, 100),)).no_yield == 0
    assert track(((0, 10), (98, 100)), ((12, 100),)).no_yield == 1


def test_a_call_is_laid_on_the_grid_with_its_labels() -> None:
    found = speech(
        [(0.1, 1.0), (3.05, 3.4)],
        [(2.0, 5.0)],
        6,
        labels=[label(3, 3.5, Action.BACKCHANNEL)],
        sounds=[sound(5.3, 5.5, SoundKind.TIC)],
    )
    policy = TimingPolicy()
    assert ticks_of(talk_of(found, policy), found, policy) == TickTrack(
        tick_s=0.2,
        caller=((0, 5), (15, 17)),
        assistant=((10, 25),),
        ticks=30,
        backchannels=frozenset({15}),
        tics=((26, 28),),
    )


@settings(max_examples=80, deadline=None)
@given(conversations())
def test_the_panel_is_made_of_shares_and_tick_multiples(found: Speech) -> None:
    panel = timing(found).panel
    document = panel.as_json()
    for name in ("R_R", "R_Y", "S_BC", "S_VT", "S_ND"):
        value = document[name]
        assert value is None or (isinstance(value, float) and 0 <= value <= 1)
    assert all(value >= 0 for value in panel.response_latencies_s)
    assert all(0 <= value < 2 for value in panel.yield_latencies_s)
    for right, total in (panel.backchannels, panel.tics, panel.side_speech):
        assert 0 <= right <= total


@settings(max_examples=40, deadline=None)
@given(conversations())
def test_the_panel_by_counting_ticks_one_by_one(found: Speech) -> None:
    policy = TimingPolicy()
    talk = talk_of(found, policy)
    grid = ticks_of(talk, found, policy)
    tick = 4_800
    for side, runs in ((Side.CALLER, grid.caller), (Side.ASSISTANT, grid.assistant)):
        voiced = {
            index
            for voice in talk.heard(side)
            for index in range(voice.start // tick, (voice.end - 1) // tick + 1)
        }
        assert {index for start, end in runs for index in range(start, end)} == voiced
    starts = [start for start, _ in grid.assistant]
    spoken = {index for start, end in grid.caller for index in range(start, end)}
    last = grid.ticks - 1
    if last in spoken and last - 1 not in spoken:
        spoken.discard(last)
        starts = [start for start in starts if start < last]
    assert panel_of(grid).agent_interruptions == sum(start in spoken for start in starts)

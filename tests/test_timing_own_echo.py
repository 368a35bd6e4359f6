"""Whether the assistant stops for its own echo: only where one is known, and never by guess."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from duplex.measuring import measure
from duplex.metrics.heard import speech_of_call
from duplex.metrics.of_call import hear_call
from duplex.metrics.timing import TimingBlock, timing
from duplex.recording import CallRecorder, Recording
from duplex.values import Json, Side
from stimuli import RATE, save, side, talk, voiced
from timing_scenes import Seconds, at, speech
from viewer_runs import BOOKING, add_call

DELAY = 0.08
RETRIES: tuple[Seconds, ...] = ((2.0, 2.6), (3.6, 4.3), (5.5, 9.0))
"""An assistant that stops for its echo twice, and holds out the third time."""


def block(
    caller: tuple[Seconds, ...],
    assistant: tuple[Seconds, ...],
    *,
    tools: tuple[Seconds, ...] = (),
    delay: float | None = DELAY,
    duration: float = 12.0,
) -> TimingBlock:
    scene = speech(caller, assistant, duration, tools=tools)
    return timing(replace(scene, echo_delay=None if delay is None else at(delay)))


def echo(found: TimingBlock) -> tuple[int, int] | None:
    rate = found.false_yield_causes["echo"]
    return None if rate is None else (rate.numerator, rate.denominator)


def test_stopping_and_going_on_alone_is_a_false_yield_for_the_echo() -> None:
    found = block(((0.5, 1.5),), RETRIES)
    assert echo(found) == (2, 3)
    assert (found.false_yield.numerator, found.false_yield.denominator) == (2, 3)


def test_without_a_known_echo_nothing_is_asked() -> None:
    found = block(((0.5, 1.5),), RETRIES, delay=None)
    assert echo(found) is None
    assert found.false_yield.denominator == 0
    document = found.as_json()
    unknown, false_yield = document["unknown"], document["false_yield"]
    assert isinstance(unknown, dict)
    assert isinstance(false_yield, dict)
    assert false_yield["causes"] == {
        "backchannel": {"count": 0, "n": 0},
        "vocal_tic": {"count": 0, "n": 0},
        "non_directed": {"count": 0, "n": 0},
        "echo": None,
    }
    assert "echo" in str(unknown["/false_yield/causes/echo"])


def test_a_short_answer_before_the_caller_speaks_is_not_counted_at_all() -> None:
    found = block(((0.5, 1.5), (3.5, 4.5)), ((2.0, 2.6), (5.0, 8.0)))
    assert echo(found) == (0, 1)


def test_a_stop_while_the_caller_makes_a_sound_is_the_callers() -> None:
    found = block(((0.5, 1.5), (2.3, 2.7)), ((2.0, 2.6), (5.0, 8.0)))
    assert echo(found) == (0, 1)


def test_a_tool_at_work_explains_the_pause() -> None:
    assert echo(block(((0.5, 1.5),), RETRIES, tools=((2.7, 3.4),))) == (1, 2)


def test_a_dip_that_resumes_within_600_ms_is_no_stop() -> None:
    assert echo(block(((0.5, 1.5),), ((2.0, 2.6), (3.1, 6.0)))) == (0, 1)


def test_speech_over_before_its_echo_comes_is_no_opportunity() -> None:
    assert echo(block(((0.5, 1.5),), ((2.0, 2.3), (4.0, 6.0)), delay=0.4)) == (0, 1)


@pytest.mark.parametrize(("length", "error"), [(1.0, True), (1.01, False)])
def test_the_second_counts_from_the_start_of_the_echo(length: float, error: bool) -> None:
    found = block(((0.5, 1.5),), ((2.0, 2.0 + DELAY + length), (5.0, 8.0)))
    assert echo(found) == (int(error), 2)


@pytest.mark.parametrize(
    ("condition", "delay"),
    [
        ("acoustic_echo,delay_ms=120", 2_880),
        ("telephony + acoustic_echo", 1_920),
        ("acoustic_echo,gain=0", None),
        ("clean", None),
        ("a condition of another time", None),
        (None, None),
    ],
)
def test_a_call_tells_its_echo_by_its_condition(
    tmp_path: Path, condition: str | None, delay: int | None
) -> None:
    log, _ = add_call(tmp_path, "booking", BOOKING)
    header: dict[str, Json] = dict(log.events()[0].fields)
    first = replace(log.events()[0], fields=header | {"condition": condition})
    recording = Recording.load(tmp_path, "booking")
    silent = np.zeros(recording.duration, np.int16)
    with CallRecorder(tmp_path, "again", rate_hz=RATE) as recorder:
        caller, assistant = (recording.source(one) for one in Side)
        recorder.append(caller, assistant, silent, silent)
        for event in (first, *log.events()[1:]):
            recorder.event(event)
    again = Recording.load(tmp_path, "again")
    assert speech_of_call(again, hear_call(again)).echo_delay == delay


def test_an_echo_found_on_a_bare_recording_is_asked_about(tmp_path: Path) -> None:
    spans = ((2.0, 2.7), (4.0, 4.8), (6.5, 10.0), (13.0, 16.0))
    seconds = 18.0
    assistant = talk(spans, seconds, seed=5)
    caller = side([(0.4, voiced(1.0)), (11.0, voiced(1.0))], seconds)
    caller[RATE // 10 :] += 0.3 * assistant[: -RATE // 10]
    found = measure(save(tmp_path / "a.wav", caller, assistant))
    assert found.timing is not None
    assert [item.lag_ms for item in found.heard.echoes] == pytest.approx([100], abs=1)
    assert echo(found.timing) == (2, 4)

"""Pauses inside a segment of the edge detector, and what turns make of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from duplex.detect import Stream
from duplex.metrics.speech import Speech, SpokenSegment
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.turns import talk_of
from duplex.values import Segment, Side
from stimuli import RATE, Floats, noise, pcm, side, voiced

FRAME = RATE // 400
LINES = {"digital zero": None, "line noise": -75.0, "room": -55.0}


def heard(caller: Floats, assistant: Floats, chunk: int = RATE) -> list[Segment]:
    stream = Stream(RATE, "edge")
    found: list[Segment] = []
    for at in range(0, len(caller), chunk):
        found += stream.push(pcm(caller[at : at + chunk]), pcm(assistant[at : at + chunk]))
    return found + stream.finish()


def of(found: list[Segment], who: Side) -> list[Segment]:
    return [segment for segment in found if segment.side is who]


def halting(pause_s: float, line_dbfs: float | None) -> Floats:
    """1 s and 0.8 s of voice with one pause between, beginning at 1.5037 s."""
    wave = side([(0.5037, voiced(1.0)), (1.5037 + pause_s, voiced(0.8))], 4)
    return wave if line_dbfs is None else wave + noise(4, line_dbfs)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("pause_ms", [70, 100, 130, 165, 195])
def test_a_pause_too_short_to_end_a_segment_is_told_within_two_frames(
    pause_ms: int, line: str
) -> None:
    wave = halting(pause_ms / 1000, LINES[line])
    (segment,) = heard(wave, np.zeros(len(wave)))
    (pause,) = segment.pauses
    assert abs(pause.start - 1.5037 * RATE) <= 2 * FRAME
    assert abs(pause.end - (1.5037 + pause_ms / 1000) * RATE) <= 2 * FRAME
    assert segment.span.start < pause.start < pause.end < segment.span.end


def test_a_pause_of_less_than_60_ms_is_none() -> None:
    wave = halting(0.05, None)
    (segment,) = heard(wave, np.zeros(len(wave)))
    assert segment.pauses == ()


def test_pauses_go_to_the_segment_they_lie_in_however_it_is_pushed() -> None:
    wave = np.concatenate([halting(0.1, -70), halting(0.15, -70), halting(0.19, -70)])
    other = np.concatenate([np.zeros(RATE), halting(0.12, None), np.zeros(7 * RATE)])
    whole = heard(wave, other)
    assert [len(s.pauses) for s in of(whole, Side.CALLER)] == [1, 1, 1]
    assert [len(s.pauses) for s in of(whole, Side.ASSISTANT)] == [1]
    assert heard(wave, other, 7_919) == whole
    part = slice(0, 3 * RATE)
    assert heard(wave[part], other[part], 37) == heard(wave[part], other[part])


@pytest.mark.parametrize("rate", [11_025, 22_050, 44_100])
def test_pauses_of_a_resampled_recording_are_in_its_own_samples(rate: int) -> None:
    wave = side([(0.5, voiced(1.0, rate=rate)), (1.65, voiced(0.8, rate=rate))], 4, rate)
    stream = Stream(rate, "edge")
    (segment,) = stream.push(pcm(wave), pcm(0 * wave)) + stream.finish()
    (pause,) = segment.pauses
    assert abs(pause.start / rate - 1.5) <= 0.005
    assert abs(pause.end / rate - 1.65) <= 0.005


def test_a_segment_is_split_at_a_pause_in_which_the_other_side_held_the_floor() -> None:
    caller = halting(0.16, -70)
    assistant = side([(1.05, voiced(1.2))], 4)
    found = heard(caller, assistant)
    spoken = {
        who: tuple(
            SpokenSegment(
                start=s.span.start,
                end=s.span.end,
                pauses=tuple((p.start, p.end) for p in s.pauses),
            )
            for s in of(found, who)
        )
        for who in Side
    }
    assert [len(spoken[who]) for who in Side] == [1, 1]
    speech = Speech(
        rate_hz=RATE,
        duration=len(caller),
        caller=spoken[Side.CALLER],
        assistant=spoken[Side.ASSISTANT],
    )
    first, second = talk_of(speech, TimingPolicy()).turns[Side.CALLER]
    assert abs(first.end - 1.5037 * RATE) <= 2 * FRAME
    assert abs(second.start - 1.6637 * RATE) <= 2 * FRAME


def test_an_endless_talk_keeps_its_newest_pauses() -> None:
    """A pause a second for ten minutes: more than a segment can remember."""
    second = np.concatenate([voiced(0.88), np.zeros(RATE - round(0.88 * RATE))])
    stream = Stream(RATE, "edge")
    found: list[Segment] = []
    for _ in range(60):
        block = pcm(np.tile(second, 10))
        found += stream.push(block, np.zeros(len(block), np.int16))
    (segment,) = found + stream.finish()
    assert len(segment.pauses) == 512
    assert segment.pauses[-1].start > 598 * RATE
    assert all(one.end < after.start for one, after in pairwise(segment.pauses))

"""Whole-signal detection: contract windows, odd rates, long and strange signals."""

from __future__ import annotations

import numpy as np
import pytest

from duplex.detect import Stream, segments
from duplex.engine import VOICED_RMS, Engine, FloorEvent, Holder, Pcm, SegmentEvent
from duplex.errors import InputError
from duplex.values import Side, Span

WINDOW = 480


def square(level: int, windows: int) -> Pcm:
    """Alternating samples, so the RMS is exactly ``level``."""
    return np.tile(np.array([level, -level], np.int16), windows * WINDOW // 2)


def test_a_window_is_voiced_from_an_rms_of_220_on() -> None:
    pcm = np.concatenate([square(VOICED_RMS - 1, 3), square(VOICED_RMS, 2), square(0, 1)])
    assert segments(pcm, 24_000) == [Span(start=3 * WINDOW, end=5 * WINDOW)]


def test_one_quiet_window_parts_two_segments_and_touching_windows_join() -> None:
    loud, quiet = square(900, 1), square(0, 1)
    pcm = np.concatenate([loud, loud, quiet, loud, quiet])
    assert segments(pcm, 24_000) == [
        Span(start=0, end=2 * WINDOW),
        Span(start=3 * WINDOW, end=4 * WINDOW),
    ]


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_a_last_incomplete_window_is_decided_and_ends_with_the_signal(detector: str) -> None:
    rng = np.random.default_rng(2)
    pcm = rng.normal(0, 6000, 3 * WINDOW + 77).clip(-32768, 32767).astype(np.int16)
    assert segments(pcm, 24_000, detector)[-1].end == len(pcm)


def test_speech_in_the_last_half_second_of_one_large_chunk_is_found() -> None:
    pcm = np.zeros(48_000, np.int16)
    pcm[36_000:] = square(3000, 25)
    assert segments(pcm, 24_000) == [Span(start=36_000, end=48_000)]


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_any_rate_finds_the_same_speech_at_the_same_time(rate_hz: int, detector: str) -> None:
    t = np.arange(2 * rate_hz) / rate_hz
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 12))
    pcm = np.array(np.rint(6000 * voice * ((t >= 0.5) & (t < 1.3))), np.int16)
    found = segments(pcm, rate_hz, detector)
    assert abs(found[0].start / rate_hz - 0.5) <= 0.02
    # webrtc keeps speech going for some frames after its end.
    assert -0.001 <= found[-1].end / rate_hz - 1.3 <= (0.02 if detector == "rms" else 0.15)


@pytest.mark.parametrize("length", [0, 1, 479])
def test_a_signal_shorter_than_a_window_is_no_trouble(length: int) -> None:
    assert segments(np.zeros(length, np.int16), 24_000) == []
    loud = np.full(length, -32_768, np.int16)
    expected = [Span(start=0, end=length)] if length else []
    assert segments(loud, 24_000) == expected


def test_a_long_signal_equals_its_parts() -> None:
    part = np.concatenate([square(900, 40), square(10, 60)])
    found = segments(np.tile(part, 30), 24_000)
    assert [span.start for span in found] == [k * len(part) for k in range(30)]


def test_a_signal_that_is_not_contiguous_is_read_right() -> None:
    pcm = np.concatenate([square(0, 2), square(900, 2)])
    stereo = np.stack([pcm, np.zeros_like(pcm)], axis=1)
    assert segments(stereo[:, 0], 24_000) == segments(pcm, 24_000)


def test_an_unknown_detector_is_refused_by_name() -> None:
    with pytest.raises(InputError, match='"ten" is not one of edge, rms, webrtc, silero'):
        segments(np.zeros(10, np.int16), 24_000, "ten")


def test_the_floor_moves_where_the_windows_say() -> None:
    engine = Engine()
    loud, quiet = square(900, 2), square(0, 2)
    engine.feed(Side.CALLER, np.concatenate([loud, loud, quiet, quiet]))
    engine.feed(Side.ASSISTANT, np.concatenate([quiet, loud, loud, quiet]))
    engine.advance(8)
    engine.finish()
    assert engine.drain() == [
        FloorEvent(at=0, holder=Holder.CALLER),
        FloorEvent(at=2 * WINDOW, holder=Holder.BOTH),
        SegmentEvent(side=Side.CALLER, start=0, end=4 * WINDOW),
        FloorEvent(at=4 * WINDOW, holder=Holder.ASSISTANT),
        SegmentEvent(side=Side.ASSISTANT, start=2 * WINDOW, end=6 * WINDOW),
        FloorEvent(at=6 * WINDOW, holder=Holder.NONE),
    ]
    counts = engine.counts()
    shares = (counts.caller_only, counts.assistant_only, counts.overlap, counts.silence)
    assert shares == (2 * WINDOW,) * 4


def test_counts_sum_to_the_elapsed_samples_while_a_frame_is_open() -> None:
    engine = Engine(tick_ms=10, detector="webrtc")
    for tick in range(1, 8):
        engine.advance()
        counts = engine.counts()
        assert counts.silence == counts.position == 240 * tick


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
@pytest.mark.parametrize("rate_hz", [8_000, 24_000, 44_100, 22_050])
def test_a_stream_finds_what_the_whole_signal_gives(detector: str, rate_hz: int) -> None:
    random = np.random.default_rng(5)
    length = 3 * rate_hz + 17
    sides = [
        random.normal(0, 3_000, length)
        * (random.random(30).repeat(length // 30 + 1)[:length] > 0.5)
        for _ in Side
    ]
    caller, assistant = (side.astype(np.int16) for side in sides)
    stream = Stream(rate_hz, detector)
    found, at = [], 0
    while at < length:
        step = int(random.integers(0, rate_hz))
        found += stream.push(caller[at : at + step], assistant[at : at + step])
        at += step
    found += stream.finish()
    for side, pcm in ((Side.CALLER, caller), (Side.ASSISTANT, assistant)):
        assert [s.span for s in found if s.side is side] == segments(pcm, rate_hz, detector)

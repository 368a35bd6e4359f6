"""The edge detector inside the engine: its edges, its laws, and the floor made of its segments."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.detect import Stream, segments
from duplex.engine import Engine, EngineEvent, FloorEvent, Holder, Pcm, SegmentEvent
from duplex.errors import InputError
from duplex.values import Side, Span
from scripts import RATE_HZ, Cut, Outcome, Script, cuts, play, scripts
from stimuli import RATE, Floats, noise, pcm, side, speechlike, talk, voiced
from test_core_memory import held_kib, talk_for
from test_laws import COMPILED, LAWS, audio, quick, streams

FRAME = RATE // 400
HOLDERS = (Holder.NONE, Holder.CALLER, Holder.ASSISTANT, Holder.BOTH)
LINE_DBFS = {"digital zero": None, "line noise": -75.0}
TRUTH = ((0.5, 2.0), (3.0, 3.5), (5.0, 9.0))


def channel(spans: tuple[tuple[float, float], ...], syllables: bool, line: float | None) -> Floats:
    """Voiced stimuli in 10 s of digital zero or of line noise."""
    wave = side([(a, voiced(b - a, syllables=syllables)) for a, b in spans], 10)
    return wave if line is None else wave + noise(10, line)


def heard_live(caller: Pcm, assistant: Pcm, tick_ms: int = 20) -> list[EngineEvent]:
    """All events of a call in which both sides' audio comes tick by tick."""
    engine = Engine(tick_ms=tick_ms, detector="edge")
    events: list[EngineEvent] = []
    whole = len(caller) // engine.tick * engine.tick
    for at in range(0, whole, engine.tick):
        engine.feed(Side.CALLER, caller[at : at + engine.tick])
        engine.feed(Side.ASSISTANT, assistant[at : at + engine.tick])
        engine.advance()
        events += engine.drain()
    engine.finish()
    return events + engine.drain()


def spans_of(events: list[EngineEvent], of: Side) -> list[Span]:
    return [
        Span(start=event.start, end=event.end)
        for event in events
        if isinstance(event, SegmentEvent) and event.side is of
    ]


def floor_of(caller: list[Span], assistant: list[Span], length: int) -> list[FloorEvent]:
    """The floor sample by sample, from segments alone."""
    who = np.zeros(length, np.int64)
    for bit, spans in ((1, caller), (2, assistant)):
        for span in spans:
            who[span.start : span.end] |= bit
    changes = np.flatnonzero(np.diff(who, prepend=0))
    return [FloorEvent(at=int(at), holder=HOLDERS[who[at]]) for at in changes]


# ---- edges ----


@pytest.mark.parametrize("line", LINE_DBFS)
@pytest.mark.parametrize("syllables", [True, False])
def test_edges_of_voiced_sounds_lie_within_a_frame(syllables: bool, line: str) -> None:
    wave = channel(TRUTH, syllables, LINE_DBFS[line])
    found = segments(pcm(wave), RATE, "edge")
    assert len(found) == len(TRUTH)
    for span, (start, end) in zip(found, TRUTH, strict=True):
        assert abs(span.start - start * RATE) <= FRAME
        assert abs(span.end - end * RATE) <= FRAME


@pytest.mark.parametrize("offset", [0, 1, 17, 59])
def test_edges_in_digital_silence_are_known_to_the_sample(offset: int) -> None:
    wave = pcm(speechlike(1.2, seed=3))
    heard = np.concatenate(
        [np.zeros(12_000 + offset, np.int16), wave, np.zeros(24_000 - offset, np.int16)]
    )
    spoken = np.flatnonzero(heard)
    assert segments(heard, RATE, "edge") == [Span(start=spoken[0], end=spoken[-1] + 1)]


@pytest.mark.parametrize("length", [20_000, 20_001, 20_039, 20_040, 20_041, 20_060])
def test_a_sound_cut_off_into_silence_ends_with_its_last_sample(length: int) -> None:
    wave = pcm(voiced(1.0))[:length]
    wave[-3:] = 900  # three times the same: the sound ends where it leaves that
    for lead in (12_000, 12_031, 12_059):
        heard = np.concatenate([np.zeros(lead, np.int16), wave, np.zeros(12_000, np.int16)])
        (span,) = segments(heard, RATE, "edge")
        assert span.end == lead + length


def test_speech_at_the_first_sample_and_up_to_the_last_keeps_inside_the_file() -> None:
    wave = pcm(voiced(1.0))
    (span,) = segments(wave, RATE, "edge")
    assert 0 <= span.start <= FRAME
    assert len(wave) - FRAME <= span.end <= len(wave)


@pytest.mark.parametrize("length_ms", [20, 90])
def test_clicks_make_no_turn(length_ms: int) -> None:
    wave = np.zeros(6 * RATE)
    for at in (1, 4):
        click = np.random.default_rng(at).choice([-1.0, 1.0], length_ms * RATE // 1000)
        wave[at * RATE : at * RATE + len(click)] = click
    assert all(span.length < 0.2 * RATE for span in segments(pcm(wave), RATE, "edge"))


@pytest.mark.parametrize("lead_s", [0, 2])
def test_steady_noise_is_not_speech(lead_s: int) -> None:
    heard = np.concatenate([np.zeros(lead_s * RATE), noise(10, -30)])
    found = segments(pcm(heard), RATE, "edge")
    assert sum(span.length for span in found) <= 0.05 * len(heard)


# ---- what an edge is known to ----


def test_a_clear_edge_has_a_narrow_width_and_a_buried_one_none() -> None:
    quiet = pcm(channel(TRUTH, True, None))
    buried = pcm(talk([(3.0, 4.0), (6.0, 7.5)], 10) + noise(10, -34))
    stream = Stream(RATE, "edge")
    found = stream.push(quiet, buried) + stream.finish()
    clear = [s for s in found if s.side is Side.CALLER]
    hidden = [s for s in found if s.side is Side.ASSISTANT]
    assert len(clear) == len(TRUTH)
    assert hidden
    for segment in clear:
        for edge in (segment.onset, segment.offset):
            assert edge.plus_minus_ms is not None
            assert edge.plus_minus_ms <= 10
            assert not edge.masked
            assert not edge.unreliable
    for segment in hidden:
        assert segment.offset.masked
        width = segment.offset.plus_minus_ms
        assert segment.offset.unreliable if width is None else width > 20


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_other_detectors_do_not_say_how_well_they_know(detector: str) -> None:
    wave = pcm(channel(TRUTH, True, None))
    stream = Stream(RATE, detector)
    found = stream.push(wave, wave) + stream.finish()
    assert found
    assert all(s.onset.plus_minus_ms is None and not s.offset.masked for s in found)


# ---- laws ----

EDGE_LAWS: dict[str, st.SearchStrategy[tuple[object, ...]]] = {
    "chunk": st.tuples(scripts(), cuts()),
    "tick": st.tuples(scripts()),
    "tick_size": st.tuples(streams(1370 * RATE_HZ // 1000), st.just("edge")),
    "partition": st.tuples(scripts()),
    "symmetry": st.tuples(scripts()),
    "silence": st.tuples(st.tuples(st.integers(0, 99), st.integers(0, 99)), st.just("edge")),
    "no_invented_silence": st.tuples(scripts()),
    "replay": st.tuples(scripts()),
}


def with_edge(argument: object) -> object:
    return replace(argument, detector="edge") if isinstance(argument, Script) else argument


@pytest.mark.parametrize("law", EDGE_LAWS)
def test_the_engine_keeps_the_law_with_edge(law: str) -> None:
    check: Callable[..., None] = LAWS[law][0]

    @quick
    @given(EDGE_LAWS[law])
    def drawn(example: tuple[object, ...]) -> None:
        check(COMPILED, *(with_edge(argument) for argument in example))

    drawn()


def conversation() -> tuple[Pcm, Pcm]:
    """Turns, an overlap, clicks and noise, not in step with any tick."""
    caller = talk([(0.4031, 1.7), (2.9, 3.3007), (5.5, 7.2)], 10, seed=4) + noise(10, -62)
    assistant = talk([(1.55, 2.6), (3.9001, 6.1), (7.9, 9.96)], 10, seed=5)
    caller[4 * RATE : 4 * RATE + 480] = 0.9
    return pcm(caller), pcm(assistant)


@pytest.mark.parametrize("tick_ms", [10, 20, 137, 200])
def test_live_segments_are_those_of_the_whole_signal(tick_ms: int) -> None:
    caller, assistant = conversation()
    whole = len(caller) // (tick_ms * RATE // 1000) * (tick_ms * RATE // 1000)
    events = heard_live(caller, assistant, tick_ms)
    for of, heard in ((Side.CALLER, caller), (Side.ASSISTANT, assistant)):
        found = spans_of(events, of)
        assert found == segments(heard[:whole], RATE, "edge")
        assert len(found) >= 3


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_in_random_chunks_finds_the_same_with_the_same_widths(seed: int) -> None:
    random = np.random.default_rng(seed)
    caller, assistant = conversation()
    whole, stream = Stream(RATE, "edge"), Stream(RATE, "edge")
    expected = whole.push(caller, assistant) + whole.finish()
    found, at = [], 0
    while at < len(caller):
        step = int(random.integers(0, 9_000))
        found += stream.push(caller[at : at + step], assistant[at : at + step])
        at += step
    assert found + stream.finish() == expected


# ---- the floor ----


def checked_floor(outcome: Outcome) -> int:
    """Check floor and shares against the segments; return how many segments there were."""
    events = list(outcome.events)
    caller, assistant = (spans_of(events, of) for of in Side)
    for spans in (caller, assistant):
        assert all(one.end <= after.start for one, after in pairwise(spans))
    counts = outcome.counts
    assert [e for e in events if isinstance(e, FloorEvent)] == floor_of(
        caller, assistant, counts.position
    )
    who = np.zeros(counts.position, np.int64)
    for bit, spans in ((1, caller), (2, assistant)):
        for span in spans:
            who[span.start : span.end] |= bit
    shares = [counts.silence, counts.caller_only, counts.assistant_only, counts.overlap]
    assert shares == np.bincount(who, minlength=4).tolist()
    return len(caller) + len(assistant)


@quick
@given(scripts(), cuts())
def test_the_floor_is_what_the_segments_say(script: Script, cut: Cut) -> None:
    outcome = play(COMPILED, replace(script, detector="edge"), cut=cut)
    checked_floor(outcome)
    # Audio and playout are none of the detector's business.
    same = play(COMPILED, replace(script, detector="rms"))
    assert (outcome.caller, outcome.mixed) == (same.caller, same.mixed)
    assert [e for e in outcome.events if not isinstance(e, FloorEvent | SegmentEvent)] == [
        e for e in same.events if not isinstance(e, FloorEvent | SegmentEvent)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_floor_of_a_long_noisy_talk_is_what_its_segments_say(seed: int) -> None:
    random = np.random.default_rng(seed)
    engine = Engine(detector="edge", tick_ms=20, ring_ms=60_000)
    for of in Side:
        starts = np.cumsum(random.uniform(0.3, 2.5, 30))
        spans = [(float(a), float(a + random.uniform(0.1, 1.5))) for a in starts if a < 28]
        wave = talk(spans, 30, seed=seed * 2 + of) + noise(30, float(random.uniform(-80, -45)))
        wave[8 * RATE : 9 * RATE] += 0.2 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
        engine.feed(of, pcm(wave))
    events: list[EngineEvent] = []
    last = 0
    while engine.position < 30 * RATE:
        engine.advance(5)
        for event in engine.drain():
            if isinstance(event, FloorEvent):
                assert event.at >= last
                last = event.at
            events.append(event)
    engine.finish()
    events += engine.drain()
    outcome = Outcome(
        caller=b"", assistant=b"", mixed=b"", events=tuple(events), counts=engine.counts()
    )
    assert checked_floor(outcome) >= 10


def test_the_floor_follows_the_end_of_speech_within_half_a_second() -> None:
    wave = pcm(side([(0.5, voiced(1.0))], 4))
    engine = Engine(detector="edge")
    engine.feed(Side.CALLER, wave)
    told: dict[Holder, int] = {}
    speaking: list[tuple[int, Holder]] = [(0, Holder.NONE)]
    while engine.position < len(wave):
        engine.advance()
        for event in engine.drain():
            if isinstance(event, FloorEvent):
                told[event.holder] = engine.position
        if engine.speaking != speaking[-1][1]:
            speaking.append((engine.position, engine.speaking))
    assert set(told) == {Holder.CALLER, Holder.NONE}
    assert told[Holder.NONE] <= 2.0 * RATE
    # Who speaks now is known long before, and over once the segment is.
    (_, _), (began, who), (ended, nobody) = speaking
    assert (who, nobody) == (Holder.CALLER, Holder.NONE)
    assert 0.5 * RATE < began <= 0.6 * RATE
    assert 1.5 * RATE < ended <= 1.75 * RATE


def test_more_segments_than_can_wait_leave_the_floor_a_partition() -> None:
    """One side never stops, so none of the other's thousand segments is certain."""
    rate = 8_000
    engine = Engine(rate_hz=rate, detector="edge", tick_ms=200, ring_ms=2_000)
    second = np.arange(rate) / rate
    buzz = sum(np.cos(2 * np.pi * 180 * k * second) / k for k in range(1, 12))
    short = np.array(np.rint(4000 * buzz * (second % 0.5 < 0.2)), np.int16)
    random = np.random.default_rng(6)
    events: list[EngineEvent] = []
    for _ in range(600):
        # Gaps of 100 ms of faint noise: too short to end a segment, and never steady.
        loudness = np.repeat(10 ** random.uniform(-1, 0, 2), rate // 2)
        talk = 3000 * buzz * loudness * (second % 0.5 < 0.4) + random.normal(0, 10, rate)
        engine.feed(Side.CALLER, short)
        engine.feed(Side.ASSISTANT, np.array(np.rint(talk), np.int16))
        engine.advance(5)
        events += engine.drain()
    before = len([e for e in events if isinstance(e, FloorEvent)])
    engine.finish()
    events += engine.drain()
    counts = engine.counts()
    assert len(spans_of(events, Side.CALLER)) == 1_200
    assert len(spans_of(events, Side.ASSISTANT)) == 1
    # The first of those that could not wait went by before the end was known.
    assert before > 300
    shares = counts.silence + counts.caller_only + counts.assistant_only + counts.overlap
    assert shares == counts.position
    assert counts.overlap > 1_000 * 0.19 * rate
    assert counts.events_lost == 0


# ---- limits ----


@pytest.mark.parametrize("rate_hz", [22_050, 44_100])
def test_a_rate_without_whole_frames_is_refused_by_the_engine(rate_hz: int) -> None:
    with pytest.raises(InputError, match=f"edge needs a multiple of 400 Hz .*, got {rate_hz}"):
        Engine(rate_hz=rate_hz, tick_ms=40, ring_ms=400, detector="edge")


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
def test_any_file_rate_finds_the_same_edges(rate_hz: int) -> None:
    wave = side([(0.5, voiced(0.8, rate=rate_hz))], 2, rate_hz)
    (span,) = segments(pcm(wave), rate_hz, "edge")
    assert abs(span.start / rate_hz - 0.5) <= 0.005
    assert abs(span.end / rate_hz - 1.3) <= 0.005


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_hour_takes_no_more_memory_than_a_minute() -> None:
    engine = Engine(tick_ms=200, detector="edge", hold_ms=(0, 120))
    talk_for(engine, 300)
    gc.collect()
    before = held_kib()
    talk_for(engine, 18_000)
    assert held_kib() - before < 1024


@quick
@given(audio)
def test_whatever_is_heard_segments_lie_inside_and_apart(heard: Pcm) -> None:
    found = segments(heard, RATE_HZ, "edge")
    assert all(0 <= span.start < span.end <= len(heard) for span in found)
    assert all(one.end <= after.start for one, after in pairwise(found))

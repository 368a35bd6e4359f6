"""The core against the same work done in numpy, and against its own limits."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from conftest import Bench, cpu_seconds, paired
from duplex.engine import Engine, EngineEvent, SegmentEvent
from duplex.values import Side, Span
from peers import NumpyLoop, Pcm, detector_input

RATE_HZ = 24_000
SECONDS = 18
STEP_NS_LIMIT = 2_000


def voice(seed: int) -> Pcm:
    """Eighteen seconds of buzzing syllables in turns, with faint noise beneath."""
    rng = np.random.default_rng(seed)
    t = np.arange(SECONDS * RATE_HZ) / RATE_HZ
    buzz = sum(np.sin(2 * np.pi * (110 + 20 * seed) * k * t) / k for k in range(1, 25))
    turn = np.sin(2 * np.pi * 0.25 * t + np.pi * seed) > -0.1
    syllable = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.4, 0, 1)
    noise = rng.normal(0, 15, len(t))
    return np.array(np.rint(5000 * buzz * turn * syllable + noise), np.int16)


CALLER, ASSISTANT = voice(1), voice(2)
HEARD = (detector_input(CALLER), detector_input(ASSISTANT))


def in_one_advance(engine: Engine) -> None:
    engine.feed(Side.CALLER, CALLER)
    engine.feed(Side.ASSISTANT, ASSISTANT)
    engine.advance(SECONDS * RATE_HZ // engine.tick)
    engine.drain()


def cut(tick_ms: int) -> list[tuple[Pcm, Pcm]]:
    """Cut both sides into ticks, as they come from a transport."""
    size = tick_ms * RATE_HZ // 1000
    return [
        (CALLER[at : at + size], ASSISTANT[at : at + size]) for at in range(0, len(CALLER), size)
    ]


def tick_by_tick(engine: Engine, ticks: list[tuple[Pcm, Pcm]]) -> list[Span]:
    """Play a call tick by tick, take the recording; return the caller's segments."""
    spans: list[Span] = []
    one, other = Side
    for caller, assistant in ticks:
        engine.feed(one, caller)
        engine.feed(other, assistant)
        engine.advance()
        engine.stereo()
        if events := engine.drain():
            spans += segments_of(events)
    return spans


def segments_of(events: list[EngineEvent]) -> list[Span]:
    return [
        Span(start=event.start, end=event.end)
        for event in events
        if isinstance(event, SegmentEvent) and event.side is Side.CALLER
    ]


def numpy_loop(ticks: list[tuple[Pcm, Pcm]]) -> NumpyLoop:
    loop = NumpyLoop(HEARD)
    for caller, assistant in ticks:
        loop.tick(caller, assistant)
    return loop


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_ticks_of_10_ms_cost_as_much_as_ticks_of_200(bench: Bench, detector: str) -> None:
    small = Engine(tick_ms=10, detector=detector)
    large = Engine(tick_ms=200, detector=detector)
    rounds = bench.rounds * (5 if detector == "rms" else 1)
    pair = paired(lambda: in_one_advance(large), lambda: in_one_advance(small), rounds)
    bench.time(lambda: in_one_advance(small))
    name = f"CPU inside one advance, 10 ms ticks / 200 ms ticks, {detector}"
    bench.report(name, f"{pair.ratio:.2f}", "<= 1.25", pair.ratio <= 1.25, ratio=pair.ratio)
    assert pair.ratio <= 1.25 or bench.rounds == 1


@pytest.mark.parametrize(("tick_ms", "goal"), [(200, 1.5), (20, 4.0), (10, 7.5)])
def test_webrtc_on_both_sides_beats_the_numpy_loop(bench: Bench, tick_ms: int, goal: float) -> None:
    engine = Engine(tick_ms=tick_ms, detector="webrtc")
    ticks = cut(tick_ms)

    def ours() -> None:
        tick_by_tick(engine, ticks)

    def theirs() -> None:
        numpy_loop(ticks)

    pair = paired(ours, theirs, bench.rounds)
    bench.time(ours)
    bench.report(
        f"numpy + webrtcvad loop / engine with webrtc, {tick_ms} ms ticks",
        f"{pair.ratio:.1f} ({SECONDS / pair.one:,.0f}x against {SECONDS / pair.two:,.0f}x)",
        f">= {goal}",
        pair.ratio >= goal,
        ratio=pair.ratio,
        engine_x=SECONDS / pair.one,
        peer_x=SECONDS / pair.two,
    )
    assert pair.ratio >= goal or bench.rounds == 1


def test_the_numpy_loop_takes_the_same_decisions() -> None:
    loop = numpy_loop(cut(20))
    loop.finish()
    engine = Engine(detector="webrtc")
    spans = tick_by_tick(engine, cut(20))
    engine.finish()
    spans += segments_of(engine.drain())
    assert spans == loop.segments[Side.CALLER]
    assert len(spans) >= 4
    counts = engine.counts()
    assert counts.clipped == loop.clipped
    assert [counts.silence, counts.caller_only, counts.assistant_only, counts.overlap] == (
        loop.shares
    )


@pytest.mark.parametrize("tick_ms", [20, 200])
def test_edge_costs_little_more_than_webrtc(bench: Bench, tick_ms: int) -> None:
    """The whole engine with one and with the other, so what they share is in both."""
    edge = Engine(tick_ms=tick_ms, detector="edge")
    webrtc = Engine(tick_ms=tick_ms, detector="webrtc")
    pair = paired(lambda: in_one_advance(webrtc), lambda: in_one_advance(edge), bench.rounds)
    bench.time(lambda: in_one_advance(edge))
    per_side = 1e6 / (2 * SECONDS * 100)
    bench.report(
        f"edge / webrtc in C, {tick_ms} ms ticks",
        f"{pair.ratio:.2f} ({pair.two * per_side:.2f} us against "
        f"{pair.one * per_side:.2f} us per 10 ms and side)",
        "<= 2.5",
        pair.ratio <= 2.5,
        ratio=pair.ratio,
        edge_us=pair.two * per_side,
        webrtc_us=pair.one * per_side,
    )
    assert pair.ratio <= 2.5 or bench.rounds == 1


def test_rms_runs_far_faster_than_real_time(bench: Bench) -> None:
    engine = Engine(tick_ms=200)
    in_one_advance(engine)
    seconds = statistics.median(
        cpu_seconds(lambda: in_one_advance(engine)) for _ in range(5 * bench.rounds)
    )
    bench.time(lambda: in_one_advance(engine))
    speed = SECONDS / seconds
    bench.report(
        "rms on both sides, mix and floor: times real time",
        f"{speed:,.0f}x",
        ">= 15,000x",
        speed >= 15_000,
        speed_x=speed,
    )


def test_a_step_seen_from_python_costs_little(bench: Bench) -> None:
    ticks = 1800
    quiet = np.zeros(240, np.int16)
    stepped = Engine(tick_ms=10, ring_ms=20_000)
    whole = Engine(tick_ms=10, ring_ms=20_000)
    long = np.zeros(240 * ticks, np.int16)

    def step() -> None:
        feed, advance, heard = stepped.feed, stepped.advance, stepped.heard
        caller, assistant = Side.CALLER, Side.ASSISTANT
        for _ in range(ticks):
            feed(caller, quiet)
            feed(assistant, quiet)
            advance()
            heard(caller)
            heard(assistant)

    def once() -> None:
        whole.feed(Side.CALLER, long)
        whole.feed(Side.ASSISTANT, long)
        whole.advance(ticks)

    pair = paired(step, once, 3 * bench.rounds)
    bench.time(step)
    cost_ns = (pair.one - pair.two) / ticks * 1e9
    bench.report(
        "Python-visible cost of a step (feed 2, advance, heard 2)",
        f"{cost_ns / 1000:.2f} us",
        "<= 2 us",
        cost_ns <= STEP_NS_LIMIT,
        step_ns=cost_ns,
    )

"""Scripted engine calls for tests: what is fed when, and what came of it.

A :class:`Script` says in which tick each side is fed which samples; playing it
gives an :class:`Outcome` that can be compared whole. Strategies draw scripts
whose audio has silence, faint noise, speech-level noise and full scale in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from hypothesis import strategies as st

from duplex.engine import Counts, EngineEvent, Pcm
from duplex.values import Side

RATE_HZ = 8000
"""Rate of most scripts: the oracle goes sample by sample, and 8 kHz has fewest."""


class AnyEngine(Protocol):
    """The compiled engine or the oracle."""

    tick: int

    @property
    def position(self) -> int: ...
    def feed(self, side: Side, pcm: Pcm) -> int: ...
    def flush(self, side: Side) -> int: ...
    def advance(self, n: int = 1) -> None: ...
    def heard(self, side: Side) -> Pcm: ...
    def spoken(self, side: Side) -> Pcm: ...
    def mixed(self) -> Pcm: ...
    def drain(self) -> list[EngineEvent]: ...
    def counts(self) -> Counts: ...
    def finish(self) -> None: ...


class Build(Protocol):
    """Makes an engine."""

    def __call__(
        self,
        *,
        rate_hz: int = ...,
        tick_ms: int = ...,
        detector: str = ...,
        hold_ms: tuple[int, int] = ...,
        adaptive: tuple[bool, bool] = ...,
        ring_ms: int = ...,
    ) -> AnyEngine: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Before tick ``tick``: flush ``side`` if asked, then feed it ``pcm``."""

    tick: int
    side: Side
    pcm: Pcm = field(repr=False)
    flush: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole call: moves in order of their ticks."""

    moves: tuple[Move, ...]
    ticks: int
    tick_ms: int = 20
    detector: str = "rms"
    hold_ms: tuple[int, int] = (0, 0)
    adaptive: tuple[bool, bool] = (False, False)
    ring_ms: int = 2000
    rate_hz: int = RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a played script gave: audio as bytes, events, counts."""

    caller: bytes
    assistant: bytes
    mixed: bytes
    events: tuple[EngineEvent, ...]
    counts: Counts

    def said(self, side: Side) -> Pcm:
        return np.frombuffer(self.assistant if side else self.caller, np.int16)


Cut = Callable[[Pcm], list[Pcm]]


def whole(pcm: Pcm) -> list[Pcm]:
    return [pcm]


def opened(build: Build, script: Script) -> AnyEngine:
    return build(
        rate_hz=script.rate_hz,
        tick_ms=script.tick_ms,
        detector=script.detector,
        hold_ms=script.hold_ms,
        adaptive=script.adaptive,
        ring_ms=script.ring_ms,
    )


def play(build: Build, script: Script, *, cut: Cut = whole, batch: bool = False) -> Outcome:
    """Play a script; ``cut`` splits each feed, ``batch`` joins ticks with no move between."""
    engine = opened(build, script)
    caller, assistant, mixed = [], [], []
    events: list[EngineEvent] = []
    stops = sorted({move.tick for move in script.moves} | {script.ticks})
    at = 0
    for tick in stops:
        most = script.ring_ms // script.tick_ms if batch else 1
        while at < tick:
            step = min(most, tick - at)
            at += step
            engine.advance(step)
            events += engine.drain()
            assert engine.heard(Side.CALLER).tobytes() == engine.spoken(Side.ASSISTANT).tobytes()
            caller.append(engine.spoken(Side.CALLER))
            assistant.append(engine.spoken(Side.ASSISTANT))
            mixed.append(engine.mixed())
        for move in script.moves:
            if move.tick == tick < script.ticks:
                if move.flush:
                    engine.flush(move.side)
                for piece in cut(move.pcm):
                    engine.feed(move.side, piece)
    engine.finish()
    events += engine.drain()
    return Outcome(
        caller=b"".join(x.tobytes() for x in caller),
        assistant=b"".join(x.tobytes() for x in assistant),
        mixed=b"".join(x.tobytes() for x in mixed),
        events=tuple(events),
        counts=engine.counts(),
    )


def pcm_of(pieces: list[tuple[str, int, int]]) -> Pcm:
    """Build samples from (kind, length, seed) pieces; ``edge`` is around the RMS of 220."""
    levels = {"silence": 0, "faint": 120, "edge": 381, "speech": 4000, "full": 60000}
    parts = [np.zeros(0)]
    for kind, length, seed in pieces:
        noise = np.random.default_rng(seed).uniform(-1, 1, length)
        parts.append(np.clip(np.rint(noise * levels[kind]), -32768, 32767))
    return np.concatenate(parts).astype(np.int16)


pieces = st.lists(
    st.tuples(
        st.sampled_from(["silence", "faint", "edge", "speech", "full"]),
        st.one_of(st.integers(0, 900), st.sampled_from([160, 320, 800, 1600])),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=4,
)
sides = st.sampled_from(list(Side))
detectors = st.sampled_from(["rms", "rms", "webrtc"])


@st.composite
def scripts(draw: st.DrawFn, *, hold: bool = True, flush: bool = True, ticks: int = 60) -> Script:
    """Draw a call of up to ``ticks`` ticks of 10 or 20 ms."""
    n = draw(st.integers(1, ticks))
    moves = [
        Move(
            tick=draw(st.integers(0, n - 1)),
            side=draw(sides),
            pcm=pcm_of(draw(pieces)),
            flush=flush and draw(st.integers(0, 5)) == 0,
        )
        for _ in range(draw(st.integers(1, 6)))
    ]
    moves.sort(key=lambda move: move.tick)
    hold_ms = (0, 0)
    if hold:
        hold_ms = draw(st.sampled_from([(0, 0), (120, 120), (0, 40), (200, 0)]))
    adapts = draw(st.booleans())
    return Script(
        moves=tuple(moves),
        ticks=n,
        tick_ms=draw(st.sampled_from([10, 20])),
        detector=draw(detectors),
        hold_ms=hold_ms,
        adaptive=(adapts and hold_ms[0] > 0, adapts and hold_ms[1] > 0),
        ring_ms=draw(st.sampled_from([400, 2000])),
    )


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """Draw a way to split any feed into pieces, empty ones among them."""
    sizes = draw(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 700)), min_size=1))

    def cut(pcm: Pcm) -> list[Pcm]:
        parts = []
        at = 0
        for size in sizes:
            parts.append(pcm[at : at + size])
            at += size
        return [*parts, pcm[at:]]

    return cut

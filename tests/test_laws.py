"""The eight laws of the core, on the compiled engine and on the oracle.

Each law is a function of how an engine is built and of something drawn. It must
hold for both engines, and it must fail for the mutant of the compiled engine
that breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import duplex.engine
import mutants
import reference
from duplex.engine import FloorEvent, Holder, Pcm, Playout, PlayoutEvent, SegmentEvent, SideCounts
from duplex.values import Side
from scripts import (
    RATE_HZ,
    Build,
    Cut,
    Move,
    Outcome,
    Script,
    cuts,
    pcm_of,
    pieces,
    play,
    scripts,
    sides,
)

BLOCK = RATE_HZ // 50
Law = Callable[[Build], None]

COMPILED: Build = duplex.engine.Engine
ORACLE: Build = reference.Engine

quick = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""Enough to catch every mutant; a broken law is shown as found, not minimised twice."""


def law_chunk(build: Build, script: Script, cut: Cut) -> None:
    assert play(build, script, cut=cut) == play(build, script)


def law_tick(build: Build, script: Script) -> None:
    assert play(build, script, batch=True) == play(build, script)


def law_tick_size(build: Build, audio: tuple[Pcm, Pcm], detector: str) -> None:
    """Feed each sample before the earliest tick that needs it, at four tick sizes."""

    def at(tick_ms: int, total_ms: int) -> Outcome:
        tick = tick_ms * RATE_HZ // 1000
        moves = tuple(
            Move(tick=k, side=side, pcm=audio[side][k * tick : (k + 1) * tick])
            for k in range(total_ms // tick_ms)
            for side in Side
        )
        # A move stands before its tick, so the first tick's samples are fed at 0.
        script = Script(moves=moves, ticks=total_ms // tick_ms, tick_ms=tick_ms, detector=detector)
        return play(build, script)

    assert at(10, 600) == at(20, 600) == at(200, 600)
    assert at(137, 1370) == at(10, 1370)


def after_a_stall(late: Pcm, hold_ms: int, adaptive: bool, tick_ms: int = 20) -> Script:
    """A backlog at once, then 200 ms of audio every 200 ms: what a hold must thin out."""
    piece = 200 * RATE_HZ // 1000
    times_ms = range(200, 2200, 200)
    on_time = np.resize(late[::-1], len(times_ms) * piece)
    moves = [Move(tick=0, side=Side.CALLER, pcm=late)]
    for k, at_ms in enumerate(times_ms):
        pcm = on_time[k * piece : (k + 1) * piece].copy()
        moves.append(Move(tick=at_ms // tick_ms, side=Side.CALLER, pcm=pcm))
    return Script(
        moves=tuple(moves),
        ticks=3000 // tick_ms,
        tick_ms=tick_ms,
        hold_ms=(hold_ms, 0),
        adaptive=(adaptive, False),
        ring_ms=8000,
    )


def law_tick_size_of_holds(build: Build, late: Pcm, hold_ms: int, adaptive: bool) -> None:
    """With a hold, audio that arrives at the same moments plays the same."""
    small, usual, large = (
        play(build, after_a_stall(late, hold_ms, adaptive, ms)) for ms in (10, 20, 200)
    )
    assert small == usual == large
    assert usual.counts.caller.hold_dropped > 0


def law_conservation(build: Build, script: Script) -> None:
    outcome = play(build, script)
    offered = {
        side: sum(len(move.pcm) for move in script.moves if move.side is side) for side in Side
    }
    for side in Side:
        n = outcome.counts.of(side)
        assert n.accepted == n.played + n.discarded + n.queued
        assert n.accepted <= offered[side]
        assert n.played == np.count_nonzero(marked(outcome, side))
        flushed = [
            event.samples
            for event in outcome.events
            if isinstance(event, PlayoutEvent)
            and event.side is side
            and (event.kind is Playout.DISCARD or event.samples < 0)
        ]
        assert n.discarded == sum(abs(samples) for samples in flushed)


def marked(outcome: Outcome, side: Side) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the samples of a side that no event of playout calls made-up silence."""
    real = np.ones(outcome.counts.position, np.bool_)
    for event in outcome.events:
        if isinstance(event, PlayoutEvent) and event.side is side and event.samples > 0:
            if event.kind is Playout.DISCARD:
                continue
            assert real[event.start : event.start + event.samples].all()
            real[event.start : event.start + event.samples] = False
    return real


def law_partition(build: Build, script: Script) -> None:
    outcome = play(build, script)
    counts = outcome.counts
    shares = {
        Holder.CALLER: counts.caller_only,
        Holder.ASSISTANT: counts.assistant_only,
        Holder.BOTH: counts.overlap,
        Holder.NONE: counts.silence,
    }
    assert sum(shares.values()) == counts.position
    floor = [event for event in outcome.events if isinstance(event, FloorEvent)]
    edges = [FloorEvent(at=0, holder=Holder.NONE), *floor]
    edges.append(FloorEvent(at=counts.position, holder=Holder.NONE))
    summed = dict.fromkeys(Holder, 0)
    for here, after in pairwise(edges):
        summed[here.holder] += after.at - here.at
    assert summed == shares
    for side in Side:
        n = counts.of(side)
        assert n.played + n.idle + n.underrun + n.hold_added == counts.position


def law_symmetry(build: Build, script: Script) -> None:
    swapped = replace(
        script,
        moves=tuple(replace(move, side=move.side.other) for move in script.moves),
        hold_ms=script.hold_ms[::-1],
        adaptive=script.adaptive[::-1],
    )
    one, other = play(build, script), play(build, swapped)
    assert (one.caller, one.assistant, one.mixed) == (other.assistant, other.caller, other.mixed)
    mirrored = replace(
        other.counts,
        caller=other.counts.assistant,
        assistant=other.counts.caller,
        caller_only=other.counts.assistant_only,
        assistant_only=other.counts.caller_only,
    )
    assert one.counts == mirrored
    assert segments_of(one, Side.CALLER) == segments_of(other, Side.ASSISTANT)
    assert segments_of(one, Side.ASSISTANT) == segments_of(other, Side.CALLER)


def segments_of(outcome: Outcome, side: Side) -> list[tuple[int, int]]:
    return [
        (event.start, event.end)
        for event in outcome.events
        if isinstance(event, SegmentEvent) and event.side is side
    ]


def law_silence(build: Build, lengths: tuple[int, int], detector: str) -> None:
    """Zeros in, zeros out, no events."""
    ticks = 20
    total = ticks * BLOCK
    moves = tuple(
        Move(tick=0, side=side, pcm=np.zeros(total + lengths[side], np.int16)) for side in Side
    )
    outcome = play(build, Script(moves=moves, ticks=ticks, detector=detector))
    assert outcome.events == ()
    assert outcome.caller == outcome.assistant == outcome.mixed == bytes(2 * total)
    assert outcome.counts.silence == total


def law_alone(build: Build, pcm: Pcm, side: Side) -> None:
    """One source alone passes bit-identical, to the other side and to the mix."""
    ticks = len(pcm) // BLOCK + 1
    outcome = play(build, Script(moves=(Move(tick=0, side=side, pcm=pcm),), ticks=ticks))
    expected = np.pad(pcm, (0, ticks * BLOCK - len(pcm))).tobytes()
    assert outcome.said(side).tobytes() == outcome.mixed == expected
    assert outcome.counts.clipped == 0


def law_no_invented_silence(build: Build, script: Script) -> None:
    """Silence we made is counted, as underrun only in speech, and zero."""
    outcome = play(build, script)
    for side in Side:
        said, real = outcome.said(side), marked(outcome, side)
        counted: dict[Playout, int] = dict.fromkeys(Playout, 0)
        for event in outcome.events:
            if not isinstance(event, PlayoutEvent) or event.side is not side:
                continue
            if event.kind is Playout.DISCARD or event.samples < 0:
                continue
            counted[event.kind] += event.samples
            assert not said[event.start : event.start + event.samples].any()
            if event.kind is Playout.UNDERRUN:
                played = said[: event.start][real[: event.start]]
                assert voiced(played[-BLOCK:])
        n: SideCounts = outcome.counts.of(side)
        assert counted[Playout.IDLE] == n.idle
        assert counted[Playout.UNDERRUN] == n.underrun
        assert counted[Playout.HOLD_ADJUST] == n.hold_added


def law_runs_dry_in_speech(build: Build, speech: int, gap: int) -> None:
    """A ring that runs dry in speech is an underrun, in quiet idle; both end at the data."""
    voice = pcm_of([("speech", speech * BLOCK, 1)])
    quiet = pcm_of([("speech", speech * BLOCK, 1), ("faint", BLOCK, 1)])
    for pcm, underrun in ((voice, True), (quiet, False)):
        moves = (
            Move(tick=0, side=Side.CALLER, pcm=pcm),
            Move(tick=len(pcm) // BLOCK + gap, side=Side.CALLER, pcm=voice),
        )
        ticks = moves[1].tick + speech
        n = play(build, Script(moves=moves, ticks=ticks)).counts.caller
        assert (n.underrun, n.idle) == ((gap * BLOCK, 0) if underrun else (0, gap * BLOCK))


def law_hold_in_silence(build: Build, late: Pcm, hold_ms: int, adaptive: bool) -> None:
    """Whatever a hold drops is quiet and stood between 20 ms of quiet on either side."""
    outcome = play(build, after_a_stall(late, hold_ms, adaptive))
    said = outcome.said(Side.CALLER)
    drops = [e for e in outcome.events if isinstance(e, PlayoutEvent) and e.samples < 0]
    assert drops
    for event in drops:
        assert not voiced(said[event.start - BLOCK : event.start])
        assert not voiced(said[event.start : event.start + BLOCK])
    n = outcome.counts.caller
    assert n.hold_dropped == n.discarded == -sum(event.samples for event in drops)


def law_hold_follows_arrival(build: Build, seed: int) -> None:
    """What an adaptive hold adds stands between quiet too, and no word is harmed."""
    script = unsteady(seed)
    outcome = play(build, script)
    said = outcome.said(Side.CALLER)
    fed = np.concatenate([move.pcm for move in script.moves])
    words = fed[fed != 0]
    assert np.array_equal(said[said != 0], words[: np.count_nonzero(said)])
    events = [e for e in outcome.events if isinstance(e, PlayoutEvent)]
    dry = {e.start + e.samples for e in events if e.kind in (Playout.IDLE, Playout.UNDERRUN)}
    added = [e for e in events if e.kind is Playout.HOLD_ADJUST and e.samples > 0]
    inserted = [e for e in added if e.start > 0 and e.start not in dry]
    assert inserted
    for event in inserted:
        end = event.start + event.samples
        assert not voiced(said[event.start - BLOCK : event.start])
        assert not voiced(said[end : end + BLOCK])
    assert outcome.counts.caller.hold > script.hold_ms[0] * RATE_HZ // 1000


def voiced(pcm: Pcm) -> bool:
    return int((pcm.astype(np.int64) ** 2).sum()) >= 220**2 * BLOCK


def law_replay(build: Build, script: Script) -> None:
    """The stems of a call, fed through a fresh engine, give the same speech and floor."""
    call = play(build, script)
    stems = tuple(Move(tick=0, side=side, pcm=np.array(call.said(side), np.int16)) for side in Side)
    bare = replace(script, moves=stems, hold_ms=(0, 0), adaptive=(False, False), ring_ms=2000)
    again = play(build, bare)
    assert (again.caller, again.assistant, again.mixed) == (
        call.caller,
        call.assistant,
        call.mixed,
    )

    def kept(outcome: Outcome) -> list[object]:
        return [e for e in outcome.events if isinstance(e, SegmentEvent | FloorEvent)]

    assert kept(again) == kept(call)
    for share in ("caller_only", "assistant_only", "overlap", "silence", "clipped", "position"):
        assert getattr(again.counts, share) == getattr(call.counts, share)


audio = pieces.map(pcm_of)
detectors = st.sampled_from(["rms", "webrtc"])
excess = st.integers(0, 99)
blocks = st.integers(1, 10)


def streams(length: int) -> st.SearchStrategy[tuple[Pcm, Pcm]]:
    """Two signals of exactly ``length`` samples."""
    one = audio.map(lambda pcm: np.resize(np.append(pcm, np.int16(0)), length))
    return st.tuples(one, one)


def backlog(seed: int) -> Pcm:
    """Nearly three seconds of words and pauses, as they come after a stall."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(14):
        kind = ("speech", "silence", "full", "faint")[k % 4]
        parts.append((kind, int(rng.integers(200, 3000)), k))
    return pcm_of(parts)


def unsteady(seed: int) -> Script:
    """Words between exact zeros in 100 ms deltas that come up to 180 ms late, one at least 100."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(24):
        kind = ("speech", "silence", "full", "silence")[k % 4]
        parts.append((kind, int(rng.integers(200, 3000)), int(rng.integers(99))))
    size = RATE_HZ // 10
    pcm = np.resize(pcm_of(parts), 40 * size)
    late = np.where(rng.random(40) < 0.2, rng.integers(0, 9, 40), 0)
    late[[0, int(rng.integers(3, 9))]] = 0, int(rng.integers(5, 9))
    ticks = np.maximum.accumulate(np.arange(40) * 5 + late)
    moves = tuple(
        Move(tick=int(tick), side=Side.CALLER, pcm=pcm[k * size : (k + 1) * size].copy())
        for k, tick in enumerate(ticks)
    )
    return Script(moves=moves, ticks=200, hold_ms=(40, 0), adaptive=(True, False))


backlogs = st.integers(0, 50).map(backlog)
holds_ms = st.sampled_from([40, 120])
stalls = st.tuples(backlogs, holds_ms, st.booleans())
unsteady_seeds = st.integers(0, 500)

LAWS: dict[str, tuple[Callable[..., None], st.SearchStrategy[tuple[object, ...]]]] = {
    "chunk": (law_chunk, st.tuples(scripts(), cuts())),
    "tick": (law_tick, st.tuples(scripts())),
    "tick_size": (law_tick_size, st.tuples(streams(1370 * RATE_HZ // 1000), detectors)),
    "tick_size_of_holds": (law_tick_size_of_holds, stalls),
    "conservation": (law_conservation, st.tuples(scripts())),
    "partition": (law_partition, st.tuples(scripts())),
    "symmetry": (law_symmetry, st.tuples(scripts())),
    "silence": (
        law_silence,
        st.tuples(st.tuples(st.integers(0, 99), st.integers(0, 99)), detectors),
    ),
    "alone": (law_alone, st.tuples(audio, sides)),
    "no_invented_silence": (law_no_invented_silence, st.tuples(scripts())),
    "runs_dry_in_speech": (
        law_runs_dry_in_speech,
        st.tuples(st.integers(1, 9), st.integers(1, 10)),
    ),
    "hold_in_silence": (law_hold_in_silence, stalls),
    "hold_follows_arrival": (law_hold_follows_arrival, st.tuples(unsteady_seeds)),
    "replay": (law_replay, st.tuples(scripts())),
}


def holds(law: str, build: Build, examples: int) -> None:
    """Check one law on drawn examples; raises with the first one that breaks it."""
    check, arguments = LAWS[law]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(arguments)
    def drawn(example: tuple[object, ...]) -> None:
        check(build, *example)

    drawn()


@pytest.mark.parametrize("law", LAWS)
def test_the_compiled_engine_keeps_the_law(law: str) -> None:
    holds(law, COMPILED, examples=60)


@pytest.mark.parametrize("law", LAWS)
def test_the_oracle_keeps_the_law(law: str) -> None:
    holds(law, ORACLE, examples=4)


@quick
@given(scripts())
def test_the_compiled_engine_does_what_the_oracle_does(script: Script) -> None:
    assert play(COMPILED, script) == play(ORACLE, script)


@settings(quick, max_examples=8)
@given(stalls)
def test_holds_move_as_the_oracle_moves_them(stall: tuple[Pcm, int, bool]) -> None:
    script = after_a_stall(*stall)
    assert play(COMPILED, script) == play(ORACLE, script)


@settings(quick, max_examples=6)
@given(unsteady_seeds)
def test_holds_learn_what_the_oracle_learns(seed: int) -> None:
    script = unsteady(seed)
    assert play(COMPILED, script) == play(ORACLE, script)


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 48_000])
@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_other_rates_do_what_the_oracle_does(rate_hz: int, detector: str) -> None:
    pcm = pcm_of([("speech", 4000, 1), ("faint", 2500, 2), ("full", 3001, 3), ("silence", 777, 0)])
    moves = (
        Move(tick=1, side=Side.ASSISTANT, pcm=pcm),
        Move(tick=4, side=Side.CALLER, pcm=pcm[::-1].copy()),
    )
    script = Script(moves=moves, ticks=30, rate_hz=rate_hz, detector=detector, hold_ms=(0, 120))
    assert play(COMPILED, script) == play(ORACLE, script)


@pytest.fixture(scope="session")
def mutated_core() -> ModuleType:
    return mutants.load()


@pytest.mark.parametrize("law", sorted({mutant.law for mutant in mutants.MUTANTS}))
def test_each_law_catches_its_mutant(
    law: str, mutated_core: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplex.engine, "_core", mutated_core)
    numbers = [k for k, mutant in enumerate(mutants.MUTANTS, 1) if mutant.law == law]
    for number in numbers:
        mutated_core.choose(number)
        with pytest.raises(AssertionError):
            holds(law, COMPILED, examples=60)


def test_with_no_mutant_chosen_the_mutated_build_keeps_the_laws(
    mutated_core: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplex.engine, "_core", mutated_core)
    mutated_core.choose(0)
    for law in LAWS:
        holds(law, COMPILED, examples=5)


def test_every_law_has_a_mutant() -> None:
    assert {mutant.law for mutant in mutants.MUTANTS} == set(LAWS)

"""The adaptive playout hold: as short as arrival allows, moving in silence only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import reference
from duplex.engine import Engine, Pcm, Playout, PlayoutEvent, SideCounts
from duplex.errors import InputError
from duplex.values import Side

MS = 24
"""Samples in a millisecond."""
DELTA = 100 * MS
Arrival = tuple[float, Pcm]
Times = npt.NDArray[np.float64]


def speech(duration_ms: float, seed: int = 1) -> Pcm:
    noise = np.random.default_rng(seed).normal(0, 2500, round(duration_ms * MS))
    return np.array(np.rint(noise), np.int16)


def quiet(duration_ms: float) -> Pcm:
    return np.zeros(round(duration_ms * MS), np.int16)


def talk(minutes: float, floor_dbfs: float | None = None, seed: int = 1) -> Pcm:
    """Talk spurts of 0.3–5 s, pauses of 0.1–2 s, over zeros or a noise floor."""
    rng = np.random.default_rng(seed)
    level = 0 if floor_dbfs is None else 32768 * 10 ** (floor_dbfs / 20)
    wave = np.rint(rng.normal(0, level, round(minutes * 60_000) * MS)).astype(np.int16)
    at = 0
    while at < len(wave):
        spurt = speech(rng.uniform(300, 5000), seed=at)[: len(wave) - at]
        wave[at : at + len(spurt)] = spurt
        at += len(spurt) + round(rng.uniform(100, 2000) * MS)
    return wave


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A played call: the assistant's audio if kept, what playout did, the totals."""

    said: Pcm
    moves: list[PlayoutEvent]
    counts: SideCounts
    holds: list[int]
    seen: list[int]

    def samples(self, kind: Playout) -> list[int]:
        return [move.samples for move in self.moves if move.kind is kind]


def playouts(engine: Engine) -> list[PlayoutEvent]:
    """Drain the engine; return what playout did with the assistant's audio."""
    drained = engine.drain()
    return [e for e in drained if isinstance(e, PlayoutEvent) and e.side is Side.ASSISTANT]


def play(
    arrivals: Iterable[Arrival],
    total_ms: float,
    *,
    tick_ms: int = 20,
    hold_ms: int = 120,
    adaptive: bool = True,
    keep: bool = True,
) -> Heard:
    """Feed each arrival (ms, samples) at the first tick at or after it."""
    engine = Engine(tick_ms=tick_ms, hold_ms=(0, hold_ms), adaptive=(False, adaptive))
    waiting = iter(arrivals)
    after = next(waiting, None)
    said, moves, holds, seen = [quiet(0)], list[PlayoutEvent](), list[int](), list[int]()
    for k in range(round(total_ms / tick_ms)):
        while after is not None and after[0] <= k * tick_ms:
            assert engine.feed(Side.ASSISTANT, after[1]) == len(after[1])
            seen.append(engine.position)
            after = next(waiting, None)
        engine.advance()
        if keep:
            said.append(engine.heard(Side.CALLER))
        if k % 50 == 49:
            moves += playouts(engine)
            holds.append(engine.counts().assistant.hold)
    engine.finish()
    moves += playouts(engine)
    return Heard(
        said=np.concatenate(said),
        moves=moves,
        counts=engine.counts().assistant,
        holds=holds,
        seen=seen,
    )


def paced(pcm: Pcm, times_ms: Iterable[float], size: int = DELTA) -> Iterable[Arrival]:
    """Cut ``pcm``, repeated as often as needed, into deltas that come at ``times_ms``."""
    whole = len(pcm) // size * size
    for k, when in enumerate(times_ms):
        at = k * size % whole
        yield when, pcm[at : at + size]


def grid(n: int, step_ms: float = 100.0) -> Times:
    return np.arange(n, dtype=np.float64) * np.float64(step_ms)


def uneven(minutes: float, ppm: float, seed: int) -> Times:
    """A 100 ms grid ± 7.5 ms; 5 % come 150–180 ms after the one before, the next on the grid."""
    rng = np.random.default_rng(seed)
    n = round(minutes * 600)
    times: Times = np.array(
        30 + rng.uniform(0, 20) + grid(n, 100 * (1 - ppm / 1e6)) + rng.uniform(-7.5, 7.5, n),
        np.float64,
    )
    gap = rng.random(n) < 0.05
    for k in range(1, n):
        gap[k] &= not gap[k - 1]
        if gap[k]:
            times[k] = times[k - 1] + rng.uniform(150, 180)
    return np.array(np.maximum.accumulate(times), np.float64)


def played_at(heard: Heard, n: int) -> Times:
    """Say in ms where the first sample of each delta played, from the events alone."""
    position = sample = 0
    starts, offsets = [0], [0]
    for move in heard.moves:
        sample += move.start - position
        position = move.start + max(0, move.samples)
        sample -= min(0, move.samples)
        starts.append(sample)
        offsets.append(position - sample)
    firsts = np.arange(n) * DELTA
    index = np.searchsorted(starts, firsts, side="right") - 1
    return np.array((firsts + np.array(offsets)[index]) / MS, np.float64)


@pytest.mark.parametrize("floor_dbfs", [None, -75.0])
@pytest.mark.parametrize("ppm", [300, -300])
def test_an_hour_of_uneven_arrival_never_breaks_a_word_and_waits_little(
    ppm: float, floor_dbfs: float | None
) -> None:
    pcm = talk(3, floor_dbfs)
    times = uneven(60, ppm, seed=11)
    heard = play(paced(pcm, times), times[-1], keep=False)
    assert heard.counts.underrun == 0
    # Without an underrun all that was not played yet at the end is the last second.
    n = len(times) - 10
    waits = played_at(heard, n) - times[:n]
    assert waits.min() >= 0
    assert waits.mean() <= 117
    # The engine counts from the tick that saw a delta; the rest is the wait for that tick.
    tick_wait = float((np.array(heard.seen[:n]) / MS - times[:n]).mean())
    assert heard.counts.wait_mean is not None
    assert heard.counts.wait_mean / MS + tick_wait == pytest.approx(waits.mean(), abs=0.5)
    # A second of drift was worked off.
    net = heard.counts.hold_adjust / MS
    assert net == pytest.approx(100 - 3.6 * ppm, abs=60)


def test_a_steady_sender_of_small_deltas_is_held_for_little_more_than_one() -> None:
    pcm = talk(1)
    heard = play(paced(pcm, grid(6000, 20), size=20 * MS), 120_000, keep=False)
    assert heard.counts.underrun == heard.counts.idle == 0
    assert 20 * MS <= heard.holds[40] <= 40 * MS
    assert heard.counts.hold == pytest.approx(27 * MS, abs=4 * MS)


def test_a_short_hold_is_reached_and_kept_at_its_least() -> None:
    pcm = talk(1)
    heard = play(paced(pcm, grid(2400)), 240_000, keep=False, hold_ms=20)
    assert heard.counts.hold == 21 * MS
    assert heard.counts.underrun == 0


def words(n: int, pause_ms: float = 400) -> Pcm:
    return np.concatenate([np.append(speech(600, seed=k), quiet(pause_ms)) for k in range(n)])


def test_a_stall_of_three_seconds_is_worked_off_in_silence() -> None:
    pcm = words(60)
    times = grid(len(pcm) // DELTA)
    times[(times >= 20_000) & (times < 23_000)] = 23_000
    heard = play(paced(pcm, times), 60_000)
    spoken = pcm[pcm != 0]
    said = heard.said[heard.said != 0]
    assert np.array_equal(said, spoken[: len(said)])
    assert len(spoken) - len(said) < 600 * MS
    late = played_at(heard, len(times) - 5) - grid(len(times) - 5)
    assert late[201] > 2900
    assert late[-1] < 120
    # The stall taught nothing: it is no jitter.
    assert heard.counts.hold < 60 * MS


def test_a_slow_peer_gets_silence_in_pauses_and_no_word_is_broken() -> None:
    # 5 000 ppm, to see in two minutes what 300 ppm do in half an hour.
    pcm = words(20)
    heard = play(paced(pcm, grid(1190, 100.5)), 119_000, hold_ms=40)
    assert heard.counts.underrun == 0
    assert heard.counts.hold_added > 500 * MS
    for move in heard.moves[1:]:
        assert move.kind is Playout.HOLD_ADJUST
        assert not heard.said[move.start - 20 * MS : move.start].any()
        assert not heard.said[move.start : move.start + max(0, move.samples) + 20 * MS].any()


def test_late_audio_lengthens_the_hold_in_the_next_pause_and_is_forgotten_in_time() -> None:
    pcm = words(20)
    times = grid(3300)
    times[603] += 90
    heard = play(paced(pcm, times), 329_000, hold_ms=40, keep=False)
    assert heard.counts.underrun > 0
    assert heard.holds[59] < 45 * MS
    assert 120 * MS < heard.holds[63] < 140 * MS
    assert 110 * MS < heard.holds[220] < 130 * MS
    assert heard.holds[245] < 25 * MS
    longer = [move for move in heard.moves if move.kind is Playout.HOLD_ADJUST][1:]
    assert sum(move.samples for move in longer if 60_000 * MS < move.start < 63_000 * MS) > 0


@pytest.mark.parametrize("shift_ms", [150, 1500])
def test_a_sender_that_pauses_without_catching_up_is_no_jitter(shift_ms: float) -> None:
    pcm = words(20)
    times = grid(600)
    times[300:] += shift_ms
    heard = play(paced(pcm, times), 60_000, hold_ms=60, keep=False)
    assert max(heard.holds[28:]) < 60 * MS
    waits = played_at(heard, 590)[350:] - times[350:590]
    assert waits.min() >= 0
    assert waits.max() < 80


def test_a_path_that_becomes_faster_is_followed() -> None:
    pcm = words(20)
    times = 200 + grid(1200)
    times[600:] -= 150
    heard = play(paced(pcm, np.maximum.accumulate(times)), 119_000, hold_ms=60, keep=False)
    waits = played_at(heard, 1150)[1000:] - times[1000:1150]
    assert waits.max() < 60
    assert heard.counts.underrun == 0


def test_on_its_grid_a_sender_plays_the_same_whatever_the_ticks() -> None:
    pcm = words(20)

    def at(tick_ms: int) -> tuple[bytes, list[PlayoutEvent], int]:
        # Each sample is fed with the tick that is the first to need it.
        times = grid(20_000 // tick_ms, tick_ms)
        heard = play(paced(pcm, times, size=tick_ms * MS), 20_000, tick_ms=tick_ms)
        return heard.said.tobytes(), heard.moves, heard.counts.hold

    assert at(10) == at(20) == at(50) == at(200)
    assert len(at(20)[1]) > 2


def test_a_flush_is_followed_by_a_whole_hold() -> None:
    engine = Engine(hold_ms=(0, 60), adaptive=(False, True))
    for k in range(1000):
        if k % 5 == 0:
            engine.feed(Side.ASSISTANT, speech(100, seed=k))
        if k == 502:
            engine.flush(Side.ASSISTANT)
        engine.advance()
    added = [move.samples for move in playouts(engine) if move.kind is Playout.HOLD_ADJUST]
    assert added[0] == 60 * MS
    assert len(added) == 2
    # What is left of the starting hold after ten of its thirty seconds.
    assert added[1] == pytest.approx(40 * MS, abs=2 * MS)


def test_waits_are_those_of_the_first_samples() -> None:
    # Late by up to 39 ms and 20 for the tick: less than the hold.
    times = grid(500) + np.random.default_rng(3).uniform(0, 39, 500)
    times[0] = 0
    heard = play(paced(speech(5000), times), 50_060, adaptive=False, hold_ms=60)
    assert heard.counts.underrun == 0
    waits = played_at(heard, 500) * MS - np.array(heard.seen)
    n = heard.counts
    assert (n.waits, n.hold) == (500, 60 * MS)
    assert n.wait_mean == int(waits.mean())
    assert n.wait_max == waits.max()
    assert n.wait_p99 == np.percentile(waits, 99, method="inverted_cdf")


def test_what_is_flushed_or_dropped_never_waited() -> None:
    engine = Engine(hold_ms=(120, 0))
    engine.feed(Side.CALLER, speech(100))
    engine.advance()
    engine.flush(Side.CALLER)
    engine.feed(Side.CALLER, speech(100))
    engine.advance(10)
    n = engine.counts().caller
    assert (n.waits, n.wait_mean, n.wait_p99, n.wait_max) == (1, 120 * MS, 120 * MS, 120 * MS)


def test_without_a_hold_audio_is_placed_exactly_and_nothing_waits() -> None:
    burst = np.concatenate([words(3), speech(50)])
    heard = play([(200, burst), (9000, burst)], 15_000, hold_ms=0, adaptive=False)
    assert np.array_equal(heard.said[200 * MS : 200 * MS + len(burst)], burst)
    assert np.array_equal(heard.said[9000 * MS : 9000 * MS + len(burst)], burst)
    n = heard.counts
    assert (n.hold, n.waits, n.wait_mean, n.wait_p99, n.wait_max) == (0, 0, None, None, None)
    assert not heard.samples(Playout.HOLD_ADJUST)


def test_what_is_learnt_in_four_minutes_is_what_the_oracle_learns() -> None:
    """Speech without a pause, so that the hold is learnt and never moved."""
    oracle = reference.Hold(300 * MS, True, 20 * MS, 400 * MS, 24_000)
    engine = Engine(hold_ms=(300, 0), adaptive=(True, False))
    rng = np.random.default_rng(9)
    times = grid(2400, 99.99) + np.where(rng.random(2400) < 0.01, rng.uniform(0, 180, 2400), 0)
    times += np.where(np.arange(2400) >= 1500, 70, 0)
    pcm = speech(100)
    fed = 0
    for k in range(11_900):
        arrived = 0
        while fed + arrived < 2400 and times[fed + arrived] <= k * 20:
            arrived += engine.feed(Side.CALLER, pcm) // DELTA
        if arrived:
            oracle.arrive(fed * DELTA, engine.position)
            fed += arrived
        engine.advance()
        if k >= 15:
            oracle.end_of_block()
        if k % 50 == 0:
            assert engine.counts().caller.hold == oracle.length
    assert engine.counts().caller.idle == engine.counts().caller.underrun == 0
    assert 50 * MS < oracle.length < 300 * MS


@pytest.mark.parametrize(
    ("hold_ms", "bounds_ms", "words"),
    [
        (0, (20, 400), "adaptive hold of 0 samples"),
        (10, (20, 400), "adaptive hold of 240"),
        (500, (20, 400), "adaptive hold of 12000"),
        (60, (80, 60), "bounds 1920 to 1440"),
        (60, (10, 400), "bounds 240 to 9600"),
        (60, (20, 30_000), "the ring's 480000"),
    ],
)
def test_an_adaptive_hold_outside_its_bounds_is_refused(
    hold_ms: int, bounds_ms: tuple[int, int], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        Engine(hold_ms=(0, hold_ms), adaptive=(False, True), hold_bounds_ms=bounds_ms)

"""A line gives the same bytes whatever the chunks, the ticks and the kernels are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duplex._line import KERNELS, Line
from duplex.conditions import Effect, Noise
from duplex.engine import Engine
from duplex.line import RATES_HZ, build_line
from duplex.values import Side
from line_scenes import EFFECTS, Passed, Pcm, build, chains, passed, speech

SECONDS = 5.48
"""Whole ticks of 10, 20, 137 and 200 ms."""
TICKS_MS = (10, 20, 137)
some = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
sizes = st.lists(st.one_of(st.integers(1, 40), st.integers(41, 3_000)), min_size=1, max_size=5)


@some
@given(chains, sizes, st.sampled_from(KERNELS), st.integers(0, 5))
def test_any_chunks_and_any_kernels_give_the_same(
    chain: tuple[Effect, ...], cut: list[int], kernels: str, seed: int
) -> None:
    pcm, far = speech(8_000, SECONDS), speech(8_000, SECONDS, 2)
    whole = passed(build(chain, seed=seed, kernels=KERNELS[0]), pcm, [len(pcm)], far)
    parts = passed(build(chain, seed=seed, kernels=kernels), pcm, [*cut, 333], far)
    assert parts == whole


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.title)
def test_each_effect_is_the_same_in_any_chunks_at_every_rate(effect: Effect, rate_hz: int) -> None:
    pcm, far = speech(rate_hz, 7), speech(rate_hz, 7, 2)
    runs = {
        passed(build([effect], rate_hz, kernels=kernels), pcm, cut, far)
        for kernels in KERNELS
        for cut in ([len(pcm)], [rate_hz // 100], [7, 961, 1, 4_000])
    }
    assert len(runs) == 1
    assert next(iter(runs))[0] != pcm.tobytes()


def called(lines: tuple[Line | None, Line | None], tick_ms: int) -> tuple[bytes, bytes]:
    """Hold a call and return what either side was played."""
    pair = speech(8_000, SECONDS), speech(8_000, SECONDS, 2)
    engine = Engine(rate_hz=8_000, tick_ms=tick_ms, ring_ms=6_000, lines=lines)
    heard: tuple[list[Pcm], list[Pcm]] = ([], [])
    for side in Side:
        engine.feed(side, pair[side])
    for _ in range(len(pair[0]) // engine.tick):
        engine.advance()
        for side in Side:
            heard[side].append(engine.heard(side))
            assert np.array_equal(
                engine.spoken(side), pair[side][engine.position - engine.tick : engine.position]
            )
    return np.concatenate(heard[0]).tobytes(), np.concatenate(heard[1]).tobytes()


@settings(some, max_examples=12)
@given(chains, chains, st.sampled_from(TICKS_MS), st.sampled_from(KERNELS))
def test_a_call_sounds_the_same_at_any_tick(
    up: tuple[Effect, ...], down: tuple[Effect, ...], tick_ms: int, kernels: str
) -> None:
    def lines(kernels: str) -> tuple[Line, Line]:
        return build(up, kernels=kernels), build(down, leg=1, kernels=kernels)

    count = 2 * int(8_000 * SECONDS) // (8 * 137) * 8 * 137
    one, other = called(lines(KERNELS[0]), 10), called(lines(kernels), tick_ms)
    assert [x[:count] for x in one] == [x[:count] for x in other]


def test_the_engine_plays_what_the_line_makes_of_a_file() -> None:
    chain = [effect for effect in EFFECTS if effect.title != "acoustic_echo"]
    pcm = speech(8_000, SECONDS)
    heard = called((build(chain), None), 20)[Side.ASSISTANT]
    assert heard == build(chain).process(pcm[: len(heard) // 2]).tobytes()


def test_an_acoustic_echo_is_of_what_the_caller_was_played() -> None:
    """The caller hears the assistant through the other line, and so does the microphone."""
    pair = speech(8_000, SECONDS), speech(8_000, SECONDS, 2)
    up, down = [EFFECTS[4]], [EFFECTS[7]]
    heard = called((build(up), build(down, leg=1)), 20)
    count = len(heard[0]) // 2
    played = build(down, leg=1).process(pair[1][:count])
    assert heard[Side.CALLER] == played.tobytes()
    assert heard[Side.ASSISTANT] == build(up).process(pair[0][:count], played).tobytes()


@pytest.mark.parametrize("title", ["noise", "bursts", "tics", "packet_loss"])
def test_switching_one_effect_off_leaves_the_others_streams_alone(title: str) -> None:
    drawn = ("noise", "bursts", "tics", "packet_loss")
    chain = [effect for effect in EFFECTS if effect.title in drawn]
    rest = [effect for effect in chain if effect.title != title]
    pcm = speech(8_000, 20)
    every, some_of_it = (passed(build(effects), pcm, [len(pcm)]) for effects in (chain, rest))
    if title != "packet_loss":
        assert every[2] == some_of_it[2]
    kept = [label for label in every[3] if label in some_of_it[3]]
    assert kept == list(some_of_it[3])
    if title in ("tics", "packet_loss"):
        assert every[1] == some_of_it[1]


def stream(effect: Effect, seed: int, leg: int) -> Passed:
    pcm = speech(8_000, 5)
    return passed(build([effect], seed=seed, leg=leg), pcm, [len(pcm)])


@pytest.mark.parametrize("effect", [EFFECTS[0], EFFECTS[8]], ids=lambda effect: effect.title)
def test_seed_and_leg_choose_the_stream(effect: Effect) -> None:
    assert stream(effect, 1, 0) == stream(effect, 1, 0)
    assert len({stream(effect, seed, leg)[0] for seed in (1, 2) for leg in (0, 1)}) == 4


def test_no_effects_are_no_line() -> None:
    assert build_line((), rate_hz=24_000, seed=1) is None


def test_what_is_held_inside_int16_is_counted_alike() -> None:
    pcm = np.clip(speech(24_000, 4).astype(np.int32) * 6, -32_768, 32_767).astype(np.int16)
    counts = set()
    for kernels in KERNELS:
        for cut in ([len(pcm)], [7, 961, 1, 4_000]):
            line = build([Noise(kind="white", snr=3)], 24_000, kernels=kernels)
            noise = np.frombuffer(passed(line, pcm, cut)[1], np.int16)
            counts.add(line.clipped)
            total = pcm.astype(np.int32) + noise
            assert line.clipped == np.count_nonzero((total > 32_767) | (total < -32_768)) > 0
    assert len(counts) == 1

"""Both sides passed on as they are: one look at a sample gives what many small steps give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.engine import Counts, Engine, EngineEvent
from duplex.values import Side
from line_scenes import Pcm

RATE_HZ = 24_000
RING_MS = 400


def fed(
    cuts: list[int], sides: tuple[Pcm, Pcm], tick_ms: int
) -> tuple[list[Pcm], list[EngineEvent], Counts]:
    """Feed both sides in pieces of ``cuts`` ticks of 200 ms, each played before the next."""
    engine = Engine(rate_hz=RATE_HZ, tick_ms=tick_ms, ring_ms=RING_MS)
    size, at = RATE_HZ // 5, 0
    played: list[Pcm] = []
    for cut in cuts:
        for side in Side:
            # The assistant sometimes has less than is played, so padding comes between.
            n = cut * size - (7 * at // size % 3 * 481 if side is Side.ASSISTANT else 0)
            engine.feed(side, sides[side][at : at + n])
        for _ in range(200 * cut // tick_ms):
            engine.advance()
            played += [engine.stereo().ravel(), engine.mixed()]
        at += cut * size
    engine.finish()
    return played, engine.drain(), engine.counts()


def joined(played: list[Pcm]) -> tuple[Pcm, Pcm]:
    return np.concatenate(played[::2]), np.concatenate(played[1::2])


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 2), min_size=4, max_size=14),
    seed=st.integers(0, 2**16),
    loud=st.sampled_from([200, 20_000, 32_000]),
)
def test_whole_frames_give_what_half_frames_do(cuts: list[int], seed: int, loud: int) -> None:
    rng = np.random.default_rng(seed)
    n = sum(cuts) * RATE_HZ // 5
    gate = np.repeat(rng.integers(0, 2, (2, n // 240 + 1)), 240, axis=1)[:, :n]
    sides = (rng.integers(-loud, loud, (2, n)) * gate).astype(np.int16)
    whole = fed(cuts, (sides[0], sides[1]), 200)
    halves = fed(cuts, (sides[0], sides[1]), 10)
    for one, other in zip(joined(whole[0]), joined(halves[0]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole[1:] == halves[1:]


@pytest.mark.parametrize("rate_hz", [8_000, 22_050, 44_100])
def test_a_frame_that_is_no_whole_number_of_vectors_is_all_there(rate_hz: int) -> None:
    rng = np.random.default_rng(3)
    caller, assistant = rng.integers(-30_000, 30_000, (2, rate_hz)).astype(np.int16)
    engine = Engine(rate_hz=rate_hz, tick_ms=200)
    engine.feed(Side.CALLER, caller)
    engine.feed(Side.ASSISTANT, assistant)
    engine.advance(5)
    np.testing.assert_array_equal(engine.spoken(Side.CALLER), caller)
    np.testing.assert_array_equal(engine.heard(Side.CALLER), assistant)
    both = caller.astype(np.int32) + assistant
    np.testing.assert_array_equal(engine.mixed(), np.clip(both, -32_768, 32_767))
    assert engine.counts().clipped == np.count_nonzero((both > 32_767) | (both < -32_768))

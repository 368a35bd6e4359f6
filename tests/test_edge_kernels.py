"""Both sides filtered in one vector: the integers of the plain loop, nothing of the other side."""

from __future__ import annotations

import numpy as np
import pytest

from duplex import _core
from duplex.engine import Pcm
from stimuli import noise, pcm, side, talk, voiced

SECONDS = 12
Found = list[
    tuple[
        int,
        int,
        int,
        tuple[float, bool, bool] | None,
        tuple[float, bool, bool] | None,
        list[tuple[int, int]],
    ]
]


def caller(rate: int) -> Pcm:
    """Speech over noise, a cut, a hole of zeros and a steady tone."""
    wave = talk(((0.0, 2.0), (3.0, 3.4), (5.0, 8.0)), SECONDS, rate=rate)
    wave = wave + noise(SECONDS, -50, rate=rate)
    t = np.arange(2 * rate) / rate
    wave[9 * rate : 11 * rate] += 0.1 * np.sin(2 * np.pi * 440 * t)
    wave[6 * rate : 6 * rate + rate // 8] = 0
    return pcm(wave)


def assistant(rate: int) -> Pcm:
    """Voiced stimuli in digital silence, some of them at full scale."""
    spans = ((1.0, 1.5), (2.2, 2.9), (8.5, 10.0))
    wave = side([(a, voiced(b - a, rate=rate)) for a, b in spans], SECONDS, rate=rate)
    return pcm(np.clip(8 * wave, -1, 1))


def found(one: Pcm, other: Pcm, rate: int, chunk: int) -> Found:
    """Everything the ears tell of both sides, heard in chunks of one length."""
    engine = _core.Engine(rate, 1, "edge", (0, 0), 10 * rate)
    told = []
    for at in range(0, len(one), chunk):
        pieces = one[at : at + chunk], other[at : at + chunk]
        for index, piece in enumerate(pieces):
            engine.feed(index, piece)
        engine.advance(len(pieces[0]))
        told += engine.drain_segments()
    engine.finish()
    return told + engine.drain_segments()


@pytest.mark.parametrize("chunk", [3, 61, 4_801])
@pytest.mark.parametrize("rate", [8_000, 9_200, 24_000, 48_000])
def test_the_kernels_for_newer_processors_find_the_same(
    rate: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = caller(rate), assistant(rate)
    fast = found(*pair, rate, chunk)
    monkeypatch.setattr(_core, "WIDE_KERNELS", False)
    assert fast == found(*pair, rate, chunk)
    assert len(fast) >= 6


@pytest.mark.parametrize("rate", [8_000, 24_000])
def test_what_is_heard_of_one_side_is_no_matter_of_the_other(rate: int) -> None:
    one, other = caller(rate), assistant(rate)
    loud = np.random.default_rng(1).integers(-32768, 32768, len(one)).astype(np.int16)
    alone = [item[1:] for item in found(one, np.zeros_like(one), rate, 4_801) if item[0] == 0]
    for beside in (other, loud, one):
        assert [item[1:] for item in found(one, beside, rate, 4_801) if item[0] == 0] == alone
        assert [item[1:] for item in found(beside, one, rate, 4_801) if item[0] == 1] == alone

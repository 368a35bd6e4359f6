"""Resampling: the timeline kept, the tail kept, any chunking the same."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.detect import segments
from duplex.errors import InputError
from duplex.resample import Pcm, Resampler, resample

Float = npt.NDArray[np.float64]
RATES_HZ = (8_000, 16_000, 24_000, 48_000)
PAIRS = list(permutations(RATES_HZ, 2))


def noise(length: int, seed: int = 1) -> Pcm:
    return np.random.default_rng(seed).integers(-12_000, 12_000, length).astype(np.int16)


def sine(
    rate_hz: int, seconds: float, hz: float = 440.0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    t = np.arange(round(rate_hz * seconds)) / rate_hz
    return np.asarray(12_000 * np.sin(2 * np.pi * hz * t), np.float64)


def to_int16(samples: Float) -> Pcm:
    return np.rint(samples).astype(np.int16)


def streamed(pcm: Pcm, from_hz: int, to_hz: int, sizes: list[int]) -> Pcm:
    stream = Resampler(from_hz, to_hz)
    out = []
    at = 0
    for size in sizes:
        out.append(stream.push(pcm[at : at + size]))
        at += size
    out.append(stream.push(pcm[at:]))
    out.append(stream.finish())
    return np.concatenate(out)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from(PAIRS),
    st.integers(0, 9_000),
    st.lists(st.one_of(st.integers(0, 7), st.integers(0, 3_000)), max_size=20),
)
def test_streamed_equals_one_shot_for_any_chunking(
    pair: tuple[int, int], length: int, sizes: list[int]
) -> None:
    pcm = noise(length)
    assert np.array_equal(streamed(pcm, *pair, sizes), resample(pcm, *pair))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("length", [0, 1, 79, 14_400, 14_401])
def test_the_length_is_that_of_the_same_time(pair: tuple[int, int], length: int) -> None:
    out = resample(noise(length), *pair)
    assert abs(len(out) - length * pair[1] / pair[0]) <= 0.5


@pytest.mark.parametrize("pair", PAIRS)
def test_every_sample_stands_for_its_own_moment(pair: tuple[int, int]) -> None:
    out = resample(to_int16(sine(pair[0], 0.5)), *pair)
    true = sine(pair[1], 0.5)
    inner = slice(len(true) // 5, -len(true) // 5)
    assert np.abs(out - true)[inner].max() <= 2


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("chunk_ms", [1, 20])
def test_an_impulse_at_the_last_sample_of_whole_blocks_is_kept(
    pair: tuple[int, int], chunk_ms: int
) -> None:
    pcm = np.zeros(15 * pair[0] // 50, np.int16)
    pcm[-1] = 30_000
    size = pair[0] * chunk_ms // 1000
    out = streamed(pcm, *pair, [size] * (len(pcm) // size))
    assert len(out) == 15 * pair[1] // 50
    reach = 2 if pair[1] <= pair[0] else 2 * pair[1] // pair[0]
    energy = out.astype(np.int64) ** 2
    assert energy[-reach:].sum() > 0.5 * energy.sum() > 0


def test_a_pause_between_chunks_changes_nothing() -> None:
    # Time does not enter at all: two halves of one response, however far apart.
    pcm = to_int16(sine(24_000, 2.0))
    stream = Resampler(24_000, 16_000)
    first = stream.push(pcm[:24_000])
    second = np.concatenate([stream.push(pcm[24_000:]), stream.finish()])
    out = np.concatenate([first, second])
    assert len(out) == 32_000
    assert np.array_equal(out, resample(pcm, 24_000, 16_000))


def test_empty_outputs_are_fine_and_speech_late_in_a_chunk_is_found() -> None:
    stream = Resampler(8_000, 16_000)
    voice = np.zeros(16_000, np.int16)
    voice[12_000:] = to_int16(sine(8_000, 0.5))
    pieces = [stream.push(voice[at : at + 40]) for at in range(0, len(voice), 40)]
    assert len(pieces[0]) == 0
    out = np.concatenate([*pieces, stream.finish()])
    assert len(out) == 32_000
    (found,) = segments(out, 16_000)
    assert abs(found.start - 24_000) <= 320
    assert found.end == 32_000


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_held_is_known_and_bounded(pair: tuple[int, int]) -> None:
    stream = Resampler(*pair)
    step = pair[0] // 50
    given_out = 0
    for k in range(1, 101):
        given_out += len(stream.push(noise(step, k)))
        assert stream.held == max(0, k * pair[1] // 50 - given_out)
        assert stream.held <= 0.18 * pair[1]
    stream.finish()
    assert stream.held == 0


def test_full_scale_overshoot_is_held_inside_int16() -> None:
    square = np.repeat(np.array([32_767, -32_768] * 50, np.int16), 24)
    out = resample(square, 24_000, 48_000)
    assert out.max() == 32_767
    assert out.min() == -32_768


def test_equal_rates_pass_bit_identical_and_as_a_copy() -> None:
    pcm = noise(100)
    out = resample(pcm, 24_000, 24_000)
    pcm[:] = 0
    assert np.array_equal(out, noise(100))


@pytest.mark.parametrize("rate_hz", [0, -8_000, 500, 1_000_000])
def test_a_rate_out_of_range_is_refused(rate_hz: int) -> None:
    with pytest.raises(InputError, match=f"rate {rate_hz} Hz"):
        Resampler(rate_hz, 24_000)

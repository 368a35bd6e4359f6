"""The active speech level against its definition, one sample at a time, and published figures."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.active_level import LevelMeter, Pcm, SpeechLevel, levelled, speech_level
from duplex.errors import InputError
from stimuli import RATE, noise, pcm, side, speechlike, voiced

PUBLISHED = os.environ.get("DUPLEX_P56_SIGNAL")
"""``voice.src`` of the ITU-T software tool library: raw int16, 16 kHz, 52 736 samples."""
TALK = pcm(side([(0.4, voiced(1.3)), (2.9, speechlike(2.0, 5)), (5.5, voiced(0.2))], 7.0))


def by_the_book(signal: Pcm, rate_hz: int) -> tuple[list[int], float | None]:
    """Counts per threshold and the active level, as the recommendation tells them."""
    keep = math.exp(-1 / (rate_hz * 0.03))
    hang = math.floor(rate_hz * 0.2 + 0.5)
    codes = [2.0 ** (j - 15) for j in range(15)]
    p = q = squares = 0.0
    active, idle = [0] * 15, [hang] * 15
    for sample in signal.tolist():
        x = sample / 32768
        squares += x * x
        p = keep * p + (1 - keep) * abs(x)
        q = keep * q + (1 - keep) * p
        for j, code in enumerate(codes):
            if q >= code:
                active[j] += 1
                idle[j] = 0
            elif idle[j] < hang:
                active[j] += 1
                idle[j] += 1
    levels = [10 * math.log10(squares / n) if n else -math.inf for n in active]
    for j in range(1, 15):
        low, high = (levels[i] - 20 * math.log10(codes[i]) - 15.9 for i in (j - 1, j))
        if low > 0 >= high and active[j]:
            return active, levels[j - 1] + low / (low - high) * (levels[j] - levels[j - 1])
    return active, None


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, RATE])
@pytest.mark.parametrize("gain_db", [0, -30, -40])
def test_the_level_is_that_of_the_recommendation(rate_hz: int, gain_db: float) -> None:
    gain = 10 ** (gain_db / 20)
    signal = pcm(gain * side([(0.3, voiced(0.8, rate=rate_hz))], 1.6, rate_hz))
    wanted = by_the_book(signal, rate_hz)[1]
    assert wanted is not None
    assert speech_level(signal, rate_hz).active_dbov == pytest.approx(wanted, abs=1e-9)


def test_the_level_of_our_own_signal_is_pinned() -> None:
    # Checked by hand against the sample-by-sample form above.
    found = speech_level(TALK, RATE)
    assert found.active_dbov == pytest.approx(by_the_book(TALK, RATE)[1], abs=1e-9)
    assert found.active_dbov == pytest.approx(PINNED_DBOV, abs=0.002)
    assert found.rms_dbov == pytest.approx(10 * math.log10(np.mean((TALK / 32768) ** 2)))
    assert found.activity == pytest.approx(PINNED_ACTIVITY, abs=0.001)


PINNED_DBOV, PINNED_ACTIVITY = -27.545, 0.6106


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 60_000)), max_size=12))
def test_any_chunking_gives_the_same_bits(sizes: list[int]) -> None:
    meter, at = LevelMeter(RATE), 0
    for size in sizes:
        meter.push(TALK[at : at + size])
        at += size
        assert meter.level() == speech_level(TALK[:at], RATE)
    meter.push(TALK[at:])
    assert meter.level() == speech_level(TALK, RATE)


def test_a_buffer_that_is_used_again_changes_nothing() -> None:
    meter, buffer = LevelMeter(RATE), TALK[14_400:24_000].copy()
    meter.push(buffer)
    buffer[:] = 0
    assert meter.level() == speech_level(TALK[14_400:24_000], RATE)


@pytest.mark.parametrize("silence", [1.0, 5.0, 20.0])
def test_silence_around_speech_moves_the_mean_and_not_the_active_level(silence: float) -> None:
    speech = pcm(speechlike(4.0, 8))
    alone = speech_level(speech, RATE)
    padded = speech_level(np.concatenate([np.zeros(round(silence * RATE), np.int16), speech]), RATE)
    assert alone.active_dbov is not None
    assert alone.rms_dbov is not None
    assert padded.rms_dbov is not None
    assert padded.active_dbov == pytest.approx(alone.active_dbov, abs=0.05)
    assert padded.rms_dbov < alone.rms_dbov - 0.8
    assert padded.activity == pytest.approx(4 / (4 + silence), abs=0.03)


@pytest.mark.parametrize("gain_db", [-20, -10, 6])
def test_a_gain_moves_the_level_by_itself(gain_db: float) -> None:
    speech = speechlike(4.0, 8)
    before, after = (speech_level(pcm(speech * gain), RATE) for gain in (1, 10 ** (gain_db / 20)))
    assert before.active_dbov is not None
    # Thresholds stand 6 dB apart, so the place between two of them moves a little.
    assert after.active_dbov == pytest.approx(before.active_dbov + gain_db, abs=0.1)


@pytest.mark.parametrize(("pause", "counts"), [(0.15, True), (2.0, False)])
def test_a_pause_within_the_hangover_is_active_and_a_long_one_is_not(
    pause: float, counts: bool
) -> None:
    talk = side(
        [(k * (0.8 + pause), voiced(0.8, syllables=False)) for k in range(6)], 6 * (0.8 + pause)
    )
    found = speech_level(pcm(talk), RATE)
    assert found.activity is not None
    assert (found.activity > 0.97) is counts


def test_faint_noise_between_words_is_not_active() -> None:
    talk = side([(0.0, voiced(2.0)), (8.0, voiced(2.0))], 10.0)
    quiet = speech_level(pcm(talk), RATE)
    noisy = speech_level(pcm(talk + noise(10.0, -60)), RATE)
    assert quiet.active_dbov is not None
    assert noisy.active_dbov == pytest.approx(quiet.active_dbov, abs=0.05)


def test_silence_has_no_level_and_nothing_heard_has_no_activity() -> None:
    nothing = SpeechLevel(samples=0, rms_dbov=None, active_dbov=None, activity=None)
    assert speech_level(np.zeros(0, np.int16), RATE) == nothing
    silent = speech_level(np.zeros(RATE, np.int16), RATE)
    assert (silent.rms_dbov, silent.active_dbov, silent.activity) == (None, None, 0.0)


@pytest.mark.parametrize("step", [1, 3])
def test_speech_below_the_lowest_threshold_has_a_mean_and_no_active_level(step: int) -> None:
    faint = (np.arange(RATE) % 20 < 10).astype(np.int16) * step
    found = speech_level(faint, RATE)
    assert found.rms_dbov is not None
    assert (found.active_dbov, found.activity) == (None, None)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from((8_000, 11_025, RATE)),
    st.integers(0, 5_000),
    st.floats(-90, 0),
    st.floats(0, 1),
)
def test_any_signal_has_an_active_level_at_least_its_mean(
    rate_hz: int, length: int, dbfs: float, share: float
) -> None:
    random = np.random.default_rng(length)
    signal = pcm(random.normal(0, 10 ** (dbfs / 20), length) * (random.random(length) < share))
    found = speech_level(signal, rate_hz)
    if found.active_dbov is not None and found.rms_dbov is not None:
        assert found.active_dbov >= found.rms_dbov - 1e-9
    assert found.activity is None or 0 <= found.activity <= 1


def test_full_scale_neither_overflows_nor_exceeds_the_overload_point() -> None:
    square = np.where(np.arange(RATE) % 48 < 24, 32_767, -32_768).astype(np.int16)
    found = speech_level(square, RATE)
    assert found.rms_dbov == pytest.approx(0, abs=0.001)
    # The envelope needs 50 ms to rise, which are not active.
    assert found.active_dbov == pytest.approx(0, abs=0.2)


def test_utterances_levelled_one_by_one_have_that_level_together() -> None:
    pause = np.zeros(RATE, np.int16)
    loud, faint = pcm(voiced(1.3)), pcm(0.05 * voiced(0.4))
    said = [levelled(one, RATE) for one in (loud, faint, levelled(faint, RATE, -40.0))]
    call = np.concatenate([part for one in said for part in (pause, one, pause)])
    assert speech_level(call, RATE).active_dbov == pytest.approx(-26.0, abs=0.2)


def test_what_has_no_active_level_is_not_levelled() -> None:
    for signal in (np.zeros(RATE, np.int16), np.zeros(0, np.int16)):
        assert np.array_equal(levelled(signal, RATE), signal)


@pytest.mark.parametrize("rate_hz", [0, 999, 400_000])
def test_a_rate_out_of_range_is_refused(rate_hz: int) -> None:
    with pytest.raises(InputError, match=f"rate {rate_hz} Hz"):
        LevelMeter(rate_hz)


@pytest.mark.skipif(PUBLISHED is None, reason="DUPLEX_P56_SIGNAL names no voice.src")
def test_the_published_signal_has_the_published_figures() -> None:
    # The published program stops within half a dB of the margin, hence the tolerance.
    assert PUBLISHED is not None
    signal = np.frombuffer(Path(PUBLISHED).read_bytes(), "<i2").astype(np.int16)
    assert len(signal) == 52_736
    found = speech_level(signal, 16_000)
    assert found.rms_dbov == pytest.approx(-25.478, abs=0.001)
    assert found.active_dbov == pytest.approx(-25.329, abs=0.05)
    assert found.activity == pytest.approx(0.96625, abs=0.01)

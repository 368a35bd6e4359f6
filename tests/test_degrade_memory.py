"""Degrading takes the memory of a few seconds, whatever the length, and in pieces as at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from typer.testing import CliRunner

from duplex import beds
from duplex.audio_truth import NoiseLevel, leg_truth
from duplex.cli import app
from duplex.conditions import parse
from duplex.degrading import degrade
from duplex.resample import resample
from duplex.values import Span
from duplex.wavfile import Wav, open_wav, read_wav

Pcm = npt.NDArray[np.int16]

RATE = 8_000
PEAK = r"""
import re, sys
from duplex.cli import app
try:
    app(["degrade", *sys.argv[1:], "--condition", "realistic + downlink:network"])
except SystemExit as left:
    assert not left.code, left.code
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""
EVERYTHING = (
    "noise,kind=cafe,snr=5 + bursts,rate_per_min=60 + tics,rate_per_min=60 + acoustic_echo + lossy"
    " + downlink:telephony + downlink:network"
)


def voices(rate_hz: int, seconds: float) -> Pcm:
    """Two voices with pauses, int16 of shape (n, 2)."""
    voice = beds.background_speech(1, 24_000).samples[: 24_000 * 12].copy()
    voice[100_000:130_000] = 0
    both = [resample(one, 24_000, rate_hz) for one in (voice, np.roll(voice, 60_000))]
    made: Pcm = np.resize(np.stack(both, axis=1), (int(seconds * rate_hz), 2))
    return made


def peak_kib(folder: Path, minutes: int) -> int:
    """Peak resident memory of a process that degrades so much stereo and does nothing else."""
    source = folder / f"{minutes}.wav"
    with soundfile.SoundFile(source, "w", RATE, 2, subtype="PCM_16") as file:
        part = voices(RATE, 60)
        for _ in range(minutes):
            file.write(part)
    out = [str(folder / f"{minutes}.out.wav"), "--stems", str(folder / str(minutes))]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(source), *out],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_eight_minutes_take_hardly_more_memory_than_two(tmp_path: Path) -> None:
    short, long = (peak_kib(tmp_path, minutes) for minutes in (2, 8))
    audio = 6 * 60 * RATE * 4 // 1024
    assert long - short < audio / 4
    assert long / short < 1.1


@pytest.mark.parametrize(
    ("rate_hz", "name"),
    [(11_025, "a.wav"), (16_000, "a.flac"), (44_100, "a.wav"), (16_000, "a.mp3")],
)
def test_a_file_in_pieces_is_what_it_is_at_once(tmp_path: Path, rate_hz: int, name: str) -> None:
    source, out, stems = tmp_path / name, tmp_path / "out.wav", tmp_path / "stems"
    soundfile.write(source, voices(rate_hz, 13.37), rate_hz)
    whole = degrade(read_wav(source), parse(EVERYTHING), tick_ms=200, seed=5)
    asked = ["--condition", EVERYTHING, "--seed", "5", "--tick-ms", "137", "--stems", str(stems)]
    done = CliRunner().invoke(app, ["degrade", str(source), str(out), *asked])
    assert done.exit_code == 0, done.output
    made, noise = read_wav(out), read_wav(stems / "noise.wav")
    for leg in whole:
        assert np.array_equal(made.channel(leg.side), leg.out)
        assert np.array_equal(noise.channel(leg.side), leg.noise)
        kept = read_wav(stems / f"{leg.side.label}_source.wav").channel(0)
        assert np.array_equal(kept, leg.source)
    assert whole[0].sounds
    assert whole[0].mask is not None


def test_every_sound_of_a_long_file_is_told() -> None:
    """More sounds than a line keeps at a time: they are fetched as they end."""
    long = np.zeros((20 * 60 * RATE, 1), np.int16)
    condition = parse("bursts,rate_per_min=60")
    found = [
        len(degrade(Wav(rate_hz=RATE, samples=long[: length * RATE]), condition)[0].sounds)
        for length in (300, 1200)
    ]
    assert found[1] > 1_024
    assert found[1] > 3.5 * found[0]


@pytest.mark.parametrize("name", ["a.mp3", "a.ogg", "a.flac", "a.wav"])
def test_blocks_are_the_file_without_a_seam(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    soundfile.write(path, voices(16_000, 5.3), 16_000)
    at_once, _ = soundfile.read(path, dtype="float64", always_2d=True)
    wanted = np.clip(np.rint(at_once * 32_768), -32_768, 32_767).astype(np.int16)
    assert np.array_equal(read_wav(path).samples, wanted)
    for frames in (1_000, 16_001):
        with open_wav(path) as stream:
            blocks = list(stream.blocks(frames))
        assert max(map(len, blocks)) <= frames
        assert np.array_equal(np.concatenate(blocks), wanted)


def test_the_noise_is_levelled_between_sounds_that_are_told_late() -> None:
    rng = np.random.default_rng(3)
    noise = np.rint(rng.standard_normal(50_000) * 300).astype(np.int16)
    sounds = [Span(start=9_000, end=12_500), Span(start=11_000, end=13_000)]
    for sound in sounds:
        noise[sound.start : sound.end] = 20_000
    source = np.zeros(50_000, np.int16)
    wanted = leg_truth((), source, noise, RATE, sounds=sounds).noise_dbov
    meter = NoiseLevel(4_000)
    for start in range(0, 50_000, 700):
        meter.push(noise[start : start + 700])
        meter.leave_out([one for one in sounds if start < one.end <= start + 700])
    assert meter.dbov() == wanted == pytest.approx(20 * np.log10(300 / 32_768), abs=0.1)


def test_nothing_is_left_behind_when_the_file_changes_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out, stems = tmp_path / "a.wav", tmp_path / "out.wav", tmp_path / "stems"
    soundfile.write(source, voices(RATE, 10), RATE)
    from duplex import leg_stream

    finish = leg_stream.Levels.finish

    def shortened(levels: leg_stream.Levels) -> object:
        source.write_bytes(source.read_bytes()[:100_000])
        return finish(levels)

    monkeypatch.setattr(leg_stream.Levels, "finish", shortened)
    asked = ["--condition", "lossy", "--stems", str(stems)]
    done = CliRunner().invoke(app, ["degrade", str(source), str(out), *asked])
    assert (done.exit_code, "changed while it was read" in done.stderr) == (2, True)
    assert not out.exists()
    assert list(stems.iterdir()) == []

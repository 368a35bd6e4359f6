"""``duplex degrade``: same arguments, same file; what was asked is what was done."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner, Result

from duplex import beds
from duplex.active_level import speech_level
from duplex.audio_truth import LossMask, leg_truth
from duplex.cli import app
from duplex.conditions import parse
from duplex.degrading import degrade
from duplex.wavfile import Wav, read_wav, write_wav

Pcm = npt.NDArray[np.int16]
RATE = 16_000


def speech(level_dbov: float = -26.0, seconds: int = 12, rate_hz: int = RATE) -> Pcm:
    """One of the background voices at an active level, a pause in its middle."""
    pcm = beds.background_speech(1, rate_hz).samples[: seconds * rate_hz].astype(np.float64)
    pcm[len(pcm) // 2 : len(pcm) // 2 + rate_hz] = 0
    active = speech_level(pcm.astype(np.int16), rate_hz).active_dbov
    assert active is not None
    made: Pcm = np.rint(pcm * 10 ** ((level_dbov - active) / 20)).astype(np.int16)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["degrade", *arguments])


@pytest.mark.parametrize("rate_hz, channels", [(8_000, 1), (16_000, 2), (44_100, 1), (11_025, 2)])
def test_rate_channels_and_length_stay(tmp_path: Path, rate_hz: int, channels: int) -> None:
    pcm = speech(seconds=2, rate_hz=rate_hz)[: 2 * rate_hz - 17]
    source, out = tmp_path / "in.wav", tmp_path / "out.wav"
    write_wav(source, np.stack([pcm] * channels, axis=1), rate_hz)
    done = run(str(source), str(out), "--condition", "telephony", "--condition", "noise,kind=rain")
    assert done.exit_code == 0, done.stderr
    wav = read_wav(out)
    assert (wav.rate_hz, wav.channels, wav.frames) == (rate_hz, channels, len(pcm))
    assert not np.array_equal(wav.channel(0), pcm)
    if channels == 2:
        assert np.array_equal(wav.channel(1), pcm), "the way back was not asked for"


def test_a_clean_line_changes_no_sample(tmp_path: Path) -> None:
    source, out = tmp_path / "in.wav", tmp_path / "out.wav"
    write_wav(source, speech(), RATE)
    assert run(str(source), str(out), "--condition", "clean").exit_code == 0
    assert out.read_bytes() == source.read_bytes()


def test_the_same_arguments_give_the_same_file_at_any_tick(tmp_path: Path) -> None:
    source = tmp_path / "in.wav"
    write_wav(source, np.stack((speech(), speech(-30)[::-1]), axis=1), RATE)
    found = set()
    for number, tick_ms in enumerate((10, 20, 137, 200, 200)):
        out = tmp_path / f"{number}.wav"
        asked = ("--condition", "tau_regular + reverb", "--condition", "downlink:realistic")
        done = run(str(source), str(out), *asked, "--tick-ms", str(tick_ms), "--seed", "3")
        assert done.exit_code == 0, done.stderr
        found.add(out.read_bytes())
    assert len(found) == 1
    other = tmp_path / "other.wav"
    run(str(source), str(other), "--condition", "tau_regular", "--seed", "4")
    assert other.read_bytes() not in found


@pytest.mark.parametrize("level_dbov", [-40.0, -26.0, -16.0])
@pytest.mark.parametrize("snr", [30, 15, 0, -5])
def test_snr_is_met_for_quiet_and_loud_speakers(level_dbov: float, snr: int) -> None:
    pcm = speech(level_dbov)
    wav = Wav(rate_hz=RATE, samples=pcm[:, None])
    for kind in ("white", "cafe", "construction"):
        (leg,) = degrade(wav, parse(f"noise,kind={kind},snr={snr}"))
        figure = leg.truth.snr_db
        assert figure is not None
        assert figure.error is not None
        assert abs(figure.error) < 0.5, kind
        # Counted by hand from what went in and came out, where nothing is clipped.
        if np.abs(leg.out.astype(np.int64)).max() < 32_767:
            power = float(((leg.out.astype(np.int64) - pcm) ** 2).mean())
            active = speech_level(pcm, RATE).active_dbov
            assert active is not None
            assert active - 10 * np.log10(power / 32768**2) == pytest.approx(snr, abs=0.5), kind


def test_silence_and_equal_bounds_divide_nothing(tmp_path: Path) -> None:
    """iver56/audiomentations#64: a silent noise file or silent speech gave NaN audio."""
    silent, bed = tmp_path / "silent.wav", tmp_path / "bed.wav"
    square = np.tile(np.repeat(np.array([1, -1], np.int16), 20), 4_800)
    write_wav(silent, np.zeros(12 * RATE, np.int16), RATE)
    write_wav(bed, (1_000 * square).astype(np.int16), RATE)
    loud = Wav(rate_hz=RATE, samples=(3_000 * square)[:, None].astype(np.int16))
    (same,) = degrade(loud, parse(f"noise,kind={silent},snr=10"))
    assert np.array_equal(same.out, loud.channel(0))
    assert same.truth.ineffective == ("noise: the bed is silent",)
    (mixed,) = degrade(loud, parse(f"noise,kind={bed},snr=10"))
    noise = mixed.noise.astype(np.float64)
    assert np.sqrt((noise**2).mean()) == pytest.approx(948.7, rel=0.02)
    quiet = Wav(rate_hz=RATE, samples=np.zeros((RATE, 1), np.int16))
    (only,) = degrade(quiet, parse(f"noise,kind={bed},snr=10"))
    asked = 32768 * 10 ** ((beds.LEVEL_DBOV - 10) / 20)
    assert np.sqrt((only.out.astype(np.float64) ** 2).mean()) == pytest.approx(asked, rel=0.05)
    (burst,) = degrade(loud, parse("bursts,snr_min=3,snr_max=3,rate_per_min=60"))
    assert burst.sounds


def test_stems_are_enough_to_work_everything_out_again(tmp_path: Path) -> None:
    source, stems = tmp_path / "in.wav", tmp_path / "stems"
    write_wav(source, np.stack((speech(), speech(-20)), axis=1), RATE)
    text = "noise,kind=street,snr=12 + lossy,loss=0.2 + tics,rate_per_min=60 + downlink:lossy"
    done = run(
        *(str(source), str(tmp_path / "out.wav"), "--condition", text),
        *("--stems", str(stems), "--json"),
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["audio_condition"] == text
    masks = json.loads((stems / "loss.json").read_text())
    noise = read_wav(stems / "noise.wav")
    for index, (leg, name) in enumerate((("uplink", "caller"), ("downlink", "assistant"))):
        stem = read_wav(stems / f"{name}_source.wav")
        assert np.array_equal(stem.channel(0), read_wav(source).channel(index))
        mask = LossMask.from_json(masks[leg])
        assert mask.packets == 12_000 // 20
        truth = leg_truth(getattr(parse(text), leg), stem.channel(0), None, RATE, mask=mask)
        assert told[leg]["loss"] == (truth.loss.as_json() if truth.loss else None)
    assert told["uplink"]["snr_db"]["error"] == pytest.approx(0, abs=0.5)
    sounds = json.loads((stems / "sounds.json").read_text())
    assert {(sound["leg"], sound["effect"]) for sound in sounds} == {("uplink", "tics")}
    caller = read_wav(stems / "caller_source.wav").channel(0)
    for sound in sounds:
        assert sound["end_ms"] > sound["start_ms"]
        before = int(sound["start_ms"] * RATE / 1000)
        assert not caller[before - RATE // 20 : before].any(), "the caller was speaking"
    assert noise.channels == 2
    assert not noise.channel(1).any()
    again = tmp_path / "again.wav"
    done = run(str(source), str(again), "--condition", "noisy", "--stems", str(stems))
    assert (done.exit_code, again.exists()) == (2, False), "stems are never replaced"


def test_the_other_channel_comes_back_through_the_microphone() -> None:
    silent, voice = np.zeros(4 * RATE, np.int16), speech(seconds=4)
    wav = Wav(rate_hz=RATE, samples=np.stack((silent, voice), axis=1))
    caller, assistant = degrade(wav, parse("acoustic_echo,delay_ms=100,gain=0.5"))
    assert np.array_equal(assistant.out, voice)
    delay = RATE // 10
    echo = caller.out[delay:].astype(np.int64)
    assert np.abs(echo - voice[:-delay].astype(np.int64) // 2).max() <= 1
    assert not caller.out[:delay].any()


def test_what_has_no_effect_is_said(tmp_path: Path) -> None:
    quiet, source = tmp_path / "quiet.wav", tmp_path / "in.wav"
    write_wav(quiet, np.zeros(RATE, np.int16), RATE)
    write_wav(source, speech(seconds=2), RATE)
    out = str(tmp_path / "out.wav")
    done = run(str(source), out, "--condition", f"noise,kind={quiet}", "--condition", "reverb")
    assert done.exit_code == 0
    assert "noise: the bed is silent, so it has no effect" in done.stderr
    done = run(str(quiet), str(tmp_path / "2.wav"), "--condition", "noise,kind=rain")
    assert done.exit_code == 0
    assert "noise: the speech is silent" in done.stderr
    done = run(str(source), str(tmp_path / "3.wav"), "--condition", "acoustic_echo")
    assert "acoustic_echo: there is no other side to hear" in done.stderr


def test_a_file_of_nothing_gives_a_file_of_nothing(tmp_path: Path) -> None:
    source, out = tmp_path / "in.wav", tmp_path / "out.wav"
    write_wav(source, np.zeros(0, np.int16), RATE)
    assert run(str(source), str(out), "--condition", "realistic").exit_code == 0
    assert read_wav(out).frames == 0


def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    mono, three = tmp_path / "mono.wav", tmp_path / "three.flac"
    write_wav(mono, speech(seconds=1), RATE)
    import soundfile

    soundfile.write(three, np.zeros((100, 3), np.int16), RATE)
    out = str(tmp_path / "out.wav")
    cases = (
        ((str(mono), out, "--condition", "loud"), "presets: clean"),
        ((str(mono), out, "--condition", "downlink:noisy"), "a downlink condition wants two"),
        ((str(mono), str(mono), "--condition", "noisy"), "exists already"),
        ((str(mono), out, "--condition", "noisy", "--tick-ms", "0"), "tick-ms 0 is outside"),
        ((str(mono), out, "--condition", "noisy", "--seed", "-1"), "seed -1 is outside"),
        ((str(three), out, "--condition", "noisy"), "has 3 channels"),
        ((str(tmp_path / "gone.wav"), out, "--condition", "noisy"), "no such file"),
        ((str(mono), out, "--condition", f"noise,kind={tmp_path}/no.wav"), "no such file"),
    )
    for arguments, said in cases:
        done = run(*arguments)
        assert done.exit_code == 2, arguments
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
        assert not Path(out).exists()

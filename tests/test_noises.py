"""``duplex noise`` lists every sound, writes it, and says plainly when it cannot play."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from duplex import beds
from duplex.cli import app
from duplex.noises import sounds
from duplex.wavfile import read_wav, write_wav


def noise(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["noise", *arguments])


def test_the_list_has_every_sound_with_its_level_and_length() -> None:
    done = noise()
    assert done.exit_code == 0
    for sound in sounds():
        assert f"  {sound.name} " in done.stdout
    assert "32 s loop" in done.stdout
    assert "-26 dBov" in done.stdout


def test_the_list_as_json_names_effect_level_loop_and_presets() -> None:
    listed = json.loads(noise("--json").stdout)
    by_name = {one["name"]: one for one in listed}
    assert by_name["cafe"] == {
        "name": "cafe",
        "effect": "noise",
        "is": "eight voices in a room, cups, chairs, steam",
        "level_dbov": -26.0,
        "loop_ms": 32_000,
        "presets": ["background_noise", "coffee_shop"],
    }
    assert by_name["horn"]["loop_ms"] is None
    assert len(by_name) == len(listed) == 26


def test_a_bed_is_written_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "pink.wav"
    done = noise("pink", "--out", str(out), "--rate-hz", "8000")
    assert done.exit_code == 0
    assert "32.0 s at 8000 Hz" in done.stderr
    wav = read_wav(out)
    assert wav.rate_hz == 8_000
    assert np.array_equal(wav.channel(0), beds.bed("pink", 8_000).samples)


def test_takes_are_written_one_after_another(tmp_path: Path) -> None:
    out = tmp_path / "cough.wav"
    assert noise("cough", "--out", str(out)).exit_code == 0
    takes = beds.tics("cough", 24_000)
    gap = 12_000 * len(takes)
    assert read_wav(out).frames == sum(len(take.samples) for take in takes) + gap


def test_an_environment_and_a_file_are_sounds_too(tmp_path: Path) -> None:
    assert "cafe" in noise("COFFEE-SHOP").stdout
    own = tmp_path / "own.wav"
    write_wav(own, np.zeros(8_000, np.int16), 8_000)
    done = noise(str(own), "--out", str(tmp_path / "loop.wav"))
    assert done.exit_code == 0
    assert "silent: mixing it in has no effect" in done.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["zoo"], "wanted a sound file or one of: white"),
        (["--play"], "got no name"),
        (["gone.wav", "--out", "x.wav"], "no such file"),
        (["white", "--out", "."], "exists already"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    arguments: list[str], said: str
) -> None:
    done = noise(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


class NoDevice(Exception):
    """What PortAudio raises when it has nothing to play to."""


def test_playing_without_a_device_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*_: object, **__: object) -> None:
        raise NoDevice("Error querying device -1")

    fake = ModuleType("sounddevice")
    fake.__dict__.update(play=play, PortAudioError=NoDevice)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    done = noise("horn", "--play")
    assert done.exit_code == 2
    assert "no output device can be used (Error querying device -1); write a file" in done.stderr


def test_playing_without_portaudio_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object) -> ModuleType:
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    done = noise("horn", "--play")
    assert done.exit_code == 2
    assert "PortAudio is missing" in done.stderr


def test_playing_plays_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    def play(pcm: np.ndarray[tuple[int], np.dtype[np.int16]], rate: int, blocking: bool) -> None:
        heard.extend((len(pcm), rate))
        assert blocking

    fake = ModuleType("sounddevice")
    fake.__dict__.update(play=play, PortAudioError=NoDevice)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    assert noise("brown", "--play").exit_code == 0
    assert heard == [beds.LOOP_S * 24_000, 24_000]

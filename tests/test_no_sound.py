"""Without a card, or without PortAudio, each verb that needs one says so in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from duplex.cli import app
from duplex.wavfile import write_wav
from stimuli import pcm, voiced

TALK, LIST = ("talk",), ("talk", "--list-devices")
LISTEN = ("listen", "RUN")
RUN = ("run", "--listen", "--scenario", "restaurant_slot_taken")


class _Default:
    device = (-1, -1)


def without_portaudio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)


def without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("sounddevice")
    vars(fake).update(
        query_devices=list, query_hostapis=list, default=_Default, PortAudioError=RuntimeError
    )
    monkeypatch.setitem(sys.modules, "sounddevice", fake)


def said(words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one sentence with which a command ends that could not run."""
    audio = folder / "RUN" / "audio" / "c"
    audio.mkdir(parents=True)
    write_wav(audio / "conversation.wav", pcm(voiced(0.5)), 24_000)
    (folder / "RUN" / "events").mkdir()
    (folder / "RUN" / "events" / "c.jsonl").write_text("", encoding="utf-8")
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("words", [TALK, LIST, LISTEN, RUN])
def test_without_portaudio_it_is_said_what_to_install(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_portaudio(monkeypatch)
    told = said(words, tmp_path, monkeypatch)
    assert told.startswith("duplex: no sound device can be used: PortAudio is missing; install it")


@pytest.mark.parametrize(
    ("words", "kind"), [(TALK, "input"), (LIST, "sound"), (LISTEN, "output"), (RUN, "output")]
)
def test_without_a_device_it_is_said_that_there_is_none(
    tmp_path: Path, words: tuple[str, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_devices(monkeypatch)
    assert said(words, tmp_path, monkeypatch) == (
        f"duplex: no {kind} device: this machine has no sound card that can be used\n"
    )


def test_doctor_tells_of_it_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    without_devices(monkeypatch)
    done = CliRunner().invoke(app, ["doctor"])
    assert "note  sound card: no input device" in done.stdout
    assert "mend: plug one in" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "--caller", "person"), "caller person needs a sound card"),
        (("run", "--listen", "--clock", "virtual"), "over before they can be heard"),
        (("run", "--listen-device", "USB"), "listen-device is of --listen"),
        (("talk", "--scenario", "a", "--scenario", "b"), "a person holds one call, got 2"),
        (("talk", "--card-rate-hz", "5"), "want a rate from 8000 to 192000 Hz"),
        (("listen", "RUN", "--side", "left"), 'side "left" is none of: caller, assistant, both'),
        (("listen", "RUN", "--from", "9"), "from 9.0 s: call c is 0.5 s long"),
        (("listen", "RUN", "d"), 'call "d" is none of: c'),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_devices(monkeypatch)
    assert told in said(words, tmp_path, monkeypatch)

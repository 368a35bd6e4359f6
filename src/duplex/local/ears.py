"""Ears: Whisper tiny.en, one decode per utterance, in a bounded worker thread.

The model runs through CTranslate2 itself rather than a transcription package:
an utterance is one window, so nothing of the machinery for long recordings is
needed, and start-up stays short. One intra-op thread always, because the words
may change with the thread count. Speech packages are imported on first use.
"""

from __future__ import annotations

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, cast

import numpy as np
import soxr

from duplex.errors import DuplexError, InputError
from duplex.local.mel import FRAMES_PER_SECOND, MAX_FRAMES, MEL_RATE_HZ, Floats, log_mel
from duplex.local.seams import VOICE_RATE_HZ, Pcm
from duplex.local.weights import EARS_MODULES, Model, require, verify

MAX_SECONDS = 28
"""Longer audio is cut; endpointing never gives more."""
MIN_FRAMES = 1_500
"""Shortest window shown to the model: below about 10 s it repeats itself, at
15 s it hears as well as at 30 s (measured on clean and noisy speech of both
voices) for 40 % of the price."""
MARGIN_FRAMES = 200
MAX_TOKENS = 160
_NO_SPEECH = 0.6
_UNSURE = -1.0
_STUTTER = 4
HUM = "Mm-hmm."
_HUM = re.compile(r"(?:[mMnNuUhH][mnuh.,! -]*|[MNUH][MNUHA]{1,4})[.,!]?")


class _Decoder(Protocol):
    """The loaded model: a picture in, token ids, sureness and silence odds out."""

    def __call__(self, picture: Floats) -> tuple[str, float, float]: ...


class WhisperEars:
    """Speech to text for any number of voices (see ``seams.Ears``)."""

    def __init__(self, decoder: _Decoder, *, workers: int = 1) -> None:
        self._decoder = decoder
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ears")

    @classmethod
    async def open(cls, model: Model, *, workers: int = 1) -> WhisperEars:
        """Check and load ``model`` in threads; raise MissingExtra or InputError."""
        require(EARS_MODULES, "the embedded ears")
        _, decoder = await asyncio.gather(
            asyncio.to_thread(verify, model), asyncio.to_thread(_load, model, workers)
        )
        return cls(decoder, workers=workers)

    async def transcribe(self, pcm: Pcm) -> str:
        """Return the words in ``pcm`` (int16 mono, 24 kHz); empty when there are none."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._hear, pcm)
        except RuntimeError as problem:
            raise DuplexError(f"the embedded ears failed: {problem}") from problem

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _hear(self, pcm: Pcm) -> str:
        sound = pcm[: MAX_SECONDS * VOICE_RATE_HZ].astype(np.float32) / np.float32(32768)
        sound = soxr.resample(sound, VOICE_RATE_HZ, MEL_RATE_HZ, quality="HQ")
        text, sureness, silence = self._decoder(log_mel(sound, window_frames(len(sound))))
        if silence > _NO_SPEECH and sureness < _UNSURE:
            return ""
        return hummed(once(" ".join(text.split())))


def window_frames(samples: int) -> int:
    """Return how many frames of picture to show for ``samples`` at 16 kHz."""
    needed = samples * FRAMES_PER_SECOND // MEL_RATE_HZ + MARGIN_FRAMES
    return min(max(needed, MIN_FRAMES), MAX_FRAMES)


def hummed(text: str) -> str:
    """Spell a hum as one; the model writes it with letters of its own (``MMM``, ``NMA.``)."""
    return HUM if _HUM.fullmatch(text) else text


def once(text: str) -> str:
    """Undo the model's one known stutter: the same words four times or more to the end."""
    words = text.split()
    bare = [word.strip(".,!?").lower() for word in words]
    for period in range(1, len(words) // _STUTTER + 1):
        tail = bare[-period:]
        start = len(bare) - period
        while start >= period and bare[start - period : start] == tail:
            start -= period
        if len(bare) - start >= _STUTTER * period:
            return " ".join(words[: start + period])
    return text


def _load(model: Model, workers: int) -> _Decoder:
    """Import the engine and build a decoder; raise InputError for unusable files."""
    os.environ.setdefault("CT2_VERBOSE", "-1")
    import ctranslate2
    import tokenizers

    try:
        words = tokenizers.Tokenizer.from_file(str(model.path("tokenizer")))
        whisper = ctranslate2.models.Whisper(
            str(model.path("weights").parent),
            device="cpu",
            compute_type="int8",
            inter_threads=workers,
            intra_threads=1,
        )
    except Exception as problem:
        raise InputError(f"model {model.path('weights').parent}: {problem}") from problem
    task = ("<|en|>", "<|transcribe|>") if whisper.is_multilingual else ()
    names = ("<|startoftranscript|>", *task, "<|notimestamps|>")
    prompt = [cast(int, words.token_to_id(name)) for name in names]
    end = cast(int, words.token_to_id("<|endoftext|>"))

    def decode(picture: Floats) -> tuple[str, float, float]:
        found = whisper.generate(
            ctranslate2.StorageView.from_array(np.ascontiguousarray(picture[None])),
            [prompt],
            beam_size=1,
            max_length=MAX_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        ids = [token for token in found.sequences_ids[0] if token < end]
        return words.decode(ids), float(found.scores[0]), float(found.no_speech_prob)

    return decode

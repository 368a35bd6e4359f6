"""Ears and a mouth that understand each other without a speech model.

Every word is a sound of its own, drawn from the sentence it stands in; the ears
look for the beginning of each sentence they know and read on while the sounds
fit, so a sentence that is cut is heard as far as it was said. ``garble`` is what
imperfect ears make of the words.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from duplex.local.engines import Models, SpeechEngines
from duplex.local.seams import VOICE_RATE_HZ, Pcm, Style

WORD = VOICE_RATE_HZ * 240 // 1000
GAP = VOICE_RATE_HZ * 30 // 1000
LEVEL = 5_000
COARSE = 8
"""Ears compare every eighth sample, which is fine enough for the tones used."""

Floats = npt.NDArray[np.float64]


def _word(text: str, index: int) -> Pcm:
    digest = hashlib.sha256(f"{text}|{index}".encode()).digest()
    t = np.arange(WORD - GAP) / VOICE_RATE_HZ
    tones = [100 + digest[n] * 2 for n in range(4)]
    wave = sum(np.sin(2 * np.pi * hz * t + digest[n + 8]) for n, hz in enumerate(tones))
    # It swells and fades, as words do: sounds as steady as a hum are no speech to the ruler.
    swell = 0.3 + 0.9 * np.sin(np.pi * np.arange(WORD - GAP) / (WORD - GAP))
    edge = np.minimum(1.0, np.minimum(np.arange(WORD - GAP), np.arange(WORD - GAP)[::-1]) / 240)
    out = np.zeros(WORD, np.int16)
    out[: WORD - GAP] = np.rint(LEVEL / 2 * edge * swell * wave)
    return out


@dataclass
class Parrot:
    """Mouth and ears of all voices of a run; see the module."""

    garble: Callable[[str], str] = lambda text: text
    said: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    _known: dict[str, Floats] = field(default_factory=dict)

    async def speak(self, text: str, style: Style) -> AsyncIterator[Pcm]:
        self.said.append(text)
        words = text.split()
        pcm: Pcm = np.concatenate([_word(text, index) for index in range(len(words))])
        self._known[text] = pcm[::COARSE].astype(np.float64)
        yield pcm

    async def transcribe(self, pcm: Pcm) -> str:
        found = sorted(self._found(pcm[::COARSE].astype(np.float64)))
        text = self.garble(" ".join(words for _, words in found))
        self.heard.append(text)
        return text

    async def close(self) -> None: ...

    def _found(self, audio: Floats) -> Iterator[tuple[int, str]]:
        size = WORD // COARSE
        length = 1 << (len(audio) + size).bit_length()
        spectrum = np.fft.rfft(audio, length)
        energy = np.concatenate(([0.0], np.cumsum(audio * audio)))
        for text, known in self._known.items():
            head = known[:size]
            match = np.fft.irfft(spectrum * np.conj(np.fft.rfft(head, length)), length)
            places = max(0, len(audio) - size // 2)
            if not places:
                continue
            at = int(np.argmax(match[:places]))
            if _alike(head, audio[at : at + size], energy[min(at + size, len(audio))] - energy[at]):
                yield at, self._read(text, known, audio[at:])

    def _read(self, text: str, known: Floats, audio: Floats) -> str:
        size = WORD // COARSE
        words = []
        for index, word in enumerate(text.split()):
            part, wanted = (x[index * size : (index + 1) * size] for x in (audio, known))
            if not _alike(wanted, part, float(part @ part)):
                break
            words.append(word)
        return " ".join(words)


def _alike(wanted: Floats, part: Floats, energy: float) -> bool:
    if len(part) < len(wanted) // 2 or energy <= 0:
        return False
    wanted = wanted[: len(part)]
    return bool(wanted @ part > 0.6 * np.sqrt(energy * (wanted @ wanted)))


@contextmanager
def speaking(parrot: Parrot) -> Iterator[Parrot]:
    """Let every local voice in the block use ``parrot`` in place of the speech engines."""

    async def open_fake(models: Models | None = None, *, workers: int = 1) -> _Engines:
        return _Engines(parrot, parrot)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpeechEngines, "open", open_fake)
        yield parrot


@dataclass
class _Engines:
    ears: Parrot
    mouth: Parrot

    async def close(self) -> None: ...

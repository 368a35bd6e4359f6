"""Voiced stimuli and conversations made of them; the intake and measuring tests drive it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

RATE = 24_000
Floats = npt.NDArray[np.float64]
Pcm = npt.NDArray[np.int16]
Seconds = tuple[float, float]


def voiced(
    seconds: float, *, pitch: float = 200.0, syllables: bool = True, rate: int = RATE
) -> Floats:
    """A harmonic pulse train, peak −12 dBFS, with 10 ms raised-cosine ends."""
    t = np.arange(round(seconds * rate)) / rate
    harmonics = range(1, int(min(4_000, rate / 2 - 1) // pitch) + 1)
    wave = sum((np.cos(2 * np.pi * pitch * k * t) / k for k in harmonics), np.zeros_like(t))
    if syllables:
        wave *= 0.6 + 0.4 * np.cos(2 * np.pi * 4 * t)
    fade = min(len(t) // 2, round(0.01 * rate))
    ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(fade) + 0.5) / fade)
    wave[:fade] *= ramp
    wave[len(wave) - fade :] *= ramp[::-1]
    wave *= 10 ** (-12 / 20) / np.abs(wave).max()
    return wave


def speechlike(seconds: float, seed: int, rate: int = RATE) -> Floats:
    """Noise in syllables that never repeat and are never steady, RMS −26 dBFS, with sharp ends."""
    random = np.random.default_rng(seed)
    count = round(seconds * rate)
    steps = random.uniform(0.1, 1.0, int(seconds * 8) + 2)
    envelope = np.interp(np.arange(count) / rate * 8, np.arange(len(steps)), steps)
    wave: Floats = np.convolve(random.normal(0, 1, count + 31), np.hanning(32) / 16, "valid")
    wave *= envelope
    return wave * (10 ** (-26 / 20) / float(np.sqrt(np.mean(wave**2))))


def side(spoken: Iterable[tuple[float, Floats]], seconds: float, rate: int = RATE) -> Floats:
    """One channel: stimuli at their starts in seconds, digital silence elsewhere."""
    channel = np.zeros(round(seconds * rate))
    for start, wave in spoken:
        at = round(start * rate)
        channel[at : at + len(wave)] += wave[: max(0, len(channel) - at)]
    return channel


def talk(spans: Iterable[Seconds], seconds: float, *, seed: int = 0, rate: int = RATE) -> Floats:
    """One channel of speech-like sound in the given spans (start, end)."""
    return side(
        (
            (start, speechlike(end - start, seed * 1000 + index, rate))
            for index, (start, end) in enumerate(spans)
        ),
        seconds,
        rate,
    )


def noise(seconds: float, dbfs: float, *, seed: int = 99, rate: int = RATE) -> Floats:
    """White noise of a given RMS."""
    random = np.random.default_rng(seed)
    return random.normal(0, 10 ** (dbfs / 20), round(seconds * rate))


def pcm(wave: Floats) -> Pcm:
    return np.clip(np.rint(wave * 32768), -32768, 32767).astype(np.int16)


def save(path: Path, *channels: Floats, rate: int = RATE, subtype: str | None = None) -> Path:
    """Write channels to a file whose ending says the format."""
    both = np.stack(channels, axis=1)
    exact = subtype is None and path.suffix in (".wav", ".flac")
    soundfile.write(path, pcm(both) if exact else both, rate, subtype=subtype)
    return path


CALLER: tuple[Seconds, ...] = ((0.5, 2.0), (5.0, 6.5), (10.0, 11.5), (15.0, 16.2))
ASSISTANT: tuple[Seconds, ...] = ((2.6, 4.4), (7.1, 9.3), (12.2, 14.1), (16.9, 18.5))
LENGTH = 20.0


def conversation(rate: int = RATE) -> tuple[Floats, Floats]:
    """Four exchanges, latencies 600, 600, 700 and 700 ms, 20 s."""
    caller = talk(CALLER, LENGTH, seed=1, rate=rate)
    return caller, talk(ASSISTANT, LENGTH, seed=2, rate=rate)

"""Somebody's own sounds: a file as a bed, a folder of files as bursts.

A file is mixed to one channel, brought to the rate and made a loop by cross-fading
its end into its start. Nothing is levelled here, and a silent file is no error: it
is a bed that has no effect, and is reported as one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from duplex.beds.tools import Floats
from duplex.errors import InputError
from duplex.inputs import entries
from duplex.wavfile import Wav, read_wav

_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
_FADE_S = 1.0
_LONGEST_S = 300


class Resample(Protocol):
    """Brings samples from one rate to another."""

    def __call__(self, x: Floats, from_hz: int, to_hz: int, *, loop: bool) -> Floats: ...


def is_file(kind: str) -> bool:
    """Whether a kind names a sound file."""
    return kind.lower().endswith(_SUFFIXES)


def is_folder(kind: str) -> bool:
    """Whether a kind names a folder."""
    return "/" in kind or "\\" in kind


def loop(path: str, rate_hz: int, resample: Resample) -> Floats:
    """A file as a seamless loop: up to 300 s of it, its last second over its first."""
    x = _mono(path, rate_hz, resample)
    fade = min(int(_FADE_S * rate_hz), len(x) // 4)
    if fade < 2:
        return x
    t = np.arange(fade, dtype=np.int64) / fade
    head = x[:fade] * np.sqrt(t) + x[len(x) - fade :] * np.sqrt(1.0 - t)
    return np.concatenate((head, x[fade : len(x) - fade]))


def takes(folder: str, rate_hz: int, resample: Resample) -> list[tuple[str, Floats]]:
    """Every sound file of a folder, in order of name."""
    paths = [path for path in entries(Path(folder)) if is_file(path.name)]
    if not paths:
        raise InputError(f"bursts kind {folder}: holds no sound file ({' '.join(_SUFFIXES)})")
    return [(path.stem, _mono(str(path), rate_hz, resample)) for path in paths]


def _mono(path: str, rate_hz: int, resample: Resample) -> Floats:
    wav = read_wav(path)
    if not wav.frames:
        raise InputError(f"noise {path}: holds no samples")
    made = resample(_one_channel(wav), wav.rate_hz, rate_hz, loop=False)
    if not len(made):
        raise InputError(f"noise {path}: holds {wav.frames} samples, too few at {rate_hz} Hz")
    return made


def _one_channel(wav: Wav) -> Floats:
    part = wav.samples[: _LONGEST_S * wav.rate_hz].astype(np.int64)
    total = np.zeros(len(part), np.int64)
    for index in range(wav.channels):
        total += part[:, index]
    mean: Floats = total / wav.channels
    return mean

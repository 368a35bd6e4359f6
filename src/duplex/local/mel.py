"""The log-mel picture of sound that Whisper looks at.

A pure function of samples, in numpy, so that hearing one utterance needs no
audio library. Values follow the published Whisper front end: 16 kHz, 25 ms
Hann windows every 10 ms, 80 Slaney mel bands to 8 kHz, floor 8 decades below
the loudest cell.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

MEL_RATE_HZ = 16_000
FRAMES_PER_SECOND = 100
MAX_FRAMES = 3_000
"""The longest window the model knows (30 s)."""

_HOP = 160
_WINDOW = 400
_BANDS = 80
_KNEE_HZ, _KNEE_MEL = 1_000.0, 15.0
_LOG_STEP = np.log(6.4) / 27.0


def log_mel(samples: Floats, frames: int) -> Floats:
    """Return the (80, ``frames``) picture of ``samples`` (float32, ±1, 16 kHz).

    Shorter input is followed by silence; longer input is cut.
    """
    assert 0 < frames <= MAX_FRAMES, frames
    padded = np.zeros(frames * _HOP, np.float32)
    kept = min(len(samples), len(padded))
    padded[:kept] = samples[:kept]
    padded = np.pad(padded, _WINDOW // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP][:frames]
    spectrum = np.fft.rfft(windows * _hann(), axis=1)
    power = np.square(np.abs(spectrum)).astype(np.float32)
    bands = np.log10(np.maximum(mel_filters() @ power.T, np.float32(1e-10)))
    floored = np.maximum(bands, bands.max() - np.float32(8.0))
    picture: Floats = ((floored + np.float32(4.0)) / np.float32(4.0)).astype(np.float32)
    return picture


@lru_cache(maxsize=1)
def mel_filters() -> Floats:
    """Return the (80, 201) triangular filters, each of equal area (Slaney's mel scale)."""
    bins = np.linspace(0, MEL_RATE_HZ / 2, _WINDOW // 2 + 1)
    top = _KNEE_MEL + np.log(MEL_RATE_HZ / 2 / _KNEE_HZ) / _LOG_STEP
    mels = np.linspace(0, top, _BANDS + 2)
    linear = mels * (_KNEE_HZ / _KNEE_MEL)
    edges = np.where(mels < _KNEE_MEL, linear, _KNEE_HZ * np.exp((mels - _KNEE_MEL) * _LOG_STEP))
    low, mid, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.minimum((bins - low) / (mid - low), (high - bins) / (high - mid))
    filters: Floats = (np.maximum(triangles, 0) * 2 / (high - low)).astype(np.float32)
    return filters


@lru_cache(maxsize=1)
def _hann() -> Floats:
    window: Floats = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)
    return window

"""The sound of a call for the page: FLAC bytes, and the outline of both waveforms.

FLAC because every browser of today plays it, it keeps each sample where it was,
and silence, of which half a conversation consists, costs nothing. Audio is only
read here, never changed.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
import soundfile

from duplex.values import Json
from duplex.wavfile import Pcm

MIME = "audio/flac"
PEAKS_PER_SECOND = 200
_BATCH = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Peaks of one side: one byte a step, the square root of the loudest sample."""

    step: int
    peaks: bytes


def flac(samples: Pcm, rate_hz: int) -> bytes:
    """Encode int16 of shape (frames, channels), lossless."""
    held = io.BytesIO()
    with soundfile.SoundFile(
        held,
        "w",
        samplerate=rate_hz,
        channels=samples.shape[1],
        format="FLAC",
        subtype="PCM_16",
        compression_level=1.0,
    ) as file:
        for start in range(0, len(samples), _BATCH):
            file.write(samples[start : start + _BATCH])
    return held.getvalue()


def outline(samples: Pcm, rate_hz: int) -> Outline:
    """Peaks of one channel, int16 of shape (frames,)."""
    step = max(1, rate_hz // PEAKS_PER_SECOND)
    found = bytearray()
    for start in range(0, len(samples), step * _BATCH // 64):
        part = np.abs(samples[start : start + step * _BATCH // 64].astype(np.int32))
        padded = np.zeros(-(-len(part) // step) * step, np.int32)
        padded[: len(part)] = part
        loudest = padded.reshape(-1, step).max(axis=1)
        found += np.minimum(np.rint(np.sqrt(loudest / 32768) * 255), 255).astype(np.uint8).tobytes()
    return Outline(step=step, peaks=bytes(found))


def outlines_json(samples: Pcm, rate_hz: int) -> dict[str, Json]:
    """Both channels, left the caller, for the page."""
    caller, assistant = (outline(samples[:, side], rate_hz) for side in (0, 1))
    return {
        "per_second": rate_hz / caller.step,
        "caller": base64.b64encode(caller.peaks).decode("ascii"),
        "assistant": base64.b64encode(assistant.peaks).decode("ascii"),
    }

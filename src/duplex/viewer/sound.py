"""The sound of a call for the page: FLAC bytes, and the outline of both waveforms.

FLAC because every browser of today plays it, it keeps each sample where it was,
and silence, of which half a conversation consists, costs nothing. What does not
fit into the page is given at a lower rate, which moves no sample in time. It
never decides how much fits. ``build.py`` drives it.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
import soundfile

from duplex.resample import Resampler
from duplex.values import Json
from duplex.wavfile import Pcm

MIME = "audio/flac"
PEAKS_PER_SECOND = 200
LOWER_RATES_HZ = (16_000, 8_000)
"""Rates for sound that does not fit as it is; speech stays speech at both."""
COARSE_BITS = 9
"""Bits a sample keeps at last: what is that loud all the time hides the difference."""
_BATCH = 1 << 20
_PROBES, _PROBE_S = 12, 5
_SURE = 0.9
"""An estimate this much above the limit is not worth encoding everything for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Peaks of one side: one byte a step, the square root of the loudest sample."""

    step: int
    peaks: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """FLAC for the page; lower in rate, at last coarser in level, where all did not fit."""

    flac: bytes
    rate_hz: int
    bits: int = 16


def fitting(samples: Pcm, rate_hz: int, limit: int) -> Sound | None:
    """The best sound of int16 (frames, channels) in ``limit`` bytes; None when none fits."""
    lower = [rate for rate in LOWER_RATES_HZ if rate < rate_hz]
    lowest = lower[-1] if lower else rate_hz
    for to_hz, bits in (*((rate, 16) for rate in (rate_hz, *lower)), (lowest, COARSE_BITS)):
        if _estimated(samples, rate_hz, to_hz, bits) > limit:
            continue
        found = flac(samples, rate_hz, to_hz, bits)
        if len(found) <= limit:
            return Sound(flac=found, rate_hz=to_hz, bits=bits)
    return None


def _estimated(samples: Pcm, rate_hz: int, to_hz: int, bits: int) -> int:
    """About how long the sound will be, from a part of it; 0 where it is short enough to try."""
    piece = _PROBE_S * rate_hz
    if len(samples) <= _PROBES * piece:
        return 0
    starts = np.linspace(0, len(samples) - piece, _PROBES).astype(int)
    parts = (samples[at : at + piece] for at in starts.tolist())
    probed = sum(len(flac(part, rate_hz, to_hz, bits)) for part in parts)
    return int(_SURE * probed * len(samples) / (_PROBES * piece))


def flac(samples: Pcm, rate_hz: int, to_hz: int | None = None, bits: int = 16) -> bytes:
    """Encode int16 of shape (frames, channels): lossless, or at ``to_hz`` and with fewer bits."""
    held = io.BytesIO()
    to_hz = to_hz or rate_hz
    streams = [Resampler(rate_hz, to_hz) for _ in range(samples.shape[1])]
    with soundfile.SoundFile(
        held,
        "w",
        samplerate=to_hz,
        channels=samples.shape[1],
        format="FLAC",
        subtype="PCM_16",
        compression_level=1.0,
    ) as file:
        for start in range(0, len(samples), _BATCH):
            part = samples[start : start + _BATCH]
            if to_hz != rate_hz:
                part = np.stack([s.push(part[:, at]) for at, s in enumerate(streams)], axis=1)
            file.write(_coarse(part, bits))
        if to_hz != rate_hz:
            tail = np.stack([stream.finish() for stream in streams], axis=1)
            file.write(_coarse(tail, bits))
    return held.getvalue()


def _coarse(samples: Pcm, bits: int) -> Pcm:
    """Levels of fewer bits; FLAC spends nothing on those that are always 0."""
    step = 1 << (16 - bits)
    return samples if step == 1 else (samples // step * step).astype(np.int16)


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

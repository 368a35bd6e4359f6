"""Speech in a whole signal, found by the very code that runs in a live call.

It feeds the engine one side and collects its segments, so a recording measured
again gives what the call gave. It must never answer "no speech" for a failure:
a detector that fails raises. Metrics and the command line drive it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duplex import _core
from duplex.errors import InputError
from duplex.resample import resample
from duplex.values import Span

Pcm = npt.NDArray[np.int16]

DETECTORS = ("rms", "webrtc")
"""Names of the detectors the engine has."""

_BLOCK_S = 10
_OTHER_RATE_HZ = 48_000
_RATES_HZ = {"webrtc": (8_000, 16_000, 24_000, 48_000)}


def webrtc_backend() -> str:
    """Say how the webrtc detector runs here: ``native`` (C function) or ``python``."""
    return "native" if _core.native_webrtc() else "python"


def segments(pcm: Pcm, rate_hz: int, detector: str = "rms") -> list[Span]:
    """Find the voiced runs of ``pcm`` (int16 mono), in samples at ``rate_hz``.

    ``rms`` takes any rate that has a whole number of samples in 20 ms, ``webrtc``
    8, 16, 24 and 48 kHz; signals at other rates are resampled to 48 kHz first,
    and their edges rounded back to samples of their own.

    Raises:
        InputError: no such detector, or a rate that cannot be resampled.
        RuntimeError: the detector failed.
    """
    if detector not in DETECTORS:
        raise InputError(f'detector "{detector}" is not one of {", ".join(DETECTORS)}')
    usable = rate_hz in _RATES_HZ[detector] if detector in _RATES_HZ else rate_hz % 50 == 0
    if usable:
        return _found(pcm, rate_hz, detector)
    moved = _found(resample(pcm, rate_hz, _OTHER_RATE_HZ), _OTHER_RATE_HZ, detector)
    return [
        Span(start=_back(span.start, rate_hz, len(pcm)), end=_back(span.end, rate_hz, len(pcm)))
        for span in moved
    ]


def _found(pcm: Pcm, rate_hz: int, detector: str) -> list[Span]:
    block = _BLOCK_S * rate_hz
    engine = _core.Engine(rate_hz, 1, detector, (0, 0), block)
    spans: list[Span] = []
    pcm = np.ascontiguousarray(pcm)
    for start in range(0, len(pcm), block):
        piece = pcm[start : start + block]
        engine.feed(0, piece)
        engine.advance(len(piece))
        spans += _spans(engine)
    engine.finish()
    return spans + _spans(engine)


def _spans(engine: _core.Engine) -> list[Span]:
    return [
        Span(start=start, end=end)
        for kind, side, start, end in engine.drain()
        if kind == _core.SEGMENT_KIND and side == 0
    ]


def _back(at: int, rate_hz: int, length: int) -> int:
    return min(length, (at * rate_hz + _OTHER_RATE_HZ // 2) // _OTHER_RATE_HZ)

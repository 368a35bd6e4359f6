"""Speech in a whole signal, found by the very code that runs in a live call.

It feeds the engine one side and collects its segments, so a recording measured
again gives what the call gave; ``silero``, an extra, is heard here alone and by
no call. It must never answer "no speech" for a failure: a detector that fails
raises. Metrics and the command line drive it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from duplex import _core, silero
from duplex.edge_width import edge_error
from duplex.errors import InputError
from duplex.resample import Resampler, resample
from duplex.values import UNKNOWN_EDGE, EdgeError, Segment, Side, Span

Pcm = npt.NDArray[np.int16]

ENGINE_DETECTORS = ("edge", "rms", "webrtc")
"""Names of the detectors the engine has."""
SILERO = "silero"
DETECTORS = (*ENGINE_DETECTORS, SILERO)
"""Names of all detectors a recording can be heard with."""

_BLOCK_S = 10
_OTHER_RATE_HZ = 48_000
_RATES_HZ = {
    "edge": tuple(range(8_000, 48_001, 400)),
    "webrtc": (8_000, 16_000, 24_000, 48_000),
    SILERO: (silero.RATE_HZ,),
}


def webrtc_backend() -> str:
    """Say how the webrtc detector runs here: ``native`` (C function) or ``python``."""
    return "native" if _core.native_webrtc() else "python"


def segments(pcm: Pcm, rate_hz: int, detector: str = "rms") -> list[Span]:
    """Find the voiced runs of ``pcm`` (int16 mono), in samples at ``rate_hz``.

    ``rms`` takes any rate that has a whole number of samples in 20 ms, ``edge`` any
    from 8 to 48 kHz that has one in 2.5 ms, ``webrtc`` 8, 16, 24 and 48 kHz;
    signals at other rates are resampled to 48 kHz first, for ``silero`` always to
    16 kHz, and their edges rounded back to samples of their own.

    Raises:
        InputError: no such detector, or a rate that cannot be resampled.
        MissingExtra: ``silero`` is not installed.
        RuntimeError: the detector failed.
    """
    heard_hz = _heard_hz(detector, rate_hz)
    if heard_hz == rate_hz:
        return _found(pcm, rate_hz, detector)
    moved = _found(resample(pcm, rate_hz, heard_hz), heard_hz, detector)
    back = (heard_hz, rate_hz, len(pcm))
    return [Span(start=_back(s.start, *back), end=_back(s.end, *back)) for s in moved]


class Stream:
    """Speech of both sides while their audio passes; any chunking finds the same.

    Rates and detectors are those of :func:`segments`, and so are the edges; ``edge``
    also says how well each is known, and where inside a segment nothing was heard.

    Raises:
        InputError: no such detector, or a rate that cannot be resampled.
        MissingExtra: ``silero`` is not installed.
    """

    def __init__(self, rate_hz: int, detector: str = "rms") -> None:
        self.rate_hz = rate_hz
        self._heard_hz = heard_hz = _heard_hz(detector, rate_hz)
        moved = heard_hz != rate_hz
        self._resamplers = [Resampler(rate_hz, heard_hz) for _ in Side] if moved else None
        self._ears = _SileroEars() if detector == SILERO else _EngineEars(heard_hz, detector)
        self._taken = 0

    def push(self, caller: Pcm, assistant: Pcm) -> list[Segment]:
        """Hear int16 mono of both sides, of one length; return what is over by now."""
        assert len(caller) == len(assistant), (len(caller), len(assistant))
        self._taken += len(caller)
        if self._resamplers is not None:
            streams = self._resamplers
            caller, assistant = streams[0].push(caller), streams[1].push(assistant)
        return self._placed(self._hear(caller, assistant))

    def finish(self) -> list[Segment]:
        """End the audio; return what was still open, cut at the end."""
        last: list[Segment] = []
        if self._resamplers is not None:
            streams = self._resamplers
            last = self._hear(streams[0].finish(), streams[1].finish())
        return self._placed(last + self._ears.finish())

    def _hear(self, caller: Pcm, assistant: Pcm) -> list[Segment]:
        return self._ears.push(caller, assistant)

    def _placed(self, found: list[Segment]) -> list[Segment]:
        """Segments back at the stream's own rate."""
        if self._resamplers is None:
            return found
        return [
            replace(s, span=self._moved(s.span), pauses=tuple(map(self._moved, s.pauses)))
            for s in found
        ]

    def _moved(self, span: Span) -> Span:
        back = (self._heard_hz, self.rate_hz, self._taken)
        return Span(start=_back(span.start, *back), end=_back(span.end, *back))


class _EngineEars:
    """Both sides through one engine, ten seconds at most at a time."""

    def __init__(self, rate_hz: int, detector: str) -> None:
        self._block = _BLOCK_S * rate_hz
        self._engine = _core.Engine(rate_hz, 1, detector, (0, 0), self._block)

    def push(self, caller: Pcm, assistant: Pcm) -> list[Segment]:
        found: list[Segment] = []
        for start in range(0, len(caller), self._block):
            for side, pcm in ((0, caller), (1, assistant)):
                self._engine.feed(side, np.ascontiguousarray(pcm[start : start + self._block]))
            self._engine.advance(min(self._block, len(caller) - start))
            found += self._drained()
        return found

    def finish(self) -> list[Segment]:
        self._engine.finish()
        return self._drained()

    def _drained(self) -> list[Segment]:
        return [
            Segment(
                side=Side(side),
                span=Span(start=start, end=end),
                onset=_error("onset", onset),
                offset=_error("offset", offset),
                pauses=tuple(Span(start=start, end=end) for start, end in pauses),
            )
            for side, start, end, onset, offset, pauses in self._engine.drain_segments()
        ]


class _SileroEars:
    """Both sides, each with a network of its own."""

    def __init__(self) -> None:
        self._ears = {side: silero.SileroEar() for side in Side}

    def push(self, caller: Pcm, assistant: Pcm) -> list[Segment]:
        pair = zip(Side, (caller, assistant), strict=True)
        return [
            found for side, pcm in pair for found in _as_heard(side, self._ears[side].push(pcm))
        ]

    def finish(self) -> list[Segment]:
        return [found for side in Side for found in _as_heard(side, self._ears[side].finish())]


def _as_heard(side: Side, found: list[tuple[int, int]]) -> list[Segment]:
    return [Segment(side=side, span=Span(start=start, end=end)) for start, end in found]


def _error(name: str, edge: tuple[float, bool, bool] | None) -> EdgeError:
    """What the core knows of an edge, in ms."""
    if edge is None:
        return UNKNOWN_EDGE
    deficit_db, masked, unreliable = edge
    return edge_error(name, deficit_db, masked=masked, unreliable=unreliable)


def _heard_hz(detector: str, rate_hz: int) -> int:
    """The rate at which a detector hears: the signal's own where it can."""
    if detector not in DETECTORS:
        raise InputError(f'detector "{detector}" is not one of {", ".join(DETECTORS)}')
    rates = _RATES_HZ.get(detector)
    own = rate_hz % 50 == 0 if rates is None else rate_hz in rates
    return rate_hz if own else silero.RATE_HZ if detector == SILERO else _OTHER_RATE_HZ


def _found(pcm: Pcm, rate_hz: int, detector: str) -> list[Span]:
    if detector == SILERO:
        ear = silero.SileroEar()
        return [Span(start=start, end=end) for start, end in [*ear.push(pcm), *ear.finish()]]
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


def _back(at: int, heard_hz: int, rate_hz: int, length: int) -> int:
    return min(length, (at * rate_hz + heard_hz // 2) // heard_hz)

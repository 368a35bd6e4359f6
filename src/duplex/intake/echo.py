"""Speech of one channel that is only the other channel heard again: echo, crosstalk.

A segment is a copy when it correlates at 0.5 or more with the other channel at
one lag of 0 to 500 ms, the same for at least three segments that make at least
half of that side's speech. Sounds that repeat themselves agree at many lags; of
those, starts and ends must fit as well. A side is never called a copy because
both talk at once. ``listen.py`` drives it and keeps what it lists out of the
segments.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from duplex.intake.sound import Pcm
from duplex.values import Segment, Side, Span

Floats = npt.NDArray[np.float32]
Energies = npt.NDArray[np.float64]

ALIKE = 0.5
LEAST_SEGMENTS = 3
LEAST_SHARE = 0.5
LONGEST_LAG_MS = 500
_KEPT_S = 30
_LONGEST_S = 20
_COARSE_HZ = 4_000
_LAGS = _COARSE_HZ * LONGEST_LAG_MS // 1000
_LONGEST_STEP = 7 * _LAGS
_LENGTHS = tuple(
    sorted(
        size
        for threes in (1, 3, 9, 27)
        for fives in (1, 5, 25, 125)
        for twos in range(4, 15)
        if _LAGS < (size := threes * fives << twos) < 2 * _LONGEST_STEP
    )
)
"""Lengths of windows that transform fast: small primes only."""
_SAME_LAG = _COARSE_HZ * 2 // 1000
_PEAK = _COARSE_HZ * 4 // 1000
_UNIQUE = 0.85
"""Above this share of the peak, a second lag fits as well as the first."""
_COVERED = 0.8
_PIECE = _COARSE_HZ // 50
_STRIDE = _COARSE_HZ // 200
_FAINT = 1e-3
"""Share of a segment's energy that the other side's is taken to have at least."""
_QUIETER = 0.9
_ONSET_S, _END_S = 0.03, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """One segment that is a copy, and how well it fits."""

    span: Span
    correlation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The segments of ``side`` that are the other side's sound, ``lag_ms`` later."""

    side: Side
    lag_ms: float
    gain_db: float
    segments: tuple[Copied, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A segment that fits somewhere; ``curve`` is its correlation per lag in 1/127."""

    span: Span
    curve: npt.NDArray[np.int8]
    gain: float

    def at(self, lag: int, around: int = _SAME_LAG) -> float:
        """The best fit near a lag."""
        near = self.curve[max(0, lag - around) : lag + around + 1].astype(np.int16)
        return float(np.abs(near).max(initial=0)) / 127


class EchoFinder:
    """Hears both sides in step, and is told segments as soon as they are over."""

    def __init__(self, rate_hz: int) -> None:
        self._rate = rate_hz
        self._factor = max(1, rate_hz // _COARSE_HZ)
        self._mean = np.full(self._factor, 1 / self._factor, np.float32)
        self._blocks: list[tuple[int, tuple[Floats, Floats]]] = []
        self._left: tuple[Pcm, Pcm] = (np.zeros(0, np.int16), np.zeros(0, np.int16))
        self._position = 0
        self._found: dict[Side, list[_Candidate]] = {side: [] for side in Side}

    def push(self, caller: Pcm, assistant: Pcm) -> None:
        """Keep the last half minute of both sides, coarsely."""
        whole = [np.concatenate(b) for b in zip(self._left, (caller, assistant), strict=True)]
        count = len(whole[0]) // self._factor
        cut = count * self._factor
        self._left = (whole[0][cut:], whole[1][cut:])
        coarse = [
            pcm[:cut].astype(np.float32).reshape(-1, self._factor) @ self._mean for pcm in whole
        ]
        self._blocks.append((self._position, (coarse[0], coarse[1])))
        self._position += count
        oldest = self._position - _KEPT_S * round(self._coarse_hz)
        while self._blocks and self._blocks[0][0] + len(self._blocks[0][1][0]) < oldest:
            del self._blocks[0]

    def judge(self, segment: Segment) -> None:
        """Compare a segment that is over with the other side."""
        start = segment.span.start // self._factor
        end = min(segment.span.end // self._factor, self._position)
        longest = _LONGEST_S * round(self._coarse_hz)
        start = max(start, end - longest, self._blocks[0][0])
        if end - start < _PIECE:
            return
        own = self._piece(segment.side, start, end)
        other = self._piece(segment.side.other, start - _LAGS, end)
        found = _compared(own, other)
        if found is not None:
            curve, gain = found
            scaled = np.rint(curve * 127).astype(np.int8)
            self._found[segment.side].append(_Candidate(span=segment.span, curve=scaled, gain=gain))

    def echoes(self, segments: Sequence[Segment]) -> tuple[tuple[Echo, ...], tuple[Echo, ...]]:
        """Decide, once all segments are known: what are copies, and what are too few to drop."""
        spans = {side: [s.span for s in segments if s.side is side] for side in Side}
        found = [shared for side in Side if (shared := self._echo(side, spans)) is not None]
        dropped = tuple(echo for echo, share in found if share >= LEAST_SHARE)
        return dropped, tuple(echo for echo, share in found if share < LEAST_SHARE)

    @property
    def _coarse_hz(self) -> float:
        return self._rate / self._factor

    def _piece(self, side: Side, start: int, end: int) -> Floats:
        """Coarse audio ``[start, end)``; zeros before the recording."""
        out = np.zeros(end - start, np.float32)
        for at, block in self._blocks:
            pcm = block[side]
            low, high = max(start, at), min(end, at + len(pcm))
            if low < high:
                out[low - start : high - start] = pcm[low - at : high - at]
        return out

    def _echo(self, side: Side, spans: dict[Side, list[Span]]) -> tuple[Echo, float] | None:
        """The copies on a side at one lag, and their share of its speech."""
        candidates = self._found[side]
        if len(candidates) < LEAST_SEGMENTS:
            return None
        lag, members = self._common(candidates, spans[side.other])
        if lag < _SAME_LAG:  # alike at once: the quieter one is the copy
            members = [c for c in members if c.gain < _QUIETER]
        share = sum(c.span.length for c in members) / sum(s.length for s in spans[side])
        if len(members) < LEAST_SEGMENTS:
            return None
        gain = median(c.gain for c in members)
        copied = tuple(Copied(span=c.span, correlation=round(c.at(lag), 2)) for c in members)
        echo = Echo(
            side=side,
            lag_ms=round(lag * 1000 / self._coarse_hz, 1),
            gain_db=round(20 * math.log10(max(gain, 1e-6)), 1),
            segments=copied,
        )
        return echo, share

    def _common(
        self, candidates: Sequence[_Candidate], others: Sequence[Span]
    ) -> tuple[int, list[_Candidate]]:
        """The lag that most of them share, and those that do."""
        stacked = np.abs(sum(c.curve.astype(np.int32) for c in candidates))
        lag = int(stacked.argmax())
        elsewhere = np.concatenate([stacked[: max(0, lag - _PEAK)], stacked[lag + _PEAK + 1 :]])
        if elsewhere.max(initial=0) <= _UNIQUE * stacked[lag]:
            return lag, [c for c in candidates if c.at(lag) >= ALIKE]
        fitting = [(self._shift(c.span, others), c) for c in candidates]
        lags = [at for at, _ in fitting if at is not None]
        if not lags:
            return 0, []
        lag = round(median(lags))
        near = 2 * _PEAK
        return lag, [
            c
            for at, c in fitting
            if at is not None and abs(at - lag) <= near and c.at(lag, near) >= ALIKE
        ]

    def _shift(self, span: Span, others: Sequence[Span]) -> int | None:
        """Coarse samples from a span of the other side that starts and ends as this one."""
        onset, end = _ONSET_S * self._rate, _END_S * self._rate
        for other in others:
            by = span.start - other.start
            in_reach = -onset <= by <= LONGEST_LAG_MS * self._rate / 1000 + onset
            if in_reach and abs(span.end - other.end - by) <= end:
                return max(0, round(by / self._factor))
        return None


def _compared(own: Floats, other: Floats) -> tuple[Floats, float] | None:
    """Correlation of ``own`` with ``other`` per lag, and the gain at the best one.

    ``other`` starts ``_LAGS`` samples before ``own``. None when no lag fits.
    """
    own, other = own - own.mean(), other - other.mean()
    energy, heard = float(own @ own), float(other @ other)
    if energy <= len(own) or heard < _FAINT * energy / 10:
        return None
    running = np.zeros(len(other) + 1)
    np.cumsum(np.square(other, dtype=np.float64), out=running[1:])
    energies = (running[len(own) :] - running[: _LAGS + 1])[::-1]
    norm = np.sqrt(np.maximum(energies, _FAINT * energy) * energy)
    if not _may_fit(own, running, norm):
        return None
    products = _products(own, other)
    curve = np.clip(products / norm, -1, 1).astype(np.float32)
    lag = int(np.abs(curve).argmax())
    if abs(curve[lag]) < ALIKE or _covered(own, other, lag) < _COVERED:
        return None
    return curve, abs(float(products[lag] / energies[lag]))


def _may_fit(own: Floats, running: Energies, norm: Energies) -> bool:
    """Whether energies leave it open that some lag correlates at ``ALIKE``.

    ``running`` sums the squares of the other side. By Cauchy and Schwarz two pieces have
    no greater product than the roots of their energies; pieces of the other side that are
    a little longer at both ends bound it for the lags in between. This spares the
    transforms of a segment during which the other side is all but silent.
    """
    starts = np.arange(0, len(own), _PIECE)
    mine = np.sqrt(np.add.reduceat(np.square(own, dtype=np.float64), starts))
    each, count = _PIECE // _STRIDE, _LAGS // _STRIDE + 1
    at = np.arange(count + each * (len(mine) - 1)) * _STRIDE
    ends = np.minimum(at + _PIECE + _STRIDE // 2, len(running) - 1)
    theirs = np.sqrt(running[ends] - running[np.maximum(at - _STRIDE // 2, 0)])
    most = np.empty(count)
    for phase in range(each):
        most[phase::each] = np.correlate(theirs[phase::each], mine)
    reach = np.minimum.reduceat(norm[::-1], np.arange(0, _LAGS, _STRIDE))
    least = np.minimum(np.append(reach, reach[-1]), np.append(reach[0], reach))
    return bool((most >= 0.999 * ALIKE * least).any())


def _products(own: Floats, other: Floats) -> Floats:
    """Sums of products per lag: spectra of windows add up, as products do."""
    count = -(-len(own) // _LONGEST_STEP)
    window = _LENGTHS[bisect_left(_LENGTHS, -(-len(own) // count) + _LAGS)]
    step = window - _LAGS
    mine = np.zeros((count, step), np.float32)
    mine.reshape(-1)[: len(own)] = own
    theirs = np.zeros((count, window), np.float32)
    for index, row in enumerate(theirs):
        piece = other[index * step : index * step + window]
        row[: len(piece)] = piece
    spectra = np.fft.rfft(theirs) * np.conj(np.fft.rfft(mine, window))
    found = np.fft.irfft(spectra.sum(axis=0), window)[: _LAGS + 1][::-1]
    return found.astype(np.float32)


def _covered(own: Floats, other: Floats, lag: int) -> float:
    """Share of the energy of ``own`` that lies where the shifted ``other`` sounds."""
    count = len(own) // _PIECE * _PIECE
    shifted = other[_LAGS - lag : _LAGS - lag + count]
    mine = (own[:count] ** 2).reshape(-1, _PIECE).sum(axis=1)
    theirs = (shifted**2).reshape(-1, _PIECE).sum(axis=1)
    return float(mine[theirs > 1e-3 * theirs.max()].sum() / max(mine.sum(), 1e-9))

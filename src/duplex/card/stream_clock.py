"""When the frames of a stream came or went, and how fast its clock runs against ours.

Blocks are handed over late by what the machine and the driver keep them, never early:
of each window the least delayed one is kept, and a Theil-Sen line (Sen 1968) through
those is the stream's own time. So both directions of a card have a time for every
frame, and their difference over a loop is the card's delay. The stream's thread adds,
anybody may ask afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

WINDOW_MS = 500
LEAST_S = 10
"""A drift needs this much of a stream."""
_KEPT = 20_000
_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Parts per million, positive when the card is fast, known to ± two standard errors."""

    ppm: float
    plus_minus_ppm: float


class StreamClock:
    """Frames by when they had come (or were asked for), in seconds of our clock."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._window = WINDOW_MS * rate_hz // 1000
        self._best: list[tuple[int, float]] = []

    def add(self, frames: int, at: float) -> None:
        """``frames`` of the stream were there at ``at``."""
        best = self._best
        new = not best or frames // self._window != best[-1][0] // self._window
        if new and len(best) < _KEPT:
            best.append((frames, at))
        elif at - frames / self.rate_hz < best[-1][1] - best[-1][0] / self.rate_hz:
            best[-1] = (frames, at)

    def restart(self) -> None:
        """Forget what was: a stream that has just begun stands still, or runs ahead, at first."""
        self._best = []

    def time_of(self, frame: float) -> float | None:
        """When ``frame`` was due by the stream's own clock; None before anything came."""
        if not self._best:
            return None
        start, pace = self._line()
        return start + pace * frame / self.rate_hz

    def drift(self) -> Drift | None:
        """How fast it runs; None when it ran for too short a time."""
        nominal, at = self._points()
        if len(nominal) < 4 or nominal[-1] - nominal[0] < LEAST_S:
            return None
        start, pace = self._line()
        off = at - start - pace * nominal
        error = float(off.std()) * math.sqrt(12 / len(off)) / float(nominal[-1] - nominal[0])
        return Drift(ppm=round((1 / pace - 1) * 1e6, 1), plus_minus_ppm=round(2e6 * error, 1))

    def _line(self) -> tuple[float, float]:
        """Start and pace: seconds of ours per second of the stream."""
        nominal, at = self._points()
        pace = 1.0
        if len(nominal) >= 4 and nominal[-1] - nominal[0] >= LEAST_S:
            one, other = np.triu_indices(len(nominal), 1)
            far = nominal[other] - nominal[one] >= LEAST_S / 2
            one, other = one[far], other[far]
            pace = float(np.median((at[other] - at[one]) / (nominal[other] - nominal[one])))
            return float(np.median(at - pace * nominal)), pace
        return float(np.min(at - nominal)), pace

    def _points(self) -> tuple[np.ndarray, np.ndarray]:
        best = self._best[:]
        best = best[:: -(-len(best) // _POINTS)] if best else best
        nominal = np.array([frames for frames, _ in best], np.float64) / self.rate_hz
        return nominal, np.array([at for _, at in best], np.float64)

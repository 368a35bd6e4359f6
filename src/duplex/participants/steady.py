"""One direction between two rates, as much out as went in, tick after tick.

A streaming resampler gives its output in blocks, which would send a peer its
audio in bursts. Here what came out early is kept for a fixed delay, as short as
the resampler's own blocks allow, so that every tick gives exactly its share.
The delay is ours: whoever uses this must count :attr:`SteadyRate.delay`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from duplex.participants.base import Pcm
from duplex.resample import Resampler

_PROBE_MS = 1_000
"""Long enough for a resampler's blocks to come round in every phase."""


@cache
def most_held(from_hz: int, to_hz: int, step_ms: int = 1) -> int:
    """The most output samples that a stream fed ``step_ms`` at a time keeps back."""
    if from_hz == to_hz:
        return 0
    stream, most, given = Resampler(from_hz, to_hz), 0, 0
    step = np.zeros(from_hz * step_ms // 1000, np.int16)
    for count in range(1, _PROBE_MS // step_ms + 1):
        given += len(stream.push(step))
        most = max(most, count * len(step) * to_hz // from_hz - given)
    return most


class SteadyRate:
    """From ``from_hz`` to ``to_hz`` behind a fixed delay; no delay where they are equal."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self.delay = most_held(from_hz, to_hz)
        """Output samples by which everything comes later than it went in."""
        self._from, self._to = from_hz, to_hz
        self._stream = Resampler(from_hz, to_hz)
        self._ready: Pcm = np.zeros(self.delay, np.int16)
        self._taken = 0
        self._given = 0

    def push(self, pcm: Pcm) -> Pcm:
        """Return what is due once ``pcm`` has gone in: its share, to the sample."""
        if self._from == self._to:
            return pcm
        self._taken += len(pcm)
        due = self._taken * self._to // self._from - self._given
        self._given += due
        ready = np.concatenate((self._ready, self._stream.push(pcm)))
        # A tick that the probe did not foresee may find less; it gets the silence it lacks.
        if len(ready) < due:
            lacking = due - len(ready)
            self.delay += lacking
            ready = np.concatenate((np.zeros(lacking, np.int16), ready))
        self._ready = ready[due:]
        return ready[:due]

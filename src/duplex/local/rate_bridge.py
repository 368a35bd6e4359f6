"""Keeps a voice at 24 kHz behind a session at another rate, sample for sample.

Each block in gives a block out of exactly the corresponding length, so a
session's frames never change size. The price is a fixed delay of
``DELAY_MS``, the most a streaming resampler holds back at these rates; the
voice, like a far telephone, simply answers that much later.
"""

from __future__ import annotations

import numpy as np

from duplex.local.seams import Pcm
from duplex.resample import Resampler

DELAY_MS = 80


class RateBridge:
    """One direction, from ``from_hz`` to ``to_hz``."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from, self._to = from_hz, to_hz
        self._stream = Resampler(from_hz, to_hz)
        self._ready: Pcm = np.zeros(to_hz * DELAY_MS // 1000, np.int16)

    def convert(self, pcm: Pcm) -> Pcm:
        """Return ``len(pcm) * to_hz / from_hz`` samples; that must be a whole number."""
        wanted, rest = divmod(len(pcm) * self._to, self._from)
        assert rest == 0, (len(pcm), self._from, self._to)
        ready = np.concatenate((self._ready, self._stream.push(pcm)))
        assert len(ready) >= wanted, "the resampler held back more than its delay"
        self._ready = ready[wanted:]
        return ready[:wanted]

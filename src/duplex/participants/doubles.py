"""Audio that comes twice in a stream whose pieces carry no id.

A peer that sends at the pace of real time cannot send a voiced piece again, byte for
byte, in the time of half a piece, and be ahead of real time with it: that is a
message delivered twice. Silence is never judged. A session's reading drives it.
"""

from __future__ import annotations

import numpy as np

from duplex.participants.base import Pcm

VOICED_LEVEL = 200


class Doubles:
    """One stream at ``wire_hz``, on a clock of ``rate_hz``."""

    def __init__(self, rate_hz: int, wire_hz: int) -> None:
        self._rate = rate_hz
        self._wire = wire_hz
        self._last: Pcm = np.zeros(0, np.int16)
        self._last_at = 0
        self._taken = 0
        self._began: int | None = None

    def is_double(self, pcm: Pcm, arrived_at: int | None) -> bool:
        """Whether ``pcm`` is the piece before it once more; counts it otherwise."""
        if arrived_at is None or not len(pcm):
            return False
        ahead = 0 if self._began is None else self._taken - (arrived_at - self._began)
        half = self.samples(pcm) // 2
        again = arrived_at - self._last_at <= half <= ahead and np.array_equal(pcm, self._last)
        if again and int(np.abs(pcm.astype(np.int32)).max()) > VOICED_LEVEL:
            return True
        # The stream began when its least delayed piece says it did.
        began = arrived_at - self._taken
        self._began = began if self._began is None else min(self._began, began)
        self._taken += self.samples(pcm)
        self._last, self._last_at = pcm, arrived_at
        return False

    def samples(self, pcm: Pcm) -> int:
        """The length of ``pcm`` on the clock."""
        return len(pcm) * self._rate // self._wire

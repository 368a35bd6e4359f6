"""What a participant without ears can tell of the other side: when it speaks, by level.

Follows whole blocks of what is heard: where the present turn of speech began,
where the last sound of it was, and whether there was any yet. It hears levels,
never words. Recordings and scripted callers drive it.
"""

from __future__ import annotations

import numpy as np

from duplex.participants.base import Pcm

SPEECH_RMS = 200.0
"""Blocks louder than this (int16) count as speech."""
BLOCK_MS = 10
TURN_ENDS_MS = 800
"""Silence that ends a turn; pauses between sentences are shorter."""


class OtherSide:
    """The other side's speech, in samples of the call."""

    def __init__(self, rate_hz: int) -> None:
        self._block = BLOCK_MS * rate_hz // 1000
        self._ends = TURN_ENDS_MS * rate_hz // 1000
        self._rest = np.zeros(0, np.int16)
        self._at = 0
        self.began: int | None = None
        """Where the present turn began; None once it has ended."""
        self.last: int | None = None
        """End of the last block of speech; None before the first."""

    def hear(self, pcm: Pcm) -> bool:
        """Take what came next; tell whether there was speech in it."""
        heard = np.concatenate((self._rest, pcm))
        whole = len(heard) - len(heard) % self._block
        spoke = False
        for block in heard[:whole].astype(np.float64).reshape(-1, self._block):
            loud = float(np.sqrt(np.mean(block * block))) > SPEECH_RMS
            spoke = spoke or loud
            self._take(loud)
        self._rest = heard[whole:]
        return spoke

    def quiet(self, samples: int) -> bool:
        """Whether it has been silent for that long, since its last speech or the start."""
        return self._at - (self.last or 0) >= samples

    def _take(self, loud: bool) -> None:
        self._at += self._block
        if loud:
            self.began = self._at - self._block if self.began is None else self.began
            self.last = self._at
        elif self.began is not None and self.quiet(self._ends):
            self.began = None

"""What a speaker does when the other side talks over it: duck, stop, or carry on.

A pure rule over positions (samples of the session), asked once per block, and
the click-free gain that carries it out. Ducked by 12 dB once 200 ms of the
other side's speech overlap; stopped once the overlap has lasted 700 ms from
its back-dated start; back to full level when it ends sooner.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from duplex.local.endpoint import BLOCK
from duplex.local.seams import VOICE_RATE_HZ, Pcm

DUCK_AFTER = VOICE_RATE_HZ // 5
STOP_AFTER = VOICE_RATE_HZ * 7 // 10
OVER_AFTER = VOICE_RATE_HZ // 5
"""Quiet of the other side that ends an overlap."""

_ONE = 1 << 15


class Level(Enum):
    """How loud to speak; the value is a Q15 gain (12 dB down is 8231)."""

    FULL = _ONE
    DUCKED = 8231
    OFF = 0


def level(
    position: int,
    own_start: int,
    their_burst: int,
    their_last: int,
    stop_after: int = STOP_AFTER,
) -> Level:
    """Decide how to go on at ``position``.

    ``own_start`` is where this side began to speak, ``their_burst`` and
    ``their_last`` bound the other side's present stretch of voice; speech stops
    once they have overlapped for ``stop_after``.
    """
    if position - their_last >= OVER_AFTER:
        return Level.FULL
    overlap = their_last - max(own_start, their_burst)
    if overlap >= stop_after:
        return Level.OFF
    return Level.DUCKED if overlap >= DUCK_AFTER else Level.FULL


class Fader:
    """Gain that moves linearly over one block, so that no step is heard."""

    def __init__(self) -> None:
        self.now = Level.FULL

    def apply(self, block: Pcm, target: Level) -> Pcm:
        """Return ``block`` (one block) with the gain moving from the present one to ``target``."""
        if self.now is target is Level.FULL:
            return block
        gain = _ramp(self.now, target)
        self.now = target
        faded: Pcm = ((block.astype(np.int64) * gain + (_ONE >> 1)) >> 15).astype(np.int16)
        return faded


def _ramp(old: Level, new: Level) -> npt.NDArray[np.int64]:
    steps = np.arange(1, BLOCK + 1, dtype=np.int64)
    return old.value + (new.value - old.value) * steps // BLOCK

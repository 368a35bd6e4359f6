"""Where a stream has anything to hear: samples above −60 dBFS, and the pauses between.

One fixed level, no adaptation: it says when audio came or went, never where
speech begins; that is a detector's. It works on whatever pieces a stream comes
in and keeps nothing. The call loop and live sessions drive it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.int16]
Places = npt.NDArray[np.int64]

AUDIBLE = 33
"""Least magnitude of a sample, in int16 steps, that is not silence (−60 dBFS)."""
PAUSE_MS = 200
"""This much silence in a row is a pause."""


def audible_places(pcm: Pcm) -> Places:
    """Indices of the samples that are not silence, shape (n,)."""
    return np.flatnonzero((pcm >= AUDIBLE) | (pcm <= -AUDIBLE))


def is_audible(pcm: Pcm) -> bool:
    """Whether any sample is not silence."""
    return len(pcm) > 0 and bool(pcm.max() >= AUDIBLE or pcm.min() <= -AUDIBLE)

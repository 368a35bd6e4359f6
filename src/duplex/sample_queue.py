"""Samples that wait: added in pieces of any size, taken in others, in order.

It copies only where a piece is cut, and knows no rate and no side. Readers of files drive it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.int16]


class SampleQueue:
    """int16 mono, first in, first out."""

    def __init__(self) -> None:
        self._parts: list[Pcm] = []
        self.waiting = 0

    def add(self, part: Pcm) -> None:
        """Take int16 of shape (n,), which must not change any more."""
        if len(part):
            self._parts.append(part)
            self.waiting += len(part)

    def take(self, count: int) -> Pcm:
        """The next ``count`` samples, which must be waiting."""
        assert count <= self.waiting, (count, self.waiting)
        if not count:
            return np.zeros(0, np.int16)
        whole = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)
        self._parts = [whole[count:]] if len(whole) > count else []
        self.waiting -= count
        return whole[:count]

    def clear(self) -> int:
        """Drop all that waits; returns how much that was."""
        dropped, self._parts, self.waiting = self.waiting, [], 0
        return dropped

"""Sample alignment of a byte stream: odd splits carry the half sample.

Peers cut PCM16 wherever they like. :class:`SampleCarry` hands on whole samples
only and keeps the odd byte for the next piece; what is left at the end is
counted, never played. It knows nothing of messages, rates or sessions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.int16]


class SampleCarry:
    """Joins byte pieces into whole samples of ``width`` bytes (1 or 2)."""

    def __init__(self, width: int = 2) -> None:
        assert width in (1, 2), width
        self._width = width
        self._left = b""
        self.dropped_bytes = 0
        """Bytes that never became a sample, over the life of the stream."""
        self.odd_pieces = 0
        """Pieces that did not hold whole samples."""

    def align(self, data: bytes) -> bytes:
        """Return the whole samples in what was carried plus ``data``."""
        if len(data) % self._width:
            self.odd_pieces += 1
        if self._left:
            data = self._left + data
        odd = len(data) % self._width
        self._left = data[len(data) - odd :] if odd else b""
        return data[: len(data) - odd] if odd else data

    def end(self) -> int:
        """End of the stream: forget the carried byte; return how many were dropped."""
        dropped = len(self._left)
        self._left = b""
        self.dropped_bytes += dropped
        return dropped


def to_bytes(pcm: Pcm) -> bytes:
    """Return int16 samples as little-endian bytes."""
    return pcm.astype("<i2", copy=False).tobytes()


def from_bytes(data: bytes) -> Pcm:
    """Return an even number of little-endian bytes as int16 samples (a copy)."""
    return np.frombuffer(data, dtype="<i2").astype(np.int16)

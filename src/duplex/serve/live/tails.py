"""Files that grow, read on from where one was: whole lines, whole frames.

What a header claims is there, so no more than that is read; a file that is not there
yet, or that a link leads out of its run's folder to, gives nothing. It keeps none open.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from duplex.wavfile import HEADER_BYTES, Pcm

_MOST_BYTES = 8 << 20


class Lines:
    """Lines of a text file that were not given yet."""

    def __init__(self, run: Path, path: Path) -> None:
        self._run = run
        self._path = path
        self._at = 0

    def read(self) -> list[bytes]:
        """The next whole lines, at most 8 MiB of them."""
        try:
            with _opened(self._run, self._path) as file:
                file.seek(self._at)
                found = file.read(_MOST_BYTES)
        except OSError:
            return []
        whole = found.rfind(b"\n") + 1
        # A line longer than all that is read at once is none of ours; it is passed over.
        self._at += whole or (len(found) if len(found) == _MOST_BYTES else 0)
        return found[:whole].splitlines()


class Frames:
    """Frames of a WAV of ours that were not given yet."""

    def __init__(self, run: Path, path: Path, channels: int) -> None:
        self._run = run
        self._path = path
        self._channels = channels
        self._at = 0
        self.rate_hz: int | None = None
        """Known once the file is there."""

    @property
    def position(self) -> int:
        """Frames given or passed over so far."""
        return self._at

    def there(self) -> int:
        """Frames that are there and not given yet."""
        try:
            with _opened(self._run, self._path) as file:
                return max(0, self._declared(file.read(HEADER_BYTES)) - self._at)
        except OSError:
            return 0

    def skip(self, frames: int) -> None:
        self._at += frames

    def read(self, most: int) -> Pcm:
        """The next frames, int16 of shape (n, channels) with ``n <= most``."""
        width = 2 * self._channels
        try:
            with _opened(self._run, self._path) as file:
                count = min(most, self._declared(file.read(HEADER_BYTES)) - self._at)
                if count <= 0:
                    return np.zeros((0, self._channels), np.int16)
                file.seek(HEADER_BYTES + self._at * width)
                raw = file.read(count * width)
        except OSError:
            return np.zeros((0, self._channels), np.int16)
        whole = len(raw) // width
        self._at += whole
        return np.frombuffer(raw, "<i2", whole * self._channels).reshape(-1, self._channels)

    def _declared(self, header: bytes) -> int:
        """Frames that the header says are there; 0 for a file that is not ours."""
        if len(header) < HEADER_BYTES or header[:4] != b"RIFF" or header[36:40] != b"data":
            return 0
        channels, rate_hz = struct.unpack_from("<HI", header, 22)
        (size,) = struct.unpack_from("<I", header, 40)
        if channels != self._channels or not rate_hz:
            return 0
        self.rate_hz = int(rate_hz)
        return int(size) // (2 * self._channels)


def _opened(run: Path, path: Path) -> BinaryIO:
    """A regular file below a run's folder; raises OSError for any other."""
    real = path.resolve(strict=True)
    if not real.is_relative_to(run.resolve(strict=True)) or not real.is_file():
        raise OSError(f"{path.name} is no file of its run")
    return real.open("rb")

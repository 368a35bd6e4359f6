"""libsndfile, for what is no plain 16-bit WAV: opened behind a true header, read straight on.

soundfile asks libsndfile to seek after every block, which in an MP3 leaves a click; here a
file is read from its beginning in any blocks as it is read in one. It rounds nothing and judges
nothing. Readers of files import it when they need it: loading libsndfile takes time.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import soundfile

from duplex.riff import Place

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAILURES = (soundfile.SoundFileError, RuntimeError, ValueError, TypeError, OSError)
"""What libsndfile and its wrapper raise for a file they cannot decode."""


class Decoder(soundfile.SoundFile):  # type: ignore[misc]
    """An open file; only ``read`` with a number of frames goes on where the last one ended."""

    def seekable(self) -> bool:
        """Say no, so that reading never seeks."""
        return False


def open_decoder(path: Path, file: BinaryIO, place: Place | None) -> Decoder:
    """Open what lies at ``place`` of a RIFF file, or any other file; raises FAILURES."""
    decoder = Decoder(str(path) if place is None else _Rebuilt(file, place))
    # Whoever reads an MP3 at once seeks first, and mpg123 rounds otherwise after that.
    decoder.seek(0)
    return decoder


class _Rebuilt(io.RawIOBase):
    """A RIFF file whose header is true: our header, then the audio where it lies."""

    def __init__(self, file: BinaryIO, place: Place) -> None:
        self._file = file
        self._head = place.header
        self._offset = place.offset
        self._size = len(self._head) + place.length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), max(0, self._size - self._at))
        found = self._head[self._at : self._at + wanted]
        if len(found) < wanted:
            self._file.seek(self._offset + self._at + len(found) - len(self._head))
            found += self._file.read(wanted - len(found))
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

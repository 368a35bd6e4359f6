"""WAV files: a writer that survives a kill, a reader that survives bad headers.

The writer appends PCM16 (format tag 1) in batches; after each flush the header
says exactly what is on disk. The reader trusts the bytes that exist, never a
declared size: streamed, oversize and concatenated files give their audio and a
warning, a cut header gives an error. Recordings and WAV participants drive it.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from duplex.errors import DuplexError, InputError
from duplex.inputs import opened, reason
from duplex.riff import MAX_RATE_HZ, PCM, UNKNOWN_SIZE, Place, locate

if TYPE_CHECKING:
    from duplex.decoder import Decoder

Pcm = npt.NDArray[np.int16]

HEADER_BYTES = 44
_BATCH_FRAMES = 1 << 16


class WriteFailed(DuplexError):
    """A file of a recording cannot be written; what was written before stays whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wav:
    """Audio of a file: int16 ``samples`` of shape (frames, channels)."""

    rate_hz: int
    samples: Pcm
    warnings: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        return int(self.samples.shape[0])

    @property
    def channels(self) -> int:
        return int(self.samples.shape[1])

    def channel(self, index: int) -> Pcm:
        """One channel, int16, shape (frames,)."""
        column: Pcm = np.ascontiguousarray(self.samples[:, index])
        return column


# -- writing -------------------------------------------------------------------


class WavWriter:
    """Appends PCM16 to a new file (mode 0600); refuses to replace an old one.

    :meth:`append` only fills a buffer and writes full batches; :meth:`flush`
    writes the rest and then the header, so a header never claims audio that is
    not there. A failed write leaves whole frames and a true header behind.
    """

    def __init__(self, path: str | Path, rate_hz: int, channels: int = 1) -> None:
        assert 0 < rate_hz <= MAX_RATE_HZ, rate_hz
        assert channels in (1, 2), channels
        self.path = Path(path)
        self.rate_hz = rate_hz
        self.channels = channels
        self._buffer: Pcm = np.empty((_BATCH_FRAMES, channels), dtype="<i2")
        self._filled = 0
        self._on_disk = 0
        self._fd = open_private(self.path)
        try:
            self._patch_header()
        except WriteFailed:
            os.close(self._fd)
            self._fd = -1
            # Nothing was written, and a file without a header is no recording.
            with suppress(OSError):
                self.path.unlink()
            raise

    @property
    def frames(self) -> int:
        """Frames appended so far, buffered ones included."""
        return self._on_disk + self._filled

    def append(self, *channels: Pcm) -> None:
        """Append one int16 array of shape (n,) for each channel, all of one length."""
        assert len(channels) == self.channels, (len(channels), self.channels)
        count = len(channels[0])
        assert all(len(pcm) == count for pcm in channels), [len(pcm) for pcm in channels]
        done = 0
        while done < count:
            part = min(count - done, _BATCH_FRAMES - self._filled)
            for index, pcm in enumerate(channels):
                self._buffer[self._filled : self._filled + part, index] = pcm[done : done + part]
            self._filled += part
            done += part
            if self._filled == _BATCH_FRAMES:
                self._write_out()

    def flush(self) -> None:
        """Put everything on disk and let the header say so."""
        self._write_out()
        self._patch_header()

    def close(self) -> None:
        """Flush and close; may be called twice."""
        if self._fd < 0:
            return
        try:
            self.flush()
        finally:
            os.close(self._fd)
            self._fd = -1

    def abandon(self) -> None:
        """Close without writing what is buffered; the file stays as last flushed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_out(self) -> None:
        if not self._filled:
            return
        frame = 2 * self.channels
        data = memoryview(self._buffer[: self._filled].tobytes())
        done = 0
        try:
            while done < len(data):
                at = HEADER_BYTES + self._on_disk * frame + done
                done += os.pwrite(self._fd, data[done:], at)
        except OSError as error:
            self._keep_whole_frames(done // frame)
            raise write_failed(self.path, error) from error
        self._on_disk += self._filled
        self._filled = 0

    def _keep_whole_frames(self, written: int) -> None:
        """After a failed write: keep the frames that fit, the rest stays buffered."""
        self._buffer[: self._filled - written] = self._buffer[written : self._filled].copy()
        self._on_disk += written
        self._filled -= written
        try:
            os.ftruncate(self._fd, HEADER_BYTES + self._on_disk * 2 * self.channels)
            self._patch_header()
        except (OSError, WriteFailed):
            return

    def _patch_header(self) -> None:
        header = wav_header(self._on_disk, self.rate_hz, self.channels)
        try:
            os.pwrite(self._fd, header, 0)
        except OSError as error:
            raise write_failed(self.path, error) from error


def wav_header(frames: int, rate_hz: int, channels: int) -> bytes:
    """The 44 bytes before ``frames`` of PCM16; beyond 4 GiB the sizes say "unknown"."""
    size = frames * 2 * channels
    data = size if size + 36 < UNKNOWN_SIZE else UNKNOWN_SIZE
    riff = size + 36 if data == size else UNKNOWN_SIZE
    block = 2 * channels
    fmt = struct.pack("<HHIIHH", PCM, channels, rate_hz, rate_hz * block, block, 16)
    sized = struct.pack("<I", riff) + b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt
    return b"RIFF" + sized + b"data" + struct.pack("<I", data)


def write_wav(path: str | Path, samples: Pcm, rate_hz: int) -> None:
    """Write int16 samples of shape (n,) or (n, channels) to a new file; all of it or none."""
    columns = (samples[:, None] if samples.ndim == 1 else samples).T
    ours = not os.path.lexists(path)
    try:
        with WavWriter(path, rate_hz, len(columns)) as writer:
            writer.append(*columns)
    except WriteFailed:
        if ours:
            with suppress(OSError):
                os.unlink(path)
        raise


def open_private(path: Path) -> int:
    """Create a file only its owner may read; an existing one is never replaced."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path} exists already, wanted a new file") from None
    except OSError as error:
        raise write_failed(path, error) from error


def write_failed(path: Path, error: OSError) -> WriteFailed:
    """The error for a file that cannot be written, with the reason in words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return WriteFailed(f"{path} cannot be written: {'the disk is full' if full else reason(error)}")


# -- reading -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WavStream:
    """A sound file that is open, read block by block as :func:`read_wav` reads it whole."""

    path: Path
    rate_hz: int
    channels: int
    warnings: tuple[str, ...]
    _file: BinaryIO
    _place: Place | None
    _decoder: Decoder | None

    def blocks(self, frames: int) -> Iterator[Pcm]:
        """Yield int16 of shape (n, channels) with ``0 < n <= frames``; to be asked once."""
        return self._as_it_lies(frames) if self._decoder is None else self._decoded(frames)

    def _as_it_lies(self, frames: int) -> Iterator[Pcm]:
        assert self._place is not None
        width, left = 2 * self.channels, self._place.length
        self._file.seek(self._place.offset)
        while left > 0:
            raw = self._file.read(min(left, frames * width))
            whole = len(raw) - len(raw) % width
            if not whole:
                return
            left -= whole
            yield np.frombuffer(raw, "<i2", whole // 2).reshape(-1, self.channels)

    def _decoded(self, frames: int) -> Iterator[Pcm]:
        assert self._decoder is not None
        while True:
            with _in_words(self.path):
                floats = self._decoder.read(
                    min(frames, _BATCH_FRAMES), dtype="float64", always_2d=True
                )
            if not len(floats):
                return
            scaled = np.nan_to_num(floats * 32768.0, nan=0.0)
            yield np.clip(np.rint(scaled), -32768, 32767).astype(np.int16)


@contextmanager
def open_wav(path: str | Path) -> Iterator[WavStream]:
    """Open a sound file to be read in blocks; raises InputError saying what is wrong with it.

    RIFF/WAVE is walked here, other containers go through libsndfile. Wider formats are
    rounded to 16 bits, floats are clipped at full scale, what is no number is silence.
    """
    path = Path(path)
    with opened(path) as file, ExitStack() as stack:
        place = locate(file, path)
        if place is not None and place.format.tag == PCM and place.format.bits == 16:
            rate_hz, channels, decoder = place.format.rate_hz, place.format.channels, None
        else:
            from duplex.decoder import open_decoder

            with _in_words(path):
                decoder = stack.enter_context(open_decoder(path, file, place))
            rate_hz, channels = int(decoder.samplerate), int(decoder.channels)
        yield WavStream(
            path=path,
            rate_hz=rate_hz,
            channels=channels,
            warnings=() if place is None else place.warnings,
            _file=file,
            _place=place,
            _decoder=decoder,
        )


def read_wav(path: str | Path) -> Wav:
    """Read a sound file as int16, the whole of it; raises as :func:`open_wav` does."""
    with open_wav(path) as stream:
        blocks = list(stream.blocks(sys.maxsize))
        if len(blocks) == 1:
            samples = blocks[0]
        else:
            samples = np.concatenate([np.zeros((0, stream.channels), np.int16), *blocks])
    return Wav(rate_hz=stream.rate_hz, samples=samples, warnings=stream.warnings)


def probe_wav(path: str | Path) -> tuple[int, int, tuple[str, ...]]:
    """Rate in Hz, frames and warnings, as :func:`read_wav` gives them, mostly unread."""
    path = Path(path)
    with opened(path) as file:
        place = locate(file, path)
    if place is None or place.format.bits % 8 or not place.format.bits:
        wav = read_wav(path)
        return wav.rate_hz, wav.frames, wav.warnings
    frames = place.length // (place.format.channels * place.format.bits // 8)
    return place.format.rate_hz, frames, place.warnings


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn what libsndfile has against a file into a sentence."""
    from duplex.decoder import FAILURES

    try:
        yield
    except FAILURES as error:
        reason = str(error).rstrip(".")
        raise InputError(f"{path} is no sound file that can be decoded: {reason}") from error

"""One sound file as a stream of int16 blocks, whatever its container and header.

Plain 16-bit WAV is read as it lies; everything else is decoded by libsndfile,
RIFF files behind a header that says what is really there. Memory does not grow
with the file. It must never guess: a format nobody can decode is an error with
its remedy, and every repair is counted and said. :mod:`~duplex.intake.two_sides`
drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from duplex.errors import InputError
from duplex.inputs import open_file
from duplex.riff import PCM, Place, locate

if TYPE_CHECKING:
    from duplex.decoder import Decoder

Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float32]

LOWEST_RATE_HZ = 8_000
CONVERT = "convert it first: ffmpeg -i FILE out.wav"
_EXACT = frozenset(
    ("PCM_16", "PCM_S8", "PCM_U8", "ULAW", "ALAW", "IMA_ADPCM", "MS_ADPCM", "GSM610")
)
"""Subtypes whose samples are whole int16 values."""
_FLOAT = frozenset({"FLOAT", "DOUBLE"})


@dataclass(slots=True, kw_only=True)
class Repairs:
    """What had to be changed to make int16 of a file's samples.

    ``invalid`` samples were NaN or infinite and count as silence, ``beyond``
    ones lay outside full scale and were held at it; ``peak`` is the largest
    magnitude, 1.0 being full scale.
    """

    invalid: int = 0
    beyond: int = 0
    peak: float = 0.0


@dataclass(slots=True, kw_only=True)
class Sound:
    """An open sound file; close it, or use it in a ``with``.

    ``warnings`` grows while the blocks are read, and so does ``frames``.
    """

    path: Path
    rate_hz: int
    channels: int
    format: str
    warnings: list[str]
    repairs: Repairs = field(default_factory=Repairs)
    frames: int = 0
    _file: BinaryIO
    _place: Place | None = None
    _decoder: Decoder | None = None

    def __enter__(self) -> Sound:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; may be called twice."""
        if self._decoder is not None:
            self._decoder.close()
        self._file.close()

    def blocks(self, frames: int) -> Iterator[Pcm]:
        """Yield int16 of shape (n, channels) with ``n <= frames`` until the file ends."""
        found = self._as_it_lies(frames) if self._decoder is None else self._decoded(frames)
        for block in found:
            self.frames += len(block)
            yield block

    def _as_it_lies(self, frames: int) -> Iterator[Pcm]:
        assert self._place is not None
        left = self._place.length
        self._file.seek(self._place.offset)
        width = 2 * self.channels
        while left > 0:
            raw = self._file.read(min(left, frames * width))
            whole = len(raw) - len(raw) % width
            if not whole:
                self.warnings.append(f"{self.path.name}: shrank while it was read")
                return
            left -= whole
            yield np.frombuffer(raw, "<i2", whole // 2).reshape(-1, self.channels)

    def _decoded(self, frames: int) -> Iterator[Pcm]:
        from duplex.decoder import FAILURES

        assert self._decoder is not None
        decoder, read = self._decoder, 0
        exact = decoder.subtype in _EXACT
        while True:
            try:
                block = decoder.read(frames, dtype="int16" if exact else "float32", always_2d=True)
            except FAILURES as error:
                self._broke_off(read, error)
                return
            if not len(block):
                break
            read += len(block)
            yield block if exact else self._rounded(block)
        told = decoder.frames
        if told - read > self.rate_hz // 2 and told < 1 << 48:
            self.warnings.append(
                f"{self.path.name}: promises {told / self.rate_hz:.3f} s of audio, "
                f"{read / self.rate_hz:.3f} s are there and used"
            )

    def _broke_off(self, read: int, error: Exception) -> None:
        reason = str(error).rstrip(". ").lower() or "the data are damaged"
        if not read:
            raise InputError(f"{self.path} cannot be decoded: {reason}; {CONVERT}") from error
        self.warnings.append(
            f"{self.path.name}: decoding broke off after {read / self.rate_hz:.3f} s; "
            "what follows is not measured"
        )

    def _rounded(self, block: Floats) -> Pcm:
        """Samples to int16; NaN and infinities become silence, loud ones are held."""
        assert self._decoder is not None
        repairs = self.repairs
        if self._decoder.subtype in _FLOAT and not np.isfinite(block.sum(dtype=np.float64)):
            broken = ~np.isfinite(block)
            repairs.invalid += int(broken.sum())
            block[broken] = 0.0
        peak = float(max(block.max(), -block.min()))
        repairs.peak = max(repairs.peak, peak)
        block *= np.float32(32768.0)
        np.rint(block, out=block)
        if peak > 1.0:
            repairs.beyond += int((np.abs(block) > 32768.0).sum())
        np.clip(block, -32768, 32767, out=block)
        return block.astype(np.int16)


def open_sound(path: Path) -> Sound:
    """Open a sound file.

    Raises:
        InputError: it cannot be read or decoded, or its rate is below 8 kHz; the
            message says what mends it.
    """
    file = open_file(path)
    try:
        sound = _open(path, file)
        if sound.rate_hz < LOWEST_RATE_HZ:
            raise InputError(
                f"{path} is at {sound.rate_hz} Hz, wanted at least {LOWEST_RATE_HZ} Hz: "
                "take the recording before it was reduced"
            )
    except BaseException:
        file.close()
        raise
    return sound


def _open(path: Path, file: BinaryIO) -> Sound:
    place = locate(file, path)
    if place is not None and place.format.tag == PCM and place.format.bits == 16:
        return Sound(
            path=path,
            rate_hz=place.format.rate_hz,
            channels=place.format.channels,
            format="WAV, PCM_16",
            warnings=list(place.warnings),
            _file=file,
            _place=place,
        )
    decoder = _decoder(path, file, place)
    return Sound(
        path=path,
        rate_hz=int(decoder.samplerate),
        channels=int(decoder.channels),
        format=f"{decoder.format}, {decoder.subtype}",
        warnings=[] if place is None else list(place.warnings),
        _file=file,
        _decoder=decoder,
    )


def _decoder(path: Path, file: BinaryIO, place: Place | None) -> Decoder:
    # libsndfile is loaded only for what is no plain PCM16.
    from duplex.decoder import FAILURES, open_decoder

    try:
        return open_decoder(path, file, place)
    except FAILURES as error:
        reason = str(error).split(": ", 1)[-1].rstrip(". ").lower()
        raise InputError(
            f"{path} is no sound file that can be decoded: {reason}; {CONVERT}"
        ) from error

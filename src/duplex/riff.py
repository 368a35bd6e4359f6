"""Where the audio of a RIFF/WAVE file lies, whatever its header claims.

The bytes that exist are trusted, never a declared size: streamed, oversize and
concatenated files give the place of their audio and a warning, a cut header an
error. Nothing is decoded here and no more is read than the walk needs.
``wavfile.py`` and the intake of recordings drive it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from duplex.counting import counted
from duplex.errors import InputError

PCM, FLOAT, ALAW, MULAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
UNKNOWN_SIZE = 0xFFFFFFFF
MAX_RATE_HZ = 768_000
MAX_CHANNELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The fmt chunk; ``tag`` is that of the audio itself, also in extensible files."""

    tag: int
    channels: int
    rate_hz: int
    bits: int
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the audio of a RIFF file lies: whole frames from ``offset`` on."""

    format: Format
    offset: int
    length: int
    warnings: tuple[str, ...]

    @property
    def header(self) -> bytes:
        """A true header: followed by the audio's bytes it makes a whole file."""
        body = self.length + self.length % 2
        start = chunk(b"fmt ", self.format.raw)
        data = min(self.length, UNKNOWN_SIZE)
        size = min(4 + len(start) + 8 + body, UNKNOWN_SIZE)
        whole = b"WAVE" + start + b"data" + struct.pack("<I", data)
        return b"RIFF" + struct.pack("<I", size) + whole


def chunk(name: bytes, body: bytes) -> bytes:
    """One chunk with its size and, if its length is odd, its padding."""
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def locate(file: BinaryIO, path: Path) -> Place | None:
    """Find format and audio of a RIFF file; None when it is none."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(12)
    if len(start) < 12:
        raise InputError(f"{path} holds {size} bytes, too few for a sound file")
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        return None
    found: Format | None = None
    data: tuple[int, int] | None = None
    for name, at, declared in _chunks(file, size):
        if name == b"fmt " and found is None:
            found = _parse_format(file.read(min(declared, 64, size - at)), path)
        elif name == b"data" and data is None:
            data = (at, declared)
        if found is not None and data is not None:
            break
    if found is None:
        raise InputError(f"{path}: the header ends before a whole fmt chunk")
    if data is None:
        raise InputError(f"{path}: no data chunk within its {size} bytes")
    length, warnings = _data_length(file, *data, size)
    frame = found.channels * max(1, found.bits // 8)
    if length % frame:
        warnings.append(f"dropped {counted(length % frame, 'byte')} after the last whole frame")
    said = tuple(f"{path.name}: {text}" for text in warnings)
    return Place(format=found, offset=data[0], length=length - length % frame, warnings=said)


def _chunks(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Walk (name, offset of the body, declared size); leaves the file at the body."""
    at = 12
    while at + 8 <= size:
        file.seek(at)
        name, declared = struct.unpack("<4sI", file.read(8))
        yield name, at + 8, declared
        at += 8 + declared + declared % 2


def _parse_format(raw: bytes, path: Path) -> Format:
    if len(raw) < 16:
        raise InputError(f"{path}: the header ends inside its fmt chunk")
    tag, channels, rate_hz, _, _, bits = struct.unpack("<HHIIHH", raw[:16])
    if tag == EXTENSIBLE and len(raw) >= 26:
        (tag,) = struct.unpack("<H", raw[24:26])
    if not 0 < channels <= MAX_CHANNELS:
        raise InputError(f"{path}: {channels} channels, wanted 1 to {MAX_CHANNELS}")
    if not 0 < rate_hz <= MAX_RATE_HZ:
        raise InputError(f"{path}: a rate of {rate_hz} Hz, wanted 1 to {MAX_RATE_HZ}")
    return Format(tag=tag, channels=channels, rate_hz=rate_hz, bits=bits, raw=raw)


def _data_length(file: BinaryIO, offset: int, declared: int, size: int) -> tuple[int, list[str]]:
    """How many bytes of audio there are, and what the header said wrongly."""
    left = max(0, size - offset)
    end = offset + declared + declared % 2
    followed = end >= size or _chunk_starts(file, end, size)
    plausible = declared > 0 or left == 0 or _chunks_fill(file, offset, size)
    if declared <= left and followed and plausible:
        return declared, []
    # Bytes past a size that is not 0 may be the rest of a killed recording: leave them.
    known = 0 < declared <= left
    length = _up_to_next_file(file, offset, declared if known else left)
    if length == declared:
        return declared, []
    what = (
        "a streamed size" if declared == UNKNOWN_SIZE else f"{counted(declared, 'byte')} of audio"
    )
    return length, [f"the header declares {what}, found and used {counted(length, 'byte')}"]


def _chunk_starts(file: BinaryIO, at: int, size: int) -> bool:
    """Whether a chunk that fits, or another file, starts at ``at``."""
    file.seek(at)
    head = file.read(8)
    if len(head) < 8 or not all(0x20 <= byte < 0x7F for byte in head[:4]):
        return False
    return head[:4] == b"RIFF" or at + 8 + int.from_bytes(head[4:], "little") <= size + 1


def _chunks_fill(file: BinaryIO, at: int, size: int) -> bool:
    """Whether what follows is a chain of chunks that ends with the file."""
    while at + 8 <= size and _chunk_starts(file, at, size):
        file.seek(at + 4)
        declared = int.from_bytes(file.read(4), "little")
        at += 8 + declared + declared % 2
    return at in (size, size + 1)


def _up_to_next_file(file: BinaryIO, offset: int, left: int) -> int:
    """Bytes until the header of a WAV that was appended to this one."""
    file.seek(offset)
    seen, tail = 0, b""
    while seen < left and (block := file.read(min(1 << 20, left - seen))):
        hay = tail + block
        at = hay.find(b"WAVEfmt ")
        while at >= 0:
            if at >= 8 and hay[at - 8 : at - 4] == b"RIFF":
                return seen - len(tail) + at - 8
            at = hay.find(b"WAVEfmt ", at + 1)
        seen += len(block)
        tail = hay[-15:]
    return left

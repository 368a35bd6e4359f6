"""A ``.tar.gz`` of somebody's source, read into memory: no path of it is ever made on disk.

Every length is bounded before anything of that length is read: packed and unpacked size,
how much one byte may become, entries, names, depth, extended headers. Links are left out;
an absolute path, ``..``, a device, a sparse file or a header that does not add up is no
archive for us. Archives within it stay bytes. Uploads and generation drive it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from duplex.errors import InputError
from duplex.inputs import opened

PACKED_BYTES = 50 << 20
UNPACKED_BYTES = 256 << 20
KEPT_BYTES = 8 << 20
"""What is kept of all files; each may have ``FILE_BYTES``."""
FILE_BYTES = 256 << 10
RATIO = 100
RATIO_FROM_BYTES = 4 << 20
"""From here on, unpacked may not be more than ``RATIO`` times what was packed."""
MOST_ENTRIES = 20_000
MOST_DEPTH = 32
MOST_MEMBERS = 64
LONGEST_NAME = 1024
EXTENDED_BYTES = 64 << 10
_BLOCK = 512
_CHUNK = 64 << 10
_NAME = "the archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Regular files by path; ``files`` is how many there were, kept or not."""

    texts: dict[str, str]
    files: int


def read_source(path: Path, wanted: Callable[[str], bool]) -> Source:
    """Read the whole archive; of the files whose path is ``wanted`` those that are text are kept.

    Raises InputError for what is no such archive, or is larger than it may be.
    """
    texts: dict[str, str] = {}
    files, left = 0, KEPT_BYTES
    with opened(path, _NAME) as file:
        tape = _Tape(file)
        for entry in _entries(tape):
            files += 1
            kept = entry.size <= min(FILE_BYTES, left) and wanted(entry.path)
            data = tape.take(entry.size, kept=kept)
            tape.take(-entry.size % _BLOCK, kept=False)
            text = None if data is None else _text(data)
            if text is not None:
                left -= entry.size
                texts[entry.path] = text
    if not files:
        raise InputError(f"{_NAME} holds no file")
    return Source(texts=texts, files=files)


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: str
    size: int


class _Tape:
    """The unpacked bytes in order, each piece asked for by its length."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacker = zlib.decompressobj(wbits=31)
        self._packed = 0
        self._unpacked = 0
        self._rest = b""
        self._ready = bytearray()
        self._members = 1

    def take(self, length: int, *, kept: bool = True) -> bytes | None:
        """The next ``length`` bytes, or None for those that are skipped; raises InputError."""
        found = bytearray()
        while length > 0:
            if not self._ready and not self._more():
                raise InputError(f"{_NAME} is cut off")
            piece = self._ready[:length]
            del self._ready[:length]
            length -= len(piece)
            if kept:
                found += piece
        return bytes(found) if kept else None

    def _more(self) -> bool:
        """Unpack one more piece; false at the end."""
        while not self._ready:
            if self._unpacker.eof:
                # Another member may follow, as when archives were joined.
                self._rest = self._unpacker.unused_data
                if not self._rest and not self._refill():
                    return False
                self._members += 1
                if self._members > MOST_MEMBERS:
                    raise InputError(f"{_NAME} was joined of more than {MOST_MEMBERS} archives")
                self._unpacker = zlib.decompressobj(wbits=31)
            elif not self._rest and not self._refill():
                return False
            try:
                self._ready += self._unpacker.decompress(self._rest, _CHUNK)
            except zlib.error:
                raise InputError(f"{_NAME} is no .tar.gz that can be unpacked") from None
            self._rest = self._unpacker.unconsumed_tail
            self._unpacked += len(self._ready)
            self._bounded()
        return True

    def _refill(self) -> bool:
        self._rest = self._file.read(_CHUNK)
        self._packed += len(self._rest)
        return bool(self._rest)

    def _bounded(self) -> None:
        if self._unpacked > UNPACKED_BYTES:
            raise InputError(f"{_NAME} unpacks to more than {UNPACKED_BYTES >> 20} MiB")
        if self._unpacked > RATIO_FROM_BYTES and self._unpacked > RATIO * self._packed:
            raise InputError(f"{_NAME} unpacks to more than {RATIO} times its size")


@dataclass(slots=True)
class _Extended:
    """What headers said of the entry that follows them."""

    path: str | None = None
    size: int | None = None
    seen: int = 0


def _entries(tape: _Tape) -> Iterator[_Entry]:
    """Each regular file; whoever iterates takes its bytes and what pads them."""
    said = _Extended()
    for _ in range(MOST_ENTRIES + 1):
        header = tape.take(_BLOCK)
        assert header is not None
        if not any(header):
            return
        _check(header)
        kind, size = header[156:157], _number(header[124:136])
        if kind in (b"L", b"x", b"K", b"g"):
            _extend(said, kind, size, tape)
            continue
        size = size if said.size is None else said.size
        path = _clean(said.path if said.path is not None else _own_name(header))
        said = _Extended()
        if kind in (b"0", b"\0", b"7") and path:
            yield _Entry(path=path, size=size)
        elif kind not in (b"1", b"2", b"5"):
            raise InputError(f"{_NAME} holds what is neither a file, a folder nor a link: {path}")
    raise InputError(f"{_NAME} holds more than {MOST_ENTRIES} entries")


def _check(header: bytes) -> None:
    blank = header[:148] + b" " * 8 + header[156:]
    if _number(header[148:156]) != sum(blank):
        raise InputError(f"{_NAME} has a header that does not add up")


def _number(told: bytes) -> int:
    """A number of a header: octal, or binary where the first bit is set."""
    if told[0] & 0x80:
        return _size(int.from_bytes(bytes([told[0] & 0x7F]) + told[1:], "big"))
    digits = told.split(b"\0", 1)[0].strip()
    if digits.strip(b"01234567"):
        raise InputError(f"{_NAME} has a header that is no number")
    return _size(int(digits or b"0", 8))


def _size(value: int) -> int:
    # A negative one, which is binary too, is too large like any other.
    if value > UNPACKED_BYTES:
        raise InputError(f"{_NAME} has an entry of more than {UNPACKED_BYTES >> 20} MiB")
    return value


def _own_name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:262] == b"ustar" else b""
    # Old GNU headers keep times where others keep a prefix.
    if prefix and header[257:265] != b"ustar  \0":
        name = prefix + b"/" + name
    return _decoded(name)


def _decoded(name: bytes) -> str:
    if len(name) > LONGEST_NAME:
        raise InputError(f"{_NAME} has a name of more than {LONGEST_NAME} bytes")
    return name.decode("utf-8", "replace")


def _extend(said: _Extended, kind: bytes, size: int, tape: _Tape) -> None:
    """Take an extended header; one that speaks for all entries may only comment."""
    said.seen += 1
    if size > EXTENDED_BYTES or said.seen > 4:
        raise InputError(f"{_NAME} has an extended header of more than {EXTENDED_BYTES} bytes")
    data = tape.take(size)
    tape.take(-size % _BLOCK, kept=False)
    assert data is not None
    if kind == b"L":
        said.path = _decoded(data.split(b"\0", 1)[0])
        return
    for key, value in () if kind == b"K" else _records(data):
        if key.startswith(b"GNU.sparse") or (kind == b"g" and key in (b"path", b"size")):
            raise InputError(
                f"{_NAME} has a header {key.decode('ascii', 'replace')}, not read here"
            )
        if key == b"path":
            said.path = _decoded(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 12:
                raise InputError(f"{_NAME} has a size that is no number")
            said.size = _size(int(value))


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The ``length key=value`` lines of an extended header."""
    at = 0
    while at < len(data):
        length, blank, _ = data[at : at + 8].partition(b" ")
        if not blank or not length.isdigit() or not 0 < int(length) <= len(data) - at:
            raise InputError(f"{_NAME} has an extended header that cannot be read")
        key, _, value = data[at + len(length) + 1 : at + int(length)].partition(b"=")
        yield key, value.removesuffix(b"\n")
        at += int(length)


def _clean(name: str) -> str:
    """A path below the archive's root; empty for the root itself. Raises InputError."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    drive = len(name) > 1 and name[1] == ":"
    if name.startswith("/") or "\\" in name or ".." in parts or drive:
        raise InputError(f"{_NAME} has a path that leads out of it: {name[:100]}")
    if len(parts) > MOST_DEPTH:
        raise InputError(f"{_NAME} is nested deeper than {MOST_DEPTH} folders")
    return "/".join(parts)

"""One upload, taken as it comes: form fields first, a ticket among them, then the file.

The body goes to disk piece by piece and never whole into memory. Before a ticket that is
wanted has been shown nothing is written and hardly anything read; size, time between two
pieces and the whole are bounded. It knows forms and nothing of runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from duplex.serve.archive import PACKED_BYTES
from duplex.serve.refusals import Refusal

FIELDS_BYTES = 16 * 1024
"""What all fields before the file may have, with their headers."""
PIECE_SECONDS = 10.0
WHOLE_SECONDS = 600.0
_MOST_FIELDS = 32
_BEHIND_BYTES = 64 * 1024
"""What may stand after the file, and around everything."""

Admit = Callable[[Mapping[str, str]], Path]
"""Given the fields, says where the file goes; raises Refusal for a wrong ticket."""


class Form:
    """A multipart form read piece by piece; the file is written where ``admit`` says."""

    def __init__(self, boundary: bytes, admit: Admit) -> None:
        self._admit = admit
        self._fields: dict[str, str] = {}
        self._read = 0
        self._header = bytearray()
        self._headers: dict[str, bytes] = {}
        self._value = bytearray()
        self._name = ""
        self._file: BinaryIO | None = None
        self.path: Path | None = None
        self.size = 0
        self.whole = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begun,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_over,
                "on_headers_finished": self._headers_over,
                "on_part_data": self._data,
                "on_part_end": self._over,
                "on_end": self._end,
            },
        )

    def take(self, data: bytes) -> None:
        """The next piece; raises Refusal."""
        self._read += len(data)
        if self._read > PACKED_BYTES + FIELDS_BYTES + _BEHIND_BYTES:
            raise _too_large()
        try:
            self._parser.write(data)
        except FormParserError:
            raise _invalid("the body is no multipart form") from None
        # A piece may hold the last field and the first of the file.
        if self.path is None and self._read > FIELDS_BYTES:
            raise _invalid(f"more than {FIELDS_BYTES} bytes stand before the file")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def _behind(self) -> bool:
        """Whether the file is over: what follows counts for nothing."""
        return self.path is not None and self._file is None

    def _begun(self) -> None:
        self._headers, self._value = {}, bytearray()
        if len(self._fields) > _MOST_FIELDS:
            raise _invalid(f"the form has more than {_MOST_FIELDS} fields")

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        if not self._behind:
            self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        if not self._behind:
            self._value += data[start:end]

    def _header_over(self) -> None:
        name = self._header.decode("latin-1").lower()
        self._headers[name] = bytes(self._value)
        self._header, self._value = bytearray(), bytearray()

    def _headers_over(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if self._name == "file" and self.path is None:
            self.path = self._admit(self._fields)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._behind:
            return
        if self._file is None:
            self._value += data[start:end]
            return
        self.size += end - start
        if self.size > PACKED_BYTES:
            raise _too_large()
        self._file.write(data[start:end])

    def _over(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        elif self.path is None:
            self._fields[self._name] = self._value.decode("utf-8", "replace")

    def _end(self) -> None:
        self.whole = True


async def received(headers: Mapping[str, str], pieces: AsyncIterator[bytes], admit: Admit) -> Path:
    """Take an upload; the file lies where ``admit`` said. Raises Refusal, and leaves nothing."""
    kind, options = parse_options_header(headers.get("content-type", "").encode("latin-1"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise _invalid("the body is no multipart/form-data with a boundary")
    said = headers.get("content-length", "")
    if said.isdigit() and int(said[:20]) > PACKED_BYTES + FIELDS_BYTES + _BEHIND_BYTES:
        raise _too_large()
    form = Form(boundary, admit)
    try:
        await _taken(form, pieces)
        if form.path is None:
            raise _invalid("the form has no file")
        if not form.whole:
            raise _invalid("the form is cut off")
        return form.path
    except BaseException:
        form.close()
        if form.path is not None:
            with suppress(OSError):
                form.path.unlink()
        raise


async def _taken(form: Form, pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(PIECE_SECONDS):
            while form.path is None:
                if (piece := await anext(pieces, None)) is None:
                    return
                form.take(piece)
        async with asyncio.timeout(WHOLE_SECONDS):
            while True:
                async with asyncio.timeout(PIECE_SECONDS):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                form.take(piece)
    except TimeoutError:
        raise Refusal(408, "DeadlineExceeded", "the upload took too long") from None


def _invalid(message: str) -> Refusal:
    return Refusal(400, "InvalidArgument", message)


def _too_large() -> Refusal:
    return Refusal(413, "InvalidArgument", f"the archive has more than {PACKED_BYTES} bytes")

"""Private values that were written before anybody knew them, hidden once a call is over.

A caller says a number before a tool is handed it, and a transcript comes in pieces that
end in mid-value. So a call's events are read back once, when all values are known, and
written anew, whole or not at all. The recorder drives it, only where fields are private.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from duplex.inputs import read_bytes
from duplex.private_fields import PrivateFields
from duplex.redact import Redactor
from duplex.values import Json
from duplex.wavfile import open_private, write_failed

_ENVELOPE = ("seq", "at", "received_at", "side", "type")
_PIECES = ("transcript", "utterance")


def hide_again(path: Path, redactor: Redactor) -> None:
    """Write the events at ``path`` anew without what is private.

    Raises WriteFailed when the disk gives out, InputError when they cannot be read; the
    old file then stays.
    """
    private = redactor.private
    assert private is not None, "nothing is private"
    lines = read_bytes(path).splitlines()
    records = [_record(line) for line in lines]
    _join_pieces(records, private)
    text = "".join(
        json.dumps(_cleaned(record, redactor), allow_nan=False) + "\n" for record in records
    )
    _replace(path, text.encode("ascii"))


def _record(line: bytes) -> dict[str, Json]:
    found: Json = json.loads(line)
    assert isinstance(found, dict), "events are objects"
    return found


def _join_pieces(records: Sequence[dict[str, Json]], private: PrivateFields) -> None:
    """Hide what lies across the pieces of one side's running text."""
    streams: dict[str, list[dict[str, Json]]] = {}
    for record in records:
        if record.get("type") in _PIECES and isinstance(record.get("text"), str):
            name = f"{record['type']} {record.get('side')} {record.get('direction')}"
            streams.setdefault(name, []).append(record)
    for pieces in streams.values():
        texts = [str(piece["text"]) for piece in pieces]
        for piece, text in zip(pieces, private.hide_across(texts), strict=True):
            piece["text"] = text


def _cleaned(record: dict[str, Json], redactor: Redactor) -> dict[str, Json]:
    head = {name: record[name] for name in _ENVELOPE if name in record}
    rest = {name: value for name, value in record.items() if name not in head}
    return {**head, **redactor.fields(rest)}


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with os.fdopen(open_private(beside), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise write_failed(path, error) from error

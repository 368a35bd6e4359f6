"""What was said in a stored call, line by line, as its transcript file has it.

A call without a transcript, or with one that cannot be read, said nothing that
anybody knows of. Reading only.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from duplex.errors import DuplexError
from duplex.inputs import exists, read_text
from duplex.run_folder import RunFolder

_BYTES = 64 << 20


class SaidLine(BaseModel):
    """One line; ``role`` is ``assistant``, or ``user`` for the caller."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: str
    text: str
    start_ms: float | None = None
    end_ms: float | None = None
    action: str | None = None


_LINES = TypeAdapter(list[SaidLine])


def said_in(folder: Path, call_id: str) -> list[SaidLine]:
    """The lines of a call, in the order of their beginnings."""
    path = RunFolder(folder).transcript(call_id)
    if not exists(path):
        return []
    try:
        lines = _LINES.validate_json(read_text(path, limit=_BYTES))
    except (DuplexError, ValidationError):
        return []
    return sorted(lines, key=lambda line: line.start_ms or 0.0)

"""The journal of a run: what was asked for and what became of every attempt.

One JSON object a line, appended and forced to disk before anybody is told; the
first line is there before anything else of the run is. It is the truth of a run:
``results.json`` is derived from it, and a run is taken up again by it. A line cut
off by a kill is set aside, and its call counts as not held.
"""

from __future__ import annotations

import json
import os
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from duplex.clock import utc_now
from duplex.errors import InputError
from duplex.inputs import exists, read_bytes
from duplex.values import Json
from duplex.wavfile import write_failed

NAME = "journal.jsonl"
ASIDE = "journal.damaged"
VERSION = 1
_BYTES = 1 << 30

Ending = Literal["completed", "failed", "timed_out", "cancelled"]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Opening(_Line):
    """The first line: the run as it was asked for, nothing of it secret.

    ``options`` are those that were given; ``scenarios`` maps each id to the
    SHA-256 of what it said; ``calls`` lists the plan's test cases in order. A run
    whose options held a secret is not ``resumable``.
    """

    type: Literal["run"] = "run"
    version: int = VERSION
    created_at: str
    options: dict[str, JsonValue]
    scenarios: dict[str, str]
    calls: list[str]
    criteria: list[dict[str, JsonValue]]
    ci: dict[str, str] = {}
    resumable: bool = True


class Began(_Line):
    """An attempt is about to be held."""

    type: Literal["began"] = "began"
    case: str
    attempt: int
    call: str
    at: str


class Ended(_Line):
    """An attempt is over and its own folder complete; ``final``: none will follow."""

    type: Literal["ended"] = "ended"
    case: str
    attempt: int
    call: str
    at: str
    final: bool


class Over(_Line):
    """A runner left: all calls were held, or why not."""

    type: Literal["over"] = "over"
    at: str
    status: Ending
    reason: str = ""


Entry = Began | Ended | Over
_KINDS: dict[str, type[Began] | type[Ended] | type[Over]] = {
    "began": Began,
    "ended": Ended,
    "over": Over,
}


@dataclass(slots=True, kw_only=True)
class Told:
    """What a journal tells: its opening and what followed, damaged lines left out."""

    opening: Opening
    began: dict[str, Began] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    over: Over | None = None
    damaged: list[bytes] = field(default_factory=list)
    _attempts: dict[str, list[Ended]] = field(init=False, default_factory=dict)

    def take(self, entry: Entry) -> None:
        match entry:
            case Began():
                self.began[entry.call] = entry
                self.over = None
            case Ended():
                again = self.ended.get(entry.call)
                self.ended[entry.call] = entry
                mine = self._attempts.setdefault(entry.case, [])
                if again is not None:
                    self._attempts[again.case].remove(again)
                insort(mine, entry, key=lambda one: one.attempt)
            case Over():
                self.over = entry

    def attempts(self, case: str) -> Sequence[Ended]:
        """Finished attempts at a test case, first to last."""
        return self._attempts.get(case, [])


class Journal:
    """A run's journal, open for appending; every method returns once it is on disk."""

    def __init__(self, folder: Path, told: Told) -> None:
        self._path = folder / NAME
        self.told = told
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise write_failed(self._path, error) from error

    @classmethod
    def create(cls, folder: Path, opening: Opening) -> Journal:
        """Write the first line of a new journal."""
        path = folder / NAME
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _put(file, opening)
            finally:
                os.close(file)
        except OSError as error:
            raise write_failed(path, error) from error
        return cls(folder, Told(opening=opening))

    @classmethod
    def reopen(cls, folder: Path) -> Journal:
        """Take up a journal; what a kill left half written is set aside first."""
        told = read(folder)
        if told.damaged:
            _set_aside(folder, told)
        return cls(folder, told)

    def began(self, case: str, attempt: int, call: str) -> None:
        self._append(Began(case=case, attempt=attempt, call=call, at=utc_now()))

    def ended(self, case: str, attempt: int, call: str, *, final: bool) -> None:
        self._append(Ended(case=case, attempt=attempt, call=call, at=utc_now(), final=final))

    def over(self, status: Ending, reason: str = "") -> None:
        self._append(Over(at=utc_now(), status=status, reason=reason))

    def close(self) -> None:
        os.close(self._file)

    def _append(self, entry: Entry) -> None:
        try:
            _put(self._file, entry)
        except OSError as error:
            raise write_failed(self._path, error) from error
        self.told.take(entry)


def is_run(folder: Path) -> bool:
    """Whether a folder has a journal at all."""
    return exists(folder / NAME)


def read(folder: Path) -> Told:
    """Read a journal; raises InputError when its first line is none."""
    path = folder / NAME
    if not exists(path):
        raise InputError(f"run {folder} has no {NAME}")
    first, *rest = read_bytes(path, f"journal {path}", limit=_BYTES).split(b"\n")
    try:
        opening = Opening.model_validate_json(first)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"journal {path}: line 1: {where} {problem['msg'].lower()}") from None
    if opening.version != VERSION:
        raise InputError(f"journal {path} has version {opening.version}, want {VERSION}")
    told = Told(opening=opening)
    for line in rest:
        entry = _entry(line)
        if entry is not None:
            told.take(entry)
        elif line.strip():
            told.damaged.append(line)
    return told


def _entry(line: bytes) -> Entry | None:
    """One line; None when it is damaged."""
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kind = _KINDS.get(str(value.get("type"))) if isinstance(value, dict) else None
    if kind is None:
        return None
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None


def _put(file: int, line: _Line) -> None:
    whole = line.model_dump_json().encode() + b"\n"
    while whole:
        whole = whole[os.write(file, whole) :]
    os.fsync(file)


def _set_aside(folder: Path, told: Told) -> None:
    """Keep damaged lines beside the journal, and the journal whole without them."""
    path = folder / NAME
    lines: Sequence[_Line] = (told.opening, *told.began.values(), *told.ended.values())
    if told.over is not None:
        lines = (*lines, told.over)
    beside = path.with_name(f".{NAME}.tmp")
    try:
        with (folder / ASIDE).open("ab") as aside:
            aside.write(b"\n".join(told.damaged) + b"\n")
        with beside.open("wb") as file:
            file.write(b"".join(line.model_dump_json().encode() + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise write_failed(path, error) from error

"""Runs that were created over HTTP, from the request on: what was asked, and what became of it.

A folder each beside the runs, hidden from them: ``record.json``, the scenarios of the run,
and an uploaded archive for as long as it is wanted. The files are the truth, so servers may
share a folder and be started anew. A run that waits an hour for its source has failed, and
one whose scenarios nobody is writing any more has too. It begins nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from duplex.clock import utc_seconds
from duplex.errors import DuplexError, InputError
from duplex.inputs import exists, read_bytes
from duplex.run_folder import RunFolder, make_private
from duplex.run_lock import RunLock, is_running
from duplex.serve.refusals import Refusal
from duplex.serve.requests import CreateBody, precondition

FOLDER = ".simulations"
PENDING_SECONDS = 3600.0
MOST_PENDING = 20
KEPT_SECONDS = 45 * 86_400.0
"""How long a run that never began is remembered: as far as lists look back."""
ARCHIVE = "source.tar.gz"
_UPLOAD = "upload-"
_RECORD = "record.json"
_RECORD_BYTES = 1 << 20
_INTERRUPTED = "the server stopped while scenarios were written"
_UNCONFIRMED = "no source was uploaded and confirmed within an hour"

State = Literal["pending", "generating", "begun", "failed", "cancelled"]


class Record(BaseModel):
    """One run as it was created. ``run`` is its folder once it has begun.

    Times are seconds since the epoch; ``ticket`` is the SHA-256 of what an upload must bring.
    ``body`` holds no scenarios: those have a file of their own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    id: str
    project: str
    made: float
    state: State
    body: CreateBody
    ticket: str = ""
    uploaded: bool = False
    run: str | None = None
    description: str = ""
    error: str = ""
    ended: float | None = None

    @property
    def generated(self) -> bool:
        """Whether its scenarios are written by a model."""
        return self.body.scenarioGroup is None

    def ends(self, state: State, at: float, error: str = "") -> Record:
        return self.model_copy(update={"state": state, "ended": at, "error": error})


class Simulations:
    """The records below a folder of runs, for many threads at once."""

    def __init__(self, runs: Path, now: Callable[[], float] = utc_seconds) -> None:
        self._folder = runs.absolute() / FOLDER
        self._now = now
        self._lock = Lock()
        self._known: dict[str, tuple[tuple[int, int, int], Record]] = {}

    def all(self) -> list[Record]:
        """Every record as it stands now."""
        with self._lock:
            self._look()
            found = [record for _, record in self._known.values()]
        return [self._as_it_stands(record) for record in found]

    def by_id(self, id: str) -> Record | None:
        return next((one for one in self.all() if one.id == id), None)

    def place(self, record: Record) -> Path:
        return self._folder / record.id

    def now(self) -> float:
        return self._now()

    def create(self, project: str, body: CreateBody, state: State) -> tuple[Record, str]:
        """A new record, and the ticket of its upload. Raises Refusal when too many wait."""
        waiting = [one for one in self.all() if one.state == "pending"]
        if state == "pending" and len(waiting) >= MOST_PENDING:
            raise Refusal(
                429, "ResourceExhausted", f"{MOST_PENDING} runs wait for a source; confirm one"
            )
        ticket = secrets.token_urlsafe(32)
        group = body.scenarioGroup
        kept = None if group is None else group.model_copy(update={"scenarios": []})
        record = Record(
            id=f"SR_{secrets.token_hex(6)}",
            project=project,
            made=self._now(),
            state=state,
            body=body.model_copy(update={"scenarioGroup": kept}),
            ticket=_digest(ticket),
        )
        make_private(self._folder)
        make_private(self.place(record))
        self.put(record)
        return record, ticket

    def put(self, record: Record) -> None:
        """Write a record as it is now."""
        place = RunFolder(self.place(record))
        place.write_json(place.path / _RECORD, record.model_dump(mode="json"))

    def remove(self, record: Record) -> None:
        shutil.rmtree(self.place(record), ignore_errors=True)

    def upload_path(self, record: Record) -> Path:
        """Where an upload goes until it was read."""
        return self.place(record) / f"{_UPLOAD}{secrets.token_hex(6)}.tmp"

    def forget_source(self, record: Record) -> None:
        """Take away what was uploaded, and what a server that was killed had of it."""
        with suppress(OSError), os.scandir(self.place(record)) as entries:
            for entry in entries:
                if entry.name == ARCHIVE or entry.name.startswith(_UPLOAD):
                    os.unlink(entry.path)

    def tidy(self, runs: Path) -> None:
        """Forget runs whose folder is gone, and those that came to nothing long ago."""
        old = self._now() - KEPT_SECONDS
        for record in self.all():
            gone = record.run is not None and not exists(runs / record.run)
            over = record.state in ("failed", "cancelled") or (
                record.state == "begun" and record.run is None
            )
            if gone or (over and record.made < old):
                self.remove(record)

    def admits(self, id: str, ticket: str) -> Record | None:
        """The record that waits for the upload which brings this ticket; None for any other."""
        record = self.by_id(id)
        wanted = _digest("") if record is None else record.ticket
        same = hmac.compare_digest(_digest(ticket), wanted)
        waits = record is not None and record.state == "pending" and not record.uploaded
        return record if same and waits else None

    def claim(self, record: Record) -> tuple[Record, RunLock]:
        """Have a record to oneself, read anew. Raises Refusal unless it is pending."""
        lock = RunLock()
        try:
            lock.take(self.place(record))
        except DuplexError:
            raise precondition("the run is not pending") from None
        with self._lock:
            self._look()
            _, current = self._known.get(record.id, (None, record))
        current = self._expired(current)
        if current.state != "pending":
            lock.release()
            raise precondition("the run is not pending")
        return current, lock

    def _as_it_stands(self, record: Record) -> Record:
        if record.state == "generating" and not is_running(self.place(record)):
            # Whoever wrote may have finished since the record was read.
            current = self._read(self.place(record)) or record
            if current.state != "generating":
                return current
            self.forget_source(record)
            return record.ends("failed", record.made, _INTERRUPTED)
        return self._expired(record)

    def _expired(self, record: Record) -> Record:
        end = record.made + PENDING_SECONDS
        if record.state != "pending" or self._now() < end:
            return record
        self.forget_source(record)
        return record.ends("failed", end, _UNCONFIRMED)

    def _look(self) -> None:
        """Read what changed since the last look; damaged records are left out."""
        if not exists(self._folder):
            self._known.clear()
            return
        stamps = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = os.stat(os.path.join(entry.path, _RECORD))
                    stamps[entry.name] = (about.st_mtime_ns, about.st_size, about.st_ino)
        for name in self._known.keys() - stamps.keys():
            del self._known[name]
        for name, stamp in stamps.items():
            if name in self._known and self._known[name][0] == stamp:
                continue
            self._known.pop(name, None)
            record = self._read(self._folder / name)
            if record is not None and record.id == name:
                self._known[name] = (stamp, record)

    def _read(self, place: Path) -> Record | None:
        try:
            return Record.model_validate_json(read_bytes(place / _RECORD, limit=_RECORD_BYTES))
        except (InputError, ValidationError):
            return None


def _digest(ticket: str) -> str:
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()

"""The runs of LiveKit's shape: those of the store, and those created that have no folder yet.

A run that was created over HTTP keeps the id its creator was given, and the name, pipeline
and limits that were asked for; everything else is said by its folder. Reading only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from duplex.exports import livekit
from duplex.exports.livekit_ids import run_id, some
from duplex.serve.library import Library
from duplex.serve.refusals import Refusal
from duplex.serve.requests import CreateBody
from duplex.serve.simulations import Record, Simulations
from duplex.store import Row
from duplex.values import Json

_KEPT = 64
_STATUSES = {
    "running": "STATUS_RUNNING",
    "completed": "STATUS_COMPLETED",
    "cancelled": "STATUS_CANCELLED",
}
_AT_THE_END = ("endedAt", "issueCount")
_WAITING = {
    "pending": "STATUS_PENDING_UPLOAD",
    "generating": "STATUS_GENERATING",
    "cancelled": "STATUS_CANCELLED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run: its folder's row, the record of its creation, or both."""

    id: str
    made: datetime
    row: Row | None
    record: Record | None

    @property
    def status(self) -> str:
        if self.row is not None:
            return _STATUSES.get(self.row.status, "STATUS_FAILED")
        assert self.record is not None
        return _WAITING.get(self.record.state, "STATUS_FAILED")

    @property
    def agent(self) -> str:
        """The name it was created with, else what its assistant is called."""
        asked = self.record.body.agentName if self.record is not None else ""
        return asked or (self.row.agent if self.row is not None else "")

    @property
    def over(self) -> bool:
        unfinished = ("STATUS_PENDING_UPLOAD", "STATUS_GENERATING", "STATUS_RUNNING")
        return self.status not in unfinished


class Entries:
    """Every run, and each as a document; those asked for last are kept while nothing changed."""

    def __init__(self, library: Library, simulations: Simulations) -> None:
        self.library = library
        self.simulations = simulations
        self._lock = Lock()
        self._kept: OrderedDict[str, dict[str, Json]] = OrderedDict()

    def all(self) -> list[Entry]:
        """Newest first; damaged runs are left out."""
        records = self.simulations.all()
        begun = {one.run: one for one in records if one.run is not None}
        found = []
        for row in self.library.rows():
            record = begun.get(row.id)
            made = _made(row) if record is None else _moment(record.made)
            if made is not None and row.status != "damaged":
                id = run_id(row.id) if record is None else record.id
                found.append(Entry(id=id, made=made, row=row, record=record))
        for record in records:
            if record.state != "begun":
                made = _moment(record.made)
                found.append(Entry(id=record.id, made=made, row=None, record=record))
        return sorted(found, key=lambda one: (one.made, _name(one)), reverse=True)

    def by_id(self, id: str) -> Entry:
        """A run by its id here, or its folder's; raises Refusal."""
        for one in self.all():
            own = one.row is not None and id in (run_id(one.row.id), one.row.id)
            if one.id == id or own:
                return one
        raise Refusal(404, "NotFound", "there is no such run")

    def run(self, entry: Entry, project: str) -> dict[str, Json]:
        """``SimulationRun``, as far as it is known."""
        if entry.row is None:
            assert entry.record is not None
            return _waiting(entry.record, entry.status, project)
        run = self._document(entry.row)["run"]
        assert isinstance(run, dict)
        run = {**run, "projectId": project, "status": entry.status}
        if not entry.over:
            # Its files may be ahead of the row that lists and summaries go by.
            run = {name: one for name, one in run.items() if name not in _AT_THE_END}
        return run if entry.record is None else run | _asked(entry.record, run)

    def summary(self, entry: Entry) -> dict[str, Json] | None:
        found = None if entry.row is None else self._document(entry.row).get("summary")
        return found if isinstance(found, dict) else None

    def _document(self, row: Row) -> dict[str, Json]:
        """``{"version", "run", "summary"?}`` of a run's folder."""
        key = f"{row.id} {self.library.stamp(row)}"
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            place = self.library.place(row).path
            found = livekit.report(self.library.subject(row), place)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return found


def _waiting(record: Record, status: str, project: str) -> dict[str, Json]:
    """A run that has no folder."""
    ended = None if record.ended is None else _stamp(record.ended)
    return {
        **some(
            id=record.id,
            projectId=project,
            status=status,
            error=record.error,
            endedAt=ended,
            numSimulations=record.body.numSimulations,
            mode="SIMULATION_MODE_AUDIO",
        ),
        **_about(record),
    }


def _asked(record: Record, run: Mapping[str, Json]) -> dict[str, Json]:
    """What the creation of a run says over what its folder says."""
    told = {"id": record.id, **_about(record)}
    group = run.get("scenarioGroup")
    if isinstance(group, dict) and record.body.scenarioGroup is not None:
        own = record.body.scenarioGroup
        told["scenarioGroup"] = {**group, **some(name=own.name, id=own.id)}
    jobs = run.get("jobs")
    if record.generated and isinstance(jobs, list):
        # Scenarios that were written have no file that they could be found in again.
        told["jobs"] = [_without_id(job) for job in jobs]
    return told


def _without_id(job: Json) -> Json:
    assert isinstance(job, dict)
    return {name: value for name, value in job.items() if name != "scenarioId"}


def _about(record: Record) -> dict[str, Json]:
    body = record.body
    return some(
        createdAt=_stamp(record.made),
        agentName=body.agentName,
        agentDescription=record.description,
        concurrency=body.concurrency or None,
        ci=_ci(body),
    )


def _ci(body: CreateBody) -> Json:
    return None if body.ci is None else some(**body.ci.model_dump())


def _name(entry: Entry) -> str:
    return entry.id if entry.row is None else entry.row.id


def _made(row: Row) -> datetime | None:
    try:
        return aware(row.created_at)
    except ValueError:
        return None


def aware(text: str) -> datetime:
    """A time with its zone; one without is of UTC. Raises ValueError."""
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _stamp(seconds: float) -> str:
    return _moment(seconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")

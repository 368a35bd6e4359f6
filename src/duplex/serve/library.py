"""The runs as requests find them: by id or UUID, judged as far as they have come.

Ids are looked up among the rows of the store and never made into paths. A run in
progress is read from its journal and its calls' own folders, so that nothing that has
landed is missing; one that was cut off is told as failed. Reading only.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from duplex import conditions
from duplex.about_run import configuration
from duplex.clock import wall_seconds
from duplex.errors import InputError
from duplex.exports.roark import run_uuid
from duplex.exports.subject import Subject, subject_of
from duplex.inputs import exists
from duplex.journal import NAME as JOURNAL
from duplex.journal import Opening, Told
from duplex.journal import read as read_journal
from duplex.options import RunOptions, make
from duplex.plan import plan_id
from duplex.results import schema
from duplex.results.run import build_run
from duplex.results.stored import load_results
from duplex.run_folder import RunFolder
from duplex.run_lock import is_running
from duplex.serve.refusals import Refusal
from duplex.stopping import NAME as STOP
from duplex.store import Row, Store
from duplex.taking_up import stored_result
from duplex.values import Json

_FRESH_SECONDS = 0.2
_KEPT = 16
SETTLED = ("completed", "failed", "timed_out", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run at one moment. ``told`` is None for a run from before there were journals."""

    row: Row
    told: Told | None
    stopping: bool

    @classmethod
    def settled(cls, row: Row) -> Seen:
        """A run that is over, of which a list needs no more than its row."""
        return cls(row=row, told=None, stopping=False)

    @property
    def running(self) -> bool:
        return self.row.status == "running"

    def in_progress(self) -> list[tuple[str, int, str]]:
        """Calls that began and have not ended, while the run goes on: case, attempt, call."""
        if self.told is None or not self.running:
            return []
        ended = self.told.ended
        return [
            (one.case, one.attempt, one.call)
            for one in self.told.began.values()
            if one.call not in ended
        ]

    def waiting(self) -> list[str]:
        """Test cases of which no attempt has begun, while the run goes on."""
        if self.told is None or not self.running:
            return []
        begun = {one.case for one in self.told.began.values()}
        return [case for case in self.told.opening.calls if case not in begun]


class Library:
    """The runs below one folder, for many readers at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = Store(folder)
        self._lock = Lock()
        self._rows: list[Row] = []
        self._read_at: float | None = None
        self._subjects: OrderedDict[str, Subject] = OrderedDict()

    def rows(self) -> list[Row]:
        """Every run, newest first; readers at the same moment share one look."""
        with self._lock:
            now = wall_seconds()
            if self._read_at is None or now - self._read_at > _FRESH_SECONDS:
                self._rows = [_planned(self.folder, row) for row in self._store.rows()]
                self._read_at = wall_seconds()
            return self._rows

    def changed(self) -> None:
        """Look again at the next request."""
        with self._lock:
            self._read_at = None

    def by_id(self, id: str) -> Row:
        """A run by its id; raises Refusal."""
        found = next((row for row in self.rows() if row.id == id), None)
        if found is None:
            raise Refusal(404, "run_not_found", "there is no such run")
        return found

    def by_uuid(self, uuid: str, *, param: str | None = None) -> Row:
        """A run by its UUID or its id; raises Refusal."""
        for row in self.rows():
            if row.id == uuid or run_uuid(row.id) == uuid.lower():
                return row
        raise Refusal(404, "resource_not_found", "there is no such run", param=param)

    def place(self, row: Row) -> RunFolder:
        return RunFolder(self.folder / row.id)

    def seen(self, row: Row) -> Seen:
        place = self.place(row).path
        told = read_journal(place) if exists(place / JOURNAL) else None
        return Seen(row=row, told=told, stopping=exists(place / STOP))

    def number(self, row: Row) -> int | None:
        """The run's place among those of the folder, the oldest being 1."""
        dated = [one.id for one in self.rows() if one.created_at]
        return len(dated) - dated.index(row.id) if row.id in dated else None

    def before(self, row: Row) -> Row | None:
        """The plan's settled run before this one."""
        for one in self.rows():
            older = (one.created_at, one.id) < (row.created_at, row.id)
            if older and one.plan_id == row.plan_id and one.status in SETTLED and row.plan_id:
                return one
        return None

    def subject(self, row: Row, baseline: Row | None = None, *, named: bool = False) -> Subject:
        """A run judged so far, held against ``baseline``.

        Raises Refusal when it cannot be compared with one that was ``named``.
        """
        key = "\n".join(f"{one.id} {self.stamp(one)}" for one in (row, baseline) if one)
        key = f"{self.number(row)}\n{key}"
        with self._lock:
            if key in self._subjects:
                self._subjects.move_to_end(key)
                return self._subjects[key]
        found = self._judged(row, baseline, named=named)
        with self._lock:
            self._subjects[key] = found
            while len(self._subjects) > _KEPT:
                self._subjects.popitem(last=False)
        return found

    def _judged(self, row: Row, baseline: Row | None, *, named: bool) -> Subject:
        run = self.results(row)
        number = self.number(row)
        if baseline is None:
            return subject_of(run, number=number)
        try:
            return subject_of(run, self.results(baseline), number=number)
        except InputError as error:
            if named:
                raise Refusal(400, "not_comparable", str(error), param="compareToJobId") from None
            return subject_of(run, number=number)

    def results(self, row: Row) -> schema.Run:
        """A run's results as far as they have landed."""
        if row.status == "damaged":
            raise Refusal(409, "run_damaged", row.problem or "the run's files cannot be read")
        place = self.place(row)
        told = self.seen(row).told
        if told is None:
            return load_results(place.results)
        run = load_results(place.results) if exists(place.results) else _begun(place, told.opening)
        return run if _is_final(run) and told.over is not None else _so_far(run, place, told, row)

    def stamp(self, row: Row) -> str:
        """What tells that something of a run changed."""
        marks = [row.status]
        for name in ("results.json", JOURNAL):
            try:
                about = (self.folder / row.id / name).stat()
            except OSError:
                continue
            marks.append(f"{about.st_mtime_ns}:{about.st_size}:{about.st_ino}")
        return " ".join(marks)


def _so_far(run: schema.Run, place: RunFolder, told: Told, row: Row) -> schema.Run:
    """Results with what landed since they were written, and the status the run has now."""
    listed = {_call_of(result) for result in run.results}
    landed = [
        result
        for entry in told.ended.values()
        if entry.call not in listed
        if (result := stored_result(place, entry.call)) is not None
    ]
    plan = run.run.duplex.get("plan")
    known = plan if isinstance(plan, dict) else {}
    now: dict[str, Json] = dict(known)
    if row.status == "running":
        now |= {"status": "running", "ended_at": None}
    elif told.over is not None:
        now |= {"status": told.over.status, "ended_at": told.over.at}
    else:
        last = [entry.at for entry in told.began.values()]
        last += [entry.at for entry in told.ended.values()]
        now |= {"status": "failed", "ended_at": max(last, default=told.opening.created_at)}
    info = run.run.model_copy(update={"duplex": {**run.run.duplex, "plan": now}})
    return run.model_copy(update={"run": info, "results": [*run.results, *landed]})


def _is_final(run: schema.Run) -> bool:
    """Whether results were written once the run was over; those from before plans always were."""
    plan = run.run.duplex.get("plan")
    return not isinstance(plan, dict) or plan.get("status") != "running"


def _call_of(result: schema.Result) -> str:
    case = result.duplex.get("case")
    return str(case.get("call_id")) if isinstance(case, dict) else result.scenario_id


def _begun(place: RunFolder, opening: Opening) -> schema.Run:
    """A run of which no result has landed."""
    options = options_of(opening)
    plan: dict[str, Json] = {
        "id": _plan_of(options, opening),
        "name": _data(opening).stem,
        "status": "running",
        "created_at": opening.created_at,
        "started_at": opening.created_at,
        "ended_at": None,
        "expected": len(opening.calls),
        "pass_rate": options.pass_rate,
        "criteria": list(opening.criteria),
        "sweep": None,
        "ci": dict(opening.ci),
    }
    return build_run(
        [],
        run_id=place.id,
        execution_mode="live" if options.clock == "wall" else "offline",
        dataset=str(_data(opening)),
        configuration=configuration(
            options,
            {options.first_speaker or "caller"},
            [conditions.parse(options.condition)],
        ),
        duplex={"plan": plan},
    )


def options_of(opening: Opening) -> RunOptions:
    """A run's options as its journal has them; those left whole where some had to be hidden."""
    given: Mapping[str, object] = dict(opening.options)
    try:
        return make(dict(given))
    except InputError:
        kept = {name: given[name] for name in ("clock", "samples", "pass_rate") if name in given}
        return make(kept)


def _plan_of(options: RunOptions, opening: Opening) -> str:
    return plan_id(options, _data(opening), sorted(opening.scenarios))


def _data(opening: Opening) -> Path:
    return Path(str(opening.options.get("data", "scenarios")))


def _planned(folder: Path, row: Row) -> Row:
    """A row with what the store does not say: a plan without results, a run still being judged."""
    if row.status == "damaged":
        return row
    place = folder / row.id
    unjudged = row.ended_at is None or not exists(place / "results.json")
    if row.status in SETTLED and unjudged and is_running(place):
        row = replace(row, status="running", passed=None, ended_at=None)
    if row.plan_id:
        return row
    try:
        opening = read_journal(place).opening
    except InputError:
        return row
    return replace(row, plan_id=_plan_of(options_of(opening), opening))


def strict(value: Mapping[str, Json] | Sequence[Json]) -> bytes:
    """Strict JSON, as every answer is sent."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")

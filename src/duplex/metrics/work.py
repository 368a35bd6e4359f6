"""Life cycle of delegated work: when is something being done for the caller?

Replays work events in time order and answers with the spans in which a client
delegation, a backend run, a tool call, an owed follow-up run or an unclaimed
managed delegation was open (contract 2.0, rule 10). It judges nothing and
never raises on an odd order: unknown ids and late starts have a meaning here.
The contract metrics drive it. ``""`` means that an id is absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from duplex.metrics.intervals import Run, Runs, clip, merge


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A delegation was handed out, to the client or to a managed backend."""

    t_ms: int
    kind: Literal["client", "managed"]
    id: str
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The client finished a delegation."""

    t_ms: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A backend run began; ``prev`` is the run it continues."""

    t_ms: int
    run: str
    id: str = ""
    prev: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A backend run ended."""

    t_ms: int
    run: str
    outcome: Literal["ok", "failed", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call began."""

    t_ms: int
    call: str
    run: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A tool call ended, well or not."""

    t_ms: int
    call: str
    run: str = ""
    id: str = ""


WorkEvent = Opened | Closed | RunStarted | RunEnded | CallStarted | CallEnded


def bounds_observation(event: WorkEvent) -> bool:
    """Whether the event shows that the call was still observed at its time."""
    return not (isinstance(event, RunEnded) and event.outcome == "incomplete")


def active_work(events: Iterable[WorkEvent], end_ms: int) -> Runs:
    """Spans with open work; what stays open lasts to ``end_ms``.

    Events are replayed by time; those of one time keep the order given.
    """
    work = _Work()
    spans: list[Run] = []
    since: int | None = None
    for event in sorted(events, key=lambda e: e.t_ms):
        work.take(event)
        if since is None and work.active:
            since = event.t_ms
        elif since is not None and not work.active:
            spans.append((since, event.t_ms))
            since = None
    if since is not None:
        spans.append((since, end_ms))
    return clip(merge(spans), 0, end_ms)


_RunKey = tuple[str, str]
"""A run's name and "", or "" and the owner for work that names no run."""


class _Work:
    """What is open now. Owner is a delegation id, "" when there is none."""

    def __init__(self) -> None:
        self.clients: set[str] = set()
        self.closed_clients: set[str] = set()
        self.managed: set[str] = set()
        self.waiting: dict[str, None] = {}
        self.runs: dict[str, str] = {}
        self.calls: dict[tuple[str, str], str] = {}
        self.owed: dict[_RunKey, str] = {}
        # What has been: it voids late starts and keeps a run from owing twice.
        self.owner_of: dict[str, str] = {}
        self.ended_runs: set[str] = set()
        self.failed_runs: set[str] = set()
        self.ended_calls: set[tuple[str, str]] = set()
        self.followed: set[str] = set()

    @property
    def active(self) -> bool:
        return bool(self.clients or self.waiting or self.runs or self.calls or self.owed)

    def take(self, event: WorkEvent) -> None:
        match event:
            case Opened(kind="client"):
                if event.id not in self.closed_clients:
                    self.clients.add(event.id)
            case Opened():
                self._open_managed(event)
            case Closed():
                self._close(event.id)
            case RunStarted():
                self._start_run(event.run, event.id, event.prev)
            case RunEnded():
                self._end_run(event)
            case CallStarted():
                self._start_call(event)
            case CallEnded():
                self._end_call(event)

    def _open_managed(self, event: Opened) -> None:
        self.managed.add(event.id)
        if not event.run:
            self.waiting[event.id] = None
        elif event.run in self.runs:
            self.runs[event.run] = self.owner_of[event.run] = event.id
        else:
            self._start_run(event.run, event.id, "")

    def _close(self, id_: str) -> None:
        self.clients.discard(id_)
        self.closed_clients.add(id_)
        if not id_:
            return
        self.runs = {run: owner for run, owner in self.runs.items() if owner != id_}
        self.calls = {call: owner for call, owner in self.calls.items() if owner != id_}
        self.owed = {run: owner for run, owner in self.owed.items() if owner != id_}

    def _start_run(self, run: str, id_: str, prev: str) -> None:
        if run and (run in self.owner_of or run in self.ended_runs):
            return
        self._settle_owed(id_, prev)
        owner = self._claim(id_)
        self.runs[run] = owner
        if run:
            self.owner_of[run] = owner

    def _claim(self, id_: str) -> str:
        """Take the waiting delegation that a starting run serves; its owner."""
        if id_ and id_ in self.waiting:
            del self.waiting[id_]
        elif not id_ and len(self.waiting) == 1 and not self.runs:
            return self.waiting.popitem()[0]
        return id_

    def _settle_owed(self, id_: str, prev: str) -> None:
        """A starting run pays the follow-ups it continues."""
        if prev:
            self.owed.pop((prev, ""), None)
            self.followed.add(prev)
        if id_:
            paid = [run for run, owner in self.owed.items() if owner == id_]
        elif not prev and self._only_one_owed():
            paid = list(self.owed)
        else:
            paid = []
        for run in paid:
            del self.owed[run]
            self.followed.add(run[0])

    def _only_one_owed(self) -> bool:
        others = self.clients or self.waiting or self.runs or self.calls
        return len(self.owed) == 1 and not others

    def _end_run(self, event: RunEnded) -> None:
        self.runs.pop(event.run, None)
        if not event.run:
            return
        self.ended_runs.add(event.run)
        if event.outcome != "ok":
            self.failed_runs.add(event.run)
            self.calls = {key: o for key, o in self.calls.items() if key[0] != event.run}
            self.owed.pop((event.run, ""), None)

    def _start_call(self, event: CallStarted) -> None:
        key = (event.run, event.call)
        if key in self.ended_calls or event.run in self.failed_runs:
            return
        self.calls[key] = self._call_owner(event)

    def _end_call(self, event: CallEnded) -> None:
        key = (event.run, event.call)
        started = self.calls.pop(key, None) is not None
        if event.call:
            self.ended_calls.add(key)
        elif not started:
            return
        owner = self._call_owner(event)
        served = not owner or owner in self.managed
        past = event.run and (event.run in self.followed or event.run in self.failed_runs)
        if served and not past:
            self.owed[(event.run, "") if event.run else ("", owner)] = owner

    def _call_owner(self, event: CallStarted | CallEnded) -> str:
        return event.id or self.owner_of.get(event.run, "")

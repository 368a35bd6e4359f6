"""What a call left behind that graders may look at, in milliseconds.

Built from the event log alone, so a stored call grades exactly as a live one.
It judges nothing: what was not observed is empty or None, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duplex.metrics.intervals import merge
from duplex.metrics.labels import with_actions
from duplex.recording import BackendUsage, Fault, Recording, extract
from duplex.values import SESSION_RATE_HZ, Action, Event, Json, Side, Span, ToolCall, Utterance

GROUP_GAP_MS = 500
"""Transcript pieces of one side this close together are one line."""
WITHOUT_DELEGATION = frozenset({"realtime", "twilio", "pcm", "python"})
"""Providers whose protocol has no delegation: tools are called, or reported, without it."""
MIN_HEARD_MS = 150
"""Less voice than this in a whole call is no speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One line of one side; ``action`` is the caller's intent, told or looked like."""

    side: Side
    text: str
    start_ms: int
    end_ms: int
    action: Action | None = None
    source: str = "transcript"

    @property
    def has_words(self) -> bool:
        return any(char.isalnum() for char in self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One tool call; ``ended_ms`` is None if it never ended, which is a failure."""

    call_id: str
    name: str
    arguments: Mapping[str, Json]
    status: str
    started_ms: int
    ended_ms: int | None = None
    delegation_id: str | None = None
    result: Json = None
    error: str | None = None

    @property
    def completed(self) -> bool:
        return self.status == "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAt:
    """The application's whole state at one moment."""

    at_ms: int
    state: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """One delegation of one side; ``ok`` is None while it was open."""

    side: Side
    delegation_id: str
    target: str
    opened_ms: int
    closed_ms: int | None = None
    ok: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A fault of a peer, or of this machine, as it was recorded."""

    side: Side | None
    stage: str
    code: str
    message: str
    fatal: bool
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything graders and results need from one call.

    ``header`` holds the fields of ``call.started``. ``voiced_ms`` is None when no
    detector ran, ``termination_reason`` when the log has no end. ``provider`` is who
    the assistant's session was with, as it said itself. ``policy`` is the rule by which
    the call could have ended last, ``decided_by`` whose word it ended by.
    """

    header: Mapping[str, Json] = field(default_factory=dict)
    duration_ms: int = 0
    termination_reason: str | None = None
    policy: str | None = None
    decided_by: str | None = None
    spoken: tuple[Spoken, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    states: tuple[StateAt, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    failed_runs: tuple[Side, ...] = ()
    open_runs: tuple[Side, ...] = ()
    agenda: Mapping[str, str] = field(default_factory=dict)
    agenda_at: Mapping[str, int] = field(default_factory=dict)
    finished: str | None = None
    faults: tuple[Trouble, ...] = ()
    usage_seconds: Mapping[Side, float] = field(default_factory=dict)
    backend_usage: tuple[BackendUsage, ...] = ()
    voiced_ms: Mapping[Side, int] | None = None
    provider: str | None = None

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Evidence:
        """Read the events of one call, in order."""
        return _Reader(tuple(events)).evidence()

    @classmethod
    def from_recording(cls, recording: Recording) -> Evidence:
        """Read a stored call; its audio says how long it was."""
        return replace(cls.from_events(recording.events), duration_ms=recording.duration_ms)

    def lines(self, side: Side) -> tuple[Spoken, ...]:
        """Return the lines of one side, by start."""
        return tuple(line for line in self.spoken if line.side is side)

    def delegations(self, side: Side) -> tuple[Handoff, ...]:
        return tuple(handoff for handoff in self.handoffs if handoff.side is side)

    def was_heard(self, side: Side) -> bool:
        """Whether that side said anything: audible voice, or words where none was measured."""
        if self.voiced_ms is not None:
            return self.voiced_ms.get(side, 0) >= MIN_HEARD_MS
        return any(line.has_words for line in self.lines(side))

    @property
    def delegates(self) -> bool:
        """Whether the assistant's protocol knows delegation at all."""
        return self.provider not in WITHOUT_DELEGATION

    @property
    def application_observed(self) -> bool:
        """Whether the application under test reported anything at all."""
        return bool(self.states or self.tools or self.delegations(Side.ASSISTANT))

    @property
    def initial_state(self) -> Json:
        return self.states[0].state if self.states else None

    @property
    def final_state(self) -> Json:
        return self.states[-1].state if self.states else None

    @property
    def fatal_fault(self) -> Trouble | None:
        return next((fault for fault in self.faults if fault.fatal), None)


class _Reader:
    """Turns the events of one call into evidence; samples become milliseconds here."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        started, ended = extract.last(events, "call.started"), extract.last(events, "call.ended")
        self._header: Mapping[str, Json] = started.fields if started else {}
        self._ended: Mapping[str, Json] = ended.fields if ended else {}
        self._rate = extract.whole(self._header, "rate_hz") or SESSION_RATE_HZ

    def evidence(self) -> Evidence:
        events = self._events
        finished = extract.last(events, "caller.finished")
        return Evidence(
            header=self._header,
            duration_ms=self._ms(self._length()),
            termination_reason=extract.text(self._ended, "termination_reason"),
            policy=extract.text(self._ended, "policy"),
            decided_by=extract.text(self._ended, "decided_by"),
            spoken=self._spoken(),
            tools=tuple(map(self._tool, extract.tool_calls(events))),
            states=tuple(
                StateAt(at_ms=self._ms(at), state=state) for at, state in extract.states(events)
            ),
            handoffs=tuple(handoff for side in Side for handoff in self._handoffs(side)),
            failed_runs=self._runs({"failed", "incomplete"}),
            open_runs=self._runs({None}),
            agenda=extract.agenda(events),
            agenda_at={item: self._ms(at) for item, at in extract.agenda_times(events).items()},
            finished=extract.text(finished.fields, "outcome") if finished else None,
            faults=tuple(map(self._trouble, extract.faults(events))),
            usage_seconds=self._usage(),
            backend_usage=extract.backend_usage(events),
            voiced_ms=self._voiced(),
            provider=extract.session(events, Side.ASSISTANT).provider,
        )

    def _length(self) -> int:
        position = extract.whole(self._ended, "position")
        return position or max((event.at for event in self._events), default=0)

    def _spoken(self) -> tuple[Spoken, ...]:
        """Labelled lines of a side, or its grouped transcript where it labels none.

        An assistant of which no word was told has the lines that the caller heard.
        """
        labelled = [
            self._line(one.side, one.text, one.span, one.action, one.source)
            for one in self._labelled()
        ]
        sides = {line.side for line in labelled}
        pieces = [
            self._line(one.side, one.text, one.span)
            for one in extract.transcripts(self._events)
            if one.direction == "said" and one.side not in sides
        ]
        lines = [*labelled, *(line for side in Side for line in _grouped(pieces, side))]
        lines += [
            self._line(one.side, one.text, one.span, source=one.source)
            for one in extract.heard_of_assistant(self._events, GROUP_GAP_MS * self._rate // 1000)
        ]
        return tuple(sorted(lines, key=lambda line: (line.start_ms, line.side)))

    def _labelled(self) -> list[Utterance]:
        """The labelled lines; a caller's without an intent get the action they look like."""
        said = extract.utterances(self._events)
        caller = [one for one in said if one.side is Side.CALLER]
        if all(one.action is not None for one in caller):
            return list(said)
        voiced = extract.segments(self._events)
        runs = [
            merge((one.span.start, one.span.end) for one in voiced if one.side is side)
            for side in Side
        ]
        closed = extract.closed_by_words(self._events)
        acted = with_actions(
            caller, runs[Side.CALLER], runs[Side.ASSISTANT], closed_by_words=closed
        )
        return [*acted, *(one for one in said if one.side is not Side.CALLER)]

    def _line(
        self,
        side: Side,
        text: str,
        span: Span,
        action: Action | None = None,
        source: str = "transcript",
    ) -> Spoken:
        return Spoken(
            side=side,
            text=text,
            start_ms=self._ms(span.start),
            end_ms=self._ms(span.end),
            action=action,
            source=source,
        )

    def _tool(self, call: ToolCall) -> ToolUse:
        return ToolUse(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            status=call.status,
            started_ms=self._ms(call.started_at),
            ended_ms=None if call.ended_at is None else self._ms(call.ended_at),
            delegation_id=call.delegation_id,
            result=call.result,
            error=call.error,
        )

    def _handoffs(self, side: Side) -> Iterator[Handoff]:
        mine = [event for event in self._events if event.side is side]
        for one in extract.delegations(mine):
            yield Handoff(
                side=side,
                delegation_id=one.delegation_id,
                target=one.target,
                opened_ms=self._ms(one.created_at),
                closed_ms=None if one.closed_at is None else self._ms(one.closed_at),
                ok=one.ok,
            )

    def _runs(self, ends: set[str] | set[None]) -> tuple[Side, ...]:
        """Return the side of each backend response that ended in one of ``ends``."""
        runs: dict[tuple[Side, str | None], str | None] = {}
        for event in self._events:
            if event.side is not None and event.type in ("run.started", "run.ended"):
                key = (event.side, extract.text(event.fields, "run_id"))
                runs[key] = extract.text(event.fields, "outcome") or runs.get(key)
        return tuple(side for (side, _), end in runs.items() if end in ends)

    def _trouble(self, fault: Fault) -> Trouble:
        return Trouble(
            side=fault.side,
            stage=fault.stage,
            code=fault.code,
            message=fault.message,
            fatal=fault.fatal,
            at_ms=self._ms(fault.at),
        )

    def _usage(self) -> dict[Side, float]:
        found = {side: extract.session(self._events, side).seconds for side in Side}
        return {side: seconds for side, seconds in found.items() if seconds is not None}

    def _voiced(self) -> dict[Side, int] | None:
        """Voice of each side; None when no detector left a mark."""
        if not any(event.type in ("floor", "segment") for event in self._events):
            return None
        samples = dict.fromkeys(Side, 0)
        for segment in extract.segments(self._events):
            samples[segment.side] += segment.span.length
        return {side: self._ms(count) for side, count in samples.items()}

    def _ms(self, samples: int) -> int:
        return (samples * 2000 + self._rate) // (2 * self._rate)


def _grouped(pieces: Iterable[Spoken], side: Side) -> list[Spoken]:
    """Join transcript pieces of one side that follow each other closely."""
    groups: list[Spoken] = []
    for piece in pieces:
        if piece.side is not side:
            continue
        last = groups[-1] if groups else None
        if last is not None and piece.start_ms - last.end_ms < GROUP_GAP_MS:
            groups[-1] = Spoken(
                side=side,
                text=last.text + piece.text,
                start_ms=min(last.start_ms, piece.start_ms),
                end_ms=max(last.end_ms, piece.end_ms),
            )
        else:
            groups.append(piece)
    return groups

"""What a call left behind that graders may look at, in milliseconds.

Built from the event log alone, so a stored call grades exactly as a live one.
It judges nothing: what was not observed is empty or None, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from duplex.values import SESSION_RATE_HZ, Action, Event, Json, Side

GROUP_GAP_MS = 500
"""Transcript pieces of one side this close together are one line."""
MIN_HEARD_MS = 150
"""Less voice than this in a whole call is no speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One line of one side; ``action`` is the caller's intent where it was told."""

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
    """One tool call; ``ended_ms`` is None and ``status`` ``pending`` if it never ended."""

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
class Fault:
    """A fault of a peer, or of this machine, as it was recorded."""

    side: Side | None
    stage: str
    code: str
    message: str
    fatal: bool
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens one backend response took; None where the backend did not say."""

    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    total_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything graders and results need from one call.

    ``header`` holds the fields of ``call.started``, ``sessions`` those of each
    side's ``session.started``. ``voiced_ms`` is None when no detector ran.
    ``termination_reason`` is None when the log has no end.
    """

    header: Mapping[str, Json] = field(default_factory=dict)
    duration_ms: int = 0
    termination_reason: str | None = None
    spoken: tuple[Spoken, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    states: tuple[StateAt, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    failed_runs: tuple[Side, ...] = ()
    open_runs: tuple[Side, ...] = ()
    agenda: Mapping[str, str] = field(default_factory=dict)
    finished: str | None = None
    faults: tuple[Fault, ...] = ()
    sessions: Mapping[Side, Mapping[str, Json]] = field(default_factory=dict)
    usage_seconds: Mapping[Side, float] = field(default_factory=dict)
    backend_usage: Mapping[str, Usage] = field(default_factory=dict)
    voiced_ms: Mapping[Side, int] | None = None

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> Evidence:
        """Read the events of one call, in order."""
        reader = _Reader()
        for event in events:
            reader.take(event)
        return reader.evidence()

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
    def fatal_fault(self) -> Fault | None:
        return next((fault for fault in self.faults if fault.fatal), None)


class _Reader:
    """Folds events, one at a time, into the fields of an Evidence."""

    def __init__(self) -> None:
        self._rate = SESSION_RATE_HZ
        self._header: Mapping[str, Json] = {}
        self._end: str | None = None
        self._last = 0
        self._labelled: list[Spoken] = []
        self._pieces: list[Spoken] = []
        self._tools: dict[str, ToolUse] = {}
        self._states: list[StateAt] = []
        self._handoffs: dict[tuple[Side, str], Handoff] = {}
        self._runs: dict[tuple[Side, str], str | None] = {}
        self._agenda: dict[str, str] = {}
        self._finished: str | None = None
        self._faults: list[Fault] = []
        self._sessions: dict[Side, Mapping[str, Json]] = {}
        self._seconds: dict[Side, float] = {}
        self._usage: dict[str, Usage] = {}
        self._voiced: dict[Side, int] = {}
        self._detected = False

    def take(self, event: Event) -> None:
        fields, side = event.fields, event.side
        self._last = max(self._last, event.at)
        match event.type:
            case "call.started":
                self._header = fields
                self._rate = _int(fields.get("rate_hz")) or SESSION_RATE_HZ
            case "call.ended":
                self._end = _text(fields.get("termination_reason")) or None
                self._last = _int(fields.get("position")) or self._last
            case "floor":
                self._detected = True
            case "state":
                self._states.append(StateAt(at_ms=self._ms(event.at), state=fields.get("state")))
            case "agenda":
                self._agenda[_text(fields.get("item_id"))] = _text(fields.get("status"))
            case "caller.finished":
                self._finished = _text(fields.get("outcome")) or "completed"
            case "fault":
                self._faults.append(self._fault(event))
            case "backend.usage":
                self._usage[_text(fields.get("response_id"))] = _usage(fields)
            case _ if side is not None:
                self._take_sided(side, event)

    def _take_sided(self, side: Side, event: Event) -> None:
        fields = event.fields
        match event.type:
            case "segment":
                self._detected = True
                length = self._at(event, "end") - self._at(event, "start")
                self._voiced[side] = self._voiced.get(side, 0) + length
            case "utterance":
                self._labelled.append(self._line(side, event))
            case "transcript" if fields.get("direction", "said") == "said":
                self._pieces.append(self._line(side, event))
            case "session.started":
                self._sessions[side] = fields
            case "session.usage":
                seconds = fields.get("seconds")
                if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
                    self._seconds[side] = float(seconds)
            case "tool.started" | "tool.ended":
                self._tool(event)
            case "delegation.created" | "delegation.closed":
                self._handoff(side, event)
            case "run.started":
                self._runs.setdefault((side, _text(fields.get("run_id"))), None)
            case "run.ended":
                self._runs[side, _text(fields.get("run_id"))] = _text(fields.get("outcome"))

    def _tool(self, event: Event) -> None:
        fields, at = event.fields, self._ms(event.at)
        call_id = _text(fields.get("call_id"))
        known = self._tools.get(call_id)
        arguments = fields.get("arguments")
        if event.type == "tool.started" and known is None:
            self._tools[call_id] = ToolUse(
                call_id=call_id,
                name=_text(fields.get("name")),
                arguments=arguments if isinstance(arguments, dict) else {},
                status="pending",
                started_ms=at,
                delegation_id=_text(fields.get("delegation_id")) or None,
            )
        elif known is not None and known.status == "pending":
            self._tools[call_id] = ToolUse(
                call_id=call_id,
                name=known.name,
                arguments=known.arguments,
                status=_text(fields.get("status")) or "failed",
                started_ms=known.started_ms,
                ended_ms=at,
                delegation_id=known.delegation_id,
                result=fields.get("result"),
                error=_text(fields.get("error")) or None,
            )

    def _handoff(self, side: Side, event: Event) -> None:
        fields, at = event.fields, self._ms(event.at)
        key = (side, _text(fields.get("delegation_id")))
        known = self._handoffs.get(key)
        if event.type == "delegation.created" and known is None:
            self._handoffs[key] = Handoff(
                side=side,
                delegation_id=key[1],
                target=_text(fields.get("target")) or "client",
                opened_ms=at,
            )
        elif event.type == "delegation.closed" and known is not None and known.ok is None:
            self._handoffs[key] = Handoff(
                side=side,
                delegation_id=key[1],
                target=known.target,
                opened_ms=known.opened_ms,
                closed_ms=at,
                ok=fields.get("ok") is True,
            )

    def _line(self, side: Side, event: Event) -> Spoken:
        fields = event.fields
        action = _text(fields.get("action"))
        return Spoken(
            side=side,
            text=_text(fields.get("text")),
            start_ms=self._ms(self._at(event, "start")),
            end_ms=self._ms(self._at(event, "end")),
            action=Action(action) if action in Action.__members__ else None,
            source=_text(fields.get("source")) or "transcript",
        )

    def _fault(self, event: Event) -> Fault:
        fields = event.fields
        return Fault(
            side=event.side,
            stage=_text(fields.get("stage")),
            code=_text(fields.get("code")),
            message=_text(fields.get("message")),
            fatal=fields.get("fatal") is True,
            at_ms=self._ms(event.at),
        )

    def evidence(self) -> Evidence:
        spoken = [*self._labelled]
        for side in Side:
            if not any(line.side is side for line in self._labelled):
                spoken.extend(_grouped(piece for piece in self._pieces if piece.side is side))
        voiced = {side: self._ms(samples) for side, samples in self._voiced.items()}
        return Evidence(
            header=self._header,
            duration_ms=self._ms(self._last),
            termination_reason=self._end,
            spoken=tuple(sorted(spoken, key=lambda line: (line.start_ms, line.side))),
            tools=tuple(self._tools.values()),
            states=tuple(self._states),
            handoffs=tuple(self._handoffs.values()),
            failed_runs=tuple(
                side for (side, _), end in self._runs.items() if end in ("failed", "incomplete")
            ),
            open_runs=tuple(side for (side, _), end in self._runs.items() if end is None),
            agenda=self._agenda,
            finished=self._finished,
            faults=tuple(self._faults),
            sessions=self._sessions,
            usage_seconds=self._seconds,
            backend_usage=self._usage,
            voiced_ms=voiced if self._detected else None,
        )

    def _at(self, event: Event, name: str) -> int:
        position = _int(event.fields.get(name))
        return event.at if position is None else position

    def _ms(self, samples: int) -> int:
        return samples * 1000 // self._rate


def _grouped(pieces: Iterable[Spoken]) -> list[Spoken]:
    """Join transcript pieces of one side that follow each other closely."""
    groups: list[Spoken] = []
    for piece in pieces:
        last = groups[-1] if groups else None
        if last is not None and piece.start_ms - last.end_ms < GROUP_GAP_MS:
            groups[-1] = Spoken(
                side=piece.side,
                text=last.text + piece.text,
                start_ms=min(last.start_ms, piece.start_ms),
                end_ms=max(last.end_ms, piece.end_ms),
            )
        else:
            groups.append(piece)
    return groups


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _int(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _usage(fields: Mapping[str, Json]) -> Usage:
    return Usage(
        input_tokens=_int(fields.get("input_tokens")),
        cached_tokens=_int(fields.get("cached_tokens")),
        cache_write_tokens=_int(fields.get("cache_write_tokens")),
        output_tokens=_int(fields.get("output_tokens")),
        reasoning_tokens=_int(fields.get("reasoning_tokens")),
        total_tokens=_int(fields.get("total_tokens")),
    )

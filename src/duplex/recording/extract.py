"""From event lines to values: what happened in a call, in the words of values.

Pure functions over a sequence of events in order. Lines come from a file that
may have been cut, so a field that is missing or of another type is "not known"
and never an error. :class:`~duplex.recording.Recording` drives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from duplex.inputs import read_bytes
from duplex.values import Action, Event, Json, Segment, Side, Span, ToolCall, Utterance

_ENVELOPE = ("seq", "at", "received_at", "side", "type")
_SIDES = {side.label: side for side in Side}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript piece of one side's session; ``direction`` is said or heard."""

    side: Side
    direction: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Work a side handed over; ``closed_at`` and ``ok`` None while open."""

    side: Side | None
    delegation_id: str
    target: str
    created_at: int
    closed_at: int | None = None
    ok: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault as it was recorded; ``side`` None when it is the call's own."""

    at: int
    side: Side | None
    stage: str
    code: str
    message: str
    fatal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one side's session said about itself; None where it did not.

    ``seconds`` is the last usage the peer reported, ``final`` whether it was
    marked as the final one.
    """

    side: Side
    session_id: str | None = None
    model: str | None = None
    voice: str | None = None
    provider: str | None = None
    seconds: float | None = None
    final: bool = False
    closed_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendUsage:
    """Tokens of one backend response; None where the backend did not say."""

    response_id: str
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    total_tokens: int | None


# -- lines -----------------------------------------------------------------------


def read_events(path: Path) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """Read the events in ``seq`` order, each once, and what was wrong with the file."""
    data = read_bytes(path, f"events {path}")
    events: dict[int, Event] = {}
    damage: list[str] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event = event_of(line)
        if event is not None:
            events.setdefault(event.seq, event)
        elif number == len(lines):
            damage.append(f"{path.name}:{number}: the last line is cut and was left out")
        else:
            damage.append(f"{path.name}:{number}: is no event and was left out")
    return tuple(events[seq] for seq in sorted(events)), tuple(damage)


def event_of(line: bytes) -> Event | None:
    """Read one line of a file of events; None when it is no event."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    seq, at, kind = whole(record, "seq"), whole(record, "at"), text(record, "type")
    if seq is None or at is None or kind is None:
        return None
    received = record.get("received_at")
    side = record.get("side")
    return Event(
        seq=seq,
        at=at,
        side=_SIDES.get(side) if isinstance(side, str) else None,
        type=kind,
        fields={key: value for key, value in record.items() if key not in _ENVELOPE},
        received_at=received if isinstance(received, int | float) else None,
    )


# -- typed fields ----------------------------------------------------------------


def text(fields: Mapping[str, Json], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def whole(fields: Mapping[str, Json], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(fields: Mapping[str, Json], name: str) -> bool | None:
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def members(fields: Mapping[str, Json], name: str) -> dict[str, Json]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def span(fields: Mapping[str, Json]) -> Span | None:
    start, end = whole(fields, "start"), whole(fields, "end")
    if start is None or end is None or end < start:
        return None
    return Span(start=start, end=end)


# -- what happened ---------------------------------------------------------------


def utterances(events: Iterable[Event]) -> tuple[Utterance, ...]:
    """Labelled utterances of both sides, by start."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "utterance" else None
        if where is None or event.side is None:
            continue
        action = text(event.fields, "action") or ""
        found.append(
            Utterance(
                side=event.side,
                text=text(event.fields, "text") or "",
                span=where,
                action=Action[action] if action in Action.__members__ else None,
                source=text(event.fields, "source") or "transcript",
            )
        )
    return tuple(sorted(found, key=lambda u: (u.span, u.side)))


def transcripts(events: Iterable[Event]) -> tuple[Transcript, ...]:
    """Transcript pieces as they came."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "transcript" else None
        if where is None or event.side is None:
            continue
        direction = text(event.fields, "direction") or "said"
        words = text(event.fields, "text") or ""
        found.append(Transcript(side=event.side, direction=direction, text=words, span=where))
    return tuple(found)


def heard_of_assistant(events: Sequence[Event], gap: int) -> tuple[Utterance, ...]:
    """The lines of an assistant that told none of its words: what the caller's session heard.

    Empty when the assistant told any. Pieces less than ``gap`` samples apart are one line.
    """
    pieces = transcripts(events)
    mine = [one for one in pieces if one.side is Side.ASSISTANT and one.direction == "said"]
    if mine or any(one.side is Side.ASSISTANT for one in utterances(events)):
        return ()
    heard = [one for one in pieces if one.side is Side.CALLER and one.direction == "heard"]
    lines: list[Utterance] = []
    for piece in sorted(heard, key=lambda one: one.span):
        words, where = piece.text, piece.span
        if lines and where.start - lines[-1].span.end < gap:
            before = lines.pop()
            words = before.text + words
            where = Span(start=before.span.start, end=max(before.span.end, where.end))
        lines.append(Utterance(side=Side.ASSISTANT, text=words, span=where, source="heard"))
    return tuple(replace(line, text=line.text.strip()) for line in lines)


def segments(events: Iterable[Event]) -> tuple[Segment, ...]:
    """Voiced runs of the engine's detector, by start."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "segment" else None
        if where is not None and event.side is not None:
            found.append(Segment(side=event.side, span=where))
    return tuple(sorted(found, key=lambda s: (s.span, s.side)))


def tool_calls(events: Iterable[Event]) -> tuple[ToolCall, ...]:
    """Tool calls by start, matched by call id; one that never ended is ``failed``."""
    started: dict[str, Event] = {}
    ended: dict[str, Event] = {}
    for event in events:
        call_id = text(event.fields, "call_id")
        if call_id is None:
            continue
        if event.type == "tool.started":
            started.setdefault(call_id, event)
        elif event.type == "tool.ended":
            ended.setdefault(call_id, event)
    return tuple(_tool_call(key, start, ended.get(key)) for key, start in started.items())


def _tool_call(call_id: str, start: Event, end: Event | None) -> ToolCall:
    fields: Mapping[str, Json] = {} if end is None else end.fields
    done = text(fields, "status") == "completed"
    return ToolCall(
        call_id=call_id,
        name=text(start.fields, "name") or "",
        arguments=members(start.fields, "arguments"),
        status="completed" if done else "failed",
        started_at=start.at,
        ended_at=None if end is None else end.at,
        delegation_id=text(start.fields, "delegation_id"),
        result=fields.get("result"),
        error=text(fields, "error") if end is not None else "the call ended before the tool did",
    )


def delegations(events: Iterable[Event]) -> tuple[Delegation, ...]:
    """Delegations of both sides by creation, each id of a side once."""
    found: dict[tuple[Side | None, str], Delegation] = {}
    for event in events:
        identity = text(event.fields, "delegation_id")
        if identity is None:
            continue
        key = (event.side, identity)
        if event.type == "delegation.created" and key not in found:
            found[key] = Delegation(
                side=event.side,
                delegation_id=identity,
                target=text(event.fields, "target") or "client",
                created_at=event.at,
            )
        elif event.type == "delegation.closed" and key in found and found[key].closed_at is None:
            ok = flag(event.fields, "ok")
            found[key] = replace(found[key], closed_at=event.at, ok=ok)
    return tuple(found.values())


def agenda(events: Iterable[Event]) -> dict[str, str]:
    """The last status of each agenda item, in order of first mention."""
    found: dict[str, str] = {}
    for event in events:
        item, status = text(event.fields, "item_id"), text(event.fields, "status")
        if event.type == "agenda" and item is not None and status is not None:
            found[item] = status
    return found


def agenda_times(events: Iterable[Event]) -> dict[str, int]:
    """When the last status of each agenda item was told, in samples."""
    return {
        item: event.at
        for event in events
        if event.type == "agenda" and (item := text(event.fields, "item_id")) is not None
    }


def faults(events: Iterable[Event]) -> tuple[Fault, ...]:
    """Every fault, survived or not, in order."""
    return tuple(
        Fault(
            at=event.at,
            side=event.side,
            stage=text(event.fields, "stage") or "",
            code=text(event.fields, "code") or "",
            message=text(event.fields, "message") or "",
            fatal=flag(event.fields, "fatal") is True,
        )
        for event in events
        if event.type == "fault"
    )


def session(events: Iterable[Event], side: Side) -> Session:
    """What is known of one side's session."""
    started: Mapping[str, Json] = {}
    seconds: float | None = None
    final = False
    reason = None
    for event in events:
        if event.side is not side:
            continue
        if event.type == "session.started":
            started = event.fields
        elif event.type == "session.usage":
            value = event.fields.get("seconds")
            if isinstance(value, int | float) and not isinstance(value, bool) and not final:
                seconds, final = float(value), flag(event.fields, "final") is True
        elif event.type == "session.closed":
            reason = text(event.fields, "reason")
    return Session(
        side=side,
        session_id=text(started, "session_id"),
        model=text(started, "model"),
        voice=text(started, "voice"),
        provider=text(started, "provider"),
        seconds=seconds,
        final=final,
        closed_reason=reason,
    )


def backend_usage(events: Iterable[Event]) -> tuple[BackendUsage, ...]:
    """Token counts of backend responses, each response id once (the last report)."""
    found: dict[str, BackendUsage] = {}
    for event in events:
        identity = text(event.fields, "response_id")
        if event.type == "backend.usage" and identity is not None:
            fields = event.fields
            found[identity] = BackendUsage(
                response_id=identity,
                input_tokens=whole(fields, "input_tokens"),
                cached_tokens=whole(fields, "cached_tokens"),
                cache_write_tokens=whole(fields, "cache_write_tokens"),
                output_tokens=whole(fields, "output_tokens"),
                reasoning_tokens=whole(fields, "reasoning_tokens"),
                total_tokens=whole(fields, "total_tokens"),
            )
    return tuple(found.values())


def states(events: Iterable[Event]) -> tuple[tuple[int, Json], ...]:
    """``(at, state)`` for the start and after every change of the application's state."""
    return tuple((event.at, event.fields.get("state")) for event in events if event.type == "state")


def last(events: Sequence[Event], kind: str) -> Event | None:
    """The last event of a type."""
    return next((event for event in reversed(events) if event.type == kind), None)


BY_WORDS = "verified_state_and_closing"
"""``decided_by`` of a call that its caller's closing words ended."""


def closed_by_words(events: Sequence[Event]) -> bool:
    """Whether the caller's last words are what ended the call."""
    ended = last(events, "call.ended")
    return ended is not None and text(ended.fields, "decided_by") == BY_WORDS

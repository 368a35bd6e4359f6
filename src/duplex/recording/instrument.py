"""What the events say of the instrument and of sounds: arrivals, sendings, pace, tics.

Pure functions over a sequence of events in order, tolerant like the rest of
reading: an event with a field missing or of another type is left out.
:class:`~duplex.recording.Recording` drives it; what the numbers mean for a
latency is for metrics to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from duplex.recording.extract import flag, span, text, whole
from duplex.values import Event, Json, Side, Span

SOUND_KINDS = ("tic", "side_speech")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An audible sample of ``side`` after a pause; see ``docs/events.md``."""

    side: Side
    sample: int
    head: int
    taken_at: int
    head_at: int
    first_byte: bool
    arrived_at: int
    played_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """When what ``side`` was to hear of ``span`` had left us."""

    side: Side
    span: Span
    sent_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``samples`` of ``side`` had come by ``arrived_at``."""

    side: Side
    arrived_at: int
    samples: int
    stretch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSound:
    """A sound of the caller that is not meant for the assistant."""

    kind: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSound:
    """A single sound that a line added to what ``side`` said."""

    side: Side
    kind: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDelay:
    """From ``at`` on, what comes out of the line of ``side`` was said ``samples`` before."""

    side: Side
    at: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A reply that was cut, as the protocol told it."""

    heard_ms: float
    received_ms: float | None = None


def arrivals(events: Iterable[Event]) -> tuple[Arrival, ...]:
    """Arrivals of both sides, by where they were played."""
    found = []
    for event in events:
        if event.type != "arrival" or event.side is None:
            continue
        names = ("sample", "head", "taken_at", "head_at", "arrived_at", "played_at")
        values = {name: value for name in names if (value := whole(event.fields, name)) is not None}
        first_byte = flag(event.fields, "first_byte")
        if len(values) == len(names) and first_byte is not None:
            found.append(Arrival(side=event.side, first_byte=first_byte, **values))
    return tuple(sorted(found, key=lambda item: (item.played_at, item.side)))


def sendings(events: Iterable[Event]) -> tuple[Sending, ...]:
    """What was told of sending to both sides, by its end."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "sent" else None
        sent_at = whole(event.fields, "sent_at")
        if where is not None and event.side is not None and sent_at is not None:
            found.append(Sending(side=event.side, span=where, sent_at=sent_at))
    return tuple(sorted(found, key=lambda item: (item.span.end, item.side)))


def paces(events: Iterable[Event]) -> tuple[Pace, ...]:
    """Points of pace of both sides, as they were told."""
    found = []
    for event in events:
        if event.type != "pace" or event.side is None:
            continue
        at, samples = whole(event.fields, "arrived_at"), whole(event.fields, "samples")
        stretch = whole(event.fields, "stretch")
        if at is not None and samples is not None and stretch is not None:
            found.append(Pace(side=event.side, arrived_at=at, samples=samples, stretch=stretch))
    return tuple(found)


def sounds(events: Iterable[Event]) -> tuple[CallerSound, ...]:
    """The caller's sounds by start, those of a known kind."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "sound" else None
        kind = text(event.fields, "kind")
        if where is not None and event.side is Side.CALLER and kind in SOUND_KINDS:
            found.append(CallerSound(kind=kind, span=where))
    return tuple(sorted(found, key=lambda item: (item.span, item.kind)))


def line_sounds(events: Iterable[Event]) -> tuple[LineSound, ...]:
    """Every sound that a line said it added, by start."""
    found = []
    for event in events:
        where = span(event.fields) if event.type == "sound" else None
        kind, name = text(event.fields, "kind"), text(event.fields, "name")
        if where is not None and event.side is not None and kind and name is not None:
            found.append(LineSound(side=event.side, kind=kind, span=where))
    return tuple(sorted(found, key=lambda item: (item.span, item.side, item.kind)))


def line_delays(events: Iterable[Event]) -> tuple[LineDelay, ...]:
    """How far the lines held speakers back, as it was told."""
    found = []
    for event in events:
        samples = whole(event.fields, "samples") if event.type == "line.delay" else None
        if samples is not None and samples >= 0 and event.side is not None:
            found.append(LineDelay(side=event.side, at=event.at, samples=samples))
    return tuple(sorted(found, key=lambda item: item.at))


def interrupted(events: Iterable[Event]) -> tuple[Interrupted, ...]:
    """Replies of the assistant that were cut, in order."""
    found = []
    for event in events:
        if event.type != "reply.interrupted" or event.side is not Side.ASSISTANT:
            continue
        heard_ms = _number(event.fields.get("heard_ms"))
        if heard_ms is not None:
            received_ms = _number(event.fields.get("received_ms"))
            found.append(Interrupted(heard_ms=heard_ms, received_ms=received_ms))
    return tuple(found)


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

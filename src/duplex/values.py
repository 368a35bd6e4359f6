"""Value types every layer speaks: sides, spans, utterances, tool calls, events.

They are frozen and carry no behaviour beyond arithmetic on themselves. None of
them reads a clock or makes an id: positions are given by the call loop, in
samples at the session rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

SESSION_RATE_HZ = 24_000
"""Session rate when the scenario names none, in Hz."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Anything that a strict JSON document can hold."""


class Side(IntEnum):
    """One end of the call."""

    CALLER = 0
    ASSISTANT = 1

    @property
    def other(self) -> Side:
        return Side(1 - self)

    @property
    def label(self) -> str:
        return self.name.lower()


class Action(StrEnum):
    """What a caller utterance was meant to do (contract 2.0 names)."""

    OPENING = "OPENING"
    SPEAK = "SPEAK"
    CORRECT = "CORRECT"
    INTERRUPT = "INTERRUPT"
    BACKCHANNEL = "BACKCHANNEL"
    STOP = "STOP"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A half-open run of samples ``[start, end)`` at the session rate."""

    start: int
    end: int

    def __post_init__(self) -> None:
        assert self.start <= self.end, (self.start, self.end)

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeError:
    """How well one edge of a segment is known.

    The true edge lies within ``plus_minus_ms`` of the reported one; None when
    the detector does not say. ``masked``: noise hid where speech began or
    ended. ``unreliable``: too much of it, so that no width is worth printing.
    """

    plus_minus_ms: float | None = None
    masked: bool = False
    unreliable: bool = False


UNKNOWN_EDGE = EdgeError()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One voiced run of one side, and how well its edges are known.

    ``pauses`` are stretches inside it in which nothing was heard, too short to
    end it; only ``edge`` tells of them.
    """

    side: Side
    span: Span
    onset: EdgeError = UNKNOWN_EDGE
    offset: EdgeError = UNKNOWN_EDGE
    pauses: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Words of one side with the span that carried them.

    ``action`` is set for the caller only. ``source`` says who labelled it:
    ``caller_intent`` (the caller said what it meant to do) or ``transcript``
    (inferred after the fact).
    """

    side: Side
    text: str
    span: Span
    action: Action | None = None
    source: str = "transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool the application ran, with what came of it.

    ``status`` is ``completed`` or ``failed``; ``result`` is what the tool
    returned, ``error`` why it could not run.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Json]
    status: str
    started_at: int
    ended_at: int | None = None
    delegation_id: str | None = None
    result: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something a participant tells the call besides audio.

    ``type`` is a name from ``docs/events.md``; ``fields`` is strict JSON.
    ``received_at`` is the wall-clock receipt in seconds since the call began,
    or None in virtual time. Positions inside ``fields`` are in milliseconds of
    the participant's own session timeline (``start_ms``, ``end_ms``); the call
    loop converts them.
    """

    type: str
    fields: Mapping[str, Json] = field(default_factory=dict)
    received_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of ``events/<id>.jsonl``.

    ``at`` is the engine position, in samples, at which the loop took the event
    in; ``side`` is None for events of the call itself.
    """

    seq: int
    at: int
    side: Side | None
    type: str
    fields: Mapping[str, Json]
    received_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFault:
    """A peer's fault as a value: it is recorded and the call goes on or ends.

    ``stage`` is one of the contract's stages (``caller_connection``,
    ``assistant_connection``, ``session``, ``transport``, ``backend``, ...).
    ``fatal`` says whether the session is over.
    """

    side: Side
    stage: str
    code: str
    message: str
    fatal: bool

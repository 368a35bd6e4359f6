"""Delegated work at a remote service: one request and reply over HTTP, or messages of a socket.

The socket speaks the contract of the public harness's application service: the
session's transcripts and delegations go out, commentary and what its tools did
come back. Both may carry reports of the side channel. Pure; nothing raises on
what a service sent, and what is kept of it is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.protocols.gpt_live import Broken, clean_text, read_object
from duplex.protocols.side_channel import (
    Claim,
    StateReport,
    ToolReport,
    read_report,
)
from duplex.values import Json

REPLY_BYTES = 1 << 20
PIECES = 32
"""Pieces of commentary one delegation may come to."""
PIECE_CHARACTERS = 16_384
REPORTS = 500
"""Reports one reply may carry."""

Work = ToolReport | StateReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One line of the conversation as the assistant's session has it."""

    role: str
    text: str
    start_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReply:
    """What one delegation came to: words for the assistant, and what was done."""

    commentary: tuple[str, ...]
    work: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The service has taken the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Words for the assistant."""

    delegation_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the service's tools did."""

    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A delegation is done."""

    delegation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The service gave up, or said goodbye."""

    reason: str


Message = Ready | Passed | Observed | Completed | Stopped | Broken


# -- over HTTP --------------------------------------------------------------


def request(
    call_id: str, delegation_id: str, said: Sequence[Said], state: Mapping[str, Json]
) -> bytes:
    """Return the body of one delegation's request."""
    body: dict[str, Json] = {
        "call_id": call_id,
        "delegation_id": delegation_id,
        "conversation": [
            {"role": one.role, "text": one.text, "start_ms": one.start_ms} for one in said
        ],
        "initial_state": dict(state),
    }
    return json.dumps(body).encode()


def read_reply(data: bytes) -> WorkReply | Broken:
    """Read a reply ``{"commentary": […], "reports": […]}``; never raises."""
    value = read_object(data)
    if isinstance(value, Broken):
        return value
    said = value.get("commentary")
    pieces = [said] if isinstance(said, str) else said
    if not isinstance(pieces, list) or not all(isinstance(one, str) for one in pieces):
        return Broken(reason="reply has no commentary, wanted text or a list of texts")
    work = _reports(value.get("reports", []))
    if isinstance(work, Broken):
        return work
    if len(pieces) > PIECES:
        return Broken(reason=f"reply has {len(pieces)} pieces of commentary, allowed {PIECES}")
    texts = tuple(_text(one) for one in pieces if isinstance(one, str) and one.strip())
    return WorkReply(commentary=texts, work=work)


def _reports(value: Json) -> tuple[Work, ...] | Broken:
    if not isinstance(value, list) or len(value) > REPORTS:
        return Broken(reason=f"reports are no list of at most {REPORTS} objects")
    found: list[Work] = []
    for one in value:
        report = read_report(one) if isinstance(one, dict) else Broken(reason="report is no object")
        if isinstance(report, Broken):
            return report
        if not isinstance(report, Claim):
            found.append(report)
    return tuple(found)


# -- over a socket ----------------------------------------------------------


def configure() -> str:
    return json.dumps({"type": "session.configure", "initial_items": []})


def forwarded(event: Mapping[str, Json]) -> str:
    """Return the message that passes an event of the session on."""
    return json.dumps({"type": "live.event", "event": dict(event)})


def transcript(said: Said) -> dict[str, Json]:
    """One line as the transcript event of a session."""
    kind = "input" if said.role == "user" else "output"
    return {
        "type": f"session.{kind}_transcript.delta",
        "delta": said.text,
        "start_ms": max(0, said.start_ms),
        "end_ms": max(0, said.start_ms),
    }


def delegated(delegation_id: str, offset_ms: int) -> dict[str, Json]:
    return {
        "type": "session.delegation.created",
        "offset_ms": offset_ms,
        "delegation": {"id": delegation_id, "type": "delegation", "target": "client"},
    }


def read_message(data: str | bytes) -> Message:
    """Read one message of a service; never raises."""
    value = read_object(data)
    if isinstance(value, Broken):
        return value
    inner = value.get("event")
    event: Mapping[str, Json] = inner if isinstance(inner, dict) else {}
    match value.get("type"):
        case "session.ready":
            return Ready()
        case "live.send":
            return _passed(event)
        case "assistant.event":
            return _observed(event)
        case "session.closed":
            return Stopped(reason="it closed the session")
        case "error":
            return Stopped(reason=_error(value))
        case other:
            return Broken(reason=f"message type is {str(other)[:40]!r}, not one of the contract's")


def _passed(event: Mapping[str, Json]) -> Message:
    kind, text = event.get("type"), event.get("content")
    delegation_id = event.get("delegation_id")
    if kind != "session.commentary.append" or not isinstance(delegation_id, str):
        return Broken(reason="live.send holds no commentary for a delegation")
    if not isinstance(text, str) or not text.strip():
        return Broken(reason="live.send holds no words in content")
    return Passed(delegation_id=delegation_id, text=_text(text))


def _observed(event: Mapping[str, Json]) -> Message:
    kind = event.get("type")
    if kind == "client_delegation.completed":
        delegation_id = event.get("delegation_id")
        if isinstance(delegation_id, str):
            return Completed(delegation_id=delegation_id)
        return Broken(reason="client_delegation.completed has no delegation_id")
    if kind == "error":
        return Stopped(reason=_error(event))
    if kind in ("tool.completed", "tool.failed"):
        return _tool(str(kind).removeprefix("tool."), event)
    if kind in ("tool", "state"):
        report = read_report(event)
        if isinstance(report, Broken):
            return report
        return Observed(work=() if isinstance(report, Claim) else (report,))
    return Observed(work=())


def _tool(status: str, event: Mapping[str, Json]) -> Message:
    """A tool as the public service tells it: its execution, and the state after it."""
    execution = event.get("tool_execution")
    told: Mapping[str, Json] = execution if isinstance(execution, dict) else event
    arguments = told.get("arguments")
    report = read_report(
        {
            "type": "tool",
            "call_id": told.get("call_id") or event.get("call_id"),
            "name": told.get("name") or event.get("name"),
            "arguments": arguments if isinstance(arguments, dict) else {},
            "status": status,
            "result": told.get("output"),
        }
    )
    if isinstance(report, Broken):
        return report
    state = event.get("application_state")
    found: list[Work] = [] if isinstance(report, Claim) else [report]
    if isinstance(state, dict):
        found.append(StateReport(state=state))
    return Observed(work=tuple(found))


def _error(value: Mapping[str, Json]) -> str:
    error = value.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    return clean_text(said[:300]) if isinstance(said, str) else "it told no reason"


def _text(text: str) -> str:
    return clean_text(text[:PIECE_CHARACTERS])

"""The client's half of GPT-Live: builds what is sent, reads what comes back.

Sans-io: text in, values out. Audio messages are put together from constant
text and base64, without a dictionary. Reading never raises: what cannot be
read is a :class:`Broken`, a type nobody knows is an :class:`Unknown`. Messages
are told apart by ``type`` alone. A participant drives it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from duplex.protocols.gpt_live import (
    DEFAULT_VOICE,
    MESSAGE_LIMIT,
    AudioFormat,
    Broken,
    clean_text,
    read_base64,
    read_object,
    write_base64,
)
from duplex.protocols.pcm_bytes import Pcm, SampleCarry
from duplex.protocols.seen_events import Repeated, SeenEvents
from duplex.values import Json

_APPEND_HEAD = '{"type":"session.input_audio.append","audio":"'
_APPEND_TAIL = '"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveConfig:
    """What a client asks of a session in ``session.start``."""

    model: str = "gpt-live-1"
    voice: str = DEFAULT_VOICE
    instructions: str = ""
    delegation: Mapping[str, Json] = field(default_factory=lambda: {"type": "client"})

    def as_json(self, audio: AudioFormat) -> dict[str, Json]:
        # A custom voice travels as an object with its id, a built-in one as its name.
        custom = self.voice.startswith("voice_")
        voice: Json = {"id": self.voice} if custom else self.voice
        session: dict[str, Json] = {
            "model": self.model,
            "audio": {"format": audio.as_json(), "output": {"voice": voice}},
            "delegation": dict(self.delegation),
        }
        if self.instructions.strip():
            session["instructions"] = self.instructions
        return session


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The session is open (``updated``: its settings changed)."""

    session_id: str
    model: str
    voice: str
    updated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """What the peer said next; possibly empty when a lone odd byte came."""

    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A piece of transcript, verbatim; ``said`` by the peer or heard by it."""

    said: bool
    text: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """The peer handed work over; the task is in the transcripts.

    ``response_id`` is the backend's first response where the peer runs the backend.
    """

    delegation_id: str
    target: str
    offset_ms: int
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEvent:
    """What the peer's own backend streams: one event of the Responses API."""

    delegation_id: str | None
    event: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Cumulative seconds of the session as the peer bills them."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The session is over, with its final usage."""

    reason: str
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An ``error``: before the start it refuses the session, later it is mostly survivable."""

    code: str
    message: str
    param: str | None
    client_event_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """A notice; a local voice's own notes travel in it."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A command was accepted, or a notice that needs no answer."""

    type: str
    client_event_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A type this client does not know; never an error."""

    type: str


ServerMessage = (
    Started
    | Audio
    | Transcript
    | Delegated
    | BackendEvent
    | Usage
    | Closed
    | Refusal
    | Info
    | Acknowledged
    | Repeated
    | Unknown
    | Broken
)
_ACKNOWLEDGED = frozenset(
    {
        "session.input_audio.muted",
        "session.input_audio.unmuted",
        "session.commentary.appended",
        "session.thinking.appended",
        "session.instructions.appended",
        "session.output_audio.fixture.playing",
        "session.output_audio.fixture.played",
        "session.paused",
        "session.resumed",
    }
)


class ClientCodec:
    """One session's wire state on the client's side."""

    def __init__(self, audio: AudioFormat) -> None:
        self.audio = audio
        self.newest_id = ""
        """Event id of the command that was built last."""
        self._carry = SampleCarry(audio.width)
        self._seen = SeenEvents()
        self._numbers = itertools.count(1)
        self._readers: dict[str, Callable[[dict[str, Json]], ServerMessage]] = {
            "session.started": _read_started,
            "session.updated": _read_started,
            "session.output_audio.delta": self._read_audio,
            "session.input_transcript.delta": _read_transcript,
            "session.output_transcript.delta": _read_transcript,
            "session.delegation.created": _read_delegated,
            "response.event": _read_backend,
            "session.usage.updated": _read_usage,
            "session.closed": self._read_closed,
            "error": _read_error,
            "info": _read_info,
        }

    # -- building -----------------------------------------------------------

    def start(self, config: LiveConfig) -> str:
        return self._command("session.start", {"session": config.as_json(self.audio)})

    def append(self, pcm: Pcm) -> str:
        """Return the audio message for int16 samples at the session's rate."""
        return _APPEND_HEAD + write_base64(self.audio.encode(pcm)) + _APPEND_TAIL

    def text(self, kind: str, content: str, delegation_id: str | None = None) -> str:
        """Return a text command; ``kind`` is commentary, thinking or instructions."""
        assert kind in ("commentary", "thinking", "instructions"), kind
        # The id is required and nullable: it must be written even when there is none.
        return self._command(
            f"session.{kind}.append", {"content": content, "delegation_id": delegation_id}
        )

    def output(self, call_id: str, text: str) -> str:
        """Return what gives the peer's backend the output of a function it called."""
        item: dict[str, Json] = {"type": "function_call_output", "call_id": call_id, "output": text}
        return self._command("response.item.create", {"item": item})

    def go_on(self) -> str:
        """Return what lets the peer's backend go on; only when every call has its output."""
        return self._command("response.create", {})

    def close(self) -> str:
        return self._command("session.close", {})

    def _command(self, kind: str, fields: dict[str, Json]) -> str:
        event_id = self.newest_id = f"duplex_{next(self._numbers)}"
        return json.dumps({"type": kind, "event_id": event_id, **fields})

    # -- reading ------------------------------------------------------------

    def receive(self, message: str | bytes) -> ServerMessage:
        """Read one text or binary message from the server; never raises."""
        event = read_object(message, limit=MESSAGE_LIMIT)
        if isinstance(event, Broken):
            return event
        kind = event.get("type")
        if not isinstance(kind, str):
            return Broken(reason=f"type is {_shown(kind)}, not text")
        if self._seen.repeats(event.get("event_id"), message):
            return Repeated(type=clean_text(kind)[:200])
        reader = self._readers.get(kind)
        if reader is not None:
            return reader(event)
        if kind in _ACKNOWLEDGED:
            return Acknowledged(type=kind, client_event_id=_maybe_text(event, "client_event_id"))
        return Unknown(type=clean_text(kind))

    @property
    def odd_pieces(self) -> int:
        """Pieces of audio so far that did not hold whole samples."""
        return self._carry.odd_pieces

    def end(self) -> int:
        """The session is over: return how many odd bytes never became a sample."""
        self._carry.end()
        return self._carry.dropped_bytes

    def _read_audio(self, event: dict[str, Json]) -> ServerMessage:
        data = read_base64(event.get("delta"))
        if isinstance(data, Broken):
            return data
        return Audio(pcm=self.audio.decode(self._carry.align(data)))

    def _read_closed(self, event: dict[str, Json]) -> ServerMessage:
        self._carry.end()
        usage = event.get("usage")
        seconds = usage.get("seconds") if isinstance(usage, dict) else None
        return Closed(reason=_text(event, "reason"), seconds=_number(seconds))


def _read_started(event: dict[str, Json]) -> ServerMessage:
    session = event.get("session")
    if not isinstance(session, dict) or not isinstance(session.get("id"), str):
        return Broken(reason=f"{event['type']} has no session.id")
    audio = session.get("audio")
    output = audio.get("output") if isinstance(audio, dict) else None
    voice = output.get("voice") if isinstance(output, dict) else None
    if isinstance(voice, dict):
        voice = voice.get("id")
    return Started(
        session_id=_text(session, "id"),
        model=_text(session, "model"),
        voice=clean_text(voice) if isinstance(voice, str) else "",
        updated=event["type"] == "session.updated",
    )


def _read_transcript(event: dict[str, Json]) -> ServerMessage:
    text, start, end = event.get("delta"), event.get("start_ms"), event.get("end_ms")
    if not isinstance(text, str):
        return Broken(reason=f"{event['type']} has delta {_shown(text)}, not text")
    begin, finish = _number(start), _number(end)
    if begin is None or finish is None:
        return Broken(reason=f"{event['type']} has range {_shown(start)} to {_shown(end)}")
    return Transcript(
        said=event["type"] == "session.output_transcript.delta",
        text=clean_text(text),
        start_ms=round(begin),
        end_ms=round(max(begin, finish)),
    )


def _read_delegated(event: dict[str, Json]) -> ServerMessage:
    delegation = event.get("delegation")
    if not isinstance(delegation, dict) or not isinstance(delegation.get("id"), str):
        return Broken(reason="session.delegation.created has no delegation.id")
    return Delegated(
        delegation_id=_text(delegation, "id"),
        target=_text(delegation, "target"),
        offset_ms=round(_number(event.get("offset_ms")) or 0),
        response_id=_maybe_text(delegation, "response_id"),
    )


def _read_backend(event: dict[str, Json]) -> ServerMessage:
    nested = event.get("event")
    if not isinstance(nested, dict) or not isinstance(nested.get("type"), str):
        return Broken(reason="response.event has no event.type")
    return BackendEvent(delegation_id=_maybe_text(event, "delegation_id"), event=nested)


def _read_usage(event: dict[str, Json]) -> ServerMessage:
    usage = event.get("usage")
    seconds = _number(usage.get("seconds")) if isinstance(usage, dict) else None
    if seconds is None:
        return Broken(reason="session.usage.updated has no usage.seconds")
    return Usage(seconds=seconds)


def _read_error(event: dict[str, Json]) -> ServerMessage:
    error = event.get("error")
    if not isinstance(error, dict):
        return Broken(reason=f"error event has error {_shown(error)}, not an object")
    return Refusal(
        code=_text(error, "code") or _text(error, "type") or "unknown",
        message=_text(error, "message"),
        param=_maybe_text(error, "param"),
        client_event_id=_maybe_text(error, "client_event_id")
        or _maybe_text(event, "client_event_id"),
    )


def _read_info(event: dict[str, Json]) -> ServerMessage:
    return Info(code=_text(event, "code"), message=_text(event, "message"))


def _text(fields: dict[str, Json], name: str) -> str:
    return _maybe_text(fields, name) or ""


def _maybe_text(fields: dict[str, Json], name: str) -> str | None:
    value = fields.get(name)
    return clean_text(value) if isinstance(value, str) else None


def _number(value: Json) -> float | None:
    """Return a finite number that a timeline can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < 1e12 else None


def _shown(value: Json) -> str:
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__}"
    return clean_text(repr(value))[:40]

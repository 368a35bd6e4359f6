"""The client's half of Realtime: builds what is sent, reads what comes back.

Sans-io: text in, values out. Reading never raises: what cannot be read is a
:class:`Broken`, a type nobody knows an :class:`Unknown`. Names of the service's
first version are read as today's, because many servers still use them. It keeps
no account of replies; a participant drives it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from duplex.protocols.gpt_live import (
    MESSAGE_LIMIT,
    AudioFormat,
    Broken,
    clean_text,
    read_base64,
    read_object,
    write_base64,
)
from duplex.protocols.pcm_bytes import Pcm, SampleCarry
from duplex.protocols.realtime import MISBEHAVES, RealtimeConfig
from duplex.protocols.realtime_events import (
    Audio,
    AudioDone,
    Committed,
    FunctionCall,
    HeardWords,
    ItemBegun,
    ItemKept,
    Misbehaves,
    Notice,
    Opened,
    Refusal,
    ResponseBegun,
    ResponseDone,
    SaidWords,
    ServerMessage,
    SpeechEdge,
    TokenUsage,
    Unknown,
)
from duplex.protocols.seen_events import Repeated, SeenEvents
from duplex.values import Json

_APPEND_HEAD = '{"type":"input_audio_buffer.append","audio":"'
_APPEND_TAIL = '"}'
ARGUMENTS_LIMIT = 64 * 1024
"""Characters of one function call's arguments; longer ones are no arguments."""
CALLS_LIMIT = 64
"""Function calls read out of one finished response."""


_FORMER = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
}
_NOTICES = frozenset(
    {
        "conversation.created",
        "conversation.item.deleted",
        "conversation.item.retrieved",
        "conversation.item.truncated",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.segment",
        "input_audio_buffer.cleared",
        "input_audio_buffer.timeout_triggered",
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
        "output_audio_buffer.cleared",
        "rate_limits.updated",
        "response.content_part.added",
        "response.content_part.done",
        "response.function_call_arguments.delta",
        "response.output_text.delta",
        "response.output_text.done",
    }
)


class RealtimeCodec:
    """One session's wire state on the client's side."""

    def __init__(self, audio: AudioFormat) -> None:
        self.audio = audio
        self._carry = SampleCarry(audio.width)
        self._seen = SeenEvents()
        self._speaking = ""
        self._numbers = itertools.count(1)
        self._readers: dict[str, Callable[[dict[str, Json]], ServerMessage]] = {
            "session.created": _read_opened,
            "session.updated": _read_opened,
            "input_audio_buffer.speech_started": _read_edge,
            "input_audio_buffer.speech_stopped": _read_edge,
            "input_audio_buffer.committed": _read_committed,
            "conversation.item.input_audio_transcription.completed": _read_heard,
            "conversation.item.input_audio_transcription.failed": _read_unheard,
            "response.created": _read_begun,
            "response.output_item.added": _read_item_begun,
            "response.output_item.done": _read_item,
            "response.function_call_arguments.done": _read_arguments,
            "response.output_audio.delta": self._read_audio,
            "response.output_audio.done": _read_audio_done,
            "response.output_audio_transcript.delta": _read_said,
            "response.output_audio_transcript.done": _read_said,
            "response.done": _read_done,
            "conversation.item.added": _read_kept,
            "conversation.item.created": _read_kept,
            "conversation.item.done": _read_kept,
            "error": _read_error,
            MISBEHAVES: _read_misbehaves,
        }

    # -- building: (text, event id) where the answer may refer to it ------------

    def update(self, config: RealtimeConfig) -> str:
        return self.command("session.update", {"session": config.as_json()})[0]

    def append(self, pcm: Pcm) -> str:
        """Return the audio message for int16 samples at the wire's rate."""
        return _APPEND_HEAD + write_base64(self.audio.encode(pcm)) + _APPEND_TAIL

    def message(self, role: str, text: str) -> str:
        """Return what puts a text into the conversation; ``role`` is system or user."""
        content: Json = [{"type": "input_text", "text": text}]
        item: Json = {"type": "message", "role": role, "content": content}
        return self.command("conversation.item.create", {"item": item})[0]

    def output(self, call_id: str, output: str) -> str:
        """Return what answers a function call."""
        item: Json = {"type": "function_call_output", "call_id": call_id, "output": output}
        return self.command("conversation.item.create", {"item": item})[0]

    def truncate(self, item_id: str, audio_end_ms: int) -> tuple[str, str]:
        return self.command(
            "conversation.item.truncate",
            {"item_id": item_id, "content_index": 0, "audio_end_ms": audio_end_ms},
        )

    def command(self, kind: str, fields: Mapping[str, Json] | None = None) -> tuple[str, str]:
        """Return a command and its event id."""
        event_id = f"duplex_{next(self._numbers)}"
        return json.dumps({"type": kind, "event_id": event_id, **(fields or {})}), event_id

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
        kind = event["type"] = _FORMER.get(kind, kind)
        reader = self._readers.get(kind)
        if reader is not None:
            return reader(event)
        return Notice(type=kind) if kind in _NOTICES else Unknown(type=clean_text(kind)[:200])

    @property
    def odd_pieces(self) -> int:
        """Pieces of audio so far that did not hold whole samples."""
        return self._carry.odd_pieces

    def end(self) -> int:
        """The session is over: return how many odd bytes never became a sample."""
        self._carry.end()
        return self._carry.dropped_bytes

    def _read_audio(self, event: dict[str, Json]) -> ServerMessage:
        item_id = _id(event, "item_id")
        if not item_id:
            return Broken(reason="response.output_audio.delta has no item_id")
        data = read_base64(event.get("delta"))
        if isinstance(data, Broken):
            return data
        if item_id != self._speaking:
            # Half a sample of one item is never joined to another's.
            self._carry.end()
            self._speaking = item_id
        return Audio(
            response_id=_id(event, "response_id"),
            item_id=item_id,
            content_index=_whole(event.get("content_index")) or 0,
            pcm=self.audio.decode(self._carry.align(data)),
        )


def _read_opened(event: dict[str, Json]) -> ServerMessage:
    session = event.get("session")
    if not isinstance(session, dict):
        return Broken(reason=f"{event['type']} has no session")
    output = _members(_members(session, "audio"), "output")
    voice = output.get("voice", session.get("voice"))
    if isinstance(voice, dict):
        voice = voice.get("id")
    return Opened(
        session_id=_id(session, "id"),
        model=_text(session, "model"),
        voice=clean_text(voice) if isinstance(voice, str) else "",
        updated=event["type"] == "session.updated",
    )


def _read_edge(event: dict[str, Json]) -> ServerMessage:
    started = event["type"] == "input_audio_buffer.speech_started"
    at_ms = _whole(event.get("audio_start_ms" if started else "audio_end_ms"))
    if at_ms is None:
        return Broken(reason=f"{event['type']} does not say when")
    return SpeechEdge(started=started, item_id=_id(event, "item_id"), at_ms=at_ms)


def _read_committed(event: dict[str, Json]) -> ServerMessage:
    return Committed(item_id=_id(event, "item_id"))


def _read_heard(event: dict[str, Json]) -> ServerMessage:
    text = event.get("transcript")
    if not isinstance(text, str):
        return Broken(reason=f"{event['type']} has transcript {_shown(text)}, not text")
    return HeardWords(item_id=_id(event, "item_id"), text=clean_text(text))


def _read_unheard(event: dict[str, Json]) -> ServerMessage:
    refusal = _read_error(event)
    if isinstance(refusal, Refusal):
        return Refusal(code=refusal.code, message=refusal.message, about="transcription")
    return refusal


def _read_begun(event: dict[str, Json]) -> ServerMessage:
    response = event.get("response")
    identity = _id(response, "id") if isinstance(response, dict) else ""
    if not identity:
        return Broken(reason="response.created has no response.id")
    return ResponseBegun(response_id=identity)


def _read_item_begun(event: dict[str, Json]) -> ServerMessage:
    item = event.get("item")
    if not isinstance(item, dict) or not _id(item, "id"):
        return Broken(reason="response.output_item.added has no item.id")
    if item.get("type") != "message":
        return Notice(type="response.output_item.added")
    return ItemBegun(response_id=_id(event, "response_id"), item_id=_id(item, "id"))


def _read_item(event: dict[str, Json]) -> ServerMessage:
    item = event.get("item")
    if not isinstance(item, dict):
        return Broken(reason="response.output_item.done has no item")
    call = _call(item, _id(event, "response_id"))
    return call or Notice(type="response.output_item.done")


def _read_arguments(event: dict[str, Json]) -> ServerMessage:
    item: dict[str, Json] = {**event, "type": "function_call", "status": "completed"}
    call = _call(item, _id(event, "response_id"))
    return (
        Notice(type="unnamed call") if call is None or not call.name else replace(call, sure=False)
    )


def _call(item: dict[str, Json], response_id: str) -> FunctionCall | None:
    """Return the function call that an item is, if it is a finished one."""
    if item.get("type") != "function_call" or item.get("status") not in (None, "completed"):
        return None
    call_id, arguments = _id(item, "call_id") or _id(item, "id"), item.get("arguments")
    if not call_id:
        return None
    text = clean_text(arguments) if isinstance(arguments, str) else ""
    return FunctionCall(
        response_id=response_id,
        call_id=call_id,
        name=_text(item, "name")[:200],
        arguments=text[: ARGUMENTS_LIMIT + 1],
    )


def _read_kept(event: dict[str, Json]) -> ServerMessage:
    item = event.get("item")
    answers = isinstance(item, dict) and item.get("type") == "function_call_output"
    call_id = _id(item, "call_id") if answers and isinstance(item, dict) else ""
    return ItemKept(call_id=call_id)


def _read_misbehaves(event: dict[str, Json]) -> ServerMessage:
    return Misbehaves(fault=_text(event, "fault"))


def _read_audio_done(event: dict[str, Json]) -> ServerMessage:
    return AudioDone(item_id=_id(event, "item_id"))


def _read_said(event: dict[str, Json]) -> ServerMessage:
    whole = event["type"] == "response.output_audio_transcript.done"
    text = event.get("transcript" if whole else "delta")
    if not isinstance(text, str):
        return Broken(reason=f"{event['type']} has {_shown(text)}, not text")
    return SaidWords(
        response_id=_id(event, "response_id"),
        item_id=_id(event, "item_id"),
        text=clean_text(text),
        whole=whole,
    )


def _read_done(event: dict[str, Json]) -> ServerMessage:
    response = event.get("response")
    if not isinstance(response, dict):
        return Broken(reason="response.done has no response")
    identity = _id(response, "id")
    details = _members(response, "status_details")
    error = _members(details, "error")
    output = response.get("output")
    items = output[:CALLS_LIMIT] if isinstance(output, list) else []
    calls = [_call(item, identity) for item in items if isinstance(item, dict)]
    return ResponseDone(
        response_id=identity,
        status=_text(response, "status")[:40],
        reason=_text(details, "reason")[:200],
        code=(_text(error, "code") or _text(error, "type"))[:200],
        message=_text(error, "message")[:2_000],
        usage=_usage(response.get("usage")),
        calls=tuple(call for call in calls if call is not None),
    )


def _usage(usage: Json) -> TokenUsage | None:
    if not isinstance(usage, dict):
        return None
    return TokenUsage(
        input_tokens=_whole(usage.get("input_tokens")),
        cached_tokens=_whole(_members(usage, "input_token_details").get("cached_tokens")),
        output_tokens=_whole(usage.get("output_tokens")),
        total_tokens=_whole(usage.get("total_tokens")),
    )


def _read_error(event: dict[str, Json]) -> ServerMessage:
    error = event.get("error")
    if not isinstance(error, dict):
        return Broken(reason=f"{event['type']} has error {_shown(error)}, not an object")
    event_id = error.get("event_id")
    return Refusal(
        code=(_text(error, "code") or _text(error, "type") or "unknown")[:200],
        message=_text(error, "message")[:2_000],
        event_id=event_id if isinstance(event_id, str) else None,
    )


def _members(fields: Mapping[str, Json], name: str) -> dict[str, Json]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _text(fields: Mapping[str, Json], name: str) -> str:
    value = fields.get(name)
    return clean_text(value) if isinstance(value, str) else ""


def _id(fields: Mapping[str, Json], name: str) -> str:
    """Return an id, bounded, because ids are kept."""
    return _text(fields, name)[:200]


def _whole(value: Json) -> int | None:
    """Return a count or a time that a timeline can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return round(value) if 0 <= value < 1e12 else None


def _shown(value: Json) -> str:
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__}"
    return clean_text(repr(value))[:40]

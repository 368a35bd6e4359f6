"""The server's half of Realtime: one session as a state machine without I/O.

:meth:`RealtimeMachine.receive` takes one client message and returns what follows
from it: replies to send and things to do. The ``say_*`` methods write the
server's own events and keep the account of items that truncation is checked
against. It never raises on client input, reads no clock and makes no audio;
whoever serves a session drives it (``local/realtime_session.py``).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass

from duplex.protocols.gpt_live import Broken, clean_text, read_base64, read_object, write_base64
from duplex.protocols.pcm_bytes import Pcm, SampleCarry
from duplex.protocols.realtime import APPEND_BYTES, MISBEHAVES
from duplex.protocols.realtime_settings import Settings, Wrong
from duplex.values import Json

ITEMS_LIMIT = 2_000
"""Items of a conversation that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Send ``text`` to the client."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The settings have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hear:
    """Input audio, int16 at the rate of the input's format."""

    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The client's turn is over."""

    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Forget the audio since the last turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Respond:
    """A response was asked for, and there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The response under way is to be cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """Of that item only so much was heard."""

    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A text was put into the conversation."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A function call was answered."""

    call_id: str
    output: str


Effect = Reply | Configured | Hear | Commit | Clear | Respond | Cancel | Truncate | Told | Output


class RealtimeMachine:
    """One session's state."""

    def __init__(self, *, session_id: str, model: str, expires_at: int) -> None:
        self.settings = Settings(model=model)
        self.response_id: str | None = None
        """The response under way."""
        self._session_id = session_id
        self._expires_at = expires_at
        self._numbers = itertools.count(1)
        self._items: dict[str, int | None] = {}
        """Items of the conversation; of those with audio, its samples."""
        self._buffered = 0
        self._calls: set[str] = set()
        self._carry = SampleCarry(self.settings.heard.width)
        self._readers: dict[str, Callable[[dict[str, Json]], list[Effect | Wrong]]] = {
            "session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
            "conversation.item.create": self._create_item,
            "conversation.item.truncate": self._truncate,
            "conversation.item.delete": self._delete_item,
            "response.create": self._respond,
            "response.cancel": self._cancel,
        }

    # -- what a client sends ------------------------------------------------

    def receive(self, message: str | bytes) -> list[Effect]:
        """Take one client message; never raises."""
        event = read_object(message)
        if isinstance(event, Broken):
            return [self._error(Wrong(code="invalid_json", message=event.reason), None)]
        kind, event_id = event.get("type"), event.get("event_id")
        name = event_id if isinstance(event_id, str) else None
        reader = self._readers.get(kind) if isinstance(kind, str) else None
        if reader is None:
            known = ", ".join(f"'{one}'" for one in self._readers)
            shown = clean_text(str(kind))[:60]
            text = f"Invalid value: '{shown}'. Supported values are: {known}."
            wrong = Wrong(code="invalid_value", message=text, param="type")
            return [self._error(wrong, name)]
        return [
            self._error(effect, name) if isinstance(effect, Wrong) else effect
            for effect in reader(event)
        ]

    def _update(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        after = self.settings.updated(event.get("session"))
        if isinstance(after, Wrong):
            return [after]
        if after.heard != self.settings.heard:
            self._carry = SampleCarry(after.heard.width)
        self.settings = after
        return [Configured(), Reply(text=self._session_event("session.updated"))]

    def _append(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        data = read_base64(event.get("audio"))
        if isinstance(data, Broken):
            return [Wrong(code="invalid_value", message=data.reason, param="audio")]
        if len(data) > APPEND_BYTES:
            text = f"Audio of {len(data)} bytes is more than {APPEND_BYTES}."
            return [Wrong(code="invalid_value", message=text, param="audio")]
        pcm = self.settings.heard.decode(self._carry.align(data))
        self._buffered += len(pcm)
        return [Hear(pcm=pcm)] if len(pcm) else []

    def _commit(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        if self._buffered * 10 < self.settings.heard.rate_hz:
            text = "Error committing input audio buffer: buffer too small, wanted 100 ms of audio."
            return [Wrong(code="input_audio_buffer_commit_empty", message=text)]
        item_id = self.new_item()
        return [Reply(text=self.say_committed(item_id)), Commit(item_id=item_id)]

    def _clear(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        self._buffered = 0
        return [Clear(), Reply(text=self._event("input_audio_buffer.cleared"))]

    def _create_item(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        item = event.get("item")
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or kind not in ("message", "function_call_output"):
            text = f"Invalid value: '{str(kind)[:60]}'. It is no item that can be created."
            return [Wrong(code="invalid_value", message=text, param="item.type")]
        found = self._message(item) if kind == "message" else self._output(item)
        if isinstance(found, Wrong):
            return [found]
        item_id = self.new_item()
        shown: dict[str, Json] = {**item, "id": item_id, "status": "completed"}
        return [Reply(text=self._event("conversation.item.added", item=shown)), found]

    def _message(self, item: dict[str, Json]) -> Told | Wrong:
        role, content = item.get("role"), item.get("content")
        parts = content if isinstance(content, list) else []
        words = [
            part["text"]
            for part in parts
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        if role not in ("system", "user", "assistant") or not words:
            text = "A message wants a role and a text."
            return Wrong(code="invalid_value", message=text, param="item.content")
        return Told(role=str(role), text=clean_text(" ".join(str(word) for word in words)))

    def _output(self, item: dict[str, Json]) -> Output | Wrong:
        call_id, output = item.get("call_id"), item.get("output")
        if not isinstance(call_id, str) or call_id not in self._calls:
            shown = str(call_id)[:60]
            text = f"Tool call ID '{shown}' not found in conversation."
            code = "invalid_tool_call_id"
            return Wrong(code=code, message=clean_text(text), param="item.call_id")
        self._calls.discard(call_id)
        return Output(call_id=call_id, output=output if isinstance(output, str) else "")

    def _truncate(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        item_id, end, content = (
            event.get(name) for name in ("item_id", "audio_end_ms", "content_index")
        )
        samples = self._items.get(item_id) if isinstance(item_id, str) else None
        if not isinstance(item_id, str) or samples is None:
            text = f"Item '{str(item_id)[:60]}' has no audio that could be truncated."
            return [Wrong(code="invalid_value", message=clean_text(text), param="item_id")]
        if content != 0 or isinstance(content, bool):
            text = f"Only content part 0 can be truncated, got {str(content)[:20]}."
            return [Wrong(code="invalid_value", message=clean_text(text), param="content_index")]
        if not isinstance(end, int) or isinstance(end, bool) or end <= 0:
            text = f"Invalid 'audio_end_ms': got {str(end)[:20]}, wanted a positive integer."
            return [Wrong(code="invalid_value", message=clean_text(text), param="audio_end_ms")]
        length = samples * 1000 // self.settings.said.rate_hz
        if end > length:
            text = f"Audio content of {length}ms is already shorter than {end}ms"
            return [Wrong(code="invalid_value", message=text, param="audio_end_ms")]
        told = self._event(
            "conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=end
        )
        return [Reply(text=told), Truncate(item_id=item_id, audio_end_ms=end)]

    def _delete_item(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        item_id = event.get("item_id")
        if not isinstance(item_id, str) or item_id not in self._items:
            text = f"Item '{str(item_id)[:60]}' is not in the conversation."
            return [Wrong(code="item_delete_invalid_item_id", message=clean_text(text))]
        del self._items[item_id]
        return [Reply(text=self._event("conversation.item.deleted", item_id=item_id))]

    def _respond(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        if self.response_id is not None:
            text = f"Conversation already has an active response: {self.response_id}."
            return [Wrong(code="conversation_already_has_active_response", message=text)]
        return [Respond()]

    def _cancel(self, event: dict[str, Json]) -> list[Effect | Wrong]:
        wanted = event.get("response_id")
        if self.response_id is None or wanted not in (None, self.response_id):
            text = "Cancellation failed: no active response found"
            return [Wrong(code="response_cancel_not_active", message=text)]
        return [Cancel()]

    # -- what a server says -------------------------------------------------

    def new_item(self, *, audio: bool = False) -> str:
        """Return the id of a new item; ``audio``: there will be samples of it."""
        item_id = f"item_{self._session_id[-6:]}_{next(self._numbers):05d}"
        self._items[item_id] = 0 if audio else None
        if len(self._items) > ITEMS_LIMIT:
            del self._items[next(iter(self._items))]
        return item_id

    def say_created(self) -> str:
        return self._session_event("session.created")

    def say_speech(self, item_id: str, *, started: bool, at_ms: int) -> str:
        if started:
            name = "input_audio_buffer.speech_started"
            return self._event(name, audio_start_ms=at_ms, item_id=item_id)
        return self._event("input_audio_buffer.speech_stopped", audio_end_ms=at_ms, item_id=item_id)

    def say_committed(self, item_id: str) -> str:
        self._buffered = 0
        return self._event("input_audio_buffer.committed", item_id=item_id, previous_item_id=None)

    def say_heard(self, item_id: str, text: str, seconds: float) -> str:
        return self._event(
            "conversation.item.input_audio_transcription.completed",
            item_id=item_id,
            content_index=0,
            transcript=text,
            usage={"type": "duration", "seconds": round(seconds, 1)},
        )

    def say_response(self) -> str:
        """Begin a response."""
        assert self.response_id is None, "one response at a time"
        self.response_id = f"resp_{self._session_id[-6:]}_{next(self._numbers):05d}"
        response: Json = {
            "object": "realtime.response",
            "id": self.response_id,
            "status": "in_progress",
            "output": [],
            "usage": None,
        }
        return self._event("response.created", response=response)

    def say_item(self, item: dict[str, Json], index: int, *, done: bool) -> str:
        name = "response.output_item.done" if done else "response.output_item.added"
        return self._of_response(name, output_index=index, item=item)

    def say_part(self, item_id: str, index: int, transcript: str, *, done: bool) -> str:
        name = "response.content_part.done" if done else "response.content_part.added"
        part: Json = {"type": "audio", "transcript": transcript}
        return self._of_content(name, item_id, index, part=part)

    def say_audio(self, item_id: str, index: int, pcm: Pcm) -> str:
        """Say int16 samples at the rate of the output's format."""
        samples = self._items.get(item_id)
        if samples is not None:
            self._items[item_id] = samples + len(pcm)
        delta = write_base64(self.settings.said.encode(pcm))
        return self._of_content("response.output_audio.delta", item_id, index, delta=delta)

    def say_audio_done(self, item_id: str, index: int) -> str:
        return self._of_content("response.output_audio.done", item_id, index)

    def say_words(self, item_id: str, index: int, text: str, *, whole: bool) -> str:
        if whole:
            name = "response.output_audio_transcript.done"
            return self._of_content(name, item_id, index, transcript=text)
        return self._of_content(
            "response.output_audio_transcript.delta", item_id, index, delta=text
        )

    def say_call(self, item_id: str, index: int, call_id: str, name: str, arguments: str) -> str:
        """Say a function call's arguments; its item is said beside it."""
        self._calls.add(call_id)
        return self._of_response(
            "response.function_call_arguments.done",
            item_id=item_id,
            output_index=index,
            call_id=call_id,
            name=name,
            arguments=arguments,
        )

    def say_response_done(
        self, status: str, output: list[Json], *, details: Json = None, usage: Json = None
    ) -> str:
        """End the response under way."""
        response: Json = {
            "object": "realtime.response",
            "id": self.response_id,
            "status": status,
            "status_details": details,
            "output": output,
            "usage": usage,
        }
        self.response_id = None
        return self._event("response.done", response=response)

    def say_error(self, code: str, message: str, *, kind: str = "server_error") -> str:
        return self._error(Wrong(code=code, message=message), None, kind=kind).text

    def say_misbehaves(self, fault: str) -> str:
        """Say that the server does something wrong on purpose now; no event of the service's."""
        return self._event(MISBEHAVES, fault=fault)

    def _error(
        self, wrong: Wrong, event_id: str | None, *, kind: str = "invalid_request_error"
    ) -> Reply:
        error: Json = {
            "type": kind,
            "code": wrong.code,
            "message": wrong.message,
            "param": wrong.param,
            "event_id": None if event_id is None else clean_text(event_id),
        }
        return Reply(text=self._event("error", error=error))

    def _session_event(self, kind: str) -> str:
        session = {**self.settings.as_json(), "id": self._session_id}
        session["expires_at"] = self._expires_at
        return self._event(kind, session=session)

    def _of_content(self, kind: str, item_id: str, index: int, **fields: Json) -> str:
        return self._of_response(
            kind, item_id=item_id, output_index=index, content_index=0, **fields
        )

    def _of_response(self, kind: str, **fields: Json) -> str:
        return self._event(kind, response_id=self.response_id, **fields)

    def _event(self, kind: str, **fields: Json) -> str:
        event_id = f"event_{next(self._numbers):06d}"
        return json.dumps({"type": kind, "event_id": event_id, **fields})

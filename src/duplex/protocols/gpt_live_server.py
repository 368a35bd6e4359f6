"""The server's half of GPT-Live: one session as a state machine without I/O.

:meth:`ServerSession.receive` takes one client message and returns what follows
from it: replies to send and things to do. The ``say_*`` methods write the
server's own events. It never raises on client input, reads no clock and speaks
no audio itself; ``now_ms``, the session time, is set by whoever drives it
(``local/session.py``).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from duplex.counting import counted
from duplex.protocols.gpt_live import (
    CLIENT_TYPES,
    FIXTURE_RATE_HZ,
    FIXTURE_SECONDS,
    Broken,
    clean_text,
    read_base64,
    read_object,
    write_base64,
)
from duplex.protocols.gpt_live_backend import Ledger
from duplex.protocols.gpt_live_models import (
    Append,
    Command,
    MessageItem,
    OutputItem,
    Problem,
    Start,
    Update,
    WithAudio,
    WithItem,
    check,
    unknown_type,
    unserved_delegation,
)
from duplex.protocols.gpt_live_settings import SessionConfig as SessionConfig
from duplex.protocols.gpt_live_settings import merged, resolve, resource
from duplex.protocols.pcm_bytes import Pcm, from_bytes
from duplex.values import Json

_DELTA_HEAD = '{"type":"session.output_audio.delta","delta":"'
_DELTA_TAIL = '"}'
Reason = Literal["close_requested", "expired", "content", "remote_hangup", "connection_lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Send ``text`` to the client."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A session was asked for; answer with :meth:`ServerSession.say_started`."""

    config: SessionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The session was asked for in a way that cannot be; the reply came before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hear:
    """Input audio, int16 at the session's rate; zeros while muted."""

    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Words for the voice; ``kind`` is commentary, thinking or instructions."""

    kind: str
    text: str
    delegation_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """An item for the backend of this session: a function's output, or words."""

    item: MessageItem | OutputItem


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """Have the backend go on with what was submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayFixture:
    """Play int16 samples at 24 kHz instead of the voice, then ``say_fixture_played``."""

    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Drain, then ``say_closed`` and close the socket."""


Effect = Reply | Begin | Refused | Hear | Tell | Submit | GoOn | PlayFixture | Close


class ServerSession:
    """One session from its socket's opening to ``session.closed``."""

    def __init__(self, *, session_id: str, expires_at: int) -> None:
        self.session_id = session_id
        self.expires_at = expires_at
        self.now_ms = 0
        self.phase: Literal["opening", "active", "closing", "closed"] = "opening"
        self.config: SessionConfig | None = None
        self._session: dict[str, Json] = {}
        self._start_id: str | None = None
        self._close_id: str | None = None
        self._fixture_id: str | None = None
        self._fixture = False
        self._muted = False
        self._delegations: set[str] = set()
        self._ledger = Ledger()
        self._numbers = itertools.count(1)
        self._handlers: dict[str, Callable[[Command], list[Effect]]] = {
            "session.start": self._start,
            "session.update": self._update,
            "session.input_audio.append": self._audio,
            "session.input_audio.mute": self._mute,
            "session.input_audio.unmute": self._mute,
            "session.commentary.append": self._append,
            "session.thinking.append": self._append,
            "session.instructions.append": self._append,
            "session.output_audio.fixture.play": self._play,
            "response.item.create": self._submit,
            "response.create": self._go_on,
            "session.close": self._close,
        }

    # -- what a client sends ------------------------------------------------

    def receive(self, message: str | bytes) -> list[Effect]:
        """Take one client message; never raises on what it holds."""
        event = read_object(message)
        if isinstance(event, Broken):
            return self._refuse(Problem(code="invalid_json", message=event.reason))
        identity = event.get("event_id")
        client_id = clean_text(identity) if isinstance(identity, str) else None
        kind = event.get("type")
        if not isinstance(kind, str) or kind not in CLIENT_TYPES:
            return self._refuse(unknown_type(kind), client_id)
        early = self._out_of_place(kind, event)
        if early is not None:
            # Audio that was under way when the session closed is nobody's fault.
            late_audio = kind == "session.input_audio.append" and self.phase != "opening"
            return [] if late_audio else self._refuse(early, client_id)
        command = check(kind, event)
        if isinstance(command, Problem):
            return self._refuse(command, client_id)
        return self._handlers[kind](command)

    def _out_of_place(self, kind: str, event: Mapping[str, Json]) -> Problem | None:
        """Say what is wrong with the order of events, or with what is not served here."""
        if self.phase == "opening":
            if kind != "session.start":
                return Problem(
                    code="session_not_started",
                    message=f"{kind} came before session.start, which must be first",
                    param="type",
                )
            return unserved_delegation(event)
        if self.phase != "active":
            return Problem(code="session_closing", message=f"{kind} came after session.close")
        if kind.startswith("decision.") or (kind.startswith("response.") and not self.backend):
            owner = "decisions" if kind.startswith("decision.") else "responses"
            other = "its responses backend" if self.backend else "the client"
            return Problem(
                code="unsupported_event",
                message=f"{kind} needs {owner} delegation; this session delegates to {other}",
                param="type",
            )
        if kind == "session.start":
            return Problem(code="session_already_started", message="the session has started")
        if kind == "session.update":
            return unserved_delegation(event)
        return None

    def _start(self, command: Command) -> list[Effect]:
        assert isinstance(command, Start)
        self._start_id = command.event_id
        self.config = resolve(command.session)
        self._session = resource(command.session, self.config)
        return [Begin(config=self.config)]

    @property
    def backend(self) -> dict[str, Json] | None:
        """Settings of the backend this server runs; None where the client does the work."""
        delegation = self._session.get("delegation")
        settings = delegation.get("responses") if isinstance(delegation, dict) else None
        return settings if isinstance(settings, dict) else None

    def _update(self, command: Command) -> list[Effect]:
        assert isinstance(command, Update)
        change, current = command.session.delegation, self._session["delegation"]
        if change is not None:
            assert isinstance(current, dict)
            if change.type != current["type"]:
                path = "session.delegation.type"
                message = f"{path}: it is {current['type']!r} and cannot be changed"
                problem = Problem(code="invalid_value", message=message, param=path)
                return self._refuse(problem, command.event_id)
            self._session["delegation"] = merged(current, change)
        return [Reply(text=self._event("session.updated", command, session=self._snapshot()))]

    def _audio(self, command: Command) -> list[Effect]:
        assert isinstance(command, WithAudio)
        assert self.config is not None
        data = _sound(command.audio, self.config.audio.width)
        if isinstance(data, Problem):
            return self._refuse(data, command.event_id)
        pcm = self.config.audio.decode(data)
        silent = self._muted or self._fixture
        return [Hear(pcm=np.zeros_like(pcm) if silent else pcm)]

    def _mute(self, command: Command) -> list[Effect]:
        self._muted = command.type == "session.input_audio.mute"
        return [Reply(text=self._event(f"{command.type}d", command))]

    def _append(self, command: Command) -> list[Effect]:
        assert isinstance(command, Append)
        if self._fixture:
            problem = Problem(code="fixture_active", message="a fixture is playing")
            return self._refuse(problem, command.event_id)
        if command.delegation_id is not None and command.delegation_id not in self._delegations:
            problem = Problem(
                code="delegation_not_found",
                message="delegation_id names no delegation of this session",
                param="delegation_id",
            )
            return self._refuse(problem, command.event_id)
        if command.delegation_id is not None and self.backend is not None:
            message = "delegation_id must be null when the session's own backend does the work"
            problem = Problem(code="invalid_value", message=message, param="delegation_id")
            return self._refuse(problem, command.event_id)
        kind = command.type.split(".")[1]
        ack = self._event(f"{command.type}ed", command, start_ms=self.now_ms, end_ms=self.now_ms)
        tell = Tell(
            kind=kind, text=clean_text(command.content), delegation_id=command.delegation_id
        )
        return [Reply(text=ack), tell]

    def _play(self, command: Command) -> list[Effect]:
        assert isinstance(command, WithAudio)
        data = _sound(command.audio, 2)
        if isinstance(data, Problem):
            return self._refuse(data, command.event_id)
        seconds = len(data) / 2 / FIXTURE_RATE_HZ
        if self._fixture or seconds > FIXTURE_SECONDS:
            problem = Problem(code="fixture_active", message="a fixture is playing already")
            if not self._fixture:
                message = f"fixture lasts {seconds:.1f} s, more than {FIXTURE_SECONDS} s"
                problem = Problem(code="invalid_audio", message=message, param="audio")
            return self._refuse(problem, command.event_id)
        self._fixture, self._fixture_id = True, command.event_id
        text = self._event("session.output_audio.fixture.playing", command)
        return [Reply(text=text), PlayFixture(pcm=from_bytes(data))]

    def _submit(self, command: Command) -> list[Effect]:
        assert isinstance(command, WithItem)
        problem = self._ledger.submit(command.item)
        return (
            [Submit(item=command.item)]
            if problem is None
            else self._refuse(problem, command.event_id)
        )

    def _go_on(self, command: Command) -> list[Effect]:
        problem = self._ledger.go_on()
        return [GoOn()] if problem is None else self._refuse(problem, command.event_id)

    def _close(self, command: Command) -> list[Effect]:
        self._close_id = command.event_id
        self.phase = "closing"
        return [Close()]

    # -- what the server says -----------------------------------------------

    def say_started(self) -> str:
        self.phase = "active"
        session = self._snapshot()
        return self._write("session.started", self._start_id, session=session)

    def say_audio(self, pcm: Pcm) -> str:
        """Return one output delta for int16 samples at the session's rate."""
        assert self.config is not None
        return _DELTA_HEAD + write_base64(self.config.audio.encode(pcm)) + _DELTA_TAIL

    def say_transcript(self, *, said: bool, text: str, start_ms: int, end_ms: int) -> str:
        kind = "session.output_transcript.delta" if said else "session.input_transcript.delta"
        return self._write(kind, None, delta=text, start_ms=start_ms, end_ms=end_ms)

    def new_delegation(self) -> str:
        """Return the id of a delegation that begins now."""
        identity = f"{self.session_id.replace('sess_', 'dlg_', 1)}_{len(self._delegations) + 1}"
        self._delegations.add(identity)
        return identity

    def say_delegation(
        self, offset_ms: int, identity: str | None = None, response_id: str | None = None
    ) -> str:
        """Hand work over: to the client, or to this server's backend and its first response."""
        delegation: dict[str, Json] = {
            "id": identity or self.new_delegation(),
            "type": "delegation",
            "target": "client" if response_id is None else "responses",
        }
        if response_id is not None:
            delegation["response_id"] = response_id
        return self._write(
            "session.delegation.created", None, delegation=delegation, offset_ms=offset_ms
        )

    def say_backend(self, delegation_id: str, event: dict[str, Json]) -> str:
        """Pass on one event of this server's backend."""
        self._ledger.told(event)
        return self._write("response.event", None, delegation_id=delegation_id, event=event)

    def say_info(self, code: str, message: str) -> str:
        return self._write("info", None, code=code, message=message)

    def say_usage(self, seconds: int) -> str:
        return self._write("session.usage.updated", None, usage={"seconds": seconds})

    def say_fixture_played(self) -> str:
        self._fixture = False
        return self._write("session.output_audio.fixture.played", self._fixture_id)

    def say_closed(self, reason: Reason, seconds: int) -> str:
        self.phase = "closed"
        return self._write(
            "session.closed",
            self._close_id,
            reason=reason,
            session=self._snapshot(),
            usage={"seconds": seconds},
        )

    def say_error(
        self, problem: Problem, client_id: str | None = None, kind: str = "invalid_request_error"
    ) -> str:
        error: dict[str, Json] = {"type": kind, "code": problem.code, "message": problem.message}
        if problem.param is not None:
            error["param"] = problem.param
        if client_id is not None:
            error["client_event_id"] = client_id
        return self._write("error", client_id, error=error)

    def _refuse(self, problem: Problem, client_id: str | None = None) -> list[Effect]:
        reply = Reply(text=self.say_error(problem, client_id))
        return [reply, Refused()] if self.phase == "opening" else [reply]

    def _snapshot(self) -> Json:
        identity: dict[str, Json] = {
            "id": self.session_id,
            "expires_at": self.expires_at,
            "status": "active",
        }
        return identity | self._session

    def _event(self, kind: str, command: Command, **fields: Json) -> str:
        return self._write(kind, command.event_id, **fields)

    def _write(self, kind: str, client_id: str | None, **fields: Json) -> str:
        event: dict[str, Json] = {"type": kind, "event_id": f"event_{next(self._numbers)}"}
        if client_id is not None:
            event["client_event_id"] = clean_text(client_id)
        return json.dumps(event | fields)


def _sound(text: str, width: int) -> bytes | Problem:
    """Return the bytes of whole, non-empty audio."""
    data = read_base64(text)
    if isinstance(data, Broken):
        return Problem(code="invalid_audio", message=data.reason, param="audio")
    if not data:
        return Problem(code="invalid_audio", message="audio is empty", param="audio")
    if len(data) % width:
        message = f"audio has {counted(len(data), 'byte')}, not a whole number of 16-bit samples"
        return Problem(code="invalid_audio", message=message, param="audio")
    return data

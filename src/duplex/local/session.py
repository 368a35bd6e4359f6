"""One session of the local server, from an open connection to a closed one.

Three tasks share it: the reader takes client messages and is the only one to
touch the state machine's input; the speaking task turns input audio into
output; the sender puts messages on the wire, in order, through the faults.
Every queue is bounded, and each holds virtual time still while it has work.
It works over a socket and in memory alike and never looks at what is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from duplex.clock import Clock, holding
from duplex.local.faults import Dialect, Fault, Line, Send, ServerTransport
from duplex.local.managed_backend import ManagedBackend, Responder, respond_by_rule
from duplex.local.seams import Voice
from duplex.local.speaking import Speaking
from duplex.local.telling import as_info, misbehaves
from duplex.participants.held_queue import HeldQueue
from duplex.participants.transport import TransportClosed
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.gpt_live_server import (
    Begin,
    Close,
    Effect,
    GoOn,
    Hear,
    PlayFixture,
    Reason,
    Refused,
    Reply,
    ServerSession,
    SessionConfig,
    Submit,
    Tell,
)

MakeVoice = Callable[[SessionConfig, str], Voice]
"""Makes the voice of one session from its settings and the server's role."""

START_MS = 10_000
"""A connection without ``session.start`` is closed after this long."""
MEND_MS = 1_000
"""A refused start may be mended for this long before the socket closes."""
OUTGOING_LIMIT = 4_000
"""Messages a client may leave unread before it is given up (minutes of audio)."""

_VOICE_FAILED = Problem(code="server_error", message="the voice failed")
log = logging.getLogger(__name__)


class LocalSession:
    """Serves one connection; :meth:`run` returns when it is over."""

    def __init__(
        self,
        transport: ServerTransport,
        clock: Clock,
        machine: ServerSession,
        *,
        make_voice: MakeVoice,
        role: str,
        faults: Sequence[Fault] = (),
        session_seconds: float,
        respond: Responder = respond_by_rule,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._machine = machine
        self._make_voice = make_voice
        self._role = role
        self._session_seconds = session_seconds
        self._line = Line(transport, clock)
        self._faults = tuple(faults)
        self._send = self._through()
        self._outgoing: HeldQueue[tuple[int, str] | None] = HeldQueue(clock, OUTGOING_LIMIT)
        self._line.waiting = self._outgoing.__len__
        self._voice: Voice | None = None
        self._speaking: Speaking | None = None
        self._respond = respond
        self._backend: ManagedBackend | None = None
        self._reason: Reason = "close_requested"
        self._tasks: list[asyncio.Task[None]] = []
        self._patience: asyncio.Task[None] | None = None

    def _through(self) -> Send:
        dialect = Dialect(
            realtime=False,
            announce=lambda name: self._machine.say_info(*as_info(misbehaves(name))),
            farewell=self._farewell,
            bytes_a_second=self._bytes_a_second,
        )
        send: Send = self._transport.send
        for fault in self._faults:
            send = fault.join(self._line, dialect, send)
        return send

    def _farewell(self) -> tuple[Sequence[str], int, str]:
        seconds = self._speaking.seconds if self._speaking is not None else 0
        return (self._machine.say_closed("expired", seconds),), 1000, ""

    def _bytes_a_second(self) -> int:
        assert self._machine.config is not None
        audio = self._machine.config.audio
        return audio.rate_hz * audio.width

    async def run(self) -> None:
        """Serve until the connection ends; never raises for what a client did."""
        self._tasks.append(asyncio.create_task(self._write()))
        if not self._clock.virtual:
            self._wait_for_start(START_MS)
        try:
            while True:
                message = await self._transport.receive()
                if any(fault.loses(message) for fault in self._faults):
                    continue
                for effect in self._machine.receive(message):
                    await self._apply(effect)
        except TransportClosed:
            pass
        finally:
            with holding(self._clock):
                await self._end()

    async def _end(self) -> None:
        tasks = [*self._tasks, *([self._patience] if self._patience else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._outgoing.close()
        if self._speaking is not None:
            self._speaking.release()
        if self._backend is not None:
            await self._backend.close()
        if self._voice is not None:
            await self._voice.close()
        self._transport.abort()

    # -- the reader ---------------------------------------------------------

    async def _apply(self, effect: Effect) -> None:
        match effect:
            case Reply():
                self._emit(effect.text)
            case Begin():
                await self._begin(effect.config)
            case Refused():
                self._refused()
            case Hear():
                self._hear(effect)
            case Tell():
                self._tell(effect)
            case Submit():
                assert self._backend is not None
                self._backend.submit(effect)
            case GoOn():
                assert self._backend is not None
                self._backend.go_on()
            case PlayFixture():
                assert self._speaking is not None
                self._speaking.play(effect.pcm)
            case Close():
                self._close("close_requested")

    async def _begin(self, config: SessionConfig) -> None:
        if self._patience is not None:
            self._patience.cancel()
        try:
            self._voice = self._make_voice(config, self._role)
            await self._voice.begin(self._clock)
        except Exception:
            log.exception("no voice for %s", self._machine.session_id)
            self._emit(self._machine.say_error(_VOICE_FAILED, kind="server_error"))
            self._outgoing.put(None)
            return
        if self._machine.backend is not None:
            say = self._voice.commentary
            self._backend = ManagedBackend(
                self._machine, self._clock, self._emit, say, respond=self._respond
            )
        self._speaking = Speaking(
            self._machine, self._voice, self._clock, self._line, self._emit, self._backend
        )
        self._emit(self._machine.say_started())
        self._tasks.append(asyncio.create_task(self._speak()))
        self._tasks.append(self._clock.spawn(self._expire()))

    def _hear(self, effect: Hear) -> None:
        assert self._speaking is not None
        if not self._speaking.hear(effect.pcm):
            message = "a minute of audio is waiting already; send at real time"
            problem = Problem(code="input_audio_overflow", message=message, param="audio")
            self._emit(self._machine.say_error(problem))

    def _tell(self, effect: Tell) -> None:
        assert self._voice is not None
        if effect.kind == "commentary":
            self._voice.commentary(effect.text, effect.delegation_id)
        elif effect.kind == "thinking":
            self._voice.thinking(effect.text, effect.delegation_id)
        else:
            self._voice.instruct(effect.text)

    def _refused(self) -> None:
        """Close after a start that cannot be, with time to mend it on the wall clock."""
        if self._clock.virtual:
            self._outgoing.put(None)
        else:
            self._wait_for_start(MEND_MS)

    def _wait_for_start(self, ms: int) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self._clock.spawn(self._lose_patience(ms))

    async def _lose_patience(self, ms: int) -> None:
        await self._line.pause(ms)
        self._outgoing.put(None)

    # -- the end ------------------------------------------------------------

    async def _expire(self) -> None:
        await self._line.pause(self._session_seconds * 1000)
        if self._machine.phase == "active":
            self._machine.phase = "closing"
            self._close("expired")

    def _close(self, reason: Reason) -> None:
        assert self._speaking is not None
        self._reason = reason
        self._line.hurry()
        self._speaking.close()

    async def _speak(self) -> None:
        """Run the timeline to its end, then say goodbye in the protocol's words."""
        assert self._speaking is not None
        try:
            await self._speaking.run()
        except Exception:
            log.exception("the voice of %s failed", self._machine.session_id)
            self._emit(self._machine.say_error(_VOICE_FAILED, kind="server_error"))
            self._reason = "connection_lost"
        self._emit(self._machine.say_closed(self._reason, self._speaking.seconds))
        self._outgoing.put(None)
        self._speaking.release()

    # -- the sender ---------------------------------------------------------

    def _emit(self, message: str) -> None:
        item = (self._clock.position, message)
        if not self._outgoing.put(item) and self._machine.phase != "closed":
            log.warning("%s does not read what it is sent", self._machine.session_id)
            self._transport.abort()

    async def _write(self) -> None:
        try:
            while (item := await self._outgoing.get()) is not None:
                self._line.emitted, message = item
                await self._send(message)
            for fault in reversed(self._faults):
                await fault.flush()
            await self._transport.close(1000)
        except TransportClosed:
            return  # the reader learns it as well, and ends the session

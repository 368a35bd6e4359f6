"""One Realtime session of the local server, from an open connection to a closed one.

The reader takes client messages, the listener turns input audio into turns, the
sender puts messages on the wire through the faults; responses are tasks of the
talk. Every queue is bounded, and each holds virtual time still while it has work.
It works over a socket and in memory alike and never looks at what is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from duplex.clock import Clock, holding
from duplex.local.faults import Dialect, Fault, Line, Send, ServerTransport
from duplex.local.realtime_talk import Party, Talk
from duplex.local.seams import VOICE_RATE_HZ
from duplex.participants.held_queue import HeldQueue
from duplex.participants.transport import TransportClosed
from duplex.protocols.realtime_server import (
    Cancel,
    Commit,
    Configured,
    Effect,
    Hear,
    Output,
    RealtimeMachine,
    Reply,
    Respond,
    Told,
    Truncate,
)
from duplex.protocols.realtime_settings import Settings
from duplex.resample import Resampler

MakeParty = Callable[[Settings, str, Clock], Party]
"""Makes who answers one session from its settings, the server's role and the clock."""

OUTGOING_LIMIT = 20_000
"""Messages a client may leave unread before it is given up."""
INPUT_SECONDS = 60
"""Input that may wait; more is refused."""
EXPIRED = "Your session hit the maximum duration."

log = logging.getLogger(__name__)


class RealtimeServing:
    """Serves one connection; :meth:`run` returns when it is over."""

    def __init__(
        self,
        transport: ServerTransport,
        clock: Clock,
        machine: RealtimeMachine,
        *,
        make_party: MakeParty,
        role: str,
        faults: Sequence[Fault] = (),
        session_seconds: float,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._machine = machine
        self._make_party = make_party
        self._role = role
        self._session_seconds = session_seconds
        self._line = Line(transport, clock)
        self._faults = tuple(faults)
        self._send = self._through()
        self._outgoing: HeldQueue[tuple[int, str] | None] = HeldQueue(clock, OUTGOING_LIMIT)
        self._line.waiting = self._outgoing.__len__
        self._input: HeldQueue[Effect] = HeldQueue(clock, INPUT_SECONDS * 1000)
        self._queued = 0
        self._inward: Resampler | None = None
        self._talk: Talk | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _through(self) -> Send:
        dialect = Dialect(
            realtime=True,
            announce=self._machine.say_misbehaves,
            farewell=lambda: ((), 1001, EXPIRED),
            bytes_a_second=self._bytes_a_second,
        )
        send: Send = self._transport.send
        for fault in self._faults:
            send = fault.join(self._line, dialect, send)
        return send

    def _bytes_a_second(self) -> int:
        said = self._machine.settings.said
        return said.rate_hz * said.width

    async def run(self) -> None:
        """Serve until the connection ends; never raises for what a client did."""
        self._tasks += [asyncio.create_task(self._write()), asyncio.create_task(self._listen())]
        self._tasks.append(self._clock.spawn(self._expire()))
        self._emit(self._machine.say_created())
        try:
            while True:
                message = await self._transport.receive()
                if any(fault.loses(message) for fault in self._faults):
                    continue
                for effect in self._machine.receive(message):
                    self._apply(effect)
        except TransportClosed:
            pass
        finally:
            with holding(self._clock):
                await self._end()

    async def _end(self) -> None:
        """Put everything away, also when the session is cancelled while it does."""
        ending = asyncio.ensure_future(self._put_away())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def _put_away(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._outgoing.close()
        self._input.close()
        if self._talk is not None:
            await self._talk.close()
        self._transport.abort()

    # -- the reader ---------------------------------------------------------

    def _apply(self, effect: Effect) -> None:
        """Send a reply at once; all else comes after the audio that came before it."""
        if isinstance(effect, Reply):
            self._emit(effect.text)
            return
        samples = len(effect.pcm) if isinstance(effect, Hear) else 0
        full = self._queued + samples > INPUT_SECONDS * self._machine.settings.heard.rate_hz
        if full or not self._input.put(effect):
            message = "a minute of audio is waiting already; send at real time"
            self._emit(self._machine.say_error("input_audio_overflow", message))
            return
        self._queued += samples

    def _talking(self) -> Talk | None:
        """The talk; it begins with the first thing that needs it, with the settings of then."""
        if self._talk is None:
            try:
                party = self._make_party(self._machine.settings, self._role, self._clock)
            except Exception:
                log.exception("nobody answers")
                self._emit(self._machine.say_error("server_error", "the voice failed"))
                self._outgoing.put(None)
                return None
            self._talk = Talk(party, self._machine, self._clock, self._emit, self._voiced)
        return self._talk

    def _voiced(self, ms: int) -> None:
        self._line.voiced_ms += ms

    # -- the listener -------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            effect = await self._input.get()
            if isinstance(effect, Configured):
                rate_hz = self._machine.settings.heard.rate_hz
                other = rate_hz != VOICE_RATE_HZ
                self._inward = Resampler(rate_hz, VOICE_RATE_HZ) if other else None
                continue
            talk = self._talking()
            if talk is None:
                return
            if isinstance(effect, Hear):
                self._queued -= len(effect.pcm)
                pcm = effect.pcm
                await talk.hear(self._inward.push(pcm) if self._inward else pcm)
            else:
                self._do(talk, effect)

    def _do(self, talk: Talk, effect: Effect) -> None:
        match effect:
            case Commit():
                talk.commit(effect.item_id)
            case Told():
                talk.tell(effect.text)
            case Output():
                talk.output(effect.call_id, effect.output)
            case Truncate():
                talk.truncated(effect.item_id, effect.audio_end_ms)
            case Respond():
                talk.respond()
            case Cancel():
                talk.cancel("client_cancelled")

    async def _expire(self) -> None:
        await self._line.pause(self._session_seconds * 1000)
        await self._transport.close(1001, EXPIRED)

    # -- the sender ---------------------------------------------------------

    def _emit(self, message: str) -> None:
        if not self._outgoing.put((self._clock.position, message)):
            log.warning("a client does not read what it is sent")
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

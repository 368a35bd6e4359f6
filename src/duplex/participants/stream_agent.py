"""An agent behind a bare audio stream at one end of a call: Twilio's wire, or raw PCM.

What its side hears goes out at the pace of the call's clock, a message a frame;
what it says is queued, played at that pace, cleared when it asks, and its marks
are returned when the audio before them was played. After the start nothing
raises: a peer's faults are values. The call loop drives it through the
participant protocol; the dialect alone knows the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex.clock import Clock
from duplex.errors import SessionError
from duplex.participants.audible import is_audible
from duplex.participants.base import Discarded, Incoming, Pcm
from duplex.participants.deliveries import Deliveries, Parcel
from duplex.participants.door import Door
from duplex.participants.held_queue import HeldQueue
from duplex.participants.live_reading import Reading
from duplex.participants.reports import Reports
from duplex.participants.spurts import HOLD_MS, LIMIT_SECONDS, MARKS, Spurts
from duplex.participants.steady import SteadyRate
from duplex.participants.transport import Connect, Transport, TransportClosed, TransportRefused
from duplex.protocols.agent_stream import AgentAudio, AgentMessage, Clear, Dialect, Mark
from duplex.protocols.gpt_live import MESSAGE_LIMIT, Broken
from duplex.protocols.side_channel import Claim, StateReport, ToolReport
from duplex.values import Json, Side

HUNG_UP = (1000, 1001, 1005)
"""Close codes of a peer that ended the stream on purpose (RFC 6455, 7.4.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Bounds of one stream, in ms of wall time; ``outgoing``: messages that may wait."""

    connect_ms: int = 10_000
    finish_ms: int = 2_000
    outgoing: int = 1_000


class StreamAgent:
    """One agent of one call; started, heard, collected and finished by the loop."""

    def __init__(
        self,
        *,
        connect: Connect,
        dialect: Dialect,
        provider: str,
        side: Side = Side.ASSISTANT,
        lock_step: bool = False,
        hold_ms: int = HOLD_MS,
        limits: StreamLimits | None = None,
    ) -> None:
        self.side = side
        self.lock_step = lock_step
        self._connect = connect
        self._dialect = dialect
        self._provider = provider
        self._hold_ms = hold_ms
        self._limits = limits or StreamLimits()
        self._reading = Reading(side, provider)
        self._reports = Reports(self._reading)
        self._transport: Transport | None = None
        self._over = asyncio.Event()
        self._flushed = asyncio.Event()
        self._finishing = False
        self._opened = False
        self._tasks: list[asyncio.Task[None]] = []
        self._rest: Pcm = np.zeros(0, np.int16)
        self._sent_frames = 0
        self._position = 0
        self._tick = 0
        self._lost_messages = 0
        self._cut: list[Discarded] = []

    # -- opening ------------------------------------------------------------

    async def start(self, clock: Clock) -> None:
        """Connect; the stream itself begins with the call's first tick. Raises SessionError."""
        self._clock = clock
        wire = self._dialect.rate_hz
        self._upward = SteadyRate(clock.rate_hz, wire)
        self._spurts = Spurts(wire, clock.rate_hz, hold_ms=self._hold_ms)
        self._outgoing: HeldQueue[_Outgoing] = HeldQueue(clock, self._limits.outgoing)
        self._deliveries = Deliveries(clock.rate_hz)
        try:
            self._transport = await Door().open(
                self._connect, clock, timeout_ms=self._limits.connect_ms, told=self._waited
            )
        except TimeoutError:
            raise self._error("timeout", "the agent did not answer in time") from None
        except TransportRefused as refused:
            raise self._error(refused.code, str(refused)) from None
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        fields: dict[str, Json] = {
            "session_id": self._dialect.session_id,
            "model": "",
            "voice": "",
            "provider": self._provider,
        }
        self._reading.tell("session.started", fields, clock.elapsed())

    def _waited(self, code: str, text: str) -> None:
        self._reading.fault(f"{self.side.label}_connection", code, text)

    def _error(self, code: str, message: str) -> SessionError:
        stage = f"{self.side.label}_connection"
        return SessionError(f"{self.side.label}: {message}", stage=stage, code=code)

    # -- the call -----------------------------------------------------------

    def hear(self, position: int, pcm: Pcm) -> None:
        self._tick = len(pcm)
        self._position = position + len(pcm)
        if self._over.is_set() or self._finishing or self._transport is None:
            return
        if not self._opened:
            self._opened = True
            for message in self._dialect.opening():
                self._put(message)
        self._return_marks(self._spurts.marks())
        self._rest = np.concatenate((self._rest, self._upward.push(pcm)))
        frame = self._dialect.frame
        while len(self._rest) >= frame:
            samples, self._rest = self._rest[:frame], self._rest[frame:]
            self._put(self._dialect.audio(samples), self._parcel(is_audible(samples)))
            for message in self._dialect.beside(samples):
                self._put(message)

    def collect(self) -> Sequence[Incoming]:
        items: list[Incoming] = [*self._reading.collect(), *self._cut]
        self._cut.clear()
        if self._tick:
            items += self._spurts.pull(self._tick, self._position)
        return items

    def _parcel(self, audible: bool) -> Parcel:
        """Where the next frame's audio stands on the call's timeline, our delay taken off."""
        start = self._session(self._sent_frames * self._dialect.frame)
        self._sent_frames += 1
        end = self._session(self._sent_frames * self._dialect.frame)
        return Parcel(start=start, end=end, audible=audible)

    def _session(self, wire_samples: int) -> int:
        """The call's position of a sample of the stream we send."""
        at = (wire_samples - self._upward.delay) * self._clock.rate_hz // self._dialect.rate_hz
        return max(0, at)

    def _return_marks(self, names: Sequence[str]) -> None:
        for name in names:
            self._put(self._dialect.mark(name))

    def _put(
        self, message: str | bytes, parcel: Parcel | None = None, *, last: bool = False
    ) -> None:
        if self._outgoing.put(_Outgoing(message=message, parcel=parcel, last=last)):
            return
        self._lost_messages += 1
        if self._lost_messages == 1 and not self._over.is_set():
            text = f"the agent reads too slowly: {self._limits.outgoing} messages wait for it"
            self._reading.fault("transport", "outgoing_overflow", text)

    # -- the reader and the sender ------------------------------------------

    async def _read(self) -> None:
        assert self._transport is not None
        try:
            while True:
                message = await self._transport.receive()
                if len(message) > MESSAGE_LIMIT:
                    text = f"a message of {len(message)} is too long, {MESSAGE_LIMIT} are taken"
                    self._reading.fault("agent", "oversize", text)
                else:
                    self._take(self._dialect.receive(message))
        except TransportClosed as closed:
            self._lost(closed)

    async def _write(self) -> None:
        assert self._transport is not None
        try:
            while True:
                item = await self._outgoing.get()
                await self._transport.send(item.message)
                if item.parcel is not None:
                    self._sent(item.parcel)
                if item.last:
                    self._flushed.set()
        except TransportClosed:
            self._flushed.set()  # the reader learns it as well

    def _sent(self, parcel: Parcel) -> None:
        told = self._deliveries.sent(parcel, self._clock.position, self._clock.elapsed())
        if told is not None:
            self._reading.tell(told.type, told.fields, told.received_at)

    def _take(self, message: AgentMessage) -> None:
        match message:
            case AgentAudio():
                self._queue(message.pcm)
            case Mark():
                if not self._spurts.mark(message.name):
                    text = f"mark {message.name[:40]!r} came with {MARKS} waiting already"
                    self._reading.fault("agent", "too_many_marks", text)
            case Clear():
                self._clear()
            case Claim() | ToolReport() | StateReport():
                moment = self._clock.position if self._opened else 0
                if isinstance(message, Claim) and message.at_ms is not None:
                    moment = self._session(int(message.at_ms * self._dialect.rate_hz / 1000))
                self._reports.take(message, moment, self._clock.elapsed())
            case Broken():
                self._reading.fault("agent", "unreadable", message.reason)

    def _queue(self, pcm: Pcm) -> None:
        arrived_at = self._clock.position if self._opened else 0
        if dropped := self._spurts.put(pcm, arrived_at, self._position):
            text = f"{dropped} samples came with {LIMIT_SECONDS} s of audio waiting already"
            self._reading.fault("agent", "audio_queue_overflow", text)

    def _clear(self) -> None:
        cut, names = self._spurts.clear()
        if cut is not None:
            fields: dict[str, Json] = {
                "heard_ms": cut.heard_ms,
                "received_ms": cut.received_ms,
            }
            self._reading.tell("reply.interrupted", fields, self._clock.elapsed())
            self._cut.append(Discarded(samples=cut.discarded))
        if not self._finishing:
            self._return_marks(names)

    def _lost(self, closed: TransportClosed) -> None:
        """The stream is over; an agent may hang up, but not break off."""
        self._over.set()
        if self._finishing:
            return
        if closed.code in HUNG_UP:
            self._closed("remote_hangup")
        else:
            self._reading.fault(*closed.fault, str(closed), fatal=True)

    def _closed(self, reason: str) -> None:
        self._reading.tell("session.closed", {"reason": reason}, self._clock.elapsed())

    # -- the end ------------------------------------------------------------

    async def finish(self) -> None:
        """Send what comes last, let it leave, and close; bounded in time."""
        if self._transport is None or self._finishing:
            return
        self._finishing = True
        if not self._over.is_set():
            await self._say_last()
            self._closed("close_requested")
        if dropped := self._dialect.end():
            text = f"{dropped} odd bytes at the end of the audio were dropped"
            self._reading.fault("transport", "odd_bytes", text)
        if self._lost_messages > 1:
            text = f"{self._lost_messages} messages were never sent"
            self._reading.fault("transport", "outgoing_overflow", text)
        self._reading.end()
        await self._stop(polite=not self._over.is_set())

    async def _say_last(self) -> None:
        messages = self._dialect.closing() if self._opened else ()
        if not messages:
            return
        for message in messages:
            self._put(message, last=message is messages[-1])
        try:
            if self._clock.virtual:
                await self._clock.within(self._clock.settle(), self._limits.finish_ms)
            else:
                await self._clock.within(self._flushed.wait(), self._limits.finish_ms)
        except TimeoutError:
            text = f"the last messages did not leave within {self._limits.finish_ms} ms"
            self._reading.fault("transport", "close_timeout", text)

    async def abort(self) -> None:
        self._finishing = True
        await self._stop(polite=False)

    async def _stop(self, *, polite: bool) -> None:
        if self._transport is None:
            return
        transport, self._transport = self._transport, None
        if polite and not await transport.close():
            text = "the agent did not answer the end of the connection"
            self._reading.fault("session", "close_timeout", text)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._outgoing.close()
        transport.abort()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    """A message on its way out; ``parcel`` is what it holds of the call's audio."""

    message: str | bytes
    parcel: Parcel | None = None
    last: bool = False

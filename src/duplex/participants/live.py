"""A GPT-Live session at one end of a call, over a socket or in memory.

Audio goes out every tick, silence included, because the model's only clock is
what it hears; everything that comes back is kept for the loop to collect. After
the start nothing raises: a peer's faults are values. The call loop drives it
through the participant protocol; it never knows who is at the other end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex.application.base import Backend
from duplex.application.workbench import Workbench
from duplex.clock import Clock
from duplex.errors import SessionError
from duplex.participants.audible import is_audible
from duplex.participants.base import Incoming, Pcm
from duplex.participants.channel import Channel, Ears
from duplex.participants.delegated import Delegations
from duplex.participants.deliveries import Parcel
from duplex.participants.door import Door
from duplex.participants.doubles import Doubles
from duplex.participants.live_reading import Reading
from duplex.participants.live_words import conversation
from duplex.participants.managed import ManagedWork
from duplex.participants.overdue import Found, Overdue
from duplex.participants.receipts import Receipts
from duplex.participants.transport import Connect, TransportClosed, TransportRefused
from duplex.protocols.gpt_live import AudioFormat
from duplex.protocols.gpt_live_client import (
    Acknowledged,
    Audio,
    BackendEvent,
    ClientCodec,
    Closed,
    Delegated,
    LiveConfig,
    Refusal,
    ServerMessage,
    Started,
)
from duplex.resample import Resampler
from duplex.values import Happening, Side

WIRE_RATES_HZ = (16_000, 24_000)
"""Session rates that need no resampling; others travel at 24 kHz."""
LATE_MS = 600
"""Audio that is overdue by so much is told of."""
UNEVEN_MS = 250
"""So are several gaps of this; the service's own are of 100 to 180 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one session: times in ms of the call's clock, or of wall time at its ends.

    ``quiet_ms``: nothing from the peer for this long is a fault that may pass;
    ``dead_ms``: for this long, the connection counts as lost. ``finish_ms`` leaves
    room for the ten seconds a service may take to drain.
    ``outgoing``: messages that may wait to be sent.
    """

    connect_ms: int = 10_000
    start_ms: int = 10_000
    finish_ms: int = 12_000
    quiet_ms: int = 1_500
    dead_ms: int = 10_000
    outgoing: int = 500
    chunk_ms: int = 20


class LiveSession:
    """One session of one side; started, heard, collected and finished by the loop."""

    def __init__(
        self,
        *,
        side: Side,
        connect: Connect,
        config: LiveConfig | None = None,
        provider: str = "gpt-live",
        lock_step: bool = False,
        opening: str | None = None,
        backend: Backend | None = None,
        bench: Workbench | None = None,
        limits: Limits | None = None,
        door: Door | None = None,
    ) -> None:
        """``bench`` are the tools of a session whose peer runs the backend itself.

        ``door`` is shared by sessions with one host, so that they wait for it together.
        """
        self.side = side
        self.lock_step = lock_step
        self._connect = connect
        self._config = config or LiveConfig()
        self._provider = provider
        self._opening = opening
        self._backend = backend
        self._bench = bench
        self._managed: ManagedWork | None = None
        self._limits = limits or Limits()
        self._door = door or Door()
        self._reading = Reading(side, provider)
        self._overdue = Overdue(
            late_ms=LATE_MS, uneven_ms=UNEVEN_MS, stalled_ms=self._limits.quiet_ms
        )
        self._receipts = Receipts(confirms=True)
        self._channel: Channel | None = None
        self._started: asyncio.Future[None] | None = None
        self._closed = asyncio.Event()
        self._over = False
        self._finishing = False
        self._pending: list[Pcm] = []
        self._pending_samples = 0
        self._pending_from = 0
        self._pending_audible = False
        self._news = False
        self._last_news = 0
        self._usage_doubted = False

    # -- opening ------------------------------------------------------------

    async def start(self, clock: Clock) -> None:
        """Connect, open the session, give it its opening; raise SessionError."""
        self._prepare(clock)
        try:
            await self._open(clock)
        except TimeoutError:
            error = self._error("timeout", "the session did not start in time")
        except TransportRefused as refused:
            error = self._error(refused.code, str(refused))
        except TransportClosed as closed:
            error = self._error("closed", f"{closed} before the session started")
        except SessionError as failed:
            error = failed
        else:
            return
        await self.abort()
        raise error

    def _prepare(self, clock: Clock) -> None:
        rate = clock.rate_hz
        wire = rate if rate in WIRE_RATES_HZ else 24_000
        self._clock = clock
        self._codec = ClientCodec(AudioFormat(rate_hz=wire))
        self._upward = Resampler(rate, wire) if rate != wire else None
        downward = Resampler(wire, rate) if rate != wire else None
        self._reading = Reading(self.side, self._provider, downward, Doubles(rate, wire))
        self._delegations = Delegations(self._backend, self._reading, clock, self._comment)
        if self._bench is not None:
            self._managed = ManagedWork(self._bench, self._reading, clock, self._codec, self._put)

    async def _open(self, clock: Clock) -> None:
        limits = self._limits
        transport = await self._door.open(
            self._connect, clock, timeout_ms=limits.connect_ms, told=self._waited
        )
        self._started = asyncio.get_running_loop().create_future()
        ears = Ears(taken=self._received, lost=self._lost, sent=self._sent)
        self._channel = Channel(transport, clock, ears, limit=limits.outgoing)
        self._put(self._codec.start(self._config))
        await clock.within(self._started, limits.start_ms)
        self._delegations.begin()
        if self._managed is not None:
            self._managed.begin()
        if self._opening is not None:
            self._put(self._codec.text("commentary", self._opening))
            if self.side is Side.ASSISTANT:
                fields = {"delegation_id": None, "text": self._opening}
                self._reading.tell("commentary", fields, clock.elapsed())

    def _waited(self, code: str, text: str) -> None:
        self._reading.fault(f"{self.side.label}_connection", code, text)

    def _error(self, code: str, message: str) -> SessionError:
        stage = f"{self.side.label}_connection"
        return SessionError(f"{self.side.label}: {message}", stage=stage, code=code)

    # -- the call -----------------------------------------------------------

    def hear(self, position: int, pcm: Pcm) -> None:
        if self._over or self._finishing or self._channel is None:
            return
        wire = self._upward.push(pcm) if self._upward else pcm
        self._pending.append(wire)
        self._pending_samples += len(wire)
        self._pending_audible = self._pending_audible or is_audible(pcm)
        now = position + len(pcm)
        if self._pending_samples * 1000 >= self._limits.chunk_ms * self._codec.audio.rate_hz:
            self._send_pending(now)
        self._watch(now, len(pcm))
        self._reading.heard_until(now * 1000 / self._clock.rate_hz)

    def collect(self) -> Sequence[Incoming]:
        return self._reading.collect()

    def _send_pending(self, now: int | None = None) -> None:
        """Send what waits; it ends at ``now``, or is the rest that a closing call leaves."""
        if self._pending_samples:
            whole = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
            parcel = None
            if now is not None:
                parcel = Parcel(start=self._pending_from, end=now, audible=self._pending_audible)
            self._put(self._codec.append(whole), parcel)
        if now is not None:
            self._pending_from = now
        self._pending, self._pending_samples, self._pending_audible = [], 0, False

    def _comment(self, text: str, delegation_id: str) -> None:
        message = self._codec.text("commentary", text, delegation_id)
        self._receipts.sent(self._codec.newest_id, message)
        self._put(message)

    def _put(self, message: str, parcel: Parcel | None = None) -> None:
        if self._channel is None or self._channel.put(message, parcel):
            return
        if self._channel.refused == 1:
            text = f"the peer reads too slowly: {self._limits.outgoing} messages wait for it"
            self._reading.fault("transport", "outgoing_overflow", text)

    def _watch(self, now: int, tick: int) -> None:
        """Notice a peer that has gone quiet: it sends audio all the time, or it is gone."""
        if self._news:
            self._news, self._last_news = False, now
            self._tell_overdue(self._overdue.came(now * 1000 // self._clock.rate_hz))
        silent_ms = (now - self._last_news) * 1000 // self._clock.rate_hz
        if silent_ms >= self._limits.dead_ms:
            message = f"nothing came for {silent_ms} ms over an open connection"
            self._reading.fault("transport", "dead", message, fatal=True)
            self._over = True
            return
        self._tell_overdue(self._overdue.waits(silent_ms))
        if silent_ms < LATE_MS:
            for message in self._receipts.waited(tick * 1000 / self._clock.rate_hz):
                text = "what delegated work came to was not confirmed; it is sent again"
                self._reading.fault("backend", "tool_result_lost", text)
                self._put(message)

    def _tell_overdue(self, found: Found | None) -> None:
        if found is not None:
            self._reading.fault("transport", *found)

    # -- what comes ---------------------------------------------------------

    def _received(self, data: str | bytes) -> None:
        message = self._codec.receive(data)
        self._news = True
        self._take(message)

    def _sent(self, told: Happening) -> None:
        self._reading.tell(told.type, told.fields, told.received_at)

    def _take(self, message: ServerMessage) -> None:
        assert self._started is not None
        if not self._started.done():
            self._take_opening(message, self._started)
            return
        if isinstance(message, Refusal) and self._finishing:
            # What was under way when the session closed is refused by rule.
            return
        self._reading.take(message, self._clock.elapsed(), self._clock.position)
        match message:
            case Audio() if self._codec.odd_pieces:
                self._reading.odd_bytes()
            case Acknowledged():
                self._receipts.came(message.client_event_id)
            case Refusal() if self._managed is not None:
                self._managed.refused(message.code)
            case Delegated(target="responses") if self._managed is not None:
                self._managed.delegated(message)
            case BackendEvent() if self._managed is not None:
                self._managed.take(message)
            case Delegated(target="client") if self._managed is None:
                lines = conversation(self._reading.pieces)
                self._delegations.start(message.delegation_id, lines)
            case BackendEvent():
                text = "a response of a backend that was not asked for is passed over"
                self._reading.fault("backend", "unexpected_response", text)
            case Delegated():
                wanted = "client" if self._managed is None else "responses"
                text = f"delegation to {message.target!r} was not asked for, wanted {wanted!r}"
                self._reading.fault("backend", "unexpected_target", text)
            case Closed():
                self._closed.set()
                if not self._finishing:
                    text = f"the session was closed by the peer: {message.reason}"
                    self._reading.fault("session", message.reason, text, fatal=True)

    def _take_opening(self, message: ServerMessage, started: asyncio.Future[None]) -> None:
        match message:
            case Started():
                self._reading.take(message, self._clock.elapsed())
                started.set_result(None)
            case Refusal():
                text = f"the session was refused: {message.message or message.code}"
                started.set_exception(self._error(message.code, text))
            case Closed():
                text = f"the session was closed before it started: {message.reason}"
                started.set_exception(self._error("closed", text))
            case Acknowledged():
                pass
            case _:
                self._reading.take(message, self._clock.elapsed())

    def _lost(self, closed: TransportClosed) -> None:
        """The connection is over; say so unless that was asked for."""
        self._over = True
        if self._started is not None and not self._started.done():
            self._started.set_exception(closed)
            return
        if not self._closed.is_set():
            if not self._finishing:
                self._reading.fault(*closed.fault, str(closed), fatal=True)
            self._unconfirmed(f"{closed} without session.closed")
        elif closed.code != 1000:
            self._unconfirmed(f"{closed} after session.closed, wanted code 1000")

    def _unconfirmed(self, why: str) -> None:
        if not self._usage_doubted:
            self._usage_doubted = True
            self._reading.fault("session", "usage_unconfirmed", why)

    # -- the end ------------------------------------------------------------

    async def finish(self) -> None:
        """Ask for the end and read on until the peer confirms it, bounded in time."""
        if self._channel is None or self._finishing:
            return
        await self._stop_work()
        self._finishing = True
        if not self._over:
            self._send_pending()
            self._put(self._codec.close())
            await self._await_closed()
        if not self._closed.is_set():
            self._unconfirmed("the connection ended without session.closed")
        self._tell_losses()
        self._reading.end()
        await self._stop(polite=self._closed.is_set())

    async def _await_closed(self) -> None:
        """Wait for ``session.closed`` and then for the peer to hang up."""
        assert self._channel is not None
        channel, limit = self._channel, self._limits.finish_ms
        try:
            if self._clock.virtual:
                # Media time stands still now: once settled, nobody will answer any more.
                await self._clock.within(self._clock.settle(), limit)
                if not self._closed.is_set() and not channel.over.is_set():
                    raise TimeoutError
            else:
                await self._clock.within(_either(self._closed, channel.over), limit)
                await self._clock.within(channel.over.wait(), 1_000)
        except TimeoutError:
            if not self._closed.is_set():
                text = f"session.close was not answered within {limit} ms"
                self._reading.fault("session", "close_timeout", text)

    def _tell_losses(self) -> None:
        if dropped := self._codec.end():
            text = f"{dropped} odd bytes at the end of the audio were dropped"
            self._reading.fault("transport", "odd_bytes", text)
        refused = self._channel.refused if self._channel is not None else 0
        if refused > 1:
            text = f"{refused} messages were never sent"
            self._reading.fault("transport", "outgoing_overflow", text)

    async def _stop_work(self) -> None:
        await self._delegations.stop()
        if self._managed is not None:
            await self._managed.stop()

    async def abort(self) -> None:
        self._finishing = True
        await self._stop(polite=False)

    async def _stop(self, *, polite: bool) -> None:
        if self._channel is None:
            return
        channel, self._channel = self._channel, None
        await self._stop_work()
        await channel.stop(polite=polite)


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()

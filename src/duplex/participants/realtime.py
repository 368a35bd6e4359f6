"""A Realtime session at one end of a call, over a socket or in memory.

Its peer makes speech much faster than it is heard, so what comes waits here and
leaves at the pace of the call; when the other side speaks, the rest is forgotten
and the peer is told how many milliseconds were heard. After the start nothing
raises: a peer's faults are values. The call loop drives it through the
participant protocol; it never knows who is at the other end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from duplex.clock import Clock
from duplex.errors import SessionError
from duplex.participants.audible import is_audible
from duplex.participants.base import Discarded, Incoming, Pcm
from duplex.participants.channel import Channel, Ears
from duplex.participants.deliveries import Parcel
from duplex.participants.door import Door
from duplex.participants.live_reading import Reading
from duplex.participants.realtime_calls import Calls, Functions
from duplex.participants.realtime_heard import HeardTurns
from duplex.participants.realtime_responses import Responses
from duplex.participants.realtime_turns import OwnTurns
from duplex.participants.realtime_watch import Watch
from duplex.participants.transport import Connect, TransportClosed, TransportRefused
from duplex.protocols.gpt_live import FATAL_CODES, Broken
from duplex.protocols.realtime import RealtimeConfig, audio_format
from duplex.protocols.realtime_client import RealtimeCodec
from duplex.protocols.realtime_events import (
    Committed,
    FunctionCall,
    HeardWords,
    ItemKept,
    Misbehaves,
    Opened,
    Refusal,
    ResponseDone,
    ServerMessage,
    SpeechEdge,
)
from duplex.protocols.seen_events import Repeated
from duplex.resample import Resampler
from duplex.values import Happening, Json, Side

EXPIRED_CODES = frozenset({"session_expired", "session_timeout"})
EXPIRED_WORDS = ("maximum duration", "expired")
CALLS_LIMIT = 64
"""Function calls that may wait for their response to be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one session: times in ms of wall time, ``outgoing`` in messages."""

    connect_ms: int = 10_000
    start_ms: int = 10_000
    finish_ms: int = 2_000
    outgoing: int = 500
    chunk_ms: int = 20


class RealtimeSession:
    """One session of one side; started, heard, collected and finished by the loop."""

    def __init__(
        self,
        *,
        side: Side,
        connect: Connect,
        config: RealtimeConfig | None = None,
        lock_step: bool = False,
        opening: str | None = None,
        functions: Functions | None = None,
        limits: Limits | None = None,
        door: Door | None = None,
    ) -> None:
        """``opening`` asks the peer to speak first, in these words to it.

        ``door`` is shared by sessions with one host, so that they wait for it together.
        """
        self.side = side
        self.lock_step = lock_step
        self._connect = connect
        self._config = config or RealtimeConfig()
        self._opening = opening
        self._functions = functions
        self._limits = limits or Limits()
        self._door = door or Door()
        self._reading = Reading(side, "realtime")
        self._channel: Channel | None = None
        self._opened: asyncio.Future[Opened] | None = None
        self._updated: asyncio.Future[Opened] | None = None
        self._finishing = False
        self._tick = 0
        self._position = 0
        self._pending: list[Pcm] = []
        self._pending_samples = 0
        self._pending_from = 0
        self._pending_audible = False
        self._heard = HeardTurns()
        self._began_ms = 0
        self._unsure: deque[FunctionCall] = deque(maxlen=CALLS_LIMIT)

    # -- opening ------------------------------------------------------------

    async def start(self, clock: Clock) -> None:
        """Connect, agree on the session's settings, ask for its opening; raise SessionError."""
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
        rate, wire = clock.rate_hz, audio_format(self._config.encoding)
        self._clock = clock
        self._codec = RealtimeCodec(wire)
        self._upward = Resampler(rate, wire.rate_hz) if rate != wire.rate_hz else None
        self._watch = Watch(self._reading, rate, self._put)
        manual = self._config.turn_detection == "manual"
        self._turns = OwnTurns(rate) if manual else None
        self._calls = Calls(
            self._functions, self._reading, clock, answer=self._answer, answered=self._answered
        )
        self._responses = Responses(
            self._codec, self._reading, clock, self._put, manual=manual, calls=self._calls
        )

    async def _open(self, clock: Clock) -> None:
        limits = self._limits
        transport = await self._door.open(
            self._connect, clock, timeout_ms=limits.connect_ms, told=self._waited
        )
        loop = asyncio.get_running_loop()
        self._opened, self._updated = loop.create_future(), loop.create_future()
        ears = Ears(taken=self._received, lost=self._lost, sent=self._sent)
        self._channel = Channel(transport, clock, ears, limit=limits.outgoing)
        await clock.within(self._opened, limits.start_ms)
        self._put(self._codec.update(self._config))
        self._tell_started(await clock.within(self._updated, limits.start_ms))
        self._calls.begin()
        if self._opening is not None:
            self._put(self._codec.message("system", self._opening))
            self._responses.want()

    def _tell_started(self, opened: Opened) -> None:
        fields: dict[str, Json] = {
            "session_id": opened.session_id,
            "model": opened.model or self._config.model,
            "voice": opened.voice or self._config.voice,
            "provider": "realtime",
        }
        self._reading.tell("session.started", fields, self._clock.elapsed())

    def _waited(self, code: str, text: str) -> None:
        self._reading.fault(f"{self.side.label}_connection", code, text)

    def _error(self, code: str, message: str) -> SessionError:
        stage = f"{self.side.label}_connection"
        return SessionError(f"{self.side.label}: {message}", stage=stage, code=code)

    # -- the call -----------------------------------------------------------

    def hear(self, position: int, pcm: Pcm) -> None:
        if self._finishing or self._channel is None or self._channel.over.is_set():
            return
        self._tick, self._position = len(pcm), position + len(pcm)
        self._pending.append(self._upward.push(pcm) if self._upward else pcm)
        self._pending_samples += len(self._pending[-1])
        self._pending_audible = self._pending_audible or is_audible(pcm)
        if self._pending_samples * 1000 >= self._limits.chunk_ms * self._codec.audio.rate_hz:
            self._send_pending()
        starved = self._responses.replies.starved
        self._watch.tick(len(pcm), self._position, starved=starved)
        for edge in self._turns.hear(pcm) if self._turns else ():
            if edge.began:
                self._began_ms = edge.at_ms
                self._responses.interrupted()
            else:
                self._heard.own(self._began_ms, edge.at_ms)
                self._send_pending()
                self._put(self._codec.command("input_audio_buffer.commit")[0])
                self._responses.want()

    def collect(self) -> Sequence[Incoming]:
        """Hand over one tick of what is said, and what else has come."""
        items: list[Incoming] = []
        replies = self._responses.replies
        if self._tick and (spoken := replies.take(self._tick)) is not None:
            items.append(spoken)
        if dropped := replies.take_dropped():
            items.append(Discarded(samples=dropped))
        for told in replies.take_told():
            self._reading.tell(told.type, told.fields)
        return items + self._reading.collect()

    def _send_pending(self) -> None:
        if self._pending_samples:
            whole = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
            parcel = Parcel(
                start=self._pending_from, end=self._position, audible=self._pending_audible
            )
            self._put(self._codec.append(whole), parcel)
        self._pending_from = self._position
        self._pending, self._pending_samples, self._pending_audible = [], 0, False

    def _put(self, message: str, parcel: Parcel | None = None) -> None:
        if self._channel is None or self._channel.put(message, parcel):
            return
        text = f"the peer reads too slowly: {self._limits.outgoing} messages wait for it"
        self._reading.fault("transport", "outgoing_overflow", text)

    def _sent(self, told: Happening) -> None:
        self._reading.tell(told.type, told.fields, told.received_at)

    def _answer(self, call_id: str, output: str) -> None:
        message = self._codec.output(call_id, output)
        self._watch.answered(call_id, message)
        self._put(message)

    def _answered(self) -> None:
        self._responses.want()

    # -- what comes ---------------------------------------------------------

    def _received(self, data: str | bytes) -> None:
        message = self._codec.receive(data)
        self._watch.came()
        assert self._opened is not None
        assert self._updated is not None
        if self._updated.done():
            self._take(message)
        else:
            self._take_opening(message, self._opened, self._updated)

    def _take_opening(
        self,
        message: ServerMessage,
        opened: asyncio.Future[Opened],
        updated: asyncio.Future[Opened],
    ) -> None:
        """Wait for the two halves of the handshake; an error in between refuses the session."""
        match message:
            case Opened(updated=False):
                if not opened.done():
                    opened.set_result(message)
            case Opened():
                if opened.done():
                    updated.set_result(message)
            case Refusal():
                text = f"the session was refused: {message.message or message.code}"
                _fail(updated if opened.done() else opened, self._error(message.code, text))
            case Broken():
                self._reading.fault("session", "unreadable", message.reason)

    def _take(self, message: ServerMessage) -> None:
        if self._finishing:
            return
        match message:
            case SpeechEdge():
                self._heard.edge(message)
                if message.started and self._turns is None:
                    self._responses.interrupted()
            case HeardWords():
                now_ms = self._position * 1000 // self._clock.rate_hz
                if (fields := self._heard.words(message, now_ms)) is not None:
                    self._reading.tell("transcript", fields, self._clock.elapsed())
            case Committed():
                self._heard.committed(message.item_id)
            case FunctionCall(sure=True):
                if not self._responses.refuses(message):
                    self._calls.start(message)
            case FunctionCall():
                self._unsure.append(message)
            case Refusal():
                self._refused(message)
            case Broken():
                self._reading.fault("session", message.code, message.reason)
            case ResponseDone():
                called = [*message.calls, *self._unsure]
                self._unsure.clear()
                good = message.status == "completed" and not self._responses.is_over(
                    message.response_id
                )
                for call in called if good else ():
                    if call.response_id == message.response_id:
                        self._calls.start(call)
                self._responses.done(message)
            case ItemKept():
                self._watch.kept(message.call_id)
            case Repeated():
                self._reading.repeated(message.type)
            case Misbehaves():
                self._reading.misbehaves(message.fault)
            case _:
                self._responses.take(message)
                if self._codec.odd_pieces:
                    self._reading.odd_bytes()

    def _refused(self, refusal: Refusal) -> None:
        if self._responses.refused(refusal):
            return
        expired = refusal.code in EXPIRED_CODES
        fatal = expired or refusal.code in FATAL_CODES
        code = "expired" if expired else refusal.code
        message = refusal.message
        if refusal.about == "transcription":
            message = f"what was heard could not be transcribed: {message}"
        self._reading.fault("session", code, message, fatal=fatal)

    def _lost(self, closed: TransportClosed) -> None:
        """The connection is over; say so unless that was asked for."""
        for waiting in (self._opened, self._updated):
            if waiting is None:
                continue
            if not waiting.done():
                _fail(waiting, closed)
                return
            if waiting.cancelled() or waiting.exception() is not None:
                return  # it was refused before, which is told
        if self._finishing:
            return
        expired = any(word in closed.reason for word in EXPIRED_WORDS)
        stage, code = ("session", "expired") if expired else closed.fault
        text = f"the session expired: {closed}" if expired else str(closed)
        self._reading.fault(stage, code, text, fatal=True)

    # -- the end ------------------------------------------------------------

    async def finish(self) -> None:
        """Close the session; what was under way is told as far as it was heard."""
        if self._channel is None or self._finishing:
            return
        await self._calls.stop()
        self._finishing = True
        over = self._channel.over.is_set()
        self._responses.replies.end()
        for told in self._responses.replies.take_told():
            self._reading.tell(told.type, told.fields)
        self._tell_losses()
        if not over:
            reason: dict[str, Json] = {"reason": "close_requested"}
            self._reading.tell("session.closed", reason, self._clock.elapsed())
        self._reading.end()
        await self._stop(polite=not over)

    def _tell_losses(self) -> None:
        assert self._channel is not None
        if dropped := self._codec.end():
            text = f"{dropped} odd bytes of audio were dropped"
            self._reading.fault("transport", "odd_bytes", text)
        if refused := self._responses.replies.refused:
            text = f"{refused} samples came while too much was waiting"
            self._reading.fault("transport", "audio_queue_overflow", text)
        if self._channel.refused > 1:
            text = f"{self._channel.refused} messages were never sent"
            self._reading.fault("transport", "outgoing_overflow", text)

    async def abort(self) -> None:
        self._finishing = True
        await self._stop(polite=False)

    async def _stop(self, *, polite: bool) -> None:
        if self._channel is None:
            return
        channel, self._channel = self._channel, None
        await self._calls.stop()
        answered = False
        with suppress(TimeoutError):
            work = channel.stop(polite=polite)
            answered = await self._clock.within(work, self._limits.finish_ms)
        if not answered:
            await channel.stop(polite=False)
            text = f"closing was not answered within {self._limits.finish_ms} ms"
            self._reading.fault("session", "close_timeout", text)


def _fail(waiting: asyncio.Future[Opened], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)

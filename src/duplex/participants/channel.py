"""One open connection of a session: messages out in order, messages in as they come.

Two tasks and a bounded queue. It never looks into a message, and it never raises
once open: a connection that ends is told to ``lost``, once. It also keeps count
of when what a side was to hear had left. A session drives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from duplex.clock import Clock
from duplex.participants.deliveries import Deliveries, Parcel
from duplex.participants.held_queue import HeldQueue
from duplex.participants.transport import Transport, TransportClosed
from duplex.values import Happening


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """Who is told of what comes: a message, the end, a sending worth telling."""

    taken: Callable[[str | bytes], None]
    lost: Callable[[TransportClosed], None]
    sent: Callable[[Happening], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    text: str
    parcel: Parcel | None


class Channel:
    """Both directions of one transport, until :meth:`stop`."""

    def __init__(self, transport: Transport, clock: Clock, ears: Ears, *, limit: int) -> None:
        self.over = asyncio.Event()
        """Set once the connection has ended, or is being ended here."""
        self.refused = 0
        """Messages that found no room and were never sent."""
        self._transport = transport
        self._clock = clock
        self._ears = ears
        self._outgoing: HeldQueue[_Outgoing] = HeldQueue(clock, limit)
        self._deliveries = Deliveries(clock.rate_hz)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    def put(self, text: str, parcel: Parcel | None = None) -> bool:
        """Queue a message; False when it found no room in an open connection."""
        if self.over.is_set() or self._outgoing.put(_Outgoing(text=text, parcel=parcel)):
            return True
        self.refused += 1
        return False

    async def stop(self, *, polite: bool) -> bool:
        """End both directions; ``polite`` sends a close frame and waits for its answer.

        Tells whether it was answered where that was asked for.
        """
        self.over.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._outgoing.close()
        answered = await self._transport.close() if polite else True
        self._transport.abort()
        return answered

    async def _read(self) -> None:
        try:
            while True:
                self._ears.taken(await self._transport.receive())
        except TransportClosed as closed:
            if not self.over.is_set():
                self.over.set()
                self._ears.lost(closed)

    async def _write(self) -> None:
        try:
            while True:
                message = await self._outgoing.get()
                await self._transport.send(message.text)
                if message.parcel is not None:
                    self._sent(message.parcel)
        except TransportClosed:
            return  # the reader learns it as well

    def _sent(self, parcel: Parcel) -> None:
        told = self._deliveries.sent(parcel, self._clock.position, self._clock.elapsed())
        if told is not None:
            self._ears.sent(told)

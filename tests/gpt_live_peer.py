"""A bare client for server tests: sends dictionaries, keeps every event that comes."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from duplex.clock import Clock
from duplex.participants.transport import Transport, TransportClosed
from duplex.values import Json

Event = dict[str, Json]


class BareClient:
    """One session over ``transport``; ``rate`` and ``width`` are of its audio format."""

    def __init__(
        self, transport: Transport, clock: Clock, *, rate: int = 24_000, width: int = 2
    ) -> None:
        self.transport = transport
        self.clock = clock
        self.rate = rate
        self.width = width
        self.events: list[Event] = []
        self.unreadable: list[str | bytes] = []
        self.closed: TransportClosed | None = None
        self.sent = 0
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                message = await self.transport.receive()
                try:
                    event = json.loads(message)
                except ValueError:
                    self.unreadable.append(message)
                    continue
                if isinstance(event, dict):
                    self.events.append(event)
                else:
                    self.unreadable.append(message)
        except TransportClosed as closed:
            self.closed = closed

    async def send(self, kind: str, **fields: Json) -> None:
        await self.transport.send(json.dumps({"type": kind, **fields}))
        await self.clock.settle()

    async def start(self, **session: Json) -> Event:
        await self.send("session.start", session={"model": "gpt-live-1", **session})
        return await self.one("session.started")

    async def one(self, kind: str) -> Event:
        """Wait for the first event of ``kind``."""
        async with asyncio.timeout(5):
            while not (found := self.all(kind)):
                assert self.closed is None, self.closed
                await asyncio.sleep(0.002)
        return found[0]

    def all(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("type") == kind]

    async def push(self, ms: int, *, value: int = 0, chunk_ms: int = 20) -> None:
        """Advance the clock by ``ms``, sending the audio of each chunk as it ends.

        Audio for a connection that is over goes nowhere.
        """
        for _ in range(ms // chunk_ms):
            samples = self.rate * chunk_ms // 1000
            self.sent += samples
            await self.clock.advance(self.sent * self.clock.rate_hz // self.rate)
            with suppress(TransportClosed):
                await self.send("session.input_audio.append", audio=self.pack(samples, value))
        await self.clock.settle()

    def pack(self, samples: int, value: int = 0) -> str:
        if self.width == 1:
            return base64.b64encode(bytes([0xFF]) * samples).decode()
        return base64.b64encode(np.full(samples, value, "<i2").tobytes()).decode()

    def output(self) -> npt.NDArray[np.int16]:
        """Return everything that was said, as int16."""
        data = b"".join(
            base64.b64decode(str(e["delta"])) for e in self.all("session.output_audio.delta")
        )
        return np.frombuffer(data, "<i2").astype(np.int16)

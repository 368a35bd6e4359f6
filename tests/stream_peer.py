"""An agent's end of a stream in memory: keeps what comes, says what a test tells it to."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field

import numpy as np

from duplex.clock import Clock
from duplex.local.pipe import PipeEnd, pipe
from duplex.participants.base import Pcm
from duplex.participants.transport import Connect, Transport, TransportClosed
from duplex.protocols import g711
from duplex.values import Json


@dataclass
class StreamPeer:
    """One connection; ``moments`` says at which position of the clock a message came."""

    received: list[str | bytes] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    closed: TransportClosed | None = None

    def connector(self) -> Connect:
        async def open_it(clock: Clock) -> Transport:
            self._clock = clock
            ours, self._end = pipe(clock)
            self._task = asyncio.create_task(self._read(self._end))
            return ours

        return open_it

    async def _read(self, end: PipeEnd) -> None:
        try:
            while True:
                message = await end.receive()
                self.received.append(message)
                self.moments.append(self._clock.position)
                await self.answer(message)
        except TransportClosed as closed:
            self.closed = closed

    async def answer(self, message: str | bytes) -> None:
        """What the agent does about a message; it may call ``self._end.send``."""

    async def send(self, message: str | bytes) -> None:
        await self._end.send(message)
        await self._clock.settle()

    async def close(self, code: int = 1000) -> None:
        await self._end.close(code)
        await self._clock.settle()

    async def drop(self) -> None:
        self._end.abort()
        await self._clock.settle()


class TwilioPeer(StreamPeer):
    """The same for Twilio's wire."""

    def all(self, event: str) -> list[dict[str, Json]]:
        return [one for one in map(json.loads, self.received) if one["event"] == event]

    def events(self) -> list[str]:
        return [str(json.loads(one)["event"]) for one in self.received]

    def when(self, event: str) -> list[int]:
        """The positions at which messages of ``event`` came."""
        told = zip(self.events(), self.moments, strict=True)
        return [at for one, at in told if one == event]

    def heard(self) -> Pcm:
        """Everything the agent was sent, decoded."""
        parts = [np.zeros(0, np.int16)]
        for one in self.all("media"):
            media = one["media"]
            assert isinstance(media, dict)
            parts.append(g711.decode(base64.b64decode(str(media["payload"])), "mu"))
        return np.concatenate(parts)

    async def say(self, pcm: Pcm) -> None:
        """Send int16 samples at 8 kHz as one media message."""
        payload = base64.b64encode(g711.encode(pcm, "mu")).decode()
        await self.tell("media", media={"payload": payload})

    async def mark(self, name: str) -> None:
        await self.tell("mark", mark={"name": name})

    async def tell(self, event: str, **fields: Json) -> None:
        await self._clock.settle()
        sid = self.all("start")[0]["streamSid"]
        await self.send(json.dumps({"event": event, "streamSid": sid, **fields}))

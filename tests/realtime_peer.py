"""A Realtime server that does as it is told: says, stops, fails, in any order a test wants.

It speaks the public protocol over an in-memory pipe or a socket's transport, and
checks of what it is sent what the service checks: the order of the handshake, one
response at a time, that nothing is truncated beyond its length or at 0.
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress

import numpy as np

from duplex.clock import Clock
from duplex.local.pipe import pipe
from duplex.participants.base import Pcm
from duplex.participants.transport import Connect, Transport, TransportClosed
from duplex.protocols.realtime_server import RealtimeMachine, Reply
from duplex.values import Json

Event = dict[str, Json]
RATE = 24_000


def tone(ms: int, hz: float = 300.0, level: int = 8_000, rate: int = RATE) -> Pcm:
    t = np.arange(ms * rate // 1000) / rate
    wave: Pcm = np.rint(level * np.sin(2 * np.pi * hz * t)).astype(np.int16)
    return wave


class Peer:
    """One session; ``got`` is what the client sent, in order."""

    def __init__(self, *, greets: bool = True) -> None:
        self.got: list[Event] = []
        self.refused: list[Event] = []
        self.machine = RealtimeMachine(session_id="sess_000001", model="m", expires_at=1)
        self.transport: Transport | None = None
        self.closed: TransportClosed | None = None
        self.greets = greets
        self.tasks: list[asyncio.Task[None]] = []

    def connect(self) -> Connect:
        async def open_it(clock: Clock) -> Transport:
            ours, theirs = pipe(clock)
            self.tasks.append(asyncio.create_task(self.serve(ours)))
            return theirs

        return open_it

    async def serve(self, transport: Transport) -> None:
        self.transport = transport
        if self.greets:
            await transport.send(self.machine.say_created())
        try:
            while True:
                message = await transport.receive()
                self.got.append(json.loads(message))
                for effect in self.machine.receive(message):
                    if isinstance(effect, Reply):
                        event = json.loads(effect.text)
                        if event["type"] == "error":
                            self.refused.append(event)
                        await transport.send(effect.text)
        except TransportClosed as closed:
            self.closed = closed

    async def send(self, *messages: str | bytes) -> None:
        assert self.transport is not None
        for message in messages:
            with suppress(TransportClosed):
                await self.transport.send(message)

    async def event(self, kind: str, **fields: Json) -> None:
        await self.send(json.dumps({"type": kind, **fields}))

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.got if event["type"] == kind]

    def commands(self) -> list[str]:
        """Types of what was sent after the handshake, audio left out."""
        skip = ("session.update", "input_audio_buffer.append")
        return [str(event["type"]) for event in self.got if event["type"] not in skip]

    def heard(self) -> Pcm:
        data = b"".join(
            base64.b64decode(str(event["audio"]))
            for event in self.kinds("input_audio_buffer.append")
        )
        return np.frombuffer(data, "<i2").astype(np.int16)

    # -- what a service does ------------------------------------------------

    async def begin(self) -> tuple[str, str]:
        """Begin a response and its message; return their ids."""
        await self.send(self.machine.say_response())
        assert self.machine.response_id is not None
        response_id, item_id = self.machine.response_id, self.machine.new_item(audio=True)
        item: Event = {"id": item_id, "type": "message", "role": "assistant", "content": []}
        await self.send(self.machine.say_item(item, 0, done=False))
        return response_id, item_id

    async def say(self, item_id: str, pcm: Pcm, text: str = "", piece: int = 4_800) -> None:
        """Send audio in pieces, all at once, and words before it."""
        if text:
            await self.send(self.machine.say_words(item_id, 0, text, whole=False))
        for at in range(0, len(pcm), piece):
            await self.send(self.machine.say_audio(item_id, 0, pcm[at : at + piece]))

    async def end(self, item_id: str, status: str = "completed", details: Json = None) -> None:
        """End the item and its response."""
        await self.send(self.machine.say_audio_done(item_id, 0))
        usage: Json = {
            "total_tokens": 30,
            "input_tokens": 20,
            "output_tokens": 10,
            "input_token_details": {"cached_tokens": 5},
        }
        await self.send(self.machine.say_response_done(status, [], details=details, usage=usage))

    async def reply(self, ms: int, text: str = "hello there my friend") -> str:
        """One whole reply, at once; return its item."""
        _, item_id = await self.begin()
        await self.say(item_id, tone(ms), text)
        await self.end(item_id)
        return item_id

    async def call(self, *calls: tuple[str, str, str], response: bool = True) -> None:
        """Call functions, (call id, name, arguments) each, in one response."""
        if response:
            await self.send(self.machine.say_response())
        for index, (call_id, name, arguments) in enumerate(calls):
            item_id = self.machine.new_item()
            await self.send(self.machine.say_call(item_id, index, call_id, name, arguments))
            item: Event = {
                "id": item_id,
                "type": "function_call",
                "status": "completed",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            }
            await self.send(self.machine.say_item(item, index, done=True))
        await self.send(self.machine.say_response_done("completed", []))

    async def hears(self, at_ms: int, *, started: bool = True) -> None:
        await self.send(self.machine.say_speech("item_heard", started=started, at_ms=at_ms))

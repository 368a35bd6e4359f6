"""Faults of content: messages that are broken, too long, cut oddly, repeated or out of order.

What the voice says is still sent, once at least. The line drives them.
"""

from __future__ import annotations

import json

from duplex.local.faults.line import AFTER_MS, Fault, audio_of, with_audio

ROUNDS = 3
"""How often a reordering strikes."""
GATHER_MS = 600
"""How long messages are left to gather for each round of it."""


class Garbage(Fault):
    """Sends broken JSON, wrong and missing fields, a type nobody knows and noise, then goes on."""

    name = "garbage"

    async def send(self, message: str | bytes) -> None:
        if await self.strikes():
            for piece in self._noise():
                await self.onward(piece)
        await self.onward(message)

    def _noise(self) -> tuple[str | bytes, ...]:
        audio = self.dialect.audio_type
        return (
            f'{{"type":"{audio}","delta":"AAA',
            "[1,2,3]",
            '{"type":"session.unheard_of","event_id":"event_0"}',
            f'{{"type":"{audio}","item_id":"item_x","delta":"!!!!"}}',
            b"\x00\xff\xfe\x80 not a message",
            "",
            "null",
            '{"type":7}',
            '{"event_id":"event_without_a_type"}',
            f'{{"type":"{audio}"}}',
            '{"type":"session.output_transcript.delta","delta":{"no":"text"},"start_ms":"soon"}',
            '{"type":"response.done","response":[]}',
            '{"type":"session.delegation.created","delegation":null}',
            '{"type":"error","error":"nothing"}',
            '{"type":"session.usage.updated","usage":{"seconds":1e999}}',
            '{"type":"\\ud800","delta":"\\udfff"}',
        )


class Oversize(Fault):
    """Sends one message of ``mib`` MiB, then goes on."""

    name = "oversize"

    def __init__(self, *, mib: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._size = round(mib * 1024 * 1024)

    async def send(self, message: str | bytes) -> None:
        if await self.strikes():
            padding = "x" * self._size
            await self.onward(f'{{"type":"session.unheard_of","padding":"{padding}"}}')
        await self.onward(message)


class OddBytes(Fault):
    """Cuts the audio so that every delta holds an odd number of bytes."""

    name = "odd_bytes"

    def __init__(self, *, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._left = b""
        self._last: str | bytes = ""

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        data = audio_of(message, self.dialect) if self.struck else None
        if data is None:
            if self._left and self._is_end(message):
                await self.onward(with_audio(self._last, self._left))
                self._left = b""
            await self.onward(message)
            return
        data = self._left + data
        cut = len(data) if len(data) % 2 else len(data) - 1
        self._left, self._last = data[cut:], message
        await self.onward(with_audio(message, data[:cut]))

    def _is_end(self, message: str | bytes) -> bool:
        ends = ('"response.output_audio.done"', '"session.closed"')
        return isinstance(message, str) and any(end in message for end in ends)


class Duplicate(Fault):
    """Sends each of the next ``messages`` twice."""

    name = "duplicate"

    def __init__(self, *, messages: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._left = int(messages)

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        await self.onward(message)
        if self.struck and self._left:
            self._left -= 1
            await self.onward(message)


class Reorder(Fault):
    """Lets messages gather, three times over, and sends each lot last first."""

    name = "reorder"

    def __init__(self, *, ms: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._ms = ms
        self._rounds = ROUNDS
        self._held: list[str | bytes] = []
        self._wanted = 0

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        if not self.struck or self._is_farewell(message):
            await self.flush()
            await self.onward(message)
            return
        if not self._wanted and self._rounds:
            self._rounds -= 1
            await self.line.linger(self._ms)
            self._wanted = self.line.waiting() + 1
        self._held.append(message)
        if len(self._held) >= self._wanted:
            await self.flush()

    async def flush(self) -> None:
        held, self._held, self._wanted = self._held, [], 0
        for message in reversed(held):
            await self.onward(message)

    def _is_farewell(self, message: str | bytes) -> bool:
        event = json.loads(message)
        return isinstance(event, dict) and event.get("type") == "session.closed"

"""Faults of endings: a connection that breaks off, ends by halves, expires or never ends.

The line drives them; after one that ends a session nothing more is sent.
"""

from __future__ import annotations

from duplex.local.faults.line import AFTER_MS, Fault
from duplex.participants.transport import ABNORMAL, TransportClosed
from duplex.protocols.gpt_live import write_base64


class Drop(Fault):
    """Ends the connection in mid-word: without a close frame, or with ``code``."""

    name = "drop"

    def __init__(self, *, code: float = ABNORMAL, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._code = int(code)

    async def send(self, message: str | bytes) -> None:
        if not await self.strikes():
            await self.onward(message)
            return
        if self._code == ABNORMAL:
            self.line.transport.abort()
        else:
            await self.line.transport.close(self._code, "dropped on purpose")
        raise TransportClosed(self._code)


class HalfClose(Fault):
    """Ends its own half of the connection in mid-word, without a close frame, and reads on."""

    name = "half_close"

    async def send(self, message: str | bytes) -> None:
        if await self.strikes():
            self.line.transport.half_close()
        if not self.struck:
            await self.onward(message)


class Expire(Fault):
    """Ends the session as a service does whose longest time is over."""

    name = "expire"

    async def send(self, message: str | bytes) -> None:
        if not await self.strikes():
            await self.onward(message)
            return
        messages, code, reason = self.dialect.farewell()
        for last in messages:
            await self.onward(last)
        await self.line.transport.close(code, reason)
        raise TransportClosed(code, reason)


class NeverClose(Fault):
    """Answers the wish to close with silence and more messages, for ever."""

    name = "never_close"

    async def send(self, message: str | bytes) -> None:
        if await self.strikes():
            self.line.transport.keep_open()
        if self.struck and isinstance(message, str) and '"session.closed"' in message:
            while True:
                await self.line.clock.until(self.line.clock.position + self.line.ticks(500))
                await self.onward(self._silence())
        await self.onward(message)

    def _silence(self) -> str:
        audio = write_base64(bytes(960))
        return f'{{"type":"{self.dialect.audio_type}","delta":"{audio}"}}'

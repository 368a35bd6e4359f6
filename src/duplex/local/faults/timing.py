"""Faults of time: what a server sends arrives late, unevenly, or not for a while.

Every message still arrives, once, and in order. The line drives them.
"""

from __future__ import annotations

import random

from duplex.local.faults.line import AFTER_MS, Fault

SPELL_MS = 400
"""How long one draw of the jitter holds."""


class Stall(Fault):
    """Sends nothing for a while, then everything at once."""

    name = "stall"

    def __init__(self, *, seconds: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._seconds = seconds

    async def send(self, message: str | bytes) -> None:
        if await self.strikes():
            await self.line.linger(self._seconds * 1000)
        await self.onward(message)


class Delay(Fault):
    """Sends every message so much later than it was made."""

    name = "delay"

    def __init__(self, *, ms: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._ms = ms

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        if self.struck:
            await self.line.until(self.line.emitted + self.line.ticks(self._ms))
        await self.onward(message)


class Jitter(Fault):
    """Sends every message later by an amount that changes several times a second."""

    name = "jitter"

    def __init__(self, *, ms: float, seed: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._ms = ms
        self._random = random.Random(f"{seed:.0f}:jitter")
        self._spell_ends = 0
        self._late = 0

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        if self.struck:
            line = self.line
            if line.emitted >= self._spell_ends:
                self._spell_ends = line.emitted + line.ticks(SPELL_MS)
                self._late = line.ticks(self._random.uniform(0, self._ms))
            await line.until(line.emitted + self._late)
        await self.onward(message)

"""Drives one live session through ticks, as the call loop does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duplex.clock import Clock
from duplex.participants.base import Incoming, Participant, Pcm, Spoken
from duplex.values import Happening, Json, RemoteFault


class LiveBench:
    """One session, its clock, and everything it handed over."""

    def __init__(self, session: Participant, clock: Clock, tick_ms: int = 20) -> None:
        self.session = session
        self.clock = clock
        self.tick = clock.rate_hz * tick_ms // 1000
        self.position = 0
        self.items: list[Incoming] = []
        self.placed: list[tuple[int, Pcm]] = []
        """Audio with the position at which it was collected."""

    async def start(self) -> None:
        await self.session.start(self.clock)
        self.clock.begin()

    async def run(self, ms: int, heard: Callable[[int], Pcm] | None = None) -> None:
        """Hold the call for ``ms``; ``heard`` gives a tick's audio from its position."""
        until = self.position + ms * self.clock.rate_hz // 1000
        while self.position < until and not self.fatal():
            await self.clock.advance(self.position + self.tick)
            came = self.session.collect()
            self.items += came
            self.placed += [(self.position, one.pcm) for one in came if isinstance(one, Spoken)]
            pcm = heard(self.position) if heard else np.zeros(self.tick, np.int16)
            self.session.hear(self.position, pcm)
            self.position += self.tick

    async def finish(self) -> None:
        await self.session.finish()
        await self.session.abort()
        self.items += self.session.collect()

    def audio(self) -> Pcm:
        pieces = [item.pcm for item in self.items if isinstance(item, Spoken)]
        return np.concatenate([np.zeros(0, np.int16), *pieces])

    def told(self, kind: str) -> list[dict[str, Json]]:
        return [
            dict(item.fields)
            for item in self.items
            if isinstance(item, Happening) and item.type == kind
        ]

    def faults(self) -> list[tuple[str, str, bool]]:
        """Return (stage, code, fatal) of every fault, in order."""
        return [
            (item.stage, item.code, item.fatal)
            for item in self.items
            if isinstance(item, RemoteFault)
        ]

    def fatal(self) -> bool:
        return any(fatal for _, _, fatal in self.faults())

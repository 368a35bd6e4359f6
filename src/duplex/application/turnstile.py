"""One at a time, first come first served, giving up the clock's token while waiting.

Backends work delegations of one call off in order with it, so the same details can
never be booked twice. Media time cannot slip between one who leaves and the next.
"""

from __future__ import annotations

import asyncio
from collections import deque

from duplex.clock import Clock


class Turnstile:
    """Entered with a token on the clock, and left with it."""

    def __init__(self) -> None:
        self._busy = False
        self._queue: deque[asyncio.Future[None]] = deque()

    async def enter(self, clock: Clock) -> None:
        if not self._busy:
            self._busy = True
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(mine)
        clock.drop()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.leave(clock)
            else:
                clock.hold()
            raise

    def leave(self, clock: Clock) -> None:
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                # Held here for the one who waits, so that media time cannot slip between.
                clock.hold()
                waiting.set_result(None)
                return
        self._busy = False

"""Opening a connection, and waiting where the host asks for time.

An answer of 429 at the door is waited out: as long as the host says, else after pauses
that double, for all sessions of a run together, and bounded. Every wait is told. Any
other refusal is final. A participant drives it as it starts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from duplex.clock import Clock, real_pause, wall_seconds
from duplex.models.limiter import Limiter
from duplex.participants.transport import Connect, Transport, TransportRefused

BUSY = "429"
ATTEMPTS = 8
PATIENCE_SECONDS = 20.0
"""Longest that all waits for one connection may take together."""
_HOST = "door"


class Door:
    """One host's door; the sessions of a run that knock at it share it."""

    def __init__(self) -> None:
        self._limiter = Limiter()

    async def open(
        self,
        connect: Connect,
        clock: Clock,
        *,
        timeout_ms: int,
        told: Callable[[str, str], None],
    ) -> Transport:
        """Connect; ``told`` takes the code and the words of every wait.

        Raises TransportRefused, and TimeoutError when one attempt takes too long.
        """
        waited = 0.0
        for attempt in itertools.count(1):
            waited += await self._leave_alone(clock, PATIENCE_SECONDS - waited)
            try:
                transport = await clock.within(_awaited(connect, clock), timeout_ms)
            except TransportRefused as refused:
                if refused.code != BUSY:
                    raise
                pause = self._limiter.refused(_HOST, wall_seconds(), refused.retry_after)
                if attempt == ATTEMPTS or waited + pause > PATIENCE_SECONDS:
                    text = f"{refused}; it was waited for {waited:.0f} s and asked for more"
                    raise TransportRefused(BUSY, text) from None
                told(BUSY, f"{refused}; it is asked again after {pause:.1f} s")
            else:
                self._limiter.served(_HOST)
                return transport
        raise AssertionError("the last attempt raises or returns")

    async def _leave_alone(self, clock: Clock, most: float) -> float:
        """Wait as long as the host asked for; where time stands still nobody needs to."""
        pause = min(self._limiter.wait(_HOST, wall_seconds()), most)
        if pause <= 0:
            return 0.0
        if not clock.virtual:
            await real_pause(pause)
        return pause


async def _awaited(connect: Connect, clock: Clock) -> Transport:
    return await connect(clock)

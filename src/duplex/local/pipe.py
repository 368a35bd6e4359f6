"""A connection in memory, for both ends of a session in one process.

Whole messages go in at one end and come out at the other, in order, with no
socket in between. Each end's inbox keeps virtual time still until its reader
has dealt with what came, so "the clock is settled" means that nothing is on
its way. It knows nothing of the messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.clock import Clock
from duplex.participants.held_queue import HeldQueue, QueueClosed
from duplex.participants.transport import ABNORMAL, TransportClosed

PIPE_LIMIT = 10_000
"""Messages that may be on their way; more ends the connection."""


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    reason: str


class PipeEnd:
    """One end; made in pairs by :func:`pipe`."""

    def __init__(self, clock: Clock) -> None:
        self._inbox: HeldQueue[str | bytes | _Ended] = HeldQueue(clock, PIPE_LIMIT + 1)
        self._peer: PipeEnd | None = None
        self._over: _Ended | None = None
        self._deaf = False

    async def send(self, message: str | bytes) -> None:
        if self._over is not None:
            raise TransportClosed(self._over.code, self._over.reason)
        assert self._peer is not None
        # One place is kept, so that the end of a full pipe can still be told.
        if len(self._peer._inbox) >= PIPE_LIMIT:
            self._end(_Ended(1009, "too many messages on their way"))
        else:
            self._peer._inbox.put(message)

    async def receive(self) -> str | bytes:
        if self._over is not None:
            raise TransportClosed(self._over.code, self._over.reason)
        try:
            item = await self._inbox.get()
        except QueueClosed:
            code, reason = (self._over.code, self._over.reason) if self._over else (ABNORMAL, "")
            raise TransportClosed(code, reason) from None
        if isinstance(item, _Ended):
            # Nothing follows, and whoever reads deals with the end at once.
            self._over = item
            self._inbox.close()
            raise TransportClosed(item.code, item.reason)
        return item

    async def close(self, code: int = 1000, reason: str = "") -> bool:
        assert self._peer is not None
        self._end(_Ended(code, reason))
        self._inbox.close()
        return not self._peer._deaf

    def abort(self) -> None:
        self._end(_Ended(ABNORMAL, ""))
        self._inbox.close()

    def half_close(self) -> None:
        """End the outgoing half without a close frame and go on reading."""
        assert self._peer is not None
        self._peer._inbox.put(_Ended(ABNORMAL, ""))

    def keep_open(self) -> None:
        """Never answer the other end's close."""
        self._deaf = True

    def _end(self, how: _Ended) -> None:
        """Close both directions; the peer learns it after what is still on its way."""
        assert self._peer is not None
        if self._over is None:
            self._over = how
            self._peer._inbox.put(how)


def pipe(clock: Clock) -> tuple[PipeEnd, PipeEnd]:
    """Return two joined ends."""
    left, right = PipeEnd(clock), PipeEnd(clock)
    left._peer, right._peer = right, left
    return left, right

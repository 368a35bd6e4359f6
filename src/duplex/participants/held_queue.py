"""A bounded queue that keeps virtual time still until its consumer has caught up.

One consumer. While anything is queued, or the consumer is still busy with what
it took last, the queue holds one token on the clock; it gives the token back
when the consumer asks for more and there is none. A consumer may sleep in
``clock.until``, which lends that one token. :meth:`close` must come when the
consumer is not asleep there: from itself, or after it ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from duplex.clock import Clock

T = TypeVar("T")


class QueueClosed(Exception):
    """The queue was closed while its consumer waited."""


class HeldQueue(Generic[T]):
    """First in, first out, at most ``limit`` items."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._items: deque[T] = deque()
        self._ready = asyncio.Event()
        self._busy = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> bool:
        """Queue ``item``; return False, and drop it, when full or closed."""
        if self._closed or len(self._items) >= self._limit:
            return False
        self._items.append(item)
        if not self._busy:
            self._busy = True
            self._clock.hold()
        self._ready.set()
        return True

    async def get(self) -> T:
        """Return the next item; the one before it counts as dealt with."""
        while not self._items:
            if self._closed:
                raise QueueClosed
            self._idle()
            self._ready.clear()
            await self._ready.wait()
        return self._items.popleft()

    def close(self) -> None:
        """Forget what is queued and give the token back; may be called twice."""
        self._closed = True
        self._items.clear()
        self._idle()
        self._ready.set()

    def _idle(self) -> None:
        if self._busy:
            self._busy = False
            self._clock.drop()

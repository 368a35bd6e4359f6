"""Media time: when the next tick is due, and when pending work is finished.

The call loop drives a clock; participants, servers and tools wait on it. The
wall clock waits for absolute deadlines and records how late it was. The
virtual clock stands still until everything that holds a token on it is done,
so a call runs as fast as the processor allows and is the same every time.
Only this module imports ``time``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import time
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """What the loop and everything that waits for media time need."""

    rate_hz: int
    lateness_ms: list[float]
    """How late each tick so far was; always empty in virtual time."""

    @property
    def virtual(self) -> bool: ...

    @property
    def position(self) -> int:
        """Samples since :meth:`begin`; on the wall clock, what is due by now."""

    def begin(self) -> None:
        """Set position 0 to now."""

    def elapsed(self) -> float | None:
        """Seconds of wall time since :meth:`begin`; None in virtual time."""

    async def until(self, position: int) -> None:
        """Return once ``position`` (samples) is reached."""

    async def advance(self, position: int) -> None:
        """Called by the loop only: move to ``position`` and settle there."""

    async def settle(self) -> None:
        """Return when nothing that holds a token is left to do."""

    def hold(self) -> None:
        """Take a token: the virtual clock may not move until it is dropped."""

    def drop(self) -> None:
        """Give a token back."""

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Run ``work`` as a task that holds a token except while in :meth:`until`."""

    async def within(self, work: Awaitable[T], timeout_ms: int) -> T:
        """Await ``work``; raise TimeoutError after ``timeout_ms`` of wall time."""


def wall_seconds() -> float:
    """Read the monotonic clock, in seconds (for figures of cost, never of audio)."""
    return time.monotonic()


def utc_seconds() -> float:
    """Read the time since the epoch, in seconds (to understand a date that a server sent)."""
    return time.time()


async def real_pause(seconds: float) -> None:
    """Wait in real time for the world outside a call, such as a server's rate limit.

    Virtual time stands still meanwhile, as long as whoever waits holds a token.
    """
    await asyncio.sleep(seconds)


def process_seconds() -> float:
    """Tell how long this process has lived, in seconds, start-up included.

    Where the system does not say when it began (no ``/proc``), processor time
    stands in: it leaves out what was waited for.
    """
    try:
        with open("/proc/self/stat", encoding="ascii") as file:
            began = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, AttributeError):
        return time.process_time()


def utc_now() -> str:
    """Label the present moment, ISO 8601 UTC with milliseconds; a label only."""
    now = time.time()
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return f"{whole}.{int(now % 1 * 1000):03d}Z"


@contextmanager
def holding(clock: Clock) -> Iterator[None]:
    """Hold a token for the length of a block."""
    clock.hold()
    try:
        yield
    finally:
        clock.drop()


class WallClock:
    """Absolute deadlines on the monotonic clock, lateness recorded.

    ``lateness_ms`` holds one entry per :meth:`advance`, in milliseconds; a tick
    reached before its deadline is 0. A late tick never moves later deadlines.
    """

    virtual = False

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.lateness_ms: list[float] = []
        self._start = time.monotonic()

    def begin(self) -> None:
        self._start = time.monotonic()
        self.lateness_ms.clear()

    @property
    def position(self) -> int:
        return int((time.monotonic() - self._start) * self.rate_hz)

    def elapsed(self) -> float | None:
        return time.monotonic() - self._start

    async def until(self, position: int) -> None:
        deadline = self._start + position / self.rate_hz
        # Once more when the sleep ended early: a deadline is never reached before its time.
        while (left := deadline - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)

    async def advance(self, position: int) -> None:
        await self.until(position)
        late = time.monotonic() - self._start - position / self.rate_hz
        self.lateness_ms.append(max(0.0, late * 1000))
        await asyncio.sleep(0)

    async def settle(self) -> None:
        await asyncio.sleep(0)

    def hold(self) -> None:
        return

    def drop(self) -> None:
        return

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work)

    async def within(self, work: Awaitable[T], timeout_ms: int) -> T:
        return await asyncio.wait_for(work, timeout_ms / 1000)


class VirtualClock:
    """Media time that moves only when every token is back.

    A token stands for something unfinished: a message in a pipe, a speech job
    that is due, a tool that runs. :meth:`advance` wakes waiters in (position,
    order of asking) order and settles after each, so two runs cannot differ.
    """

    virtual = True

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.lateness_ms: list[float] = []
        self._position = 0
        self._tokens = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._order = itertools.count()
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []

    def begin(self) -> None:
        self._position = 0

    @property
    def position(self) -> int:
        return self._position

    def elapsed(self) -> float | None:
        return None

    def hold(self) -> None:
        self._tokens += 1
        self._idle.clear()

    def drop(self) -> None:
        assert self._tokens > 0, "a token was dropped twice"
        self._tokens -= 1
        if self._tokens == 0:
            self._idle.set()

    async def until(self, position: int) -> None:
        """Wait for ``position``; the caller's own token is given up meanwhile."""
        if position <= self._position:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (position, next(self._order), future))
        self.drop()
        try:
            await future
        except asyncio.CancelledError:
            # Woken and cancelled alike: the task's own token must be back.
            if future.cancelled():
                self.hold()
            raise

    async def advance(self, position: int) -> None:
        await self.settle()
        while self._waiters and self._waiters[0][0] <= position:
            due, _, future = heapq.heappop(self._waiters)
            if future.done():
                continue
            self._position = max(self._position, due)
            self.hold()
            future.set_result(None)
            await self.settle()
        self._position = position

    async def settle(self) -> None:
        while self._tokens:
            await self._idle.wait()

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        self.hold()
        task = asyncio.get_running_loop().create_task(work)
        # A callback, not a finally: a task cancelled before its first step runs neither.
        task.add_done_callback(lambda _: self.drop())
        return task

    async def within(self, work: Awaitable[T], timeout_ms: int) -> T:
        # The media clock may be standing still; only a hung peer needs a bound.
        return await asyncio.wait_for(work, max(timeout_ms / 1000, 120))

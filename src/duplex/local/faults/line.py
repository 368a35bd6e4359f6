"""A session's connection as a fault sees it, and what every fault is built on.

A fault stands between a session and its connection: it sees every message on its
way out and may lose one on its way in. It strikes once the voice has been heard
for ``after_ms``, and never before; until then, and apart from what it is for, it
changes nothing. It knows nothing of the voice. The local sessions drive it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from duplex.clock import Clock
from duplex.participants.transport import Transport
from duplex.protocols.gpt_live import read_base64, write_base64
from duplex.values import Json

Send = Callable[[str | bytes], Awaitable[None]]
AFTER_MS = 1_000.0
"""How long the voice has been heard when a fault strikes, unless told otherwise."""
LEAD_MS = 300
"""Speech that a voice which is faster than real time may be ahead before a fault strikes."""
PACE = 0.8
"""Pace at which it then goes on, 1 being that of hearing; above, it would run dry by itself."""
PATIENCE_MS = 8_000
"""Longest that such a voice is held back for a strike."""
VOICED_LEVEL = 200
"""A block with a sample above this counts as heard."""
STEP_MS = 20

log = logging.getLogger(__name__)


class ServerTransport(Transport, Protocol):
    """A server's end of a connection, which can also misbehave."""

    def half_close(self) -> None:
        """End the outgoing half without a close frame and go on reading."""

    def keep_open(self) -> None:
        """Never answer the other end's close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a fault must know of a session's words; one for each API.

    ``announce`` writes the notice that the fault of that name strikes now, ``farewell``
    the last messages of an expired session with its close code and reason;
    ``bytes_a_second`` is of the audio the session says.
    """

    realtime: bool
    announce: Callable[[str], str]
    farewell: Callable[[], tuple[Sequence[str], int, str]]
    bytes_a_second: Callable[[], int]

    @property
    def audio_type(self) -> str:
        return "response.output_audio.delta" if self.realtime else "session.output_audio.delta"


class Line:
    """The connection; the session keeps ``voiced_ms``, ``emitted`` and ``waiting`` up to date.

    ``voiced_ms`` is how much of the output so far was heard and not silence,
    ``emitted`` the clock's position at which the message being sent was made,
    ``waiting`` how many messages stand behind it.
    """

    def __init__(self, transport: ServerTransport, clock: Clock) -> None:
        self.transport = transport
        self.voiced_ms = 0
        self.emitted = 0
        self.waiting: Callable[[], int] = lambda: 0
        self.clock = clock
        self._hurried = False
        self._sleep: asyncio.Task[None] | None = None

    async def pause(self, ms: float) -> None:
        """Wait for media time."""
        await self.clock.until(self.clock.position + self.ticks(ms))

    async def linger(self, ms: float) -> None:
        """The sender waits; messages queue up behind meanwhile."""
        await self.until(self.clock.position + self.ticks(ms))

    async def until(self, position: int) -> None:
        """The sender waits for that position, or until it is hurried."""
        if self._hurried or position <= self.clock.position:
            return
        # A task of its own, so that it can be woken where media time has come to its end.
        sleep = self._sleep = asyncio.create_task(self.clock.until(position))
        try:
            await asyncio.wait([sleep])
        finally:
            self._sleep = None
            sleep.cancel()
            await asyncio.gather(sleep, return_exceptions=True)

    def hurry(self) -> None:
        """The session closes: in virtual time nothing would ever be due again."""
        if self.clock.virtual:
            self._hurried = True
            if self._sleep is not None:
                self._sleep.cancel()

    def ticks(self, ms: float) -> int:
        return round(ms * self.clock.rate_hz / 1000)


class Fault:
    """Base of all faults of a session: passes every message on."""

    name = "none"

    def __init__(self, *, after_ms: float = AFTER_MS) -> None:
        self.after_ms = after_ms
        self.struck = False
        self._line: Line | None = None
        self._dialect: Dialect | None = None
        self._onward: Send | None = None

    def join(self, line: Line, dialect: Dialect, onward: Send) -> Send:
        """Take a place in front of ``onward``; return what to call instead of it."""
        self._line, self._dialect, self._onward = line, dialect, onward
        return self.send

    async def send(self, message: str | bytes) -> None:
        await self.onward(message)

    def loses(self, message: str | bytes) -> bool:
        """Whether a message on its way in never arrives."""
        return False

    async def flush(self) -> None:
        """The last message was sent: let go of what is held."""

    @property
    def line(self) -> Line:
        assert self._line is not None, "a fault is used after join"
        return self._line

    @property
    def dialect(self) -> Dialect:
        assert self._dialect is not None, "a fault is used after join"
        return self._dialect

    async def onward(self, message: str | bytes) -> None:
        assert self._onward is not None, "a fault is used after join"
        await self._onward(message)

    async def strikes(self) -> bool:
        """Tell once, at the first message after the voice was heard long enough."""
        if self.struck or self.line.voiced_ms < self.after_ms:
            return False
        self.struck = True
        log.warning("fault %s strikes", self.name)
        await self.onward(self.dialect.announce(self.name))
        return True


class Gate(Fault):
    """Keeps a voice that is faster than real time from having said all before a fault strikes."""

    def __init__(self, *, after_ms: float) -> None:
        super().__init__(after_ms=after_ms)
        self._sent_ms = 0.0
        self._due = 0

    async def send(self, message: str | bytes) -> None:
        ms = 0.0
        if (data := audio_of(message, self.dialect)) is not None:
            ms = len(data) * 1000 / self.dialect.bytes_a_second()
        self._sent_ms += ms
        if not self.struck and self._sent_ms > self.after_ms + LEAD_MS:
            await self._wait()
            self._due = self.line.clock.position
        if self.struck:
            # What was held back counts as made now, at nearly the pace at which it is heard.
            self.line.emitted = max(self.line.emitted, self._due)
            self._due = self.line.emitted + self.line.ticks(ms * PACE)
        await self.onward(message)

    async def _wait(self) -> None:
        for _ in range(PATIENCE_MS // STEP_MS):
            if self.line.voiced_ms >= self.after_ms:
                break
            await self.line.linger(STEP_MS)
        self.struck = True


def audio_of(message: str | bytes, dialect: Dialect) -> bytes | None:
    """The audio in one of the server's own messages; None when it holds none."""
    if not isinstance(message, str) or dialect.audio_type not in message:
        return None
    event: Json = json.loads(message)
    data = read_base64(event.get("delta")) if isinstance(event, dict) else None
    return data if isinstance(data, bytes) else None


def with_audio(message: str | bytes, data: bytes) -> str:
    """The same message with other audio."""
    event: Json = json.loads(message)
    assert isinstance(event, dict), "a server's own message is an object"
    return json.dumps({**event, "delta": write_base64(data)})

"""What can go wrong on the server's sending side, one small class a fault.

A fault stands between a session and its connection and sees every message on
its way out. It strikes once the voice has been heard for ``after_ms``, and
never before; until then, and apart from what it is for, it changes nothing.
The local session drives it; nothing here knows the voice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

from duplex.clock import Clock
from duplex.errors import InputError
from duplex.participants.transport import ABNORMAL, Transport, TransportClosed
from duplex.protocols.gpt_live import read_base64, write_base64

Send = Callable[[str | bytes], Awaitable[None]]


class Line:
    """A session's connection as a fault sees it.

    ``voiced_ms`` is how much of the output so far was not silence; the session
    keeps it up to date.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self.transport = transport
        self.voiced_ms = 0
        self._clock = clock

    async def pause(self, ms: float) -> None:
        """Wait for media time; messages queue up behind meanwhile."""
        await self._clock.until(self._clock.position + round(ms * self._clock.rate_hz / 1000))


class Fault:
    """Base of all faults: passes every message on."""

    def __init__(self, *, after_ms: float = 500) -> None:
        self._after_ms = after_ms
        self._struck = False
        self._line: Line | None = None
        self._onward: Send | None = None

    def join(self, line: Line, onward: Send) -> Send:
        """Take a place in front of ``onward``; return what to call instead of it."""
        self._line, self._onward = line, onward
        return self.send

    async def send(self, message: str | bytes) -> None:
        await self.onward(message)

    @property
    def line(self) -> Line:
        assert self._line is not None, "a fault is used after join"
        return self._line

    async def onward(self, message: str | bytes) -> None:
        assert self._onward is not None, "a fault is used after join"
        await self._onward(message)

    def strikes(self) -> bool:
        """Tell once, at the first message after the voice was heard long enough."""
        if self._struck or self.line.voiced_ms < self._after_ms:
            return False
        self._struck = True
        return True


class Refuse(Fault):
    """Refuses the upgrade with an HTTP status; the server asks for it at the door."""

    def __init__(self, *, status: float = 503, after_ms: float = 0) -> None:
        super().__init__(after_ms=after_ms)
        self.status = int(status)


class Stall(Fault):
    """Sends nothing for a while, then everything at once."""

    def __init__(self, *, seconds: float = 3, after_ms: float = 500) -> None:
        super().__init__(after_ms=after_ms)
        self._seconds = seconds

    async def send(self, message: str | bytes) -> None:
        if self.strikes():
            await self.line.pause(self._seconds * 1000)
        await self.onward(message)


class Drop(Fault):
    """Ends the connection in mid-call: without a close frame, or with ``code``."""

    def __init__(self, *, code: float = ABNORMAL, after_ms: float = 500) -> None:
        super().__init__(after_ms=after_ms)
        self._code = int(code)

    async def send(self, message: str | bytes) -> None:
        if not self.strikes():
            await self.onward(message)
            return
        if self._code == ABNORMAL:
            self.line.transport.abort()
        else:
            await self.line.transport.close(self._code, "dropped on purpose")
        raise TransportClosed(self._code)


class Garbage(Fault):
    """Sends broken JSON, a list, a type nobody knows and binary noise, then goes on."""

    async def send(self, message: str | bytes) -> None:
        if self.strikes():
            noise: Sequence[str | bytes] = (
                '{"type":"session.output_audio.delta","delta":"AAA',
                "[1,2,3]",
                '{"type":"session.unheard_of","event_id":"event_0"}',
                '{"type":"session.output_audio.delta","delta":"!!!!"}',
                b"\x00\xff\xfe\x80 not a message",
            )
            for piece in noise:
                await self.onward(piece)
        await self.onward(message)


class OddBytes(Fault):
    """Cuts the audio so that every delta holds an odd number of bytes."""

    def __init__(self, *, after_ms: float = 500) -> None:
        super().__init__(after_ms=after_ms)
        self._left = b""

    async def send(self, message: str | bytes) -> None:
        self.strikes()
        event = json.loads(message)
        if not self._struck or not isinstance(event, dict):
            await self.onward(message)
        elif event["type"] == "session.output_audio.delta":
            data = read_base64(event["delta"])
            assert isinstance(data, bytes), "a server's own delta is base64"
            data = self._left + data
            cut = len(data) if len(data) % 2 else len(data) - 1
            self._left = data[cut:]
            await self.onward(_delta(data[:cut]))
        else:
            if event["type"] == "session.closed" and self._left:
                await self.onward(_delta(self._left))
            await self.onward(message)


class NeverClose(Fault):
    """Answers ``session.close`` with silence and more audio, for ever."""

    async def send(self, message: str | bytes) -> None:
        if isinstance(message, str) and '"session.closed"' in message:
            while True:
                await self.line.pause(500)
                await self.onward(_delta(bytes(960)))
        await self.onward(message)


MakeFault = Callable[[], Fault]
FAULTS: dict[str, Callable[..., Fault]] = {
    "refuse": Refuse,
    "stall": Stall,
    "drop": Drop,
    "garbage": Garbage,
    "odd_bytes": OddBytes,
    "never_close": NeverClose,
}


def parse_fault(text: str) -> MakeFault:
    """Return what makes the fault named by ``NAME[,key=number…]``; raise InputError."""
    name, *pairs = text.split(",")
    make = FAULTS.get(name.strip().replace("-", "_"))
    if make is None:
        raise InputError(f"fault {name!r} is not known, wanted one of {', '.join(FAULTS)}")
    options: dict[str, float] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            options[key.strip().replace("-", "_")] = float(value)
        except ValueError:
            raise InputError(f"fault {name}: {pair!r} is not key=number") from None
    try:
        make(**options)
    except TypeError:
        given = ", ".join(options)
        raise InputError(f"fault {name} does not take {given}") from None
    return lambda: make(**options)


def _delta(data: bytes) -> str:
    return json.dumps({"type": "session.output_audio.delta", "delta": write_base64(data)})

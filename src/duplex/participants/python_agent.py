"""An agent that is a Python function, in this process: it hears a tick and says what it will.

``factory(call)`` makes it; then it is called once a tick as ``agent(heard, rate_hz)``
and returns what it says, if anything. In virtual time it is called inside the
tick, so a call waits for it and comes out the same every time; on the wall
clock it has a thread of its own, and what takes it long comes late. Whatever it
raises, ``sys.exit`` too, is its own fault, recorded, and never ends the call.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from duplex.application.tools import told
from duplex.clock import Clock
from duplex.errors import SessionError
from duplex.participants.base import Discarded, Incoming, Pcm
from duplex.participants.live_reading import Reading
from duplex.participants.reports import Reports
from duplex.participants.spurts import LIMIT_SECONDS, Spurts
from duplex.protocols.gpt_live import Broken, read_object
from duplex.protocols.side_channel import REPORT_LIMIT, Claim, read_report
from duplex.values import Json, Side

START_MS = 60_000
"""How long a factory may take on the wall clock."""
BEHIND_TICKS = 250
"""Ticks that may wait for an agent on the wall clock; more are not heard by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One call, as its agent sees it: what it is told, and how it tells something back.

    ``instructions`` are those an assistant of another kind would be given.
    """

    rate_hz: int
    instructions: str
    seed: int
    tell: Callable[[Mapping[str, Json]], None]
    """Report over the side channel, a dictionary of ``docs/side-channel.md``."""
    clear: Callable[[], None]
    """Forget what was returned and is not heard yet, as on a barge-in."""


@dataclass(frozen=True, slots=True)
class _Said:
    spoken: object
    at: int


@dataclass(frozen=True, slots=True)
class _Told:
    report: object
    at: int


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


@dataclass(frozen=True, slots=True)
class _Cleared:
    pass


class PythonAgent:
    """One agent of one call; started, heard, collected and finished by the loop."""

    lock_step = True

    def __init__(
        self,
        factory: Callable[..., object],
        *,
        instructions: str = "",
        seed: int = 7,
        side: Side = Side.ASSISTANT,
        start_ms: int = START_MS,
    ) -> None:
        self.side = side
        self._factory = factory
        self._instructions = instructions
        self._seed = seed
        self._start_ms = start_ms
        self._reading = Reading(side, "python")
        self._reports = Reports(self._reading)
        # Written by the agent's thread, emptied by the loop: appends of a deque are atomic.
        self._came: deque[_Said | _Told | _Failed | _Cleared] = deque()
        self._agent: Callable[..., object] | None = None
        self._ticks: queue.Queue[Pcm | None] = queue.Queue(BEHIND_TICKS)
        self._thread: threading.Thread | None = None
        self._position = 0
        self._tick = 0
        self._over = False
        self._cut: list[Discarded] = []

    # -- opening ------------------------------------------------------------

    async def start(self, clock: Clock) -> None:
        """Make the agent; raises SessionError when its factory cannot."""
        self._clock = clock
        self._spurts = Spurts(clock.rate_hz, clock.rate_hz, hold_ms=0)
        self._call = AgentCall(
            rate_hz=clock.rate_hz,
            instructions=self._instructions,
            seed=self._seed,
            tell=lambda report: self._came.append(_Told(report, self._now())),
            clear=lambda: self._came.append(_Cleared()),
        )
        made = self._made() if clock.virtual else await self._made_in_thread(clock)
        if isinstance(made, BaseException):
            self._over = True
            raise self._error(type(made).__name__, f"the factory failed: {told(made)}")
        if not callable(made):
            kind = type(made).__name__
            raise self._error("not_callable", f"the factory made {kind}, wanted a function")
        self._agent = made
        fields: dict[str, Json] = {
            "session_id": "",
            "model": "",
            "voice": "",
            "provider": "python",
        }
        self._reading.tell("session.started", fields, clock.elapsed())

    def _made(self) -> object:
        """What the factory makes, or what it raised."""
        try:
            return self._factory(self._call)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error

    async def _made_in_thread(self, clock: Clock) -> object:
        loop = asyncio.get_running_loop()
        made: asyncio.Future[object] = loop.create_future()

        def settle(found: object) -> None:
            if not made.done():
                made.set_result(found)

        def live() -> None:
            found = self._made()
            with suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(settle, found)
            if callable(found):
                while (tick := self._ticks.get()) is not None:
                    self._step(found, tick)

        # A daemon: an agent that never returns must not keep the process alive.
        self._thread = threading.Thread(target=live, name="duplex-agent", daemon=True)
        self._thread.start()
        try:
            return await clock.within(made, self._start_ms)
        except TimeoutError:
            text = f"the factory took longer than {self._start_ms} ms"
            raise self._error("timeout", text) from None

    def _error(self, code: str, message: str) -> SessionError:
        stage = f"{self.side.label}_connection"
        return SessionError(f"{self.side.label}: {message}", stage=stage, code=code)

    # -- the call -----------------------------------------------------------

    def hear(self, position: int, pcm: Pcm) -> None:
        self._tick = len(pcm)
        self._position = position + len(pcm)
        if self._over or self._agent is None:
            return
        if self._thread is None:
            self._step(self._agent, pcm)
            return
        try:
            self._ticks.put_nowait(pcm)
        except queue.Full:
            text = f"the agent is {BEHIND_TICKS} ticks behind, a tick went unheard"
            self._reading.fault("agent", "too_slow", text)

    def collect(self) -> Sequence[Incoming]:
        while self._came:
            self._take(self._came.popleft())
        items: list[Incoming] = [*self._reading.collect(), *self._cut]
        self._cut.clear()
        if self._tick and not self._over:
            items += self._spurts.pull(self._tick, self._position)
        return items

    def _step(self, agent: Callable[..., object], pcm: Pcm) -> None:
        """Let the agent hear one tick; in its thread, or in the loop in virtual time."""
        try:
            spoken = agent(pcm, self._clock.rate_hz)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._came.append(_Failed(error))
            return
        if spoken is not None:
            self._came.append(_Said(spoken, self._now()))

    def _now(self) -> int:
        """The moment, in samples of the call; its start while there is no tick yet."""
        return self._clock.position if self._tick else 0

    def _take(self, item: _Said | _Told | _Failed | _Cleared) -> None:
        match item:
            case _Failed():
                self._reading.fault("agent", type(item.error).__name__, told(item.error)[:500])
            case _Cleared():
                self._clear()
            case _Told():
                self._report(item)
            case _Said():
                self._say(item)

    def _say(self, item: _Said) -> None:
        spoken = item.spoken
        if not isinstance(spoken, np.ndarray) or spoken.dtype != np.int16 or spoken.ndim != 1:
            what = type(spoken).__name__
            if isinstance(spoken, np.ndarray):
                what = f"{spoken.dtype} of shape {spoken.shape}"
            text = f"the agent returned {what}, wanted int16 of shape (samples,)"
            self._reading.fault("agent", "not_audio", text)
            return
        # A copy: the agent may go on writing into its own array.
        if dropped := self._spurts.put(spoken.copy(), item.at, self._position):
            text = f"{dropped} samples came with {LIMIT_SECONDS} s of audio waiting already"
            self._reading.fault("agent", "audio_queue_overflow", text)

    def _clear(self) -> None:
        cut, _ = self._spurts.clear()
        if cut is not None:
            fields: dict[str, Json] = {
                "heard_ms": cut.heard_ms,
                "received_ms": cut.received_ms,
            }
            self._reading.tell("reply.interrupted", fields, self._clock.elapsed())
            self._cut.append(Discarded(samples=cut.discarded))

    def _report(self, item: _Told) -> None:
        report = _as_object(item.report)
        found = report if isinstance(report, Broken) else read_report(report)
        if isinstance(found, Broken):
            self._reading.fault("agent", "unreadable", found.reason)
            return
        moment = item.at
        if isinstance(found, Claim) and found.at_ms is not None:
            moment = int(found.at_ms * self._clock.rate_hz / 1000)
        self._reports.take(found, moment, self._clock.elapsed())

    # -- the end ------------------------------------------------------------

    async def finish(self) -> None:
        """Let the agent's thread come to its end, bounded in time."""
        if self._over:
            return
        while self._came:
            self._take(self._came.popleft())
        self._over = True
        self._reading.tell("session.closed", {"reason": "close_requested"}, self._clock.elapsed())
        self._reading.end()
        self._dismiss()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 1.0)

    async def abort(self) -> None:
        self._over = True
        self._dismiss()

    def _dismiss(self) -> None:
        """Tell the thread that nothing more comes, whatever still waits for it."""
        while self._thread is not None:
            try:
                self._ticks.put_nowait(None)
                return
            except queue.Full:
                try:
                    self._ticks.get_nowait()
                except queue.Empty:
                    continue


def _as_object(value: object) -> dict[str, Json] | Broken:
    """A report as strict JSON of bounded size; never raises."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return Broken(reason=f"report is not json: {str(error)[:80]}")
    if len(text) > REPORT_LIMIT:
        return Broken(reason=f"report of {len(text)} characters, allowed {REPORT_LIMIT}")
    return read_object(text)

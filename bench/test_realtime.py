"""What a Realtime participant costs per tick, beside the GPT-Live one, in the same run.

Both are given a tick to hear and are sent speech without a pause, over a connection
in memory that costs next to nothing: GPT-Live at real-time pace in deltas of 100 ms,
Realtime ten seconds at once in deltas of 200 ms.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable

import numpy as np

from conftest import Bench, paired
from duplex.clock import Clock, VirtualClock
from duplex.participants.base import Participant, Spoken
from duplex.participants.live import LiveSession
from duplex.participants.realtime import RealtimeSession
from duplex.participants.transport import Transport, TransportClosed
from duplex.protocols.gpt_live import write_base64
from duplex.values import Side

RATE_HZ = 24_000
TICK = RATE_HZ // 50
TICKS = 500
TOLERATED = 1.25
VOICE = np.array(np.rint(6000 * np.sin(np.arange(RATE_HZ * 10) * 0.05)), np.int16)


class Canned:
    """A transport that answers by rule; ``answer`` gives what follows from each message."""

    def __init__(self, answer: Callable[[str], list[str]], first: list[str]) -> None:
        self._answer = answer
        self._queue: deque[str] = deque(first)
        self._news = asyncio.Event()
        self._closed = False

    async def send(self, message: str | bytes) -> None:
        self._queue.extend(self._answer(str(message)))
        self._news.set()

    async def receive(self) -> str | bytes:
        while not self._queue:
            if self._closed:
                raise TransportClosed(1000)
            self._news.clear()
            await self._news.wait()
        return self._queue.popleft()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.abort()

    def abort(self) -> None:
        self._closed = True
        self._news.set()


def connect_to(answer: Callable[[str], list[str]], first: list[str]) -> Callable[..., object]:
    async def open_it(clock: Clock) -> Transport:
        return Canned(answer, first)

    return open_it


def deltas(kind: str, ms: int, **fields: object) -> list[str]:
    size = ms * RATE_HZ // 1000
    return [
        json.dumps({"type": kind, **fields, "delta": write_base64(VOICE[at : at + size].tobytes())})
        for at in range(0, len(VOICE), size)
    ]


def realtime() -> RealtimeSession:
    session = {"id": "sess_1", "model": "m"}
    begun = [json.dumps({"type": "response.created", "response": {"id": "r"}})]
    said = deltas("response.output_audio.delta", 200, response_id="r", item_id="i")

    def answer(message: str) -> list[str]:
        if '"session.update"' not in message[:40]:
            return []
        return [json.dumps({"type": "session.updated", "session": session}), *begun, *said]

    first = [json.dumps({"type": "session.created", "session": session})]
    return RealtimeSession(side=Side.ASSISTANT, connect=connect_to(answer, first))  # type: ignore[arg-type]


def live() -> LiveSession:
    said = deque(deltas("session.output_audio.delta", 100))
    heard = 0

    def answer(message: str) -> list[str]:
        nonlocal heard
        if '"session.start"' in message[:40]:
            started = {"type": "session.started", "session": {"id": "sess_1"}}
            return [json.dumps(started)]
        if '"session.close"' in message[:40]:
            return [json.dumps({"type": "session.closed", "reason": "close_requested"})]
        heard += 1
        return [said.popleft()] if heard % 5 == 1 and said else []

    return LiveSession(side=Side.ASSISTANT, connect=connect_to(answer, []))  # type: ignore[arg-type]


async def hold(part: Participant) -> int:
    """Drive one participant for ten seconds of ticks; return the samples it said."""
    clock = VirtualClock(RATE_HZ)
    await part.start(clock)
    clock.begin()
    said = 0
    for n in range(TICKS):
        await clock.advance((n + 1) * TICK)
        said += sum(len(item.pcm) for item in part.collect() if isinstance(item, Spoken))
        part.hear(n * TICK, VOICE[n * TICK : (n + 1) * TICK])
        await asyncio.sleep(0)
    await part.abort()
    return said


def test_both_say_what_they_were_sent() -> None:
    assert asyncio.run(hold(live())) >= 0.95 * len(VOICE)
    assert asyncio.run(hold(realtime())) >= 0.95 * len(VOICE)


def test_a_realtime_participant_costs_no_more_than_a_gpt_live_one(bench: Bench) -> None:
    def ours() -> None:
        asyncio.run(hold(realtime()))

    def theirs() -> None:
        asyncio.run(hold(live()))

    pair = paired(theirs, ours, bench.rounds)
    bench.time(ours)
    per_tick = 1e6 / TICKS
    bench.report(
        "Realtime / GPT-Live participant, per 20 ms tick",
        f"{pair.ratio:.2f} ({pair.two * per_tick:.0f} us against {pair.one * per_tick:.0f} us, "
        f"{pair.two * 100 / 10:.2f} % of a core)",
        f"<= {TOLERATED}",
        pair.ratio <= TOLERATED,
        ratio=pair.ratio,
        realtime_us=pair.two * per_tick,
        gpt_live_us=pair.one * per_tick,
    )
    assert pair.ratio <= TOLERATED or bench.rounds == 1

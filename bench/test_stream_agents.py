"""What Twilio, PCM and Python agents cost per tick, beside the GPT-Live participant, in one run.

Each is given a tick to hear and says ten seconds of speech that came at once, over a
connection in memory that costs next to nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from conftest import Bench, paired
from duplex.participants.base import Participant
from duplex.participants.python_agent import AgentCall, PythonAgent
from duplex.participants.stream_agent import StreamAgent
from duplex.protocols import g711
from duplex.protocols.gpt_live import write_base64
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmFormat, PcmStream
from duplex.resample import resample
from test_realtime import RATE_HZ, TICKS, VOICE, Canned, connect_to, hold, live

IDS = StreamIds.drawn(7)
NARROW = resample(VOICE, RATE_HZ, 8_000)
TOLERATED = {"twilio": 3.0, "pcm": 1.25, "pcm at 16 kHz": 2.0, "python": 0.75}
"""Most that one may cost, in GPT-Live participants; resampling both ways is the rest."""


def twilio() -> StreamAgent:
    said = [
        json.dumps(
            {
                "event": "media",
                "streamSid": IDS.stream,
                "media": {"payload": write_base64(g711.encode(NARROW[at : at + 1_600], "mu"))},
            }
        )
        for at in range(0, len(NARROW), 1_600)
    ]

    def answer(message: str) -> list[str]:
        return said if '"event":"start"' in message[:40] else []

    connect = connect_to(answer, [])
    return StreamAgent(connect=connect, dialect=MediaStream(IDS), provider="twilio")  # type: ignore[arg-type]


def pcm(rate_hz: int = RATE_HZ) -> StreamAgent:
    voice = resample(VOICE, RATE_HZ, rate_hz)
    dialect = PcmStream(PcmFormat(rate_hz=rate_hz))

    async def open_it(clock: object) -> Canned:
        return Canned(lambda message: [], [voice.tobytes()])  # type: ignore[list-item]

    return StreamAgent(connect=open_it, dialect=dialect, provider="pcm")  # type: ignore[arg-type]


def python() -> PythonAgent:
    def make(call: AgentCall) -> Callable[..., object]:
        left = [VOICE]
        return lambda heard, rate_hz: left.pop() if left else None

    return PythonAgent(make)


MAKERS: dict[str, Callable[[], Participant]] = {
    "twilio": twilio,
    "pcm": pcm,
    "pcm at 16 kHz": lambda: pcm(16_000),
    "python": python,
}


@pytest.mark.parametrize("name", MAKERS)
def test_each_says_what_it_was_given(name: str) -> None:
    assert asyncio.run(hold(MAKERS[name]())) >= 0.95 * len(VOICE)


@pytest.mark.parametrize("name", MAKERS)
def test_an_agent_behind_a_stream_costs_about_what_a_session_does(bench: Bench, name: str) -> None:
    def ours() -> None:
        asyncio.run(hold(MAKERS[name]()))

    def theirs() -> None:
        asyncio.run(hold(live()))

    pair = paired(theirs, ours, bench.rounds)
    bench.time(ours)
    per_tick = 1e6 / TICKS
    goal = TOLERATED[name]
    bench.report(
        f"{name} agent / GPT-Live participant, per 20 ms tick",
        f"{pair.ratio:.2f} ({pair.two * per_tick:.0f} us against {pair.one * per_tick:.0f} us, "
        f"{pair.two * 100 / 10:.2f} % of a core)",
        f"<= {goal}",
        pair.ratio <= goal,
        ratio=pair.ratio,
        agent_us=pair.two * per_tick,
        gpt_live_us=pair.one * per_tick,
    )
    assert pair.ratio <= goal or bench.rounds == 1

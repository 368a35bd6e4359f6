"""A Python function as the agent: the README's own, and what it may do wrong."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from duplex.application.loading import load_factory
from duplex.clock import Clock, VirtualClock, WallClock
from duplex.errors import InputError, SessionError
from duplex.participants.base import Discarded, Pcm
from duplex.participants.python_agent import AgentCall, PythonAgent
from live_bench import LiveBench

README = Path(__file__).parents[1] / "README.md"
RATE = 24_000
MS = RATE // 1000
Hear = Callable[[Pcm, int], object]


def held(make: Callable[..., object], clock: Clock | None = None, tick_ms: int = 20) -> LiveBench:
    return LiveBench(PythonAgent(make, seed=3), clock or VirtualClock(RATE), tick_ms)


def saying(*answers: object) -> Callable[[AgentCall], Hear]:
    """An agent that gives ``answers``, one a tick; what can be raised is raised."""
    left = list(answers)

    def hear(heard: Pcm, rate_hz: int) -> object:
        answer = left.pop(0) if left else None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return lambda call: hear


async def call(bench: LiveBench, ms: int = 1_000) -> LiveBench:
    await bench.start()
    await bench.run(ms)
    await bench.finish()
    return bench


def ones(samples: int, value: int = 1_000) -> Pcm:
    return np.full(samples, value, np.int16)


# -- the plain course -------------------------------------------------------


@pytest.mark.parametrize("tick_ms", [10, 20, 100])
async def test_the_readmes_agent_beeps_once_the_caller_has_been_quiet(
    tmp_path: Path, tick_ms: int
) -> None:
    text = README.read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(import numpy.*?)```", text, re.DOTALL)
    assert 8 <= len(example.strip().splitlines()) <= 16
    (tmp_path / "beeper.py").write_text(example, encoding="utf-8")
    bench = held(load_factory(f"{tmp_path / 'beeper.py'}:agent"), tick_ms=tick_ms)
    talk = np.zeros(3 * RATE, np.int16)
    talk[RATE // 2 : RATE] = 3_000
    await bench.start()
    await bench.run(3_000, lambda position: talk[position : position + bench.tick])
    ((first, pcm), *more) = bench.placed
    assert first == pytest.approx(1_500 * MS, abs=2 * bench.tick)
    assert len(pcm) + sum(len(other) for _, other in more) == RATE // 4
    assert bench.faults() == []


async def test_what_is_returned_is_played_in_the_next_tick_to_the_sample() -> None:
    bench = await call(held(saying(ones(480), ones(480, 5), None, ones(960, 7))), 200)
    assert [(at // MS, len(pcm), int(pcm[0])) for at, pcm in bench.placed] == [
        (20, 480, 1_000),
        (40, 480, 5),
        (80, 480, 7),
        (100, 480, 7),
    ]


async def test_the_agent_hears_every_sample_and_its_rate() -> None:
    heard: list[Pcm] = []
    rates: set[int] = set()

    def make(call: AgentCall) -> Hear:
        assert (call.rate_hz, call.seed) == (RATE, 3)

        def hear(pcm: Pcm, rate_hz: int) -> None:
            heard.append(pcm)
            rates.add(rate_hz)

        return hear

    whole = np.arange(RATE).astype(np.int16)
    bench = held(make)
    await bench.start()
    await bench.run(1_000, lambda position: whole[position : position + 480])
    assert np.array_equal(np.concatenate(heard), whole)
    assert rates == {RATE}


async def test_a_clear_forgets_what_waits_and_counts_it() -> None:
    def make(call: AgentCall) -> Hear:
        ticks = iter(range(1_000))

        def hear(pcm: Pcm, rate_hz: int) -> Pcm | None:
            tick = next(ticks)
            if tick == 20:
                call.clear()
            return ones(RATE) if tick == 0 else None

        return hear

    bench = await call(held(make), 1_500)
    assert bench.told("reply.interrupted") == [{"heard_ms": 400.0, "received_ms": 1000.0}]
    assert [one for one in bench.items if isinstance(one, Discarded)] == [
        Discarded(samples=600 * MS)
    ]
    assert len(bench.audio()) == 400 * MS


async def test_reports_are_told_as_events() -> None:
    def make(call: AgentCall) -> Hear:
        call.tell({"type": "state", "state": {"open": 1}})

        def hear(pcm: Pcm, rate_hz: int) -> None:
            call.tell({"type": "first_byte"})

        return hear

    bench = await call(held(make), 40)
    assert bench.told("state") == [{"state": {"open": 1}}]
    assert [one["moment"] for one in bench.told("claim")] == [20 * MS, 40 * MS]


# -- what it does wrong -----------------------------------------------------


@pytest.mark.parametrize(
    "error, code",
    [
        (ValueError("no"), "ValueError"),
        (SystemExit(3), "SystemExit"),
        (MemoryError(), "MemoryError"),
    ],
)
async def test_what_the_agent_raises_is_its_fault_and_ends_no_call(
    error: BaseException, code: str
) -> None:
    bench = await call(held(saying(error, ones(480))))
    assert bench.faults() == [("agent", code, False)]
    assert len(bench.audio()) == 480


async def test_an_agent_that_always_fails_is_told_of_a_few_times() -> None:
    bench = await call(held(saying(*[RuntimeError("again")] * 50)))
    assert [code for _, code, _ in bench.faults()] == ["RuntimeError"] * 6


@pytest.mark.parametrize(
    "spoken",
    [
        [1, 2],
        np.zeros(480),
        np.zeros((480, 2), np.int16),
        np.zeros(480, np.int32),
        "words",
        b"\x00\x00",
        0,
    ],
)
async def test_what_is_no_audio_is_refused_and_said(spoken: object) -> None:
    bench = await call(held(saying(spoken, ones(480))))
    assert bench.faults() == [("agent", "not_audio", False)]
    assert len(bench.audio()) == 480


@pytest.mark.parametrize(
    "report", [object(), {"type": "guess"}, {"x": float("nan")}, [], "x" * 300_000, {1: {2}}]
)
async def test_a_report_that_is_none_is_refused_and_said(report: object) -> None:
    def make(call: AgentCall) -> Hear:
        call.tell(report)  # type: ignore[arg-type]
        return lambda heard, rate_hz: None

    assert (await call(held(make), 100)).faults() == [("agent", "unreadable", False)]


async def test_an_agent_may_change_its_array_afterwards() -> None:
    mine = ones(960)

    def hear(heard: Pcm, rate_hz: int) -> Pcm | None:
        mine[:] += 1
        return mine if mine[0] == 1_001 else None

    bench = await call(held(lambda call: hear), 100)
    assert set(bench.audio()) == {1_001}


@pytest.mark.parametrize("clock", [VirtualClock, WallClock])
@pytest.mark.parametrize(
    "make, code",
    [
        (lambda call: 1 / 0, "ZeroDivisionError"),
        (lambda call: sys.exit(1), "SystemExit"),
        (lambda call: None, "not_callable"),
        (lambda: None, "TypeError"),
    ],
)
async def test_a_factory_that_makes_no_agent_has_a_stage(
    clock: Callable[[int], Clock], make: Callable[..., object], code: str
) -> None:
    agent = PythonAgent(make)
    with pytest.raises(SessionError) as caught:
        await agent.start(clock(RATE))
    assert (caught.value.stage, caught.value.code) == ("assistant_connection", code)
    await agent.finish()
    await agent.abort()


@pytest.mark.parametrize(
    "name, why",
    [
        ("no.such.module:agent", "no module"),
        ("json:no_such", "no_such"),
        ("math:pi", "wanted a function"),
        ("missing.py:agent", "no such file"),
        ("../x:agent", "wanted module"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(name: str, why: str) -> None:
    with pytest.raises(InputError, match=f"(?s)^assistant .*{why}"):
        load_factory(name)


# -- on the wall clock ------------------------------------------------------


@pytest.mark.wall
async def test_a_slow_agent_is_late_and_holds_up_nobody() -> None:
    def make(call: AgentCall) -> Hear:
        ticks = iter(range(1_000))

        def hear(pcm: Pcm, rate_hz: int) -> Pcm | None:
            tick = next(ticks)
            if tick == 5:
                time.sleep(0.3)
                return ones(480)
            return None

        return hear

    bench = held(make, WallClock(RATE))
    await bench.start()
    await bench.run(1_000)
    await bench.finish()
    assert len(bench.audio()) == 480
    assert bench.placed[0][0] >= 400 * MS
    assert sorted(bench.clock.lateness_ms)[len(bench.clock.lateness_ms) // 2] < 100


@pytest.mark.wall
async def test_an_agent_that_never_returns_is_left_behind() -> None:
    def make(call: AgentCall) -> Hear:
        def hear(pcm: Pcm, rate_hz: int) -> None:
            time.sleep(3)

        return hear

    bench = held(make, WallClock(RATE))
    began = time.monotonic()
    await call(bench, 100)
    assert time.monotonic() - began < 2.9

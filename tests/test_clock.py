"""Media time: absolute deadlines on the wall, lock-step in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from duplex.clock import VirtualClock, WallClock, holding

RATE = 24_000


async def test_the_virtual_clock_waits_for_whoever_holds_a_token() -> None:
    clock = VirtualClock(RATE)
    seen: list[int] = []

    async def work() -> None:
        with holding(clock):
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append(clock.position)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await clock.advance(480)
    assert seen == [0]
    await task


async def test_waiters_wake_in_order_of_position_then_of_asking() -> None:
    clock = VirtualClock(RATE)
    order: list[tuple[str, int]] = []

    async def waiter(name: str, position: int) -> None:
        await clock.until(position)
        order.append((name, clock.position))

    for name, position in (("late", 900), ("a", 300), ("b", 300), ("never", 5000)):
        clock.spawn(waiter(name, position))
    await clock.advance(1000)
    assert order == [("a", 300), ("b", 300), ("late", 900)]
    assert clock.position == 1000
    await clock.advance(5000)
    assert order[-1] == ("never", 5000)


async def test_a_spawned_task_cancelled_at_any_point_gives_its_token_back() -> None:
    clock = VirtualClock(RATE)
    fresh = clock.spawn(clock.until(100))
    fresh.cancel()
    started = clock.spawn(clock.until(100))
    await asyncio.sleep(0)
    started.cancel()
    await asyncio.gather(fresh, started, return_exceptions=True)
    await asyncio.wait_for(clock.advance(200), 1)
    assert clock.position == 200


async def test_a_task_cancelled_just_as_it_is_woken_leaves_the_clock_usable() -> None:
    clock = VirtualClock(RATE)
    task = clock.spawn(clock.until(100))
    await asyncio.sleep(0)
    moving = asyncio.create_task(clock.advance(100))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait_for(moving, 1)
    await asyncio.wait_for(clock.advance(300), 1)


@pytest.mark.wall
async def test_wall_ticks_are_due_at_absolute_deadlines_in_spite_of_work_and_a_stall() -> None:
    clock = WallClock(RATE)
    clock.begin()
    tick = RATE // 100
    for n in range(1, 61):
        await clock.advance(n * tick)
        await asyncio.sleep(0.15 if n == 20 else 0.003)
    elapsed = clock.elapsed()
    assert elapsed is not None
    # Relative sleeps would need 60 x 13 ms + 150 ms; absolute deadlines make it up.
    assert 0.6 <= elapsed <= 0.8
    assert max(clock.lateness_ms) >= 100


async def test_the_wall_clock_of_the_system_is_never_consulted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import time

    clock = WallClock(RATE)
    clock.begin()
    monkeypatch.setattr(time, "time", lambda: 1e12)
    await clock.advance(RATE // 100)
    elapsed = clock.elapsed()
    assert elapsed is not None
    assert elapsed < 5

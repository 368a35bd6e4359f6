"""The engine's memory: bounded by its rings, whatever the call's length."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from duplex.engine import Engine
from duplex.values import Side


def held_kib() -> int:
    """Return resident memory of this process in KiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def talk_for(engine: Engine, ticks: int) -> None:
    rng = np.random.default_rng(4)
    pcm = rng.normal(0, 4000, engine.tick).astype(np.int16)
    for k in range(ticks):
        if k % 40 < 20:
            engine.feed(Side.CALLER, pcm)
        engine.feed(Side.ASSISTANT, pcm)
        engine.advance()
        engine.heard(Side.CALLER)
        engine.drain()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_an_hour_takes_no_more_memory_than_a_minute(detector: str) -> None:
    engine = Engine(tick_ms=200, detector=detector, hold_ms=(0, 120))
    talk_for(engine, 300)
    gc.collect()
    before = held_kib()
    talk_for(engine, 6000 if detector == "webrtc" else 18_000)
    # An hour of one side's audio alone is 168 750 KiB.
    assert held_kib() - before < 1024


def test_advancing_leaves_no_python_object_behind() -> None:
    engine = Engine()
    talk_for(engine, 200)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2000):
            engine.advance()
        assert tracemalloc.get_traced_memory()[0] - before < 512
    finally:
        tracemalloc.stop()

"""Two voices that begin together sort it out as people do, whatever the seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from duplex.clock import VirtualClock
from duplex.local.collision import (
    GIVE_WAY_AFTER,
    HOLD_AFTER,
    TOGETHER,
    WAIT_STEP,
    WAIT_STEPS,
    Collisions,
)
from duplex.local.endpoint import BLOCK
from duplex.local.seams import VOICE_RATE_HZ, Act, Heard, Pcm, Said, Say
from duplex.local.voice import LocalVoice
from duplex.local.yielding import STOP_AFTER
from duplex.values import Side
from fake_engines import Parrot

BLOCK_MS = 20
LINE_MS = 2_400
WORDS = {
    Side.CALLER: "one two three four five six seven eight nine ten",
    Side.ASSISTANT: "alpha beta gamma delta epsilon zeta eta theta iota kappa",
}


@dataclass
class Stubborn:
    """Wants to say one thing, and says it again from the start whenever it was cut off."""

    text: str
    said: bool = False
    cut: bool = False

    def opening(self) -> Sequence[Act]:
        return (Say(text=self.text),)

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        return self._again()

    def on_said(self, said: Said) -> Sequence[Act]:
        self.said = self.said or said.complete
        self.cut = not said.complete
        return ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        return ()

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        return self._again()

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        return ()

    def _again(self) -> Sequence[Act]:
        again, self.cut = self.cut, False
        return self.opening() if again and not self.said else ()


@dataclass
class Fight:
    """How long two voices took until one, and until both, had said their piece."""

    first_ms: int | None = None
    both_ms: int | None = None
    overlap_ms: int = 0


async def fight(
    seed: int | None, *, delay_ms: int = 260, offset_ms: int = 0, limit_ms: int = 30_000
) -> Fight:
    """Let both begin, the assistant ``offset_ms`` later, each heard ``delay_ms`` later."""
    parrot, clock = Parrot(), VirtualClock(VOICE_RATE_HZ)
    brains = {side: Stubborn(text=WORDS[side]) for side in Side}
    voices = {
        side: LocalVoice(brains[side], parrot, parrot, voice="cedar", seed=seed, role=side)
        for side in Side
    }
    silence = np.zeros(BLOCK, np.int16)
    line: dict[Side, deque[Pcm]] = {
        side: deque([silence] * (delay_ms // BLOCK_MS)) for side in Side
    }
    result = Fight()
    await voices[Side.CALLER].begin(clock)
    for now_ms in range(0, limit_ms, BLOCK_MS):
        if now_ms == offset_ms:
            await voices[Side.ASSISTANT].begin(clock)
        spoken = {side: (await voices[side].frame(line[side].popleft())).pcm for side in Side}
        for side in Side:
            line[side].append(spoken[side.other])
        result.overlap_ms += BLOCK_MS * all(pcm.any() for pcm in spoken.values())
        if result.first_ms is None and any(brain.said for brain in brains.values()):
            result.first_ms = now_ms
        if all(brain.said for brain in brains.values()):
            result.both_ms = now_ms
            break
    for voice in voices.values():
        await voice.close()
    return result


@pytest.mark.parametrize("seed", range(12))
async def test_no_seed_locks_two_voices_that_begin_together(seed: int) -> None:
    delay_ms, offset_ms = (120, 260, 400)[seed % 3], (0, 100, 240, 60)[seed % 4]
    fought = await fight(seed, delay_ms=delay_ms, offset_ms=offset_ms)
    assert fought.first_ms is not None
    assert fought.first_ms - LINE_MS < 5_000, "whoever is heard first began within 5 s"
    assert fought.both_ms is not None
    assert fought.both_ms < 16_000
    assert fought.overlap_ms < 3_000


async def test_without_a_seed_the_caller_gives_way() -> None:
    fought = await fight(None)
    assert fought.first_ms is not None
    assert fought.first_ms < LINE_MS + 600
    assert fought.overlap_ms < 1_000


def test_tempers_and_waits_differ_between_seeds_and_the_second_time_the_caller_yields() -> None:
    tempers, waits = set(), set()
    for seed in range(20):
        caller, host = (Collisions(seed, side) for side in Side)
        tempers.add((caller.stop_after(100, 200), host.stop_after(100, 200)))
        caller.stopped(100, 1_000)
        waits.add(caller.wait_until - 1_000)
        assert caller.stop_after(90_000, 90_100) == GIVE_WAY_AFTER
        assert host.stop_after(90_000, 90_100) == HOLD_AFTER
    assert len(tempers) == 4
    assert waits == {step * WAIT_STEP for step in range(WAIT_STEPS)}


def test_one_beginning_is_one_collision_and_a_late_one_is_none() -> None:
    first = Collisions(3, Side.ASSISTANT)
    assert len({first.stop_after(0, 10) for _ in range(50)}) == 1
    assert first.stop_after(0, TOGETHER + 1) == STOP_AFTER
    late = Collisions(3, Side.CALLER)
    assert late.stop_after(0, TOGETHER + 1) == STOP_AFTER
    late.stopped(0, 5_000)
    assert late.wait_until == 0, "who is talked over waits for nothing drawn"


def test_after_something_was_said_a_meeting_is_a_first_one_again() -> None:
    once = [Collisions(seed, Side.CALLER) for seed in range(30)]
    for one in once:
        one.stop_after(0, 0)
        one.finished()
    assert {one.stop_after(90_000, 90_000) for one in once} == {GIVE_WAY_AFTER, HOLD_AFTER}

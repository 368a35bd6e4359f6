"""What the edge detector takes back: sudden noise, whatever it is in step with; nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from duplex.detect import segments
from duplex.engine import Engine, FloorEvent, Holder
from duplex.values import Side, Span
from stimuli import RATE, Floats, noise, pcm, side, voiced

ALIGNMENTS = (0, 13, 59, 700, 1_200, 5_000)
"""Samples before a sound: within a frame, a tick and a window of the detector."""


def at_every_alignment(sound: Floats) -> list[list[Span]]:
    """What is found of a sound a second into digital silence, relative to where it begins."""
    found = []
    for lead in ALIGNMENTS:
        heard = np.concatenate([np.zeros(RATE + lead), sound, np.zeros(RATE)])
        found.append(
            [
                Span(start=max(0, span.start - RATE - lead), end=span.end - RATE - lead)
                for span in segments(pcm(heard), RATE, "edge")
            ]
        )
    return found


def covered(spans: list[Span]) -> int:
    return sum(span.length for span in spans)


@pytest.mark.parametrize("gate_ms", [80, 100, 120, 150])
def test_bursts_between_gates_of_digital_silence_are_no_steady_noise(gate_ms: int) -> None:
    gate = np.zeros(gate_ms * RATE // 1000)
    bursts = [part for seed in range(8) for part in (noise(0.3, -20, seed=seed), gate)]
    sound = np.concatenate(bursts)
    for found in at_every_alignment(sound):
        assert covered(found) >= 0.9 * (len(sound) - len(gate))


@pytest.mark.parametrize("seconds", [0.8, 1.25, 1.4, 1.5, 1.6])
@pytest.mark.parametrize("sway", [0.0, 0.25])
def test_steady_noise_of_speech_length_is_kept_whatever_it_is_in_step_with(
    seconds: float, sway: float
) -> None:
    sound = noise(seconds, -25, seed=8)
    sound *= 1 - sway + sway * np.sin(2 * np.pi * 4 * np.arange(len(sound)) / RATE)
    for found in at_every_alignment(sound):
        assert covered(found) >= 0.95 * len(sound)


@pytest.mark.parametrize("seconds", [2, 4])
@pytest.mark.parametrize("lost_packets", [False, True])
def test_a_sudden_steady_noise_is_taken_back(seconds: int, lost_packets: bool) -> None:
    sound = noise(seconds, -35, seed=8)
    if lost_packets:
        for at in range(RATE // 3, len(sound), RATE // 2):
            sound[at : at + RATE // 50] = 0
    assert at_every_alignment(sound) == [[]] * len(ALIGNMENTS)


def test_sudden_noise_may_speak_for_a_while_but_never_has_the_floor() -> None:
    wave = side([(1.0, voiced(1.0))], 8) + np.concatenate([np.zeros(4 * RATE), noise(4, -35)])
    engine = Engine(detector="edge")
    engine.feed(Side.CALLER, pcm(wave))
    spoke_until, floor = 0, []
    while engine.position < len(wave):
        engine.advance()
        if engine.speaking is not Holder.NONE:
            spoke_until = engine.position
        floor += [event for event in engine.drain() if isinstance(event, FloorEvent)]
    engine.finish()
    floor += [event for event in engine.drain() if isinstance(event, FloorEvent)]
    assert 4 * RATE < spoke_until <= 5.8 * RATE
    assert [event.holder for event in floor] == [Holder.CALLER, Holder.NONE]
    assert floor[-1].at < 2.1 * RATE

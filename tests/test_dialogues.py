"""Real speech with the timing of ITU-T P.59, held as virtual calls: what is measured is what is so.

The truth is exact by construction. Bounds are those of the design, widened for the
few dozen turns a test can afford; ``duplex calibrate`` has the rows of hundreds.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dialogues import RATE, Dialogue, Pcm, dialogue, embedded_speakers, folder_speakers, planted
from duplex.call import Call, CallPlan
from duplex.clock import VirtualClock
from duplex.errors import MissingExtra
from duplex.hangup import Policy
from duplex.measuring import measure
from duplex.metrics.measurement import Measurement
from duplex.participants.scripted import Scripted
from duplex.recording import CallRecorder
from duplex.values import Side

pytestmark = pytest.mark.speech
SPURTS = 50
Errors = list[float]


@pytest.fixture(scope="module")
def speakers() -> list[list[Pcm]]:
    """A folder's speakers, or the embedded voices."""
    found = folder_speakers()
    if len(found) >= 2:
        return found
    try:
        return asyncio.run(embedded_speakers())
    except MissingExtra as absent:
        pytest.skip(str(absent))


def held(folder: Path, talk: Dialogue) -> Measurement:
    """Hold the dialogue as a call in virtual time, and measure its folder."""
    caller, assistant = (Scripted(side, [(0, talk.sides[side])]) for side in Side)
    minutes = Policy(max_duration_ms=600_000)
    call = Call(
        CallPlan(call_id="c", scenario_id="c", policy=minutes),
        caller=caller,
        assistant=assistant,
        clock=VirtualClock(RATE),
        recorder=CallRecorder(folder, "c", rate_hz=RATE),
    )
    end = asyncio.run(call.hold())
    assert end.reason == "response_completed"
    return measure(folder / "audio" / "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of the planted spurts: errors in ms, and what was not found or invented."""

    onsets: Errors
    offsets: Errors
    latencies: Errors
    missed: int
    invented: int
    unanswered: int


def compared(talk: Dialogue, found: Measurement) -> Found:
    """Match every planted spurt with the voices it shares time with, one to one."""
    assert found.timing is not None
    left = {side: list(found.timing.talk.voices[side]) for side in Side}
    onsets, offsets, missed = Errors(), Errors(), 0
    for spurt in talk.spurts:
        mine = [v for v in left[spurt.side] if v.start < spurt.end and v.end > spurt.start]
        missed += not mine
        if mine:
            onsets.append((mine[0].start - spurt.start) * 1000 / RATE)
            offsets.append((mine[-1].end - spurt.end) * 1000 / RATE)
            left[spurt.side] = [voice for voice in left[spurt.side] if voice not in mine]
    starts = {
        turn.start: reply.latency
        for turn, reply in zip(
            found.timing.talk.turns[Side.ASSISTANT], found.timing.responses.replies, strict=True
        )
    }
    latencies, unanswered = Errors(), 0
    for at, truth in talk.latencies:
        near = [start for start in starts if abs(start - at) < RATE // 10]
        latency = starts.pop(near[0]) if near else None
        if latency is None:
            unanswered += 1
        else:
            latencies.append(latency * 1000 / RATE - truth)
    return Found(
        onsets=onsets,
        offsets=offsets,
        latencies=latencies,
        missed=missed,
        invented=sum(len(voices) for voices in left.values()),
        unanswered=unanswered,
    )


def spread(errors: Errors, share: float) -> float:
    return float(np.percentile(np.abs(errors), share))


@pytest.mark.parametrize(
    ("snr_db", "bias", "p50", "p95"),
    [
        (None, 5, 4, 10),
        (30, 5, 4, 10),
        (20, 7, 5, 20),
        (10, 50, 20, 150),
        (5, 70, 35, 180),
        (0, 100, 80, 220),
    ],
)
def test_p59_dialogues_are_measured_as_they_were_planted(
    tmp_path: Path,
    speakers: list[list[Pcm]],
    snr_db: float | None,
    bias: float,
    p50: float,
    p95: float,
) -> None:
    talk = dialogue(speakers, seed=59, spurts=SPURTS, snr_db=snr_db)
    found = compared(talk, held(tmp_path, talk))
    assert (found.missed, found.invented) == (0, 0)
    # Where noise hides the end of a turn, an early start can look like an interruption.
    assert found.unanswered <= (0 if snr_db is None or snr_db >= 10 else 1)
    assert len(found.latencies) > SPURTS / 4
    for errors in (found.onsets, found.offsets, found.latencies):
        assert abs(np.mean(errors)) <= bias
        assert spread(errors, 50) <= p50
        assert spread(errors, 95) <= p95


def test_the_printed_width_covers_nine_latencies_of_ten(
    tmp_path: Path, speakers: list[list[Pcm]]
) -> None:
    covered = total = 0
    for snr_db in (20, 10):
        talk = dialogue(speakers, seed=5, spurts=SPURTS, snr_db=snr_db)
        block = held(tmp_path / str(snr_db), talk).timing
        assert block is not None
        truths = dict(talk.latencies)
        turns = block.talk.turns[Side.ASSISTANT]
        for turn, reply in zip(turns, block.responses.replies, strict=True):
            near = [at for at in truths if abs(at - turn.start) < RATE // 10]
            if near and reply.latency is not None and reply.plus_minus_ms is not None:
                total += 1
                error = abs(reply.latency * 1000 / RATE - truths[near[0]])
                covered += error <= reply.plus_minus_ms
    assert total > SPURTS / 3
    assert covered / total >= 0.85


def test_the_planted_timing_is_that_of_p59_and_off_the_grid(speakers: list[list[Pcm]]) -> None:
    spurts = [spurt for spurt, _ in planted(speakers, seed=1, spurts=1_000)]
    pairs = list(itertools.pairwise(spurts))
    gaps = np.array([(b.start - a.end) / RATE for a, b in pairs if a.side is not b.side])
    silences, overlaps = gaps[gaps > 0], -gaps[gaps <= 0]
    assert np.mean(silences) == pytest.approx(0.456, abs=0.07)
    assert np.mean(overlaps) == pytest.approx(0.18, abs=0.03)
    assert len(overlaps) / len(pairs) == pytest.approx(0.4, abs=0.05)
    assert all(spurt.start % (RATE // 100) for spurt in spurts)


def test_there_is_no_digital_silence_on_either_side(speakers: list[list[Pcm]]) -> None:
    talk = dialogue(speakers, seed=1, spurts=4)
    for channel in talk.sides:
        assert np.lib.stride_tricks.sliding_window_view(channel, 48).any(axis=1).all()

"""Reporting ticks hold what the call held, at any size."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from duplex.metrics.from_recording import timeline_of
from duplex.metrics.intervals import total
from duplex.metrics.ticks import ticks_of
from duplex.recording import Recording
from duplex.values import Json, Side
from test_call import RATE, hold, parties


@pytest.fixture
async def recording(tmp_path: Path) -> Recording:
    _, held = await hold(tmp_path, *parties())
    return held


def spoken_ms(records: list[dict[str, Json]], name: str) -> int:
    found = 0
    for record in records:
        side = record[name]
        assert isinstance(side, dict)
        runs = side["speech_intervals_ms"]
        assert isinstance(runs, list)
        for run in runs:
            assert isinstance(run, list)
            start, end = run
            assert isinstance(start, int)
            assert isinstance(end, int)
            found += end - start
    return found


@pytest.mark.parametrize("tick_ms", [7, 20, 137, 200])
def test_ticks_tile_the_call_and_hold_all_its_voice(recording: Recording, tick_ms: int) -> None:
    records = list(ticks_of(recording, tick_ms))
    assert records[0]["start_ms"] == 0
    assert records[-1]["end_ms"] == recording.duration_ms
    for before, after in pairwise(records):
        assert before["end_ms"] == after["start_ms"]
    timeline = timeline_of(recording)
    assert spoken_ms(records, "user") == total(timeline.caller_other_voiced)
    assert spoken_ms(records, "assistant") == total(timeline.assistant_other_voiced)
    kinds = [kind for record in records for kind in _events(record)]
    assert kinds.count("utterance") == 1


def test_a_tick_tells_what_the_caller_was_doing_and_how_loud(recording: Recording) -> None:
    records = list(ticks_of(recording, 200))
    (utterance,) = recording.spoken_by(Side.CALLER)
    middle = recording.ms((utterance.span.start + utterance.span.end) // 2) // 200
    caller = records[middle]["user"]
    assert isinstance(caller, dict)
    assert caller["action"] == "OPENING"
    start = middle * 200 * RATE // 1000
    said = recording.source(Side.CALLER)[start : start + 200 * RATE // 1000].astype(float)
    assert caller["rms"] == pytest.approx(float((said**2).mean() ** 0.5), abs=0.1)
    quiet = records[0]["user"]
    assert isinstance(quiet, dict)
    assert (quiet["action"], quiet["speech"], quiet["rms"]) == (None, False, 0.0)


def _events(record: dict[str, Json]) -> list[Json]:
    found = record["events"]
    assert isinstance(found, list)
    return found

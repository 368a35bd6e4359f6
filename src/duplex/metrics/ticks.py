"""A call cut into reporting ticks, for whoever wants to plot or debug one.

Ticks are containers: every metric is computed from the spans themselves, never
from these bins. One record a tick, times in ms, as the public harness names them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duplex.metrics.from_recording import timeline_of
from duplex.metrics.intervals import Runs, clip, intersect, merge, total
from duplex.metrics.work import active_work
from duplex.recording import Recording
from duplex.values import Json, Side

_NAMES = {Side.CALLER: "user", Side.ASSISTANT: "assistant"}


def ticks_of(recording: Recording, tick_ms: int) -> Iterator[dict[str, Json]]:
    """Yield one record for each tick of ``tick_ms``; the last may be shorter."""
    end_ms = recording.duration_ms
    timeline = timeline_of(recording)
    voices = {
        Side.CALLER: merge(timeline.caller_other_voiced),
        Side.ASSISTANT: merge(timeline.assistant_other_voiced),
    }
    overlap = intersect(voices[Side.CALLER], voices[Side.ASSISTANT])
    active = active_work(timeline.work_events, end_ms)
    levels = {side: _levels(recording, side, tick_ms) for side in Side}
    for tick, start in enumerate(range(0, end_ms, tick_ms)):
        end = min(start + tick_ms, end_ms)
        record: dict[str, Json] = {"tick": tick, "start_ms": start, "end_ms": end}
        for side, name in _NAMES.items():
            record[name] = _of_side(recording, side, voices[side], levels[side][tick], start, end)
        work = clip(active, start, end)
        record["interaction"] = {
            "overlap_ms": total(clip(overlap, start, end)),
            "delegation_active": bool(work),
            "delegation_intervals_ms": _listed(work),
            "delegation_active_ms": total(work),
        }
        record["events"] = [
            event.type for event in recording.events if start <= recording.ms(event.at) < end
        ]
        yield record


def _of_side(
    recording: Recording, side: Side, voiced: Runs, rms: float, start: int, end: int
) -> dict[str, Json]:
    runs = clip(voiced, start, end)
    said: dict[str, Json] = {
        "speech": bool(runs),
        "speech_intervals_ms": _listed(runs),
        "rms": round(rms, 1),
        "transcript": "".join(
            piece.text
            for piece in recording.words(side, "said")
            if start <= recording.ms(piece.span.start) < end
        ),
    }
    if side is Side.CALLER:
        said["action"] = next(
            (
                line.action.value
                for line in recording.spoken_by(side)
                if line.action is not None
                and recording.ms(line.span.start) < end
                and recording.ms(line.span.end) > start
            ),
            None,
        )
    return said


def _levels(recording: Recording, side: Side, tick_ms: int) -> list[float]:
    """RMS (int16) of what one side said in each tick."""
    pcm = recording.source(side).astype(np.float64)
    size = tick_ms * recording.rate_hz // 1000
    cuts = range(0, len(pcm), size)
    found = [float(np.sqrt(np.mean(np.square(pcm[cut : cut + size])))) for cut in cuts]
    # Rounding to ms may ask for one tick more than there are whole samples.
    return [*found, 0.0]


def _listed(runs: Runs) -> list[Json]:
    return [[start, end] for start, end in runs]

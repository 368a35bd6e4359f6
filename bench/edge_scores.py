"""What a detector made of planted turns: errors of their edges, and turns missed or run together.

It plants nothing and fits nothing; ``edge_study.py`` and ``edge_intervals.py`` drive it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duplex.calibration.clips import RATE_HZ
from edge_detector import Detector
from edge_material import Track

JOIN_MS = 450.0  # shorter than any planted pause between turns
START_UNRELIABLE, END_UNRELIABLE = 4, 8


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the turns of one condition.

    ``edges``: onset and offset error in ms (reported minus true), the two deficits in dB, the
    flags of the first and the last segment.
    """

    edges: list[tuple[float, float, float, float, int, int]]
    turns: int = 0
    missed: int = 0
    merged: int = 0
    extra: int = 0


def join(rows: np.ndarray) -> list[list[np.ndarray]]:
    """Segments of one turn: what lies closer than any planted pause."""
    groups: list[list[np.ndarray]] = []
    for row in rows:
        if groups and row[0] - groups[-1][-1][1] < JOIN_MS * RATE_HZ / 1000:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def score(tally: Tally, track: Track, rows: np.ndarray) -> None:
    groups, used = join(rows), set()
    for i, (start, end) in enumerate(track.turns):
        tally.turns += 1
        touching = [j for j, g in enumerate(groups) if g[0][0] < end and g[-1][1] > start]
        used.update(touching)
        if not touching:
            tally.missed += 1
            continue
        first, last = groups[touching[0]][0], groups[touching[-1]][-1]
        if (i and first[0] < track.turns[i - 1][1]) or (
            i + 1 < len(track.turns) and last[1] > track.turns[i + 1][0]
        ):
            tally.merged += 1
            continue
        ms = 1000 / RATE_HZ
        tally.edges.append(
            (
                (first[0] - start) * ms,
                (last[1] - end) * ms,
                first[2] / 100,
                last[3] / 100,
                int(first[4]),
                int(last[4]),
            )
        )
    tally.extra += sum(
        g[-1][1] - g[0][0] >= 0.15 * RATE_HZ for j, g in enumerate(groups) if j not in used
    )


def measure(detector: Detector, tracks: list[Track]) -> Tally:
    tally = Tally(edges=[])
    for track in tracks:
        score(tally, track, detector(track.samples))
    return tally

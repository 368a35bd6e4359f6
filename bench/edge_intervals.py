"""The intervals that edges carry: fitted by visibility deficit, and how often they hold.

The speakers they are fitted on must not be those a table is printed for; their names stand in
the file. ``edge_study.py`` drives it.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from edge_detector import Detector
from edge_material import Material, label
from edge_scores import END_UNRELIABLE, START_UNRELIABLE, measure

BINS_DB = (-36.0, -24.0, -18.0, -12.0, -9.0, -6.0, -3.0, 0.0, 3.0, 6.0, 9.0, 12.0)
QUANTILE = 0.92
LEAST_MASKED_MS = 10.0


def bin_of(deficit_db: float) -> int:
    return int(np.searchsorted(BINS_DB, deficit_db, side="right"))


def fit_side(
    errors: np.ndarray, deficits: np.ndarray, late_is_masked: bool
) -> list[dict[str, float]]:
    """Errors per deficit, widening with it: their size, and the interval of true minus reported.

    The interval leaves as much out on either side, and is symmetric below 0 dB.
    """
    rows, low, high, wide = [], 0.0, 0.0, 0.0
    index = np.array([bin_of(d) for d in deficits])
    for i in range(len(BINS_DB)):
        e = -errors[index == i]
        if len(e) >= 40:
            wide = max(wide, float(np.quantile(np.abs(e), QUANTILE)))
            if BINS_DB[i] <= 0:
                low, high = max(low, wide), max(high, wide)
            else:
                tail = (1 - QUANTILE) / 2
                low = max(low if late_is_masked else LEAST_MASKED_MS, -float(np.quantile(e, tail)))
                high = max(
                    LEAST_MASKED_MS if late_is_masked else high, float(np.quantile(e, 1 - tail))
                )
        rows.append(
            {
                "below_db": BINS_DB[i],
                "plus_minus_ms": round(wide, 1),
                "low_ms": -round(low, 1),
                "high_ms": round(high, 1),
                "n": len(e),
            }
        )
    return rows


def fit(detector: Detector, args: argparse.Namespace, material: Material) -> None:
    edges = []
    for kind, snr, tracks in material.conditions(args.turns, args.seed):
        tally = measure(detector, tracks)
        edges += tally.edges
        print(f"{kind} {snr}: {len(tally.edges)} of {tally.turns} turns", file=sys.stderr)
    e = np.array(edges)
    start_ok = (e[:, 4].astype(int) & START_UNRELIABLE) == 0
    end_ok = (e[:, 5].astype(int) & END_UNRELIABLE) == 0
    result = {
        "about": "true minus reported edge, ms, by visibility deficit in dB",
        "unreliable_above_db": BINS_DB[-1],
        "quantile": QUANTILE,
        "fitted": {
            "speakers": len(material.speakers),
            "names": sorted(material.speakers),
            "turns_a_speaker": args.turns,
            "turns": len(e),
            "seed": args.seed,
            "conditions": [f"{k}{'' if s is None else f' {s:g}'}" for k, s in material.wanted],
        },
        "onset": fit_side(e[start_ok, 0], e[start_ok, 2], late_is_masked=True),
        "offset": fit_side(e[end_ok, 1], e[end_ok, 3], late_is_masked=False),
    }
    text = json.dumps(result, indent=1) + "\n"
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text)
    print(text, end="")


def widths(table: list[dict[str, float]], deficits: np.ndarray) -> np.ndarray:
    """The ± of each edge, as `duplex` prints it."""
    return np.array([table[min(bin_of(d), len(BINS_DB) - 1)]["plus_minus_ms"] for d in deficits])


def coverage(detector: Detector, args: argparse.Namespace, material: Material) -> None:
    """How often the printed interval holds the truth, among edges that print one."""
    table = json.loads(args.intervals.read_text())
    print(
        "condition     n  reliable %   onset covered %, half width"
        "   offset covered %, half width   latency covered %, half width"
    )
    noisy: list[np.ndarray] = []
    for kind, snr, tracks in material.conditions(args.turns, args.seed):
        e = np.array(measure(detector, tracks).edges).reshape(-1, 6)
        flags = e[:, 4:].astype(int)
        good = e[((flags[:, 0] & START_UNRELIABLE) == 0) & ((flags[:, 1] & END_UNRELIABLE) == 0)]
        if len(good) == 0:
            print(f"{label(kind, snr)} {len(e):5}        0.0")
            continue
        on, off = widths(table["onset"], good[:, 2]), widths(table["offset"], good[:, 3])
        cells = [
            f"{100 * (np.abs(error) <= width).mean():9.1f} {width.mean():9.1f}"
            for error, width in ((good[:, 0], on), (good[:, 1], off))
        ]
        shuffled = np.random.default_rng(5).permutation(len(good))
        error, width = good[shuffled, 0] - good[:, 1], np.hypot(on[shuffled], off)
        held = np.abs(error) <= width
        cells.append(f"{100 * held.mean():9.1f} {width.mean():9.1f}")
        if kind != "clean":
            noisy.append(held)
        share = 100 * len(good) / len(e)
        print(f"{label(kind, snr)} {len(e):5} {share:10.1f}   ", "      ".join(cells), flush=True)
    print(f"latency covered over all noisy rows: {100 * np.concatenate(noisy).mean():.1f} %")

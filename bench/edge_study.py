"""Measure the edge detector on planted dialogues, and fit the intervals its edges carry.

The package never reads it, and the speakers named to ``fit`` must not be the ones a table is
printed for. DIR holds one folder of sound files a speaker. The detector, what is planted, the
scores and the intervals are in ``edge_*.py`` beside it.

The shipped intervals are fitted on the 24 folders that ``fitted.names`` lists, of Debian's packages
of recorded speech: ``kl`` klettres-data, ``kt`` ktuberling-data, ``core`` asterisk-core-sounds,
the others asterisk-prompt. The same call gives the same file, byte for byte.

``duplex calibrate`` judges whole calls on goals, with speakers that nothing here was fitted
on; clips are cut, and noise is made, by the same code for both.

    python bench/edge_study.py table DIR --speakers a,b --babble c,d [--header OTHER.h]
    python bench/edge_study.py fit DIR --speakers e,f --only clean,white,pink,car --turns 40 \\
        --seed 7 --out src/duplex/data/edge_intervals.json
    python bench/edge_study.py coverage DIR --speakers a,b \\
        --intervals src/duplex/data/edge_intervals.json
    python bench/edge_study.py cost DIR --speakers a
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import soxr

from duplex.calibration.clips import RATE_HZ
from duplex.errors import InputError
from edge_detector import Detector
from edge_intervals import coverage, fit
from edge_material import Material, label
from edge_scores import measure


def spread(errors: np.ndarray) -> str:
    if len(errors) == 0:
        return f"{'':>19}"
    size = np.abs(errors)
    return f"{errors.mean():+7.1f} {np.percentile(size, 50):5.1f} {np.percentile(size, 95):5.0f}"


def print_table(
    detectors: dict[str, Detector], args: argparse.Namespace, material: Material
) -> None:
    print(
        "condition   detector       n   onset bias p50 p95     offset bias p50 p95"
        "    latency bias p50 p95   missed merged extra %"
    )
    for kind, snr, tracks in material.conditions(args.turns, args.seed):
        for name, detector in detectors.items():
            tally = measure(detector, tracks)
            e = np.array(tally.edges).reshape(-1, 6)
            shuffled = np.random.default_rng(5).permutation(len(e))
            errors = (e[:, 0], e[:, 1], e[shuffled, 0] - e[:, 1])
            shares = (100 * n / tally.turns for n in (tally.missed, tally.merged, tally.extra))
            print(
                f"{label(kind, snr)}  {name:10} {tally.turns:5} ",
                "  ".join(spread(x) for x in errors),
                "  ",
                " ".join(f"{x:5.1f}" for x in shares),
                flush=True,
            )


def cost(detector: Detector, args: argparse.Namespace, material: Material) -> None:
    """Processor time per 10 ms of dialogue, beside webrtcvad called from Python at 8 kHz."""
    import webrtcvad

    _, _, tracks = next(material.conditions(12, args.seed))
    x = np.concatenate([t.samples for t in tracks])
    for rate in (8_000, 16_000, 24_000, 48_000):
        y = x if rate == RATE_HZ else soxr.resample(x, RATE_HZ, rate)
        spent = []
        for _ in range(9):
            before = time.process_time()
            detector(y, rate, rate // 100)
            spent.append(time.process_time() - before)
        print(f"edge   {rate:6} Hz {min(spent) / (len(y) / rate * 100) * 1e6:6.2f} us per 10 ms")
        if rate == 8_000:
            vad, data = webrtcvad.Vad(2), y.tobytes()
            frames = [data[i : i + 160] for i in range(0, len(data) - 159, 160)]
            before = time.process_time()
            for frame in frames:
                vad.is_speech(frame, rate)
            spent_us = (time.process_time() - before) * 1e6
            print(f"webrtc {rate:6} Hz {spent_us / len(frames):6.2f} us per 10 ms")


def main() -> None:
    names = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(
        description="Measure or fit the edge detector on planted dialogues."
    )
    parser.add_argument("command", choices=["table", "fit", "coverage", "cost"])
    parser.add_argument(
        "speech", type=Path, help="a folder with one folder of sound files a speaker"
    )
    parser.add_argument("--speakers", type=names, required=True)
    parser.add_argument("--babble", type=names, default=[])
    parser.add_argument("--only", type=names, default=[], help="clean, white, pink, car, babble")
    parser.add_argument("--turns", type=int, default=40, help="turns a speaker and condition")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--header", type=Path, action="append", help="another detector to set beside ours"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--intervals", type=Path)
    args = parser.parse_args()
    material, detector = Material(args), Detector()
    if args.command == "table":
        others = {path.stem: Detector(path) for path in args.header or []}
        print_table({"edge": detector, **others}, args, material)
    else:
        {"fit": fit, "coverage": coverage, "cost": cost}[args.command](detector, args, material)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(str(error)) from None

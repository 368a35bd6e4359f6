"""Measure the edge detector on planted dialogues, and fit the intervals its edges carry.

Compiles ``src/duplex/_edge.h`` by itself, so that a change of the detector can be judged before
the core is built. It must never be read by the package, and the speakers named to ``fit`` must not
be the ones a table is printed for. DIR holds one folder of sound files a speaker.

``duplex calibrate`` judges whole calls on goals, with speakers that nothing here was fitted
on; clips are cut, and noise is made, by the same code for both.

    python bench/edge_study.py table DIR --speakers a,b --babble c,d [--header OTHER.h]
    python bench/edge_study.py fit DIR --speakers e,f --only clean,white,pink,car --turns 50 \\
        --seed 7 --out src/duplex/data/edge_intervals.json
    python bench/edge_study.py coverage DIR --speakers a,b \\
        --intervals src/duplex/data/edge_intervals.json
    python bench/edge_study.py cost DIR --speakers a
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr

from duplex.calibration.clips import RATE_HZ, active_rms, load_clip
from duplex.calibration.noise import Noises
from duplex.errors import InputError

HEADER = Path(__file__).resolve().parent.parent / "src" / "duplex" / "_edge.h"
FRAME = RATE_HZ // 400
JOIN_MS = 450.0  # shorter than any planted pause between turns
BINS_DB = (-36.0, -24.0, -18.0, -12.0, -9.0, -6.0, -3.0, 0.0, 3.0, 6.0, 9.0, 12.0)
QUANTILE = 0.92
LEAST_MASKED_MS = 10.0
START_UNRELIABLE, END_UNRELIABLE = 4, 8
CONDITIONS: list[tuple[str, float | None]] = [("clean", None)] + [
    (kind, snr)
    for kind in ("white", "pink", "car", "babble")
    for snr in (30.0, 20.0, 10.0, 5.0, 0.0)
]

SHIM = r"""
#include <stdlib.h>
int run(const int16_t *x, int64_t n, int rate, int64_t chunk, int64_t *out, int most)
{
    edge_t *e = malloc(sizeof *e);
    edge_segment s;
    int64_t i = 0;
    int k = 0, more = 1;
    edge_init(e, rate);
    while (more) {
        if (i < n) i += (int64_t)edge_push(e, x + i, (size_t)(n - i < chunk ? n - i : chunk));
        else { edge_finish(e); more = 0; }
        while (edge_pop(e, &s)) if (k < most) {
            int64_t *o = out + 5 * k++;
            o[0] = s.start; o[1] = s.end;
            o[2] = s.start_deficit; o[3] = s.end_deficit; o[4] = s.flags;
        }
    }
    free(e);
    return k;
}
"""


class Detector:
    """The header, compiled alone; calling it gives rows of start, end, two deficits and flags."""

    def __init__(self, header: Path = HEADER) -> None:
        folder = Path(tempfile.mkdtemp(prefix="edge-study-"))
        source, library = folder / "edge.c", folder / "edge.so"
        source.write_text(f'#include "{header.resolve()}"\n{SHIM}')
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
        self._run = ctypes.CDLL(str(library)).run
        self._run.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int,
        ]

    def __call__(self, x: np.ndarray, rate_hz: int = RATE_HZ, chunk: int = 480) -> np.ndarray:
        out = np.zeros((len(x) // (rate_hz // 5) + 8, 5), np.int64)
        n = self._run(x.ctypes.data, len(x), rate_hz, chunk, out.ctypes.data, len(out))
        return out[:n]


def load_speakers(
    folder: Path, names: list[str], *, strict: bool = True
) -> dict[str, list[np.ndarray]]:
    speakers = {}
    for name in names:
        files = sorted(
            p for p in (folder / name).iterdir() if p.suffix in (".wav", ".ogg", ".flac")
        )
        speakers[name] = [c for p in files if (c := load_clip(p, strict=strict)) is not None]
        if not speakers[name]:
            raise SystemExit(f"speaker {name}: no usable clip in {folder / name}")
    return speakers


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    samples: np.ndarray
    turns: list[tuple[int, int]]  # where speech was placed, by the sample


Planted = tuple[str, float | None, list[Track]]


def plant(
    clips: list[np.ndarray],
    turns: int,
    kind: str,
    snr: float | None,
    noises: Noises,
    rng: np.random.Generator,
) -> Track:
    """One side of a dialogue: turns of 0.3 to 4 s between pauses of 0.7 to 2.5 s, off any grid."""
    level = 10 ** (rng.uniform(-32, -20) / 20)
    parts: list[np.ndarray] = []
    spans: list[tuple[int, int]] = []
    at = 0

    def add(x: np.ndarray) -> None:
        nonlocal at
        parts.append(x.astype(np.float32))
        at += len(x)

    add(np.zeros(int(rng.uniform(0.8, 2.5) * RATE_HZ)))
    for _ in range(turns):
        start, wanted = at, float(rng.choice([0.3, 0.8, 1.5, 2.5]))
        while True:
            clip = clips[int(rng.integers(len(clips)))]
            add(clip * (level / active_rms(clip)))
            if at - start >= wanted * RATE_HZ:
                break
            add(np.zeros(int(rng.uniform(0.04, 0.15) * RATE_HZ)))
        spans.append((start, at))
        add(np.zeros(int(rng.uniform(0.7, 2.5) * RATE_HZ)))
    x = np.concatenate(parts)
    if snr is not None:
        x = x + noises.cut(kind, len(x), rng) * np.float32(level * 10 ** (-snr / 20))
    elif rng.integers(2):  # clean: half on digital zero, half on line noise
        x = x + (10 ** (-75 / 20) * rng.standard_normal(len(x))).astype(np.float32)
    pcm = np.clip(np.round(x * 32768), -32768, 32767).astype(np.int16)
    return Track(samples=pcm, turns=spans)


def planted(
    speakers: dict[str, list[np.ndarray]],
    turns: int,
    noises: Noises,
    conditions: list[tuple[str, float | None]],
    seed: int,
) -> Iterator[Planted]:
    for kind, snr in conditions:
        tracks = []
        for name, clips in speakers.items():
            rng = np.random.default_rng([seed, zlib.crc32(f"{name}{kind}{snr}".encode())])
            tracks.append(plant(clips, turns, kind, snr, noises, rng))
        yield kind, snr, tracks


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


def label(kind: str, snr: float | None) -> str:
    return f"{kind:7}{'' if snr is None else int(snr):>4}"


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


class Material:
    """The speakers, noises and conditions a command was given."""

    def __init__(self, args: argparse.Namespace) -> None:
        babblers = load_speakers(args.speech, args.babble, strict=False) if args.babble else {}
        self.speakers = load_speakers(args.speech, args.speakers)
        self.noises = Noises(babblers)
        self.wanted = [
            c
            for c in CONDITIONS
            if (not args.only or c[0] in args.only) and (babblers or c[0] != "babble")
        ]

    def conditions(self, turns: int, seed: int) -> Iterator[Planted]:
        return planted(self.speakers, turns, self.noises, self.wanted, seed)


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

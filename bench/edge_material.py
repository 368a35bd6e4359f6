"""What the edge study plants: one side of a dialogue, its speech placed to the sample, in noise.

Clips are cut, and noise is made, by the code that ``duplex calibrate`` uses. It measures nothing;
``edge_study.py`` drives it.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from duplex.calibration.clips import RATE_HZ, active_rms, load_clip
from duplex.calibration.noise import Noises

CONDITIONS: list[tuple[str, float | None]] = [("clean", None)] + [
    (kind, snr)
    for kind in ("white", "pink", "car", "babble")
    for snr in (30.0, 20.0, 10.0, 5.0, 0.0)
]


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


def label(kind: str, snr: float | None) -> str:
    return f"{kind:7}{'' if snr is None else int(snr):>4}"

"""Clips of speech whose first and last sample are known.

A clip is cut at the first and last 5 ms above −45 dBFS, with its active speech at
−20 dBFS when that is judged; whoever places it levels it afterwards, so its edges are
where it was placed. Pauses of 150 ms and more part a file into phrases. It never
decides where speech is by any detector. Stimuli and ``bench/edge_study.py`` drive it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from duplex.errors import InputError

Floats = npt.NDArray[np.float32]

RATE_HZ = 24_000
BLOCK = RATE_HZ // 200
"""5 ms, the window clips are cut by."""
ACTIVE_DBFS, CUT_DBFS = -20.0, -45.0
PHRASE_PAUSE_MS = 150
"""A pause this long inside a file parts it: no planted turn holds one."""
SURROUND_MS = 300
"""At most this much of what was cut away is kept beside a clip, for the uncut row."""
FORMATS = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".sph")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One phrase, active level −20 dBFS; ``head`` and ``tail`` are what was cut away."""

    samples: Floats
    head: Floats
    tail: Floats


Speakers = dict[str, list[Clip]]


def active_rms(x: Floats) -> float:
    """Root mean square over the 10 ms windows within 30 dB of the loudest."""
    n = len(x) // 240
    energies = (x[: n * 240].reshape(n, 240) ** 2).mean(1)
    return math.sqrt(float(energies[energies > energies.max() * 1e-3].mean()) + 1e-15)


def levelled(samples: Floats, rate_hz: int) -> Floats | None:
    """The sound at 24 kHz with its active speech at −20 dBFS; None when there is too little."""
    x: Floats = samples if rate_hz == RATE_HZ else soxr.resample(samples, rate_hz, RATE_HZ)
    if len(x) < RATE_HZ // 5 or not x.any():
        return None
    x = x * (10 ** (ACTIVE_DBFS / 20) / active_rms(x))
    return x * min(1.0, 0.99 / float(np.abs(x).max()))


def loud_blocks(x: Floats) -> npt.NDArray[np.int64]:
    """Indices of the 5 ms windows above −45 dBFS."""
    return np.flatnonzero(_energies(x) > 10 ** (CUT_DBFS / 10))


def trimmed(x: Floats) -> Floats:
    """``x`` without what lies before the first and behind the last loud window."""
    loud = loud_blocks(x)
    return x[loud[0] * BLOCK : (loud[-1] + 1) * BLOCK] if len(loud) else x[:0]


def read_levelled(path: Path) -> Floats | None:
    """Read a sound file, levelled, as mono; None when it holds too little.

    Raises:
        InputError: it is no sound file.
    """
    try:
        samples, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise InputError(f"clip {path}: {error}") from error
    return levelled(samples.mean(1), rate_hz)


def load_clip(path: Path, *, strict: bool) -> Floats | None:
    """A file as one clip of 0.25 to 5 s, pauses and all; None when it is no good for that.

    ``strict`` drops a clip that begins with more than 60 ms, or ends with more than 160 ms,
    of sound below −35 dBFS: a room or a breath, and nobody's idea of where speech starts.
    """
    x = read_levelled(path)
    if x is None:
        return None
    x = trimmed(x)
    usable = 0.25 <= len(x) / RATE_HZ <= 5.0 and _has_body(x, strict=strict)
    return x if usable else None


def phrases(x: Floats) -> list[Clip]:
    """Part a levelled sound at its pauses into clips of 0.2 to 5 s."""
    loud = loud_blocks(x)
    if not len(loud):
        return []
    gap = PHRASE_PAUSE_MS // 5
    breaks = np.flatnonzero(np.diff(loud) > gap)
    firsts = loud[np.concatenate(([0], breaks + 1))] * BLOCK
    ends = (loud[np.concatenate((breaks, [len(loud) - 1]))] + 1) * BLOCK
    most = SURROUND_MS * RATE_HZ // 1000
    found = []
    for i, (start, end) in enumerate(zip(firsts, ends, strict=True)):
        part = x[start:end]
        usable = 0.2 <= len(part) / RATE_HZ <= 5.0 and _has_body(part, strict=True)
        if not usable or _is_steady(part) or _is_tone(part):
            continue
        before = max(ends[i - 1] if i else 0, start - most)
        after = min(firsts[i + 1] if i + 1 < len(firsts) else len(x), end + most)
        found.append(Clip(samples=part, head=x[before:start], tail=x[end:after]))
    return found


def load_speakers(folder: Path, names: Sequence[str] = ()) -> Speakers:
    """Phrases by speaker: a folder's sub-folders, or else the first part of its file names.

    Links to folders are left out, so nobody counts twice. ``names`` chooses some.

    Raises:
        InputError: no such folder or speaker, or a speaker without a usable clip.
    """
    files = _by_speaker(folder)
    if missing := [name for name in names if name not in files]:
        known = ", ".join(sorted(files)) or "none"
        raise InputError(f"speech {folder}: no speaker {missing[0]}, it has {known}")
    speakers: Speakers = {}
    for name in sorted(names or files):
        clips = [
            clip
            for path in files[name]
            if (x := read_levelled(path)) is not None
            for clip in phrases(x)
        ]
        if clips:
            speakers[name] = clips
        elif names:
            raise InputError(f"speech {folder}: speaker {name} has no usable clip")
    if not speakers:
        raise InputError(f"speech {folder}: no sound file with a phrase of 0.2 to 5 s")
    return speakers


def _by_speaker(folder: Path) -> dict[str, list[Path]]:
    if not folder.is_dir():
        raise InputError(f"speech {folder}: no such folder")
    inside = [p for p in sorted(folder.iterdir()) if p.is_dir() and not p.is_symlink()]
    found = {p.name: files for p in inside if (files := list(_sounds(p)))}
    if found:
        return found
    for path in _sounds(folder):
        found.setdefault(re.split(r"[-_ .]", path.stem)[0], []).append(path)
    return found


def _sounds(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*")) if p.suffix.lower() in FORMATS)


def _energies(x: Floats) -> Floats:
    energies: Floats = (x[: len(x) // BLOCK * BLOCK].reshape(-1, BLOCK) ** 2).mean(1)
    return energies


def _has_body(x: Floats, *, strict: bool) -> bool:
    """Whether anything is loud, and, if strict, little before and behind that is not."""
    energies = _energies(x)
    body = np.flatnonzero(energies > 10**-3.5)
    if not len(body):
        return False
    quiet = (int(body[0]) * 5, (len(energies) - 1 - int(body[-1])) * 5)
    return not strict or (quiet[0] <= 60 and quiet[1] <= 160)


def _is_steady(x: Floats) -> bool:
    """Whether the level hardly moves from one 5 ms to the next: hiss, not a voice."""
    return bool(np.std(10 * np.log10(_energies(x) + 1e-9)) < 2.5)


def _is_tone(x: Floats) -> bool:
    """Whether most of the power lies within 40 Hz of one frequency: a beep, not a voice."""
    power = np.abs(np.fft.rfft(x)) ** 2
    reach = max(1, 40 * len(x) // RATE_HZ)
    peak = int(power.argmax())
    return bool(power[max(0, peak - reach) : peak + reach + 1].sum() > 0.8 * power.sum())

"""The sha256 of every synthesised sound at 24 kHz, kept in tests/data/sounds.sha256.

    python tests/sound_hashes.py > tests/data/sounds.sha256

A difference is a change of what every seeded call with conditions sounds like.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from duplex import beds

FILE = Path(__file__).parent / "data" / "sounds.sha256"
RATE_HZ = 24_000


def sounds(names: frozenset[str] | None = None) -> Iterator[tuple[str, npt.NDArray[np.int16]]]:
    """Every sound with its name, or those named."""
    for entry in beds.BEDS:
        if names is None or entry.kind in names:
            yield entry.kind, beds.bed(entry.kind, RATE_HZ).samples
    if names is None or "background_speech" in names:
        yield "background_speech", beds.background_speech(2, RATE_HZ).samples
    takes = (
        (beds.BURSTS, beds.bursts),
        (beds.TICS, beds.tics),
        (beds.SIDE_SPEECH, beds.side_speech),
    )
    for entries, rendered in takes:
        for clips in entries:
            if names is None or clips.kind in names:
                parts = [clip.samples for clip in rendered(clips.kind, RATE_HZ)]
                yield clips.kind, np.concatenate(parts)


def lines(names: frozenset[str] | None = None) -> list[str]:
    """``hash name`` of each sound."""
    return [
        f"{hashlib.sha256(pcm.astype('<i2').tobytes()).hexdigest()} {name}"
        for name, pcm in sounds(names)
    ]


if __name__ == "__main__":
    print("\n".join(lines(frozenset(sys.argv[1:]) or None)))

"""One pass over a recording: what it finds, and that its memory stays flat."""

from __future__ import annotations

import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex.detect import segments
from duplex.intake import Listening, listen, open_sides
from duplex.values import Side
from stimuli import conversation, noise, pcm, save


def heard(path: Path, detector: str = "rms", *also: str) -> Listening:
    with ExitStack() as stack:
        return listen(open_sides((path,), None, stack), detector, also)


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_streaming_finds_what_the_whole_signal_holds(tmp_path: Path, detector: str) -> None:
    caller, assistant = conversation()
    caller = caller + noise(20, -55)
    found = heard(save(tmp_path / "a.wav", caller, assistant), detector, "rms", "webrtc")
    assert set(found.segments) == {"rms", "webrtc"}
    for side, wave in ((Side.CALLER, caller), (Side.ASSISTANT, assistant)):
        assert list(found.spans(side)) == segments(pcm(wave), 24_000, detector)


def test_edges_at_a_moved_rate_are_within_a_sample_of_the_direct_ones(tmp_path: Path) -> None:
    caller, assistant = conversation(44_100)
    found = heard(save(tmp_path / "a.wav", caller, assistant, rate=44_100))
    assert (found.rate_hz, found.file_rate_hz) == (48_000, 44_100)
    assert found.duration == 20 * 48_000


def hour(path: Path, minutes: int) -> Path:
    """A long conversation at 8 kHz, three exchanges a minute."""
    part = np.stack([pcm(wave) for wave in conversation(8_000)], axis=1)
    with soundfile.SoundFile(path, "w", 8_000, 2, subtype="PCM_16") as file:
        for _ in range(3 * minutes):
            file.write(part)
    return path


def peak(path: Path) -> tuple[int, int]:
    """Most memory in use while listening, and segments found."""
    tracemalloc.start()
    try:
        found = heard(path)
        return tracemalloc.get_traced_memory()[1], len(found.segments["rms"])
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    heard(hour(tmp_path / "warm.wav", 1))
    short, few = peak(hour(tmp_path / "short.wav", 2))
    long, many = peak(hour(tmp_path / "long.wav", 20))
    assert many == 10 * few
    audio = 18 * 60 * 8_000 * 2 * 2
    assert long - short < audio / 15

"""The engine's work done the way voice stacks do it: numpy, soxr and webrtcvad per tick.

Same audio in, same mix in one channel and recording in two, same floor
accounting, the usual streaming resampler to 8 kHz. Two resamplers never give
the same bytes, so the frames the detector is asked about are the engine's own
detector input, made beforehand and at no cost to this side: the decisions are
the same and only the work differs.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr
import webrtcvad

from duplex.values import Side, Span

Pcm = npt.NDArray[np.int16]
FIR = Path(__file__).parent.parent / "src" / "duplex" / "_fir.h"
FACTOR = 3
FRAME = 80
"""Samples of 10 ms at 8 kHz; a third of those at 24 kHz."""


def detector_input(pcm: Pcm) -> bytes:
    """Return what the engine's webrtc detector hears of ``pcm``, at 8 kHz."""
    found = re.search(r"duplex_fir_24\[\d+\] = \{(.*?)\};", FIR.read_text(), re.DOTALL)
    assert found is not None
    numbers = [int(number) for number in re.findall(r"-?\d+", found.group(1))]
    taps = np.trim_zeros(np.array(numbers, np.int64), "b")
    made = (np.convolve(pcm.astype(np.int64), taps, "same") + 16_384) >> 15
    return bytes(np.clip(made, -32_768, 32_767).astype(np.int16)[::FACTOR])


class NumpyLoop:
    """Both sides tick by tick: mix, interleave, resample, decide, account, collect."""

    def __init__(self, heard: tuple[bytes, bytes]) -> None:
        self.heard = heard
        self.vads = (webrtcvad.Vad(2), webrtcvad.Vad(2))
        self.streams = (
            soxr.ResampleStream(24_000, 8_000, 1, dtype="int16", quality="HQ"),
            soxr.ResampleStream(24_000, 8_000, 1, dtype="int16", quality="HQ"),
        )
        self.opened: list[int | None] = [None, None]
        self.segments: tuple[list[Span], list[Span]] = ([], [])
        self.shares = [0, 0, 0, 0]
        self.clipped = 0
        self.played = 0
        self.frames = 0

    def tick(self, caller: Pcm, assistant: Pcm) -> None:
        total = caller.astype(np.int32) + assistant
        held = np.clip(total, -32_768, 32_767)
        self.clipped += int(np.count_nonzero(held != total))
        self.mixed = held.astype(np.int16)
        self.stereo = np.empty((len(caller), 2), np.int16)
        self.stereo[:, 0] = caller
        self.stereo[:, 1] = assistant
        self.streams[0].resample_chunk(caller)
        self.streams[1].resample_chunk(assistant)
        self.played += len(caller)
        while (self.frames + 1) * FRAME * FACTOR <= self.played:
            self.decide()

    def decide(self) -> None:
        at = self.frames * FRAME * FACTOR
        raw = slice(2 * FRAME * self.frames, 2 * FRAME * (self.frames + 1))
        voiced = (
            self.vads[0].is_speech(self.heard[0][raw], 8000),
            self.vads[1].is_speech(self.heard[1][raw], 8000),
        )
        self.shares[voiced[0] + 2 * voiced[1]] += FRAME * FACTOR
        for side in (0, 1):
            opened = self.opened[side]
            if voiced[side]:
                if opened is None:
                    self.opened[side] = at
            elif opened is not None:
                self.segments[side].append(Span(start=opened, end=at))
                self.opened[side] = None
        self.frames += 1

    def finish(self) -> None:
        for side in Side:
            opened = self.opened[side]
            if opened is not None:
                self.segments[side].append(Span(start=opened, end=self.played))

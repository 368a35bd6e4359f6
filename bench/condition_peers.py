"""Audio conditions the way voice benchmarks do them: numpy, scipy and audioop, tick by tick.

One object a call keeps the state between ticks, and each tick goes the way tau-voice's
does: events are drawn, a bed is scaled to the tick's own level by an SNR that sways,
bursts and the caller's own sounds are tracks beside it, all are summed in double precision; then
plain interpolation to 8 kHz, a band of 300 to 3 400 Hz, mu-law there and back, and a
two-state loss that is drawn once a tick.
"""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import numpy.typing as npt
from scipy import signal

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import audioop

Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]


class NumpyLine:
    """The caller's leg at 24 kHz, one call of :meth:`tick` a tick."""

    def __init__(self, bed: Pcm, clips: list[Pcm]) -> None:
        self.bed = bed.astype(np.float64)
        self.clips = [clip.astype(np.float64) for clip in clips]
        self.at = 0
        self.playing: list[tuple[Floats, int] | None] = [None, None]
        self.down: object = None
        self.up: object = None
        self.band = signal.butter(4, (300, 3_400), "bandpass", fs=8_000, output="ba")
        self.state = np.zeros(max(map(len, self.band)) - 1)
        self.random = random.Random(7)
        self.bad = False

    def tick(self, pcm: Pcm) -> Pcm:
        silent = not pcm.any()
        mixed = pcm.astype(np.float64) + self.noise(len(pcm))
        for track, rate in ((0, 1.0), (1, 0.7)):
            mixed += self.sound(track, rate, len(pcm), silent or track == 0)
        return self.lost(self.telephone(np.clip(mixed, -32_768, 32_767).astype(np.int16)))

    def noise(self, count: int) -> Floats:
        at = np.arange(self.at, self.at + count)
        t = at / 24_000
        sway = np.sin(np.pi * t) + 0.3 * np.sin(2.7 * np.pi * t) + 0.2 * np.sin(0.4 * np.pi * t)
        snr = 15 + 3 * float(np.mean(sway)) / 1.5
        bed = np.take(self.bed, at, mode="wrap")
        self.at += count
        level = float(np.sqrt(np.mean(bed**2))) or 1.0
        return bed * (3_000 / level * 10 ** (-snr / 20))

    def sound(self, track: int, rate_per_min: float, count: int, may_start: bool) -> Floats:
        out = np.zeros(count)
        playing = self.playing[track]
        chance = 1 - math.exp(-rate_per_min / 60 * count / 24_000)
        if playing is None and may_start and self.random.random() < chance:
            clip = self.clips[self.random.randrange(len(self.clips))]
            level = float(np.sqrt(np.mean(clip**2))) or 1.0
            playing = clip * (3_000 / level * 10 ** (-self.random.uniform(-5, 10) / 20)), 0
        if playing is not None:
            clip, at = playing
            part = clip[at : at + count]
            out[: len(part)] = part
            playing = (clip, at + count) if at + count < len(clip) else None
        self.playing[track] = playing
        return out

    def telephone(self, pcm: Pcm) -> Pcm:
        narrow, self.down = audioop.ratecv(pcm.tobytes(), 2, 1, 24_000, 8_000, self.down)
        voice = np.frombuffer(narrow, np.int16).astype(np.float64)
        voice, self.state = signal.lfilter(*self.band, voice, zi=self.state)
        held = np.clip(voice * 0.9, -32_768, 32_767).astype(np.int16).tobytes()
        back = audioop.ulaw2lin(audioop.lin2ulaw(held, 2), 2)
        wide, self.up = audioop.ratecv(back, 2, 1, 8_000, 24_000, self.up)
        # The first tick comes out a little short.
        out = np.zeros(len(pcm), np.int16)
        made = np.frombuffer(wide, np.int16)[: len(pcm)]
        out[: len(made)] = made
        return out

    def lost(self, pcm: Pcm) -> Pcm:
        self.bad = self.random.random() < (0.8 if self.bad else 0.004)
        if self.bad:
            pcm[: len(pcm) * 3 // 4] = 0
        return pcm

"""Audio and chains of effects for the tests of the line.

Speech here is a buzz in syllables and turns: voiced enough for every detector, and
quiet long enough between turns for a caller's own sounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from duplex._line import Line
from duplex.conditions import (
    AcousticEcho,
    BackgroundSpeech,
    Bursts,
    Echo,
    Effect,
    Microphone,
    Network,
    Noise,
    PacketLoss,
    Reverb,
    SideSpeech,
    Telephony,
    Tics,
)
from duplex.line import build_line

Pcm = npt.NDArray[np.int16]

EFFECTS: tuple[Effect, ...] = (
    Noise(kind="white", snr=12, drift_db=3),
    Bursts(rate_per_min=40),
    BackgroundSpeech(gain=0.4),
    Echo(delay_ms=7, gain=0.4, decay=0.5),
    AcousticEcho(delay_ms=20, gain=0.5, decay=0.3),
    Reverb(rt60_ms=300),
    Microphone(
        low_hz=200, high_hz=3_500, muffle_prob=0.9, clip=-9, dc=0.01, level_db=6, agc=True, bits=10
    ),
    Telephony(law="a"),
    PacketLoss(model="gilbert_elliott", loss=0.3, burst_ms=45, packet_ms=15, concealment="repeat"),
    Network(base_ms=30, jitter_ms=40, reorder=0.1, stalls_per_min=20),
    Tics(rate_per_min=60),
    SideSpeech(rate_per_min=60, every_ms=900, length_ms=200),
)
"""One of every effect, each with all it can do."""

chains = st.sets(st.sampled_from(range(len(EFFECTS))), min_size=1).map(
    lambda picked: tuple(EFFECTS[k] for k in sorted(picked))
)


def speech(rate_hz: int, seconds: float, seed: int = 1) -> Pcm:
    """Turns of about two seconds with as long pauses between them."""
    count = round(rate_hz * seconds)
    t = np.arange(count) / rate_hz
    pitch = 110 + 20 * seed
    buzz = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 1 + 3_800 // pitch))
    turn = np.sin(2 * np.pi * 0.27 * t + seed) > 0.1
    syllable = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.4, 0, 1)
    noise = np.random.default_rng(seed).normal(0, 8, count)
    return np.asarray(np.rint(4_000 * buzz * turn * syllable + noise), np.int16)


def build(effects: Sequence[Effect], rate_hz: int = 8_000, **more: object) -> Line:
    """A line, which there must be."""
    seed, leg = more.pop("seed", 7), more.pop("leg", 0)
    kernels, live = more.pop("kernels", None), more.pop("live", False)
    assert not more
    assert isinstance(seed, int)
    assert isinstance(leg, int)
    assert kernels is None or isinstance(kernels, str)
    line = build_line(
        effects, rate_hz=rate_hz, seed=seed, leg=leg, kernels=kernels, live=bool(live)
    )
    assert line is not None
    return line


def passed(line: Line, pcm: Pcm, sizes: Sequence[int], played: Pcm | None = None) -> Passed:
    """Pass a signal in chunks of ``sizes``, over and over; collect all that comes of it."""
    out, noise, mask = [], [], []
    at = turn = 0
    while at < len(pcm):
        chunk = slice(at, at + sizes[turn % len(sizes)])
        out.append(line.process(pcm[chunk], None if played is None else played[chunk]))
        noise.append(line.noise())
        mask.append(line.mask())
        at += sizes[turn % len(sizes)]
        turn += 1
    return (
        np.concatenate(out).tobytes(),
        np.concatenate(noise).tobytes(),
        np.concatenate(mask).tobytes(),
        tuple(line.labels()),
    )


Passed = tuple[bytes, bytes, bytes, tuple[tuple[int, int, int, int], ...]]
"""What came out, the noise in it, the loss mask, and the labels."""

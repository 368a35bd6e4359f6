"""Keys heard in telephone audio: DTMF tones (ITU-T Q.23), found frame by frame at 8 kHz.

A key is told once, after two frames in a row that hold its pair of tones and little
else (after Q.24: the two within 8 dB, four fifths of the energy, no second
harmonic), so speech is not taken for keys. Pure: it keeps the last frame's key
and nothing else.
"""

from __future__ import annotations

import numpy as np

from duplex.protocols.pcm_bytes import Pcm

RATE_HZ = 8_000
LOW_HZ = (697, 770, 852, 941)
HIGH_HZ = (1209, 1336, 1477, 1633)
KEYS = ("123A", "456B", "789C", "*0#D")
"""One row for each low tone, one letter for each high tone."""
LEAST_RMS = 100.0
"""Fainter frames hold no key (about −50 dBFS)."""
LEAST_SHARE = 0.8
"""Part of a frame's energy that its two tones must have."""
MOST_TWIST = 10**0.8
"""Most by which one tone may be stronger in power, 8 dB."""
MOST_HARMONIC = 0.1
"""Most that the high tone's second harmonic may have of its power; voices have more."""


class KeyEar:
    """Hears keys in frames of ``frame`` samples."""

    def __init__(self, frame: int = 160) -> None:
        # A low tone's harmonic may be a high tone, so only those of the high ones are looked at.
        tones = np.array([*LOW_HZ, *HIGH_HZ, *(2 * hz for hz in HIGH_HZ)], np.float64)
        self._waves = np.exp(-2j * np.pi * np.outer(tones, np.arange(frame)) / RATE_HZ)
        self._scale = 2 / frame**2
        self._before = ""
        self._told = ""

    def hear(self, pcm: Pcm) -> str:
        """Take the next frame; return the key that began to be pressed, or nothing."""
        key = self._key(pcm)
        steady = key if key == self._before else ""
        self._before = key
        if not key:
            self._told = ""
        if not steady or steady == self._told:
            return ""
        self._told = steady
        return steady

    def _key(self, pcm: Pcm) -> str:
        samples = pcm.astype(np.float64)
        power = float(samples @ samples) / len(samples)
        if power < LEAST_RMS**2:
            return ""
        strength = np.abs(self._waves @ samples) ** 2 * self._scale
        low, high = int(np.argmax(strength[:4])), int(np.argmax(strength[4:8]))
        one, two = float(strength[low]), float(strength[4 + high])
        if one + two < LEAST_SHARE * power or max(one, two) > MOST_TWIST * min(one, two):
            return ""
        if strength[8 + high] > MOST_HARMONIC * two:
            return ""
        return KEYS[low][high]

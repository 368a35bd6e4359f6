"""How loud both sides are, 50 times a second, and whether that counts as voice.

The windows and the limit are those of the contract's first rule: 20 ms, RMS 220 or more.
Levels are in dB below full scale, as whole numbers from -99 to 0. It keeps two bytes a
window and side.
"""

from __future__ import annotations

import math

import numpy as np

from duplex.metrics.from_recording import VOICED_RMS, WINDOWS_PER_SECOND
from duplex.values import Json
from duplex.wavfile import Pcm

STEP_MS = 1000 // WINDOWS_PER_SECOND
_FLOOR_DB = -99


class Levels:
    """The windows of one side so far; a window that is not whole waits for the rest."""

    def __init__(self, rate_hz: int) -> None:
        self._window = rate_hz // WINDOWS_PER_SECOND
        self._rest = np.zeros(0, np.int16)
        self._decibels: list[int] = []
        self._voiced = bytearray()

    def __len__(self) -> int:
        return len(self._voiced)

    def push(self, pcm: Pcm) -> None:
        """Take int16 mono."""
        whole = np.concatenate([self._rest, pcm])
        count = len(whole) // self._window
        parts = whole[: count * self._window].reshape(count, self._window).astype(np.int64)
        self._rest = whole[count * self._window :]
        for energy in (parts * parts).sum(axis=1).tolist():
            self._voiced.append(energy >= VOICED_RMS * VOICED_RMS * self._window)
            self._decibels.append(self._in_decibels(energy))

    def since(self, at: int) -> dict[str, Json]:
        """Windows from number ``at`` on."""
        return {
            "db": list(self._decibels[at:]),
            "voiced": "".join("1" if one else "0" for one in self._voiced[at:]),
        }

    def _in_decibels(self, energy: int) -> int:
        if energy == 0:
            return _FLOOR_DB
        return max(_FLOOR_DB, round(10 * math.log10(energy / self._window / (1 << 30))))

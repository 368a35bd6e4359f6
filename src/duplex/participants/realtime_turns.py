"""Manual turns: our own ears decide when the other side has begun and ended a turn.

For sessions without the server's turn detection. Begun means speech that has
lasted long enough to be meant, so a click interrupts nobody; ended means the
pause after it. It hears levels, never words. A Realtime session drives it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duplex.local.endpoint import BLOCK, Endpointer, Kind
from duplex.local.seams import VOICE_RATE_HZ
from duplex.participants.base import Pcm
from duplex.resample import Resampler

MEANT = VOICE_RATE_HZ // 5
"""Speech this long begins a turn (200 ms)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEdge:
    """The other side began a turn at ``at_ms``, or ended it there."""

    began: bool
    at_ms: int


class OwnTurns:
    """The other side's turns, from the audio of the call at ``rate_hz``."""

    def __init__(self, rate_hz: int) -> None:
        other = rate_hz != VOICE_RATE_HZ
        self._resampler = Resampler(rate_hz, VOICE_RATE_HZ) if other else None
        self._ends = Endpointer()
        self._rest: Pcm = np.zeros(0, np.int16)
        self._told = False

    def hear(self, pcm: Pcm) -> list[TurnEdge]:
        """Take what came next; return the edges it revealed."""
        heard = self._resampler.push(pcm) if self._resampler else pcm
        waiting = np.concatenate((self._rest, heard)) if len(self._rest) else heard
        whole = len(waiting) - len(waiting) % BLOCK
        self._rest = waiting[whole:]
        edges: list[TurnEdge] = []
        for at in range(0, whole, BLOCK):
            edges += self._block(waiting[at : at + BLOCK])
        return edges

    def _block(self, block: Pcm) -> list[TurnEdge]:
        ends = self._ends
        edge = ends.push(block)
        edges = []
        if not self._told and ends.speaking and ends.last_active - ends.start >= MEANT:
            self._told = True
            edges.append(_at(ends.start, began=True))
        if edge is not None and edge.kind is not Kind.BEGAN:
            if edge.kind is Kind.ENDED:
                if not self._told:
                    edges.append(_at(edge.start, began=True))
                edges.append(_at(edge.end, began=False))
            self._told = False
        return edges


def _at(sample: int, *, began: bool) -> TurnEdge:
    return TurnEdge(began=began, at_ms=sample * 1000 // VOICE_RATE_HZ)

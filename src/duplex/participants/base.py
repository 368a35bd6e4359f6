"""The seam between the call loop and whatever sits at one end of a call.

A participant never knows the other side: it is given what its side hears, tick
by tick, and hands back audio and happenings in the order they came. It must
never block the loop, stamp positions, or raise once started: a peer's fault
after the start is a :class:`~duplex.values.RemoteFault` among its happenings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from duplex.clock import Clock
from duplex.values import Happening, RemoteFault, Side

Pcm = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Audio a participant said: int16 mono at the session rate, any length > 0.

    ``arrived_at`` is the clock's position at its receipt, in samples; None where
    that is when the loop collects it, or only ``received_at`` (seconds) is known.
    ``taken_at`` is the engine's position from which it could have been played; None
    where that is when the loop collects it, because nothing kept it waiting before.
    """

    pcm: Pcm
    received_at: float | None = None
    arrived_at: int | None = None
    taken_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """Audio that had come and will never be heard: samples at the session rate.

    For participants with a queue of their own; the call counts it.
    """

    samples: int


Incoming = Spoken | Discarded | Happening | RemoteFault


class Participant(Protocol):
    """One end of a call."""

    side: Side
    lock_step: bool
    """Whether it can take part in a virtual-time call."""

    async def start(self, clock: Clock) -> None:
        """Connect and open the session; raise SessionError with its stage."""

    def hear(self, position: int, pcm: Pcm) -> None:
        """Take what this side is played in the tick that begins at ``position``."""

    def collect(self) -> Sequence[Incoming]:
        """Hand over everything that came since the last call, in order."""

    async def finish(self) -> None:
        """Close the session politely, bounded in time; never raises."""

    async def abort(self) -> None:
        """Drop the session at once; never raises, may be called twice."""

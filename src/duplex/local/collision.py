"""Both sides began to speak together: who gives way, and how long it then waits.

As people do it. The first time it is a matter of temper, drawn at random: one
breaks off at once, the other goes on for a while; if both do the same, each
waits for a drawn time before it tries again, so that one of them is heard
first. If they meet again the caller gives way. Without this two voices that
think alike break off together and begin together for ever. Pure but for its
seeded draws; the voice drives it.
"""

from __future__ import annotations

from duplex.local.chance import Chance
from duplex.local.seams import VOICE_RATE_HZ
from duplex.local.yielding import STOP_AFTER
from duplex.values import Side

TOGETHER = VOICE_RATE_HZ * 8 // 10
"""Beginnings this close are one: each was decided before the other could be heard."""
GIVE_WAY_AFTER = VOICE_RATE_HZ // 5
"""Overlap after which whoever gives way stops; long enough to be sure that it is speech."""
HOLD_AFTER = VOICE_RATE_HZ * 95 // 100
"""Overlap after which the other one stops too: later than at an ordinary interruption, so
that the giving way is heard first, over a line that takes up to 400 ms each way."""
WAIT_STEP = VOICE_RATE_HZ * 2 // 5
"""Waits differ by this at least, so that the sooner one is heard before the later one is up."""
WAIT_STEPS = 3


class Collisions:
    """One voice's way with beginnings that fall together; positions are its own samples."""

    def __init__(self, seed: int | None, role: Side) -> None:
        self._role = role
        self._chance = None if seed is None else Chance(seed, f"{role.label} collisions")
        self._count = 0
        self._own_start: int | None = None
        self._patience = STOP_AFTER
        self.wait_until = 0
        """Nothing is begun before this, but what is meant to be spoken over the other side."""

    def are_together(self, own_start: int, their_start: int) -> bool:
        return abs(own_start - their_start) <= TOGETHER

    def stop_after(self, own_start: int, their_start: int) -> int:
        """Return the overlap after which speech begun at ``own_start`` is to stop."""
        if not self.are_together(own_start, their_start):
            return STOP_AFTER
        if self._own_start != own_start:
            self._own_start = own_start
            self._count += 1
            self._patience = GIVE_WAY_AFTER if self._gives_way() else HOLD_AFTER
        return self._patience

    def stopped(self, own_start: int, at: int) -> None:
        """Speech begun at ``own_start`` was stopped at ``at`` for the other side."""
        if self._own_start == own_start:
            steps = self._chance.stream("waits").randrange(WAIT_STEPS) if self._chance else 0
            self.wait_until = at + steps * WAIT_STEP

    def finished(self) -> None:
        """Something was said to its end: what meets now meets for the first time."""
        self._count = 0

    def _gives_way(self) -> bool:
        if self._chance is None or self._count > 1:
            return self._role is Side.CALLER
        return self._chance.happens("temper", 0.5)

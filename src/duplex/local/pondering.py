"""The thought of a brain that asks a model: due at its declared time, replaced by a newer one.

In virtual time a thought is waited for when it is due, on the wall clock one that is
not there yet comes late. Nothing is decided before it is due, so what a model said to
words that others have overtaken is never acted on. The voice drives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.local.seams import Act, Ponder


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a thought came to, and how many samples late that was."""

    acts: Sequence[Act]
    late: int


class Pondering:
    """At most one thought of one voice."""

    def __init__(self) -> None:
        self._ponder: Ponder | None = None
        self._due = 0

    @property
    def busy(self) -> bool:
        return self._ponder is not None

    def begin(self, ponder: Ponder, due: int) -> None:
        """Think ``ponder`` until ``due`` (samples of the voice's time), in place of any other."""
        if self._ponder is not None:
            self._ponder.task.cancel()
        self._ponder, self._due = ponder, due

    async def decided(self, position: int, wait: bool) -> Decided | None:
        """Return what the thought came to, once it is due and there."""
        if self._ponder is None or position < self._due:
            return None
        task = self._ponder.task
        if not task.done():
            if not wait:
                return None
            await asyncio.wait([task])
        self._ponder = None
        return Decided(acts=task.result()(), late=position - self._due)

    async def close(self) -> None:
        """Give up what is being thought; never raises."""
        if self._ponder is not None:
            self._ponder.task.cancel()
            await asyncio.gather(self._ponder.task, return_exceptions=True)
            self._ponder = None

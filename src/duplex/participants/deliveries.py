"""When what a side heard had really left us: one line per pause, not per message.

A session puts every message that carries audio through :class:`Deliveries`, at
the moment its sending is over. What comes back, if anything, is a ``sent``
happening for the call: the last audible message before a pause, or one of many
while there is none. It sends nothing and reads no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.participants.audible import PAUSE_MS
from duplex.values import Happening

EVERY_MS = 2_000
"""While no pause comes (noise, music, long speech), one message in this long is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One message's audio: samples ``[start, end)`` of the shared timeline."""

    start: int
    end: int
    audible: bool


class Deliveries:
    """Follows one side's outgoing audio, in order of sending."""

    def __init__(self, rate_hz: int) -> None:
        self._pause = PAUSE_MS * rate_hz // 1000
        self._every = EVERY_MS * rate_hz // 1000
        self._last: tuple[Parcel, int] | None = None
        self._run_from: int | None = None

    def sent(
        self, parcel: Parcel, position: int, received_at: float | None = None
    ) -> Happening | None:
        """Take a message whose sending was over at ``position`` of the clock (samples)."""
        if parcel.audible:
            self._last = (parcel, position)
            self._run_from = parcel.start if self._run_from is None else self._run_from
            if parcel.end - self._run_from < self._every:
                return None
            self._run_from = parcel.end
        elif self._last is None or parcel.end - self._last[0].end < self._pause:
            return None
        else:
            self._run_from = None
        return self._told(received_at)

    def _told(self, received_at: float | None) -> Happening:
        assert self._last is not None
        told, at = self._last
        if self._run_from is None:
            self._last = None
        return Happening(
            type="sent",
            fields={"start": told.start, "end": told.end, "sent_at": at},
            received_at=received_at,
        )

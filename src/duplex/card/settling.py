"""Whether a card that was just opened keeps the pace of real time yet.

At first a stream stands still, runs ahead to fill its buffers, or brings what had piled
up: nothing that is timed may begin before that is over. Pure; who waits looks every
now and then and goes on when both directions are steady.
"""

from __future__ import annotations

from collections import deque

from duplex.card.seat import Seat

SPAN_S = 0.5
"""Both streams must have kept the pace over this long."""
OFF = 0.12
"""As a share of it, this much off the pace is still steady: blocks are coarse."""


class Settling:
    """Follows a seat's two streams; :meth:`steady` is asked every 20 ms or so."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._seen: deque[tuple[float, int, int]] = deque()

    def steady(self) -> bool:
        seat = self._seat
        now = seat.now()
        seen = self._seen
        seen.append((now, seat.capture.frames, seat.playback.frames))
        while len(seen) > 1 and now - seen[1][0] >= SPAN_S:
            seen.popleft()
        since, came, went = seen[0]
        span = now - since
        if span < SPAN_S:
            return False
        paces = (
            (seat.capture.frames - came) / seat.capture.rate_hz,
            (seat.playback.frames - went) / seat.playback.rate_hz,
        )
        return all(abs(pace - span) <= OFF * span for pace in paces)

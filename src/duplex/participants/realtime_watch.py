"""What a Realtime peer leaves undone: a reply that runs dry, a result that is not taken.

Counted in time of the call, tick by tick. What was found is told to the reading as a
fault; a result that was lost is sent again, once. A Realtime session drives it.
"""

from __future__ import annotations

from collections.abc import Callable

from duplex.participants.live_reading import Reading
from duplex.participants.overdue import Overdue
from duplex.participants.receipts import Receipts

LATE_MS = 300
"""A reply that runs dry for so long in its middle is told of."""
UNEVEN_MS = 80
"""So are several of this."""
STUCK_MS = 3_000
"""A peer that sends nothing for so long, with a result on its way, does nothing else."""


class Watch:
    """Follows one session; ``send`` sends a message."""

    def __init__(self, reading: Reading, rate_hz: int, send: Callable[[str], None]) -> None:
        self._reading = reading
        self._rate = rate_hz
        self._send = send
        self._overdue = Overdue(late_ms=LATE_MS, uneven_ms=UNEVEN_MS)
        self._receipts = Receipts(confirms=False)
        self._dry = 0
        self._quiet = 0

    def came(self) -> None:
        """The peer has sent something."""
        self._quiet = 0

    def answered(self, call_id: str, message: str) -> None:
        """The output of a function was sent."""
        self._receipts.sent(call_id, message)

    def kept(self, call_id: str) -> None:
        """The peer has taken an item into the conversation."""
        self._receipts.came(call_id)

    def tick(self, samples: int, position: int, *, starved: bool) -> None:
        """A tick went by, up to ``position``; ``starved``: nothing of a begun reply waits."""
        self._dry = self._dry + samples if starved else 0
        found = (
            self._overdue.waits(self._dry * 1000 // self._rate)
            if starved
            else self._overdue.came(position * 1000 // self._rate)
        )
        if found is not None:
            self._reading.fault("transport", *found)
        self._quiet += samples
        stuck = self._quiet * 1000 >= STUCK_MS * self._rate
        for message in self._receipts.waited(samples * 1000 / self._rate, stuck=stuck):
            text = "the output of a function was not taken into the conversation; it is sent again"
            self._reading.fault("backend", "tool_result_lost", text)
            self._send(message)

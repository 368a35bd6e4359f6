"""Results that were sent and whose receipt the peer has not confirmed.

A peer that confirms what it gets and does not confirm a tool's result has lost it: the
result is handed back once, to be sent again. Counted in time of the call in which the
peer could have answered. A session drives it.
"""

from __future__ import annotations

from dataclasses import dataclass

OVERDUE_MS = 5_000
OPEN_LIMIT = 64
"""Results that are followed at once; more are trusted to arrive."""


@dataclass(slots=True)
class _Sent:
    message: str
    waited_ms: float = 0.0


class Receipts:
    """One session's open receipts, by the id that will confirm each."""

    def __init__(self, *, confirms: bool) -> None:
        """``confirms``: the peer is known to confirm; otherwise that is yet to be seen."""
        self._confirms = confirms
        self._open: dict[str, _Sent] = {}

    def sent(self, identity: str, message: str) -> None:
        if len(self._open) < OPEN_LIMIT:
            self._open[identity] = _Sent(message=message)

    def came(self, identity: str | None) -> None:
        """The peer confirms something, perhaps one of these."""
        self._confirms = True
        if identity is not None:
            self._open.pop(identity, None)

    def waited(self, ms: float, *, stuck: bool = False) -> list[str]:
        """Time goes by; return what was lost. ``stuck``: the peer does nothing else either."""
        if not self._open:
            return []
        for sent in self._open.values():
            sent.waited_ms += ms
        if not (self._confirms or stuck):
            return []
        lost = [name for name, sent in self._open.items() if sent.waited_ms >= OVERDUE_MS]
        return [self._open.pop(name).message for name in lost]

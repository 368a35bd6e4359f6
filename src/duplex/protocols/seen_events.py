"""Events that come twice: told by their id, and by nothing else.

Most events of a session carry an id that is the event's own. One that comes again with
the same id and the same text is the same event. A server whose ids turn out to stand
for different events is not judged by them. A codec drives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.values import Json

REMEMBERED = 1_024
"""Ids that are kept; one that comes again later than that is taken for new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """An event that has come before."""

    type: str


class SeenEvents:
    """The ids of one session's latest events."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._unique = True

    def repeats(self, event_id: Json, message: str | bytes) -> bool:
        """Whether that event has come before; remembers it."""
        if not self._unique or not isinstance(event_id, str) or not event_id:
            return False
        mark = hash(message)
        known = self._seen.get(event_id)
        if known is not None:
            self._unique = known == mark
            return self._unique
        self._seen[event_id] = mark
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return False

"""Where in the call the words lie that a Realtime peer heard.

The peer tells the edges of a turn and, later, its words, each by the id of its item;
where we find the turns ourselves, ours are given to the items in order. Pure: a
Realtime session drives it; times are ms of the call.
"""

from __future__ import annotations

from collections import deque

from duplex.protocols.realtime_events import HeardWords, SpeechEdge
from duplex.values import Json

SPANS_LIMIT = 64
"""Turns that may wait for the server to name them."""
ITEMS_LIMIT = 1_000
"""Items of what was heard whose words may still be wanted."""


class HeardTurns:
    """The turns of one session's input."""

    def __init__(self) -> None:
        self._from: dict[str, int] = {}
        self._to: dict[str, int] = {}
        self._spans: deque[tuple[int, int]] = deque(maxlen=SPANS_LIMIT)

    def own(self, start_ms: int, end_ms: int) -> None:
        """A turn that we found; the server will name its item."""
        self._spans.append((start_ms, end_ms))

    def committed(self, item_id: str) -> None:
        """The server names the item of a turn, of ours the oldest without a name."""
        if self._spans and len(self._to) < ITEMS_LIMIT:
            self._from[item_id], self._to[item_id] = self._spans.popleft()

    def edge(self, edge: SpeechEdge) -> None:
        """The server found an edge of a turn itself."""
        places = self._from if edge.started else self._to
        if len(places) < ITEMS_LIMIT:
            places[edge.item_id] = edge.at_ms

    def words(self, heard: HeardWords, now_ms: int) -> dict[str, Json] | None:
        """The words of an item, in place; None when there are none."""
        end = min(self._to.pop(heard.item_id, now_ms), now_ms)
        start = min(self._from.pop(heard.item_id, end), end)
        text = heard.text.strip()
        if not text:
            return None
        return {"direction": "heard", "text": text, "start_ms": start, "end_ms": end}

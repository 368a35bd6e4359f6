"""Which calls of a session's own backend still want an output, by the protocol's rule.

Under Responses delegation the server runs the backend and the client its functions.
A response that completed leaves its calls open; one that failed or broke off takes them
back. The backend goes on only when nothing runs and every open call has its output.
Pure bookkeeping; the server's state machine drives it.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.protocols.gpt_live_models import MessageItem, OutputItem, Problem
from duplex.values import Json

PENDING = "Submit the pending function call outputs before response.create."


class Ledger:
    """One session's backend responses."""

    def __init__(self) -> None:
        self._running = False
        self._asked = False
        self._calls: list[str] = []
        self._open: dict[str, bool] = {}
        self._discarded: set[str] = set()

    def told(self, event: Mapping[str, Json]) -> None:
        """Follow an event that the server sends about its backend."""
        item = event.get("item")
        match event.get("type"):
            case "response.created":
                self._running, self._asked, self._calls = True, False, []
                # A new response has taken in what was submitted.
                self._open = {call: done for call, done in self._open.items() if not done}
            case "response.output_item.done":
                if isinstance(item, dict) and item.get("type") == "function_call":
                    self._calls.append(str(item["call_id"]))
            case "response.completed":
                self._running = False
                self._open |= dict.fromkeys(self._calls, False)
                self._calls = []
            case "response.failed" | "response.incomplete":
                self._running = False
                self._discarded |= set(self._calls)
                self._calls = []

    def submit(self, item: MessageItem | OutputItem) -> Problem | None:
        """Take an item the client adds; return why it cannot be taken."""
        if isinstance(item, MessageItem):
            return None
        if item.call_id in self._open and not self._open[item.call_id]:
            self._open[item.call_id] = True
            return None
        why = "is of no call of this session"
        if item.call_id in self._discarded:
            why = "is of a call that was discarded with its response"
        elif item.call_id in self._open:
            why = "was given already"
        message = f"the output {why}"
        return Problem(code="invalid_value", message=message, param="item.call_id")

    def go_on(self) -> Problem | None:
        """The client asks the backend to go on; return why it cannot."""
        if not all(self._open.values()) or self._calls:
            return Problem(code="function_call_outputs_required", message=PENDING)
        if self._running or self._asked:
            message = "a backend response is running already"
            return Problem(code="response_already_active", message=message)
        self._asked = True
        return None

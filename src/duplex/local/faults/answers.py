"""Faults of work: a tool's result that gets lost, an answer that was cancelled and comes anyway.

The line drives them.
"""

from __future__ import annotations

import json

from duplex.local.faults.line import AFTER_MS, Fault
from duplex.values import Json

CANCELLED = "resp_cancelled"
"""Response that a GPT-Live session's backend is said to have cancelled."""


class LoseToolResult(Fault):
    """Never gets the next ``results`` of the client's tools, or of work handed over to it."""

    name = "lose_tool_result"

    def __init__(self, *, results: float, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._left = int(results)

    async def send(self, message: str | bytes) -> None:
        await self.strikes()
        await self.onward(message)

    def loses(self, message: str | bytes) -> bool:
        if not self.struck or not self._left or not _is_result(message):
            return False
        self._left -= 1
        return True


class AnswerAfterCancel(Fault):
    """Says that a response is cancelled, then goes on with it to its end."""

    name = "answer_after_cancel"

    def __init__(self, *, after_ms: float = AFTER_MS) -> None:
        super().__init__(after_ms=after_ms)
        self._response = ""

    async def send(self, message: str | bytes) -> None:
        if not self.dialect.realtime:
            if await self.strikes():
                for event in _cancelled_backend():
                    await self.onward(json.dumps({"type": "response.event", **event}))
        elif isinstance(message, str):
            await self._cancel_in_mid_reply(message)
        await self.onward(message)

    async def _cancel_in_mid_reply(self, message: str) -> None:
        if '"response.created"' in message:
            response = json.loads(message).get("response")
            self._response = response["id"] if isinstance(response, dict) else ""
        elif self.dialect.audio_type in message and self._response and await self.strikes():
            done: Json = {
                "object": "realtime.response",
                "id": self._response,
                "status": "cancelled",
                "status_details": {"type": "cancelled", "reason": "turn_detected"},
                "output": [],
                "usage": None,
            }
            fields = {"type": "response.done", "event_id": "event_cancelled", "response": done}
            await self.onward(json.dumps(fields))


def _is_result(message: str | bytes) -> bool:
    """Whether a client's message carries what a tool, or handed over work, came to."""
    try:
        event: Json = json.loads(message)
    except ValueError:
        return False
    if not isinstance(event, dict):
        return False
    kind, item = event.get("type"), event.get("item")
    if kind == "session.commentary.append":
        return event.get("delegation_id") is not None
    created = kind in ("response.item.create", "conversation.item.create")
    return created and isinstance(item, dict) and item.get("type") == "function_call_output"


def _cancelled_backend() -> tuple[dict[str, Json], ...]:
    """A backend response that is cancelled, and its function call that comes all the same."""
    snapshot: dict[str, Json] = {"id": CANCELLED, "object": "response", "output": []}
    call: Json = {
        "type": "function_call",
        "id": "fc_cancelled",
        "call_id": "call_cancelled",
        "name": "cancelled_work",
        "arguments": "{}",
        "status": "completed",
    }
    events: tuple[dict[str, Json], ...] = (
        {"type": "response.created", "response": {**snapshot, "status": "in_progress"}},
        {"type": "response.cancelled", "response": {**snapshot, "status": "cancelled"}},
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.completed", "response": {**snapshot, "status": "completed"}},
    )
    return tuple(
        {"event_id": f"event_cancelled_{place}", "delegation_id": None, "event": event}
        for place, event in enumerate(events)
    )

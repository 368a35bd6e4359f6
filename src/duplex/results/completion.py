"""How a call came to its end: by whose word, under which rule, and what an observer did.

Read from the event log alone, so a stored call tells the same. It judges nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duplex.recording import extract
from duplex.values import SESSION_RATE_HZ, Event, Json

BY_WORDS = extract.BY_WORDS
BY_OBSERVER = "semantic_conversation_observer"
STEPS = ("asked", "stale", "unresolved", "overridden", "accepted", "revoked", "failed")
"""What may come of an observer's looks, each counted."""
SHOWN = 50
"""Steps that are listed, the latest."""


def policy_of(events: Sequence[Event]) -> str | None:
    """The rule by which the call could have ended last; None where its log does not say."""
    ended = extract.last(events, "call.ended")
    return None if ended is None else extract.text(ended.fields, "policy")


def completion_of(events: Sequence[Event]) -> dict[str, Json]:
    """``duplex.completion`` of one result; nothing in it is ever null."""
    ended, started = extract.last(events, "call.ended"), extract.last(events, "call.started")
    rate = (extract.whole(started.fields, "rate_hz") if started else None) or SESSION_RATE_HZ
    steps = [event for event in events if event.type == "completion"]
    counts = Counter(extract.text(event.fields, "step") for event in steps)
    decided = None if ended is None else extract.text(ended.fields, "decided_by")
    told = [event for event in steps if extract.text(event.fields, "step") != "asked"]
    return {
        "policy": policy_of(events) or "unknown",
        "decided_by": decided or "nobody",
        "observer": {
            **{step: counts[step] for step in STEPS},
            "steps": [_step(event, rate) for event in told[-SHOWN:]],
        },
    }


def _step(event: Event, rate: int) -> Json:
    fields = {name: value for name, value in event.fields.items() if value is not None}
    return {"at_ms": event.at * 1000 // rate, **fields}

"""When a call is over, decided from what has happened on the timeline.

Pure and sample-counted: the loop tells it about floor changes, segments and
happenings; it answers with a termination reason or None. It never looks at
audio and never grades.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duplex.values import Happening, Json, Side

Verified = Callable[[Json], bool]
"""Tells whether an application state is the one the scenario wants."""

CLOSING_WORDS = ("goodbye", "good bye", "bye", "thank you", "thanks", "that's all", "take care")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The hang-up rule, in ms: quiet tail, drain after it, and the two limits."""

    quiet_ms: int = 600
    drain_ms: int = 1500
    opening_ms: int = 20_000
    max_duration_ms: int = 90_000


class HangUp:
    """Follows one call; :meth:`reason` is asked once per tick.

    A caller that says when it is finished is believed. One that cannot say (a
    real voice model) counts as finished when the application's state is
    verified and its last words close a conversation.
    """

    def __init__(
        self, policy: Policy, rate_hz: int, first_speaker: str, verified: Verified | None
    ) -> None:
        self._policy = policy
        self._rate = rate_hz
        self._first = Side.ASSISTANT if first_speaker == "assistant" else Side.CALLER
        self._verified = verified
        self._holder = "none"
        self._since = 0
        self._speaking = False
        self._open_work: set[str] = set()
        self._finished = False
        self._closing = False
        self._verified_state = False
        self._spoke: dict[Side, int] = {}

    def floor(self, at: int, holder: str) -> None:
        self._holder = holder
        self._since = at
        for side in Side:
            if holder in (side.label, "both"):
                self._spoke.setdefault(side, at)

    def speaking(self, at: int, holder: str) -> None:
        """Who speaks at ``at`` as far as one can tell, ahead of the floor."""
        self._speaking = holder != "none"
        for side in Side:
            if holder in (side.label, "both"):
                self._spoke.setdefault(side, at)

    def segment(self, side: Side, start: int, end: int) -> None:
        self._spoke[side] = min(start, self._spoke.get(side, start))

    def happening(self, side: Side, happening: Happening) -> None:
        fields = happening.fields
        match happening.type:
            case "delegation.created":
                self._open_work.add(f"d:{fields.get('delegation_id')}")
            case "delegation.closed":
                self._open_work.discard(f"d:{fields.get('delegation_id')}")
            case "tool.started":
                self._open_work.add(f"t:{fields.get('call_id')}")
            case "tool.ended":
                self._open_work.discard(f"t:{fields.get('call_id')}")
            case "run.started":
                self._open_work.add(f"r:{side}:{fields.get('run_id')}")
            case "run.ended":
                self._open_work.discard(f"r:{side}:{fields.get('run_id')}")
            case "state" if self._verified is not None:
                self._verified_state = self._verified(fields.get("state"))
            case "caller.finished":
                self._finished = True
            case "utterance" if side is Side.CALLER:
                words = str(fields.get("text", "")).lower()
                self._closing = any(word in words for word in CLOSING_WORDS)

    def reason(self, position: int) -> str | None:
        """Return the termination reason at ``position`` (samples), or None to go on."""
        if self._is_over(position):
            return "response_completed"
        if position >= self._samples(self._policy.max_duration_ms):
            return "duration_limit"
        return self._missing_opening(position)

    def _is_over(self, position: int) -> bool:
        done = self._finished or (self._verified_state and self._closing)
        if not done or self._open_work or self._holder != "none" or self._speaking:
            return False
        tail = self._samples(self._policy.quiet_ms + self._policy.drain_ms)
        return position - self._since >= tail

    def _missing_opening(self, position: int) -> str | None:
        """A side that has not been heard at all by its opening deadline."""
        limit = self._samples(self._policy.opening_ms)
        first, second = self._first, self._first.other
        if first not in self._spoke:
            return f"{first.label}_opening" if position >= limit else None
        if second not in self._spoke and position - self._spoke[first] >= limit:
            return f"{second.label}_opening"
        return None

    def _samples(self, ms: int) -> int:
        return ms * self._rate // 1000

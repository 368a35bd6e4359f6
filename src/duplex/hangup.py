"""When a call is over, decided from what has happened on the timeline.

Pure and sample-counted: the loop tells it about floor changes, segments and
happenings; it answers with a termination reason or None. It never looks at
audio and never grades.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from duplex.application.closing import is_closing
from duplex.application.words import is_farewell, questions, says_yes
from duplex.values import Happening, Json, Side

Verified = Callable[[Json], bool]
"""Tells whether an application state is the one the scenario wants."""

Decider = Literal["caller", "observer", "verified_state_and_closing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The hang-up rule, in ms: quiet tail, drain after it, and the two limits."""

    quiet_ms: int = 600
    drain_ms: int = 1500
    opening_ms: int = 20_000
    max_duration_ms: int = 90_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where a call stands, in samples.

    ``quiet_since`` is None while anybody speaks; ``spoke_last`` is when the caller and the
    assistant were last heard, 0 for never; ``verified`` is None where no state can tell.
    """

    position: int
    quiet_since: int | None
    spoke_last: tuple[int, int]
    working: bool
    verified: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an observer has to say of a call: whether it can be asked, and its ruling."""

    in_charge: bool
    accepted_at: int | None = None


class HangUp:
    """Follows one call; :meth:`reason` is asked once per tick, ``decided_by`` after the last.

    A caller that says when it is finished is believed. For one that cannot say (a
    real voice model) an observer's ruling counts. Without an observer, or while it
    fails, such a caller is finished when the application's state is verified and its
    last words close the conversation and ask nothing more. Where no state can be
    verified those words must be a farewell.
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
        self._last_words = ""
        self._was_asked = False
        self._state_is: bool | None = None
        self._spoke: dict[Side, int] = {}
        self._last_spoke = [0, 0]
        self._standing: Standing | None = None
        self.decided_by: Decider | None = None

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
                self._last_spoke[side] = at

    def segment(self, side: Side, start: int, end: int) -> None:
        self._spoke[side] = min(start, self._spoke.get(side, start))

    def happening(self, side: Side, happening: Happening) -> None:
        fields = happening.fields
        match happening.type:
            case "delegation.created":
                self._open_work.add(f"d:{side}:{fields.get('delegation_id')}")
            case "delegation.closed":
                self._open_work.discard(f"d:{side}:{fields.get('delegation_id')}")
            case "tool.started":
                self._open_work.add(f"t:{fields.get('call_id')}")
            case "tool.ended":
                self._open_work.discard(f"t:{fields.get('call_id')}")
            case "run.started":
                self._open_work.add(f"r:{side}:{fields.get('run_id')}")
            case "run.ended":
                self._open_work.discard(f"r:{side}:{fields.get('run_id')}")
            case "state" if self._verified is not None:
                self._state_is = self._verified(fields.get("state"))
            case "caller.finished":
                self._finished = True
            case "utterance" if side is Side.CALLER:
                self._last_words = str(fields.get("text", ""))
            case "utterance":
                self._was_asked = bool(questions(str(fields.get("text", ""))))

    def ruled(self, standing: Standing) -> None:
        """An observer looks on this call, and that is its ruling now."""
        self._standing = standing

    def situation(self, position: int) -> Situation:
        """Where the call stands at ``position``, for whoever looks on."""
        quiet = self._holder == "none" and not self._speaking
        return Situation(
            position=position,
            quiet_since=self._since if quiet else None,
            spoke_last=(self._last_spoke[Side.CALLER], self._last_spoke[Side.ASSISTANT]),
            working=bool(self._open_work),
            verified=self._state_is,
        )

    @property
    def by_words(self) -> bool:
        """Whether verified state and closing words decide: nobody looks on who could."""
        return self._standing is None or not self._standing.in_charge

    @property
    def _decider(self) -> Decider | None:
        """Who says that the conversation is over; None while nobody does."""
        if self._finished:
            return "caller"
        if self._standing is not None and self._standing.accepted_at is not None:
            return "observer"
        if self.by_words and self._words_close():
            return "verified_state_and_closing"
        return None

    def reason(self, position: int) -> str | None:
        """Return the termination reason at ``position`` (samples), or None to go on."""
        if self._is_over(position):
            self.decided_by = self._decider
            return "response_completed"
        if position >= self._samples(self._policy.max_duration_ms):
            return "duration_limit"
        return self._missing_opening(position)

    def _is_over(self, position: int) -> bool:
        decider = self._decider
        if decider is None or self._open_work or self._holder != "none" or self._speaking:
            return False
        drain = self._samples(self._policy.drain_ms)
        if decider == "observer" and self._standing is not None:
            ruled_at = self._standing.accepted_at
            if ruled_at is None or position - ruled_at < drain:
                return False
        return position - self._since >= self._samples(self._policy.quiet_ms) + drain

    def _words_close(self) -> bool:
        """Whether the caller's last words end the call; a thankful yes to a question does not."""
        words = self._last_words
        if self._state_is is False or not is_closing(words):
            return False
        if is_farewell(words):
            return True
        return self._state_is is True and not (self._was_asked and says_yes(words))

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

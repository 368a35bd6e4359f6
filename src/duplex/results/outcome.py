"""Whether a call counts, and if not, why and by whose fault: never the agent's by default.

A call counts once both sides were heard and it came to an end of its own, or of
the agent's making. Everything else is an infrastructure error with its stage, and
somebody's fault: the agent's, which never spoke, our caller's, or the platform's,
which is all that carries a call, on this machine and at whoever serves its models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from duplex.grading import Evidence
from duplex.protocols.model_values import UNSERVED
from duplex.values import Side

Outcome = Literal["counted", "never_spoke", "invalidated", "not_run"]
WhoseFault = Literal["nobody", "agent", "simulator", "platform", "user"]

_CALLERS = frozenset({"caller_connection", "caller_opening", "caller_simulation"})
_USERS = frozenset({"user_stopped", "not_run"})
_OURS = frozenset({"platform_late", "audio_queue_overflow", "event_queue_overflow"})
_CARDS = frozenset({"device_gone"})
"""Codes of what happens to a person's sound card: it carries the call, it is no caller."""
_NEVER_OPENED = frozenset({"caller_connection", "assistant_connection", "not_run"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """What kept a call from counting: the contract's stage, and words for a person."""

    stage: str
    message: str

    def as_fields(self) -> dict[str, str]:
        return {"stage": self.stage, "message": self.message}

    @property
    def rationale(self) -> str:
        return f"The call does not count: {self.message}."


def failure(
    evidence: Evidence, invalid: str | None = None, assistant_sound_ms: float | None = None
) -> Failing | None:
    """Return what kept the call from counting; None when it counts.

    ``invalid`` is the reason the caller's side was unsound, if it was;
    ``assistant_sound_ms`` is how long any sound came from the assistant, as contract 2.0
    counts it, which takes tones and music for voice.
    """
    found = (
        _broken(evidence)
        or (
            Failing(stage="caller_simulation", message=f"the caller was unsound: {invalid}")
            if invalid
            else None
        )
        or _unheard(evidence, assistant_sound_ms)
    )
    if found is not None and found.stage == "assistant_opening":
        # An agent whose provider refuses every reply is not one that had nothing to say.
        return unserved(evidence) or found
    return found


def unserved(evidence: Evidence) -> Failing | None:
    """Why a call that failed, or was silent, does not count: its provider refused replies."""
    refused = [
        fault
        for fault in evidence.faults
        if fault.stage == "provider" and fault.code.startswith((*UNSERVED, "server_error"))
    ]
    if not refused:
        return None
    replies = "a reply" if len(refused) == 1 else f"{len(refused)} replies"
    message = f"the assistant's provider refused {replies}: {refused[0].message}"
    return Failing(stage="provider", message=message)


def caller_trouble(evidence: Evidence) -> str | None:
    """Why the caller's side was unsound by a fault of its own; None when it was not."""
    fault = evidence.fatal_fault
    if fault is None or fault.side is not Side.CALLER:
        return None
    if fault.stage in _OURS or fault.code in _CARDS:
        return None
    return {
        "caller_connection": "caller_not_connected",
        "caller_opening": "caller_never_spoke",
        "caller_simulation": "caller_model_failed",
    }.get(fault.stage, "caller_session_failed")


def whose_fault(failing: Failing | None, *, passed: bool) -> WhoseFault:
    """Whose fault it is that a call did not pass; only the agent's counts against it."""
    if failing is None:
        return "nobody" if passed else "agent"
    if failing.stage == "assistant_opening":
        return "agent"
    if failing.stage in _CALLERS:
        return "simulator"
    return "user" if failing.stage in _USERS else "platform"


def _broken(evidence: Evidence) -> Failing | None:
    reason, fault = evidence.termination_reason, evidence.fatal_fault
    if reason in (None, "error") and fault is not None:
        message = fault.message or fault.code
        if caller_trouble(evidence) == "caller_session_failed":
            # Whatever broke, it was at our end of the call.
            return Failing(stage="caller_simulation", message=f"the caller's session: {message}")
        return Failing(stage=fault.stage or "session", message=message)
    if reason is None:
        return Failing(stage="session", message="the call's log has no end: it was cut off")
    if reason == "error":
        return Failing(stage="session", message="the call ended by an error it did not record")
    if reason == "user_stopped":
        return Failing(stage="user_stopped", message="the call was stopped by the user")
    return None


def _unheard(evidence: Evidence, assistant_sound_ms: float | None) -> Failing | None:
    """The side that should have begun is blamed first for a silent call."""
    sound = {Side.ASSISTANT: assistant_sound_ms or 0.0, Side.CALLER: 0.0}
    order = [Side.ASSISTANT, Side.CALLER]
    if evidence.header.get("first_speaker") == "caller":
        order.reverse()
    for side in order:
        if not evidence.was_heard(side):
            message = f"the {side.label} was never heard"
            if sound[side]:
                message += f" to speak: {sound[side] / 1000:.1f} s of sound came, none of it speech"
            return Failing(stage=f"{side.label}_opening", message=message)
    return None


def outcome(failing: Failing | None) -> Outcome:
    """Name what became of a call, for whoever counts calls."""
    if failing is None:
        return "counted"
    if failing.stage == "assistant_opening":
        return "never_spoke"
    return "not_run" if failing.stage in _NEVER_OPENED else "invalidated"

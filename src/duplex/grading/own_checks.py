"""A user's own check: a Python function that may fail a call, and never rescue one.

It is given a :class:`CheckedCall`, a copy of its own, and returns whether the call
passes and why. What it raises, or returns instead, is the check's fault and not the
agent's: the check is ``not_assessed`` and not required, and whoever counts exit codes
is told by :data:`PREFIX` and the status. It must never be able to change a grade but
its own.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from duplex.grading.checks import Check
from duplex.grading.evidence import Evidence, Spoken, ToolUse
from duplex.scenario import Scenario
from duplex.values import Json

PREFIX = "check_function:"
"""Ids of own checks begin with this; the function's name follows."""
_REASON_LIMIT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """What an own check may look at.

    ``turns`` are the lines of both sides by start (``side``, ``text``, ``start_ms``,
    ``end_ms``, ``action``); ``tools`` the calls that were made (``name``, ``arguments``,
    ``status``, ``result``, ``error``, ``started_ms``, ``ended_ms``). States are None where
    the application reported none. ``timing`` is the timing block as it is written to
    results, None where nothing was measured.
    """

    scenario: Scenario
    turns: tuple[Spoken, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    initial_state: Json = None
    final_state: Json = None
    timing: Mapping[str, Json] | None = None
    duration_ms: int = 0
    termination_reason: str | None = None


Verdict = tuple[bool, str]
"""Whether the call passes, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCheck:
    """A function that was named; ``run`` is the function itself."""

    name: str
    run: Callable[[CheckedCall], object] = field(repr=False)

    @property
    def id(self) -> str:
        return PREFIX + self.name


def checked_call(
    scenario: Scenario, evidence: Evidence, timing: Mapping[str, Json] | None
) -> CheckedCall:
    """Make what own checks are given."""
    return CheckedCall(
        scenario=scenario,
        turns=evidence.spoken,
        tools=evidence.tools,
        initial_state=evidence.initial_state,
        final_state=evidence.final_state,
        timing=timing,
        duration_ms=evidence.duration_ms,
        termination_reason=evidence.termination_reason,
    )


def run_own(checks: Sequence[OwnCheck], call: CheckedCall) -> tuple[Check, ...]:
    """Run every check on a copy of its own."""
    return tuple(_run(check, call) for check in checks)


def _run(check: OwnCheck, call: CheckedCall) -> Check:
    try:
        told = check.run(copy.deepcopy(call))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = " ".join(str(error).split())[:_REASON_LIMIT]
        return _broken(check, f"it raised {type(error).__name__}{f': {said}' if said else ''}")
    if inspect.iscoroutine(told):
        told.close()
    match told:
        case (bool() as passed, str() as reason):
            return Check(
                id=check.id,
                status="passed" if passed else "failed",
                required=True,
                reason=" ".join(reason.split())[:_REASON_LIMIT] or "no reason given",
            )
    return _broken(check, f"it returned {type(told).__name__}, want (passed, reason)")


def _broken(check: OwnCheck, why: str) -> Check:
    reason = f"{check.name} could not tell: {why}"
    return Check(id=check.id, status="not_assessed", required=False, reason=reason)


def is_broken(check_id: str, status: str) -> bool:
    """Whether a check of a result is an own check that could not tell."""
    return check_id.startswith(PREFIX) and status == "not_assessed"

"""One internal result: the calls of a run as cases that checks are graded on.

Everything a verdict, a sweep, a comparison or a debrief says is said from these
values; they are read from results that exist and never from audio. A case is
one attempt at one test case: a scenario, a sample of it and an arm of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from duplex.results import schema
from duplex.results.outcome import Outcome

Reading = float | bool | str | None
"""A call-level value of a metric; None was not measured."""

RunStatus = Literal["running", "completed", "failed", "timed_out", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One value of a sweep: ``key`` names it, ``value`` is what was swept over."""

    key: str
    value: str
    label: str
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What one check said of one call; ``passed`` None: it could not be graded."""

    id: str
    passed: bool | None
    reading: Reading = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One attempt at one test case.

    ``final`` is the attempt the test case's result is read from. ``outcome`` says
    whether it counts: an invalidated or silent call is listed and never scored.
    """

    call_id: str
    scenario: str
    sample: int
    attempt: int
    arm: Arm | None
    seed: int
    condition: str
    persona: str
    agent: str
    outcome: Outcome
    final: bool
    result: schema.Result
    checks: tuple[CheckOutcome, ...] = ()
    started_at: str | None = None
    ended_at: str | None = None

    @property
    def test_case(self) -> tuple[str, str, int]:
        """What its attempts share: scenario, arm and sample."""
        return self.scenario, self.arm.key if self.arm else "", self.sample

    @property
    def pairs_with(self) -> tuple[str, str, int, int]:
        """What a call of another run must share to be its pair: the same words and noise."""
        return self.scenario, self.condition, self.seed, self.sample

    @property
    def counted(self) -> bool:
        return self.outcome == "counted"

    @property
    def evaluated(self) -> bool:
        """Counted, and at least one check graded it."""
        return self.counted and any(check.passed is not None for check in self.checks)

    @property
    def passed(self) -> bool | None:
        """Every check that graded it passed; None when none did or it does not count."""
        if not self.evaluated:
            return None
        return all(check.passed for check in self.checks if check.passed is not None)

    @property
    def duration_ms(self) -> int | None:
        held = self.result.duplex.get("duration_ms")
        return held if isinstance(held, int) else None

    def check(self, id: str) -> CheckOutcome | None:
        return next((check for check in self.checks if check.id == id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCases:
    """A run as its cases: finished attempts, in the order of the plan.

    ``expected`` counts the test cases of the plan. ``plan`` maps what two runs must
    share to be runs of one plan; ``rulers`` are the metric versions and policies
    its timing blocks were made with.
    """

    run_id: str
    plan_id: str
    plan_name: str | None
    status: RunStatus
    created_at: str
    started_at: str | None
    ended_at: str | None
    expected: int
    cases: tuple[Case, ...]
    run: schema.Run
    swept: str | None = None
    arms: tuple[Arm, ...] = ()
    rulers: tuple[str, ...] = ()
    ci: Mapping[str, str] = field(default_factory=dict)

    @property
    def final(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.final)

    @property
    def over(self) -> bool:
        return self.status != "running"


def graded(cases: Iterable[Case], check: str) -> tuple[int, int]:
    """How many counted cases passed a check, and how many it graded."""
    outcomes = [case.check(check) for case in cases if case.counted]
    said = [one.passed for one in outcomes if one is not None and one.passed is not None]
    return sum(said), len(said)

"""Which calls a run holds: scenarios × arms of a sweep × samples, each with its id and seed.

Laid out whole before the first call, the same for the same options, so that a run
can be taken up again and a table of calls can be compared with another. Sample N
of a scenario has the scenario's seed plus N − 1 in every arm and every run: the
same words, the same pauses and the same noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex import sweeping
from duplex.errors import InputError
from duplex.options import RunOptions
from duplex.questions import asked_about
from duplex.scenario import Scenario
from duplex.sweeping import Swept
from duplex.verdict.attribution import MIN_ARM_CALLS
from duplex.verdict.case import Arm
from duplex.verdict.ids import stable_id

MOST_CALLS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One test case: ``scenario`` is as its arm holds it, ``setting`` counts the plan's options."""

    id: str
    scenario: Scenario
    setting: int
    seed: int
    sample: int
    arm: Arm | None = None

    def attempt_id(self, attempt: int) -> str:
        """The id of one attempt; the first has the test case's own."""
        return self.id if attempt == 1 else f"{self.id}.a{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All calls of a run in order, and the options they are held with, by arm."""

    calls: tuple[PlannedCall, ...]
    settings: tuple[RunOptions, ...]
    swept: Swept | None = None


def plan_id(options: RunOptions, data: Path, scenarios: Sequence[str]) -> str:
    """The UUID of what a run was asked to hold: runs of one plan share it."""
    return stable_id(
        "plan",
        data.resolve().name,
        *sorted(scenarios),
        str(options.samples),
        options.sweep or "",
        *options.condition,
        options.application,
    )


def lay_out(options: RunOptions, scenarios: Sequence[Scenario]) -> Plan:
    """Plan a run; raises InputError for a sweep too small or ids that clash."""
    swept = None if options.sweep is None else sweeping.parse(options.sweep)
    if swept is not None and (given := swept.given_by(options)) is not None:
        raise InputError(
            f"sweep: {swept.property} is swept and {given} gives it too; want one of the two"
        )
    arms: tuple[Arm | None, ...] = (None,) if swept is None else swept.arms
    per_arm = len(scenarios) * options.samples
    if swept is not None and per_arm < MIN_ARM_CALLS and not options.small_sweep:
        raise InputError(
            f"sweep: {per_arm} {'call' if per_arm == 1 else 'calls'} a value, and fewer than "
            f"{MIN_ARM_CALLS} are never compared; want more --samples, or --small-sweep"
        )
    if per_arm * len(arms) > MOST_CALLS:
        raise InputError(f"the run has {per_arm * len(arms)} calls, want at most {MOST_CALLS}")
    settings = [
        options if arm is None or swept is None else swept.options(arm, options) for arm in arms
    ]
    calls = [
        _call(options, scenario, sample, at, arm, swept)
        for at, arm in enumerate(arms)
        for scenario in scenarios
        for sample in range(1, options.samples + 1)
    ]
    _distinct(calls, attempts=options.silent_retries + 1)
    return Plan(calls=tuple(calls), settings=tuple(settings), swept=swept)


def seed_of(options: RunOptions, scenario: Scenario, sample: int) -> int:
    """The seed that was asked for, else the scenario's own, else the default; then by sample."""
    asked = "seed" in options.model_fields_set
    own = scenario.duplex.seed
    return (options.seed if asked or own is None else own) + sample - 1


def _call(
    options: RunOptions,
    scenario: Scenario,
    sample: int,
    at: int,
    arm: Arm | None,
    swept: Swept | None,
) -> PlannedCall:
    id = scenario.id
    scenario = asked_about(scenario, options.question)
    if arm is not None and swept is not None:
        scenario = swept.scenario(arm, scenario, options)
        id += f".v{at + 1}"
    if options.samples > 1:
        id += f".s{sample}"
    return PlannedCall(
        id=id,
        scenario=scenario,
        setting=at,
        seed=seed_of(options, scenario, sample),
        sample=sample,
        arm=arm,
    )


def _distinct(calls: Sequence[PlannedCall], *, attempts: int) -> None:
    """Refuse ids that a file system could take for one another, retries included."""
    seen: dict[str, str] = {}
    for call in calls:
        for attempt in range(1, attempts + 1):
            id = call.attempt_id(attempt)
            other = seen.setdefault(id.casefold(), id)
            if other is not id:
                raise InputError(f'calls "{other}" and "{id}" would share a folder')

"""A run that swept a property, handed to the analysis of sweeps.

Attempts become rows of the table that ``attribution`` analyses; nothing is
computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.verdict.attribution import Sweep, SweptCall, SweptValue, attribute
from duplex.verdict.case import Case, RunCases
from duplex.verdict.criteria import Criterion


def sweep_of(run: RunCases, criteria: Sequence[Criterion]) -> Sweep | None:
    """What a swept run's failures concentrate on; None while it runs, or if none was swept."""
    if run.swept is None or not run.over:
        return None
    values = [SweptValue(key=arm.key, value=arm.value, label=arm.label) for arm in run.arms]
    calls = [_row(case) for case in run.cases if case.arm is not None]
    return attribute(values, calls, [one.id for one in criteria])


def _row(case: Case) -> SweptCall:
    assert case.arm is not None, "a call of a sweep has an arm"
    return SweptCall(
        value=case.arm.key,
        outcome=case.outcome,
        checks={one.id: one.passed for one in case.checks if one.passed is not None},
        retry=case.attempt > 1,
    )

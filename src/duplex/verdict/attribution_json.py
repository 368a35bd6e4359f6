"""A sweep's attribution as the object ``sweepAttribution`` of a run report.

Field by field the published shape: shares in per cent rounded to one decimal,
p-values as they are. It computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.values import Json
from duplex.verdict.attribution import (
    FALSE_DISCOVERY_RATE,
    FOUND_UNATTRIBUTED,
    MIN_ARM_CALLS,
    ArmFigures,
    CheckAttribution,
    SilentValue,
    Sweep,
    SweptValue,
    WorseValue,
)
from duplex.verdict.ids import check_id


def sweep_json(sweep: Sweep, names: Mapping[str, str] | None = None) -> dict[str, Json]:
    """The whole object; ``names`` gives checks their words, else their ids serve."""
    names = names or {}
    return {
        "values": [_arm(arm) for arm in sweep.values],
        "checks": [_check(check, names) for check in sweep.checks],
        "testableValueCount": sweep.testable,
        "testedComparisonCount": sweep.tested,
        "minimumDetectableGap": rounded(sweep.minimum_detectable_gap),
        "caveats": list(sweep.caveats),
        "neverSpokeValues": [_silent(value) for value in sweep.never_spoke],
        "minArmCalls": MIN_ARM_CALLS,
        "falseDiscoveryRate": FALSE_DISCOVERY_RATE,
        "foundUnattributedFailureRate": FOUND_UNATTRIBUTED,
    }


def rounded(value: float | None) -> float | None:
    """Per cent to one decimal."""
    return None if value is None else round(value, 1)


def _named(of: SweptValue) -> dict[str, Json]:
    return {"key": of.key, "value": of.value, "label": of.label}


def _arm(arm: ArmFigures) -> dict[str, Json]:
    return {
        **_named(arm.of),
        "isBaseline": arm.baseline,
        "attempted": arm.attempted,
        "counted": arm.counted,
        "silentAttempts": arm.silent,
        "retries": arm.retries,
        "testable": arm.testable,
        "score": rounded(arm.score),
    }


def _check(check: CheckAttribution, names: Mapping[str, str]) -> dict[str, Json]:
    return {
        "metricDefinitionId": check_id(check.check),
        "metricName": names.get(check.check, check.check),
        "attribution": check.attribution,
        "failed": check.failed,
        "evaluated": check.evaluated,
        "failureRate": rounded(check.failure_rate),
        "worseValues": [_worse(worse) for worse in check.worse],
    }


def _worse(worse: WorseValue) -> dict[str, Json]:
    return {
        **_named(worse.of),
        "failed": worse.failed,
        "evaluated": worse.evaluated,
        "failureRate": rounded(worse.failure_rate),
        "restFailureRate": rounded(worse.rest_failure_rate),
        "adjustedPValue": worse.adjusted_p,
    }


def _silent(value: SilentValue) -> dict[str, Json]:
    return {
        **_named(value.of),
        "silentAttempts": value.silent,
        "attempted": value.attempted,
        "retries": value.retries,
        "restSilentAttempts": value.rest_silent,
        "restAttempted": value.rest_attempted,
        "adjustedPValue": value.adjusted_p,
    }

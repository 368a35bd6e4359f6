"""A comparison as the object ``comparison`` of a run report, and what that lacks.

The published fields in per cent; beside them, under ``duplex``, pairs, intervals,
p-values, detectable gaps and timings. It computes nothing.
"""

from __future__ import annotations

from duplex.metrics.stats import interval_json
from duplex.values import Json
from duplex.verdict.attribution_json import rounded
from duplex.verdict.case import RunCases
from duplex.verdict.comparison import CheckDelta, Comparison, TimingDelta
from duplex.verdict.ids import check_id, stable_id


def comparison_json(found: Comparison) -> dict[str, Json]:
    """The published block with ``duplex`` beside it."""
    return published_json(found) | {"duplex": ours_json(found)}


def published_json(found: Comparison) -> dict[str, Json]:
    """The published block alone."""
    return {
        "baselineRun": {
            "simulationRunPlanJobId": stable_id("run", found.baseline.run_id),
            "runNumber": None,
            "status": _status(found.baseline),
            "endedAt": found.baseline.ended_at,
        },
        "baselineSource": found.source,
        "currentScore": rounded(found.current_score),
        "baselineScore": rounded(found.baseline_score),
        "scoreDelta": rounded(_minus(found.current_score, found.baseline_score)),
        "currentCallPassRate": rounded(found.current_pass_rate),
        "baselineCallPassRate": rounded(found.baseline_pass_rate),
        "callPassRateDelta": rounded(_minus(found.current_pass_rate, found.baseline_pass_rate)),
        "checks": [
            {
                "metricDefinitionId": check_id(check.id),
                "metricName": check.name,
                "currentPassRate": _percent(check.current_rate),
                "baselinePassRate": _percent(check.baseline_rate),
                "delta": _percent(check.delta),
            }
            for check in found.checks
        ],
    }


def ours_json(found: Comparison) -> dict[str, Json]:
    """Everything the published block has no place for."""
    return {
        "current": found.current.run_id,
        "baseline": found.baseline.run_id,
        "worse": found.worse,
        "pairs": found.pairs,
        "unpaired": found.unpaired,
        "unpaired_baseline": found.unpaired_baseline,
        "checks": [_check(check) for check in found.checks],
        "timings": [_timing(timing) for timing in found.timings],
        "caveats": list(found.caveats),
    }


def _check(check: CheckDelta) -> Json:
    tested = check.tested
    return {
        "id": check.id,
        "name": check.name,
        "direction": check.direction,
        "current": _percent(check.current_rate),
        "baseline": _percent(check.baseline_rate),
        "delta": _percent(check.delta),
        "why": check.why,
        "paired": None if tested is None else tested.paired,
        "pairs": None if tested is None else tested.pairs,
        "won": None if tested is None else tested.won,
        "lost": None if tested is None else tested.lost,
        "ci95": None
        if tested is None or tested.ci95 is None
        else [round(100 * bound, 1) for bound in tested.ci95],
        "p": None if tested is None else tested.p,
        "adjusted_p": check.adjusted_p,
        "detectable": None if tested is None else _percent(tested.detectable),
    }


def _timing(timing: TimingDelta) -> Json:
    found = timing.difference
    return {
        "metric": timing.metric,
        "stat": found.stat,
        "direction": timing.direction,
        "current": _three(found.current),
        "baseline": _three(found.baseline),
        "delta": _three(found.delta),
        "ci95": interval_json(found.ci95),
        "p": found.p,
        "adjusted_p": timing.adjusted_p,
        "detectable": _three(found.detectable),
        "paired": timing.paired,
        "calls": timing.calls,
        "baseline_calls": timing.baseline_calls,
    }


def _status(run: RunCases) -> str:
    return "RUNNING_SIMULATIONS" if run.status == "running" else run.status.upper()


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


def _three(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

"""A run as the results object of Roark's simulation report, field by field.

``{"data": …}`` with nothing beyond the published shape but one key ``duplex``. Ids
are stable UUIDs; shares are per cent; whatever a local run has no value for is
null, and ``docs/exports.md`` says why. Pure: takes what was judged, computes
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from duplex.debrief import Debrief
from duplex.exports.roark_debrief import debrief_json
from duplex.exports.subject import Subject
from duplex.results.outcome import Outcome
from duplex.values import Json
from duplex.verdict.aggregates import Aggregate, Group, aggregates, call_values, groups
from duplex.verdict.attribution_json import rounded, sweep_json
from duplex.verdict.case import Case, RunCases
from duplex.verdict.comparison_json import ours_json, published_json
from duplex.verdict.criteria import Criterion
from duplex.verdict.ids import check_id, stable_id
from duplex.verdict.sweeps import sweep_of
from duplex.verdict.verdict import CheckTally, Failure, Verdict, attempts, summarise

_UNITS = {"ms": "ms", "share": "%", "": None}
_STATUS = {
    "running": "RUNNING_SIMULATIONS",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "timed_out": "TIMED_OUT",
    "cancelled": "CANCELLED",
}
_UNCOUNTED: dict[Outcome, str] = {
    "never_spoke": "INVALIDATED",
    "invalidated": "INVALIDATED",
    "not_run": "NOT_RUN",
}


def report(subject: Subject) -> dict[str, Json]:
    """The whole report."""
    return {"data": data(subject)}


def data(subject: Subject) -> dict[str, Json]:
    run, criteria = subject.run, subject.criteria
    sweep, comparison = sweep_of(run, criteria), subject.comparison
    found: dict[str, Json] = {
        "run": _run(subject),
        "summary": _summary(run, criteria),
        "verdict": None if subject.verdict is None else _verdict(subject.verdict),
        "attemptSummary": _attempts(run),
        "metrics": [_aggregate(one) for one in aggregates(run.cases, criteria)],
        "calls": [_call(case, run, criteria) for case in run.cases],
        "breakdowns": {
            "byAgent": _groups(groups(run.cases, criteria, lambda case: case.agent), "agent"),
            "byPersona": _groups(groups(run.cases, criteria, lambda case: case.persona), "persona"),
        },
        "comparison": None if comparison is None else published_json(comparison),
        "sweepAttribution": None
        if sweep is None
        else sweep_json(sweep, {one.id: one.name for one in criteria}),
        "debrief": None if subject.debrief is None else _debrief(run, subject.debrief),
    }
    ours: dict[str, Json] = {"run_id": run.run_id}
    if comparison is not None:
        ours["comparison"] = ours_json(comparison)
    return found | {"duplex": ours}


def run_uuid(run_id: str) -> str:
    """The UUID a run has in this shape."""
    return stable_id("run", run_id)


def call_uuid(run_id: str, call_id: str) -> str:
    """The UUID a simulation has in this shape."""
    return stable_id("call", run_id, call_id)


def status_of(run: RunCases) -> str:
    return _STATUS[run.status]


def _run(subject: Subject) -> Json:
    run = subject.run
    return {
        "simulationRunPlanJobId": run_uuid(run.run_id),
        "simulationRunPlanId": run.plan_id,
        "simulationRunPlanName": run.plan_name,
        "runNumber": subject.number,
        "status": status_of(run),
        "triggeredBy": "TRIGGERED_FROM_API",
        "createdAt": run.created_at,
        "startedAt": run.started_at,
        "endedAt": run.ended_at,
        "durationMs": _between(run.started_at, run.ended_at),
    }


def _between(start: str | None, end: str | None) -> int | None:
    if start is None or end is None:
        return None
    moments = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (start, end)]
    return round((moments[1] - moments[0]).total_seconds() * 1000)


def _summary(run: RunCases, criteria: Sequence[Criterion]) -> Json:
    found = summarise(run.cases, criteria)
    return {
        "totalCalls": found.total,
        "countedCalls": found.counted,
        "completedCalls": found.completed,
        "evaluatedCalls": found.evaluated,
        "passedCalls": found.passed,
        "failedCalls": found.failed,
        "callPassRate": rounded(found.call_pass_rate),
        "score": rounded(found.score),
        "checkPassRate": rounded(found.check_pass_rate),
    }


def _attempts(run: RunCases) -> Json:
    found = attempts(run)
    return {
        "testCaseCount": found.test_cases,
        "attemptCount": found.attempts,
        "silentAttemptCount": found.silent,
        "retryCount": found.retries,
        "stillSilentTestCaseCount": found.still_silent,
    }


def _verdict(verdict: Verdict) -> Json:
    return {
        "passed": verdict.passed,
        "score": rounded(verdict.score),
        "checks": [_check(tally) for tally in verdict.checks],
        "failures": [_failure(failure) for failure in verdict.failures],
    }


def _check(tally: CheckTally) -> Json:
    return {
        "metricDefinitionId": check_id(tally.criterion.id),
        "metricName": tally.criterion.name,
        "passRate": rounded(tally.pass_rate),
        "minPassRate": rounded(tally.criterion.min_pass_rate),
        "inherited": tally.criterion.inherited,
        "passedSims": tally.passed_calls,
        "evaluatedSims": tally.evaluated_calls,
        "passed": tally.passed,
    }


def _failure(failure: Failure) -> Json:
    """One of the five published kinds, with the fields of that kind only."""
    kind: dict[str, Json] = {"type": failure.kind}
    if failure.kind == "RUN_NOT_COMPLETED":
        return kind | {"status": _STATUS.get(str(failure.status), "FAILED")}
    if failure.kind == "INCOMPLETE_COVERAGE":
        return kind | {
            "evaluatedCalls": failure.evaluated_calls,
            "expectedCalls": failure.expected_calls,
        }
    if failure.kind == "AGENT_NEVER_SPOKE":
        return kind | {
            "neverSpokeCalls": failure.never_spoke_calls,
            "totalCalls": failure.total_calls,
            "maxShare": failure.max_share,
            "agentName": failure.agent,
            "silentAttempts": failure.silent_attempts,
        }
    assert failure.criterion is not None, failure.kind
    named = kind | {
        "metricDefinitionId": check_id(failure.criterion.id),
        "metricName": failure.criterion.name,
    }
    if failure.kind == "METRIC_NOT_EVALUATED":
        return named
    return named | {
        "passRate": rounded(failure.pass_rate),
        "minPassRate": rounded(failure.min_pass_rate),
        "inherited": failure.criterion.inherited,
    }


def _aggregate(one: Aggregate) -> Json:
    scale = 100.0 if one.unit == "share" else 1.0
    numbers = one.numbers
    return {
        "metricDefinitionId": check_id(one.id),
        "metricId": one.id,
        "name": one.name,
        "outputType": one.output,
        "isCheck": one.graded is not None,
        "unitSymbol": _UNITS[one.unit],
        "evaluatedCalls": one.calls,
        "sampleSize": one.values,
        "check": None
        if one.graded is None or one.passed is None
        else {
            "passedCalls": one.passed,
            "failedCalls": one.graded - one.passed,
            "evaluatedCalls": one.graded,
            "passRate": rounded(100 * one.passed / one.graded if one.graded else None),
        },
        "numeric": None
        if numbers is None
        else {
            "average": _three(scale * numbers.average),
            "median": _three(scale * numbers.median),
            "p95": _three(scale * numbers.p95),
            "min": _three(scale * numbers.min),
            "max": _three(scale * numbers.max),
        },
        "distribution": None
        if one.readings is None
        else [{"value": value, "count": count} for value, count in one.readings],
    }


def _call(case: Case, run: RunCases, criteria: Sequence[Criterion]) -> Json:
    names = {one.id: one.name for one in criteria}
    before = None if case.attempt == 1 else _attempt_before(case, run)
    return {
        "simulationJobId": call_uuid(run.run_id, case.call_id),
        "callId": None
        if case.outcome == "not_run"
        else stable_id("recording", run.run_id, case.call_id),
        "status": _call_status(case, run),
        "counted": case.counted,
        "attemptNumber": case.attempt,
        "retryOfSimulationJobId": None if before is None else call_uuid(run.run_id, before.call_id),
        "personaName": case.persona,
        "agentName": case.agent,
        "durationMs": case.duration_ms,
        "passed": case.passed,
        "checks": [
            {
                "metricDefinitionId": check_id(one.id),
                "metricName": names.get(one.id, one.id),
                "passed": one.passed,
            }
            for one in case.checks
            if one.passed is not None
        ],
        "values": [
            {
                "metricDefinitionId": check_id(metric.name),
                "metricName": metric.name,
                "outputType": metric.output,
                "participantRole": None,
                "value": _in_unit(value, metric.unit),
                "reasoning": None,
            }
            for metric, value in (call_values(case) if case.counted else [])
            if metric.name not in names
        ],
    }


def _in_unit(value: float | bool | str | None, unit: str) -> float | bool | str | None:
    """A value in the unit its metric is listed with."""
    scaled = unit == "share" and isinstance(value, float | int) and not isinstance(value, bool)
    return _three(100 * float(value)) if scaled and value is not None else value


def _attempt_before(case: Case, run: RunCases) -> Case | None:
    same = [one for one in run.cases if one.test_case == case.test_case]
    return next((one for one in same if one.attempt == case.attempt - 1), None)


def _call_status(case: Case, run: RunCases) -> str:
    if case.counted:
        reason = case.result.observability.completion.termination_reason
        return "TIMED_OUT" if reason == "duration_limit" else "COMPLETED"
    if case.outcome == "not_run" and run.status == "cancelled":
        return "CANCELLED"
    return _UNCOUNTED[case.outcome]


def _groups(found: Sequence[Group], kind: str) -> Json:
    return [
        {
            "key": stable_id(kind, group.key),
            "label": group.key,
            "calls": group.calls,
            "evaluatedCalls": group.evaluated,
            "passedCalls": group.passed,
            "callPassRate": rounded(group.pass_rate),
            "score": rounded(group.score),
        }
        for group in found
    ]


def _debrief(run: RunCases, debrief: Debrief) -> Json:
    made = run.ended_at or run.created_at
    return {
        "debriefId": stable_id("debrief", run.run_id),
        "status": "READY",
        "errorMessage": None,
        "createdAt": made,
        "completedAt": made,
        "report": debrief_json(debrief, run.run_id, made),
    }


def _three(value: float) -> float:
    return round(value, 3)

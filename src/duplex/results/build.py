"""One call's result in schema 2.0, from its scenario, evidence and metrics.

Pure: reads no file and measures nothing. Whatever is not known becomes null and
is explained; a call that could not be held, or whose assistant was never heard,
does not count as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.grading import Check, Evidence, Grade, grade
from duplex.grading.judging import Judgement
from duplex.grading.overall import Known, judged_block, semantic_quality
from duplex.grading.terms import find_terms
from duplex.metrics.contract import ContractMetrics
from duplex.recording import BackendUsage
from duplex.results import schema
from duplex.results.caller_facts import REASON as CONTRADICTED
from duplex.results.caller_facts import contradicted
from duplex.results.observed import Basis, observability, validity
from duplex.results.outcome import Failing, failure, outcome, unserved, whose_fault
from duplex.results.unknown import explain
from duplex.scenario import Scenario
from duplex.values import Json, Side

_DIMENSIONS = tuple(schema.Dimensions.model_fields)
_MEANT = frozenset({"/error", "/validity/reason", "/observability/tools/executed"})
"""Nulls that say "none", or that somebody passed to a tool."""
_OURS = ("/duplex/line", "/duplex/claims", "/duplex/interrupted_replies")
"""Further values of our own that may be null."""
_DELEGATION = ("/metrics/task/delegation_accuracy", "/metrics/task/delegations/actual")
_NO_DELEGATION = "the assistant's protocol has no delegation"
NO_JUDGE = "no judge was asked"
_UNTAKEN = Known(value=None, why="the timing block has none")
AUDIO_REASONS = {
    "/metrics/audio": "no response opportunity was counted",
    "/metrics/audio/response_latency_ms": "no caller turn was answered in time",
}
"""Why contract 2.0 of a call that was measured may hold nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """What was measured of one call; None where it left nothing to measure.

    ``timing`` is the timing block as it is to be written; ``extra`` are further
    entries for the result's ``duplex`` object; ``unknown`` maps JSON pointers
    into the result to reasons only the caller of :func:`build_result` knows.
    ``judgement`` is what a judge made of the call, None where none was asked; ``own``
    are the user's checks, already run.
    """

    audio: ContractMetrics | None = None
    response_deadline_ms: int = 5000
    timing: Mapping[str, Json] | None = None
    extra: Mapping[str, Json] | None = None
    unknown: Mapping[str, str] | None = None
    judgement: Judgement | None = None
    own: Sequence[Check] = ()


def build_result(
    scenario: Scenario,
    evidence: Evidence,
    figures: CallFigures,
    *,
    basis: Basis,
    conversation_audio: str | None = None,
    conversation_transcript: str | None = None,
    sample: int = 1,
    failing: Failing | None = None,
) -> schema.Result:
    """Build the result of one call; paths are relative to the run's folder.

    ``failing`` says why a call was not held, and then why each null is one.
    """
    graded = grade(scenario, evidence, figures.judgement, figures.own)
    soundness = validity(evidence, basis)
    unheld = None if failing is None else failing.message
    sound = None if figures.audio is None else figures.audio.speaking_duration_ms.cumulative
    failing = failing or failure(evidence, soundness.reason, sound)
    if failing is None and not graded.passed:
        failing = unserved(evidence) or contradicted(scenario, evidence)
        if failing is not None and failing.stage == "caller_simulation":
            soundness = soundness.model_copy(update={"status": "invalid", "reason": CONTRADICTED})
    metrics = schema.Metrics(
        task=_task(graded, evidence, counts=failing is None),
        audio=audio_metrics(figures.audio, figures.response_deadline_ms),
        consumption=_consumption(evidence),
    )
    result = schema.Result(
        scenario_id=scenario.id,
        status=_status(graded, failing),
        metrics=metrics,
        artifacts=schema.Artifacts(
            conversation_audio=conversation_audio,
            conversation_transcript=conversation_transcript,
        ),
        error=None if failing is None else schema.Failure(**failing.as_fields()),
        title=scenario.title,
        assessment=_assessment(graded, failing),
        observability=observability(scenario, evidence, graded, basis, failing),
        validity=soundness.model_copy(
            update={"target_metrics_eligible": soundness.status == "valid" and failing is None}
        ),
    )
    ours = _duplex(evidence, graded, failing, figures, sample)
    ours["terms"] = [
        one.as_json() for one in find_terms(scenario.expected.diagnostic_terms, evidence)
    ]
    reasons = _reasons(evidence, figures, basis) if unheld is None else _unheld(unheld)
    ours["judge"], unjudged = _judge(figures, counts=failing is None)
    unknown = explain(result.model_dump(exclude={"duplex"}), reasons, _MEANT)
    if figures.timing is None:
        unknown["/duplex/timing"] = reasons.get("/duplex/timing", "timing was not measured")
    unknown |= {name: reasons[name] for name in _OURS if name in reasons}
    unknown |= unjudged if unheld is None else dict.fromkeys(unjudged, unheld)
    ours["unknown"] = unknown
    return result.model_copy(update={"duplex": ours})


def _status(graded: Grade, failing: Failing | None) -> schema.Status:
    if failing is not None:
        return "infrastructure_error"
    return "passed" if graded.passed else "failed"


def _task(graded: Grade, evidence: Evidence, *, counts: bool) -> schema.TaskMetrics:
    seen = evidence.application_observed
    delegates = seen and evidence.delegates
    task = graded.counts
    judged = graded.judgement
    dimensions = {name: None if judged is None else judged.score(name) for name in _DIMENSIONS}
    return schema.TaskMetrics(
        task_completed=graded.passed if counts else None,
        semantic_quality=schema.SemanticQuality(
            score=semantic_quality(judged).value, dimensions=schema.Dimensions(**dimensions)
        ),
        tool_accuracy=task.tool_accuracy if seen else None,
        tool_calls=schema.ActualExpected(
            actual=task.actual_tools if seen else None, expected=task.expected_tools
        ),
        delegation_accuracy=float(task.delegation_kept) if delegates else None,
        delegations=schema.ActualExpected(
            actual=task.actual_delegations if delegates else None,
            expected=task.expected_delegations,
        ),
        turns=schema.ActualExpected(actual=task.actual_turns, expected=task.expected_turns),
    )


def audio_metrics(audio: ContractMetrics | None, response_deadline_ms: int) -> schema.AudioMetrics:
    """``metrics.audio`` of one call; all null where there was nothing to measure."""
    fields = schema.Opportunities.model_fields
    if audio is None:
        nothing = schema.Extent(cumulative=None, maximum=None)
        return schema.AudioMetrics(
            response_rate=None,
            response_latency_ms=None,
            interruption_rate=None,
            speaking_duration_ms=nothing,
            floor_hold_silence_ms=nothing,
            response_deadline_ms=response_deadline_ms,
            response_opportunities=schema.Opportunities(**dict.fromkeys(fields)),
            response_exclusion_reasons=None,
        )
    counted = audio.response_opportunities
    return schema.AudioMetrics(
        response_rate=audio.response_rate,
        response_latency_ms=audio.response_latency_ms,
        interruption_rate=audio.interruption_rate,
        speaking_duration_ms=schema.Extent(
            cumulative=audio.speaking_duration_ms.cumulative,
            maximum=audio.speaking_duration_ms.maximum,
        ),
        floor_hold_silence_ms=schema.Extent(
            cumulative=audio.floor_hold_silence_ms.cumulative,
            maximum=audio.floor_hold_silence_ms.maximum,
        ),
        response_deadline_ms=response_deadline_ms,
        response_opportunities=schema.Opportunities(
            caller_turn_count=counted.caller_turn_count,
            response_eligible_count=counted.response_eligible_count,
            response_censored_count=counted.response_censored_count,
            response_excluded_count=counted.response_excluded_count,
            response_late_count=counted.response_late_count,
            response_total=counted.response_total,
            response_count=counted.response_count,
            no_response_count=counted.no_response_count,
        ),
        response_exclusion_reasons=dict(audio.response_exclusion_reasons),
    )


def _consumption(evidence: Evidence) -> schema.Consumption:
    seconds = evidence.usage_seconds.get(Side.ASSISTANT)
    used = evidence.backend_usage
    output, reasoning = _sum(used, "output_tokens"), _sum(used, "reasoning_tokens")
    spoken = None if output is None or reasoning is None else output - reasoning
    return schema.Consumption(
        frontend=schema.Frontend(
            audio_duration_ms=None if seconds is None else round(seconds * 1000)
        ),
        backend=schema.BackendTokens(
            total_tokens=_sum(used, "total_tokens"),
            input=schema.InputTokens(
                total_tokens=_sum(used, "input_tokens"),
                cached_tokens=_sum(used, "cached_tokens"),
                cache_write_tokens=_sum(used, "cache_write_tokens"),
                text_tokens=_sum(used, "input_tokens"),
            ),
            output=schema.OutputTokens(
                total_tokens=output, text_tokens=spoken, reasoning_tokens=reasoning
            ),
        ),
    )


def _sum(used: Sequence[BackendUsage], name: str) -> int | None:
    """Sum one count over all responses; None if any did not say, or there were none."""
    counts = {
        "input_tokens": [one.input_tokens for one in used],
        "cached_tokens": [one.cached_tokens for one in used],
        "cache_write_tokens": [one.cache_write_tokens for one in used],
        "output_tokens": [one.output_tokens for one in used],
        "reasoning_tokens": [one.reasoning_tokens for one in used],
        "total_tokens": [one.total_tokens for one in used],
    }[name]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _assessment(graded: Grade, failing: Failing | None) -> schema.Assessment:
    return schema.Assessment(
        passed=graded.passed if failing is None else None,
        source=graded.source,
        rationale=graded.rationale if failing is None else failing.rationale,
        checks=[
            schema.CheckResult(id=check.id, status=check.status, required=check.required)
            for check in graded.checks
        ],
    )


def _duplex(
    evidence: Evidence,
    graded: Grade,
    failing: Failing | None,
    figures: CallFigures,
    sample: int,
) -> dict[str, Json]:
    checks: dict[str, Json] = {
        check.id: {"reason": check.reason, "evidence": dict(check.evidence)}
        for check in graded.checks
    }
    ours: dict[str, Json] = {
        "sample": sample,
        "outcome": outcome(failing),
        "whose_fault": whose_fault(failing, passed=graded.passed),
        "duration_ms": evidence.duration_ms,
        "caller_finished": evidence.finished,
        "timing": None if figures.timing is None else dict(figures.timing),
        "checks": checks,
        "procedure": [
            {
                "id": step.step.id,
                "status": step.status,
                "required": step.step.required,
                "critical": step.step.critical,
                "at_ms": step.at_ms,
                "reason": step.reason,
            }
            for step in graded.procedure.steps
        ],
        "faults": [
            {
                "side": fault.side.label if fault.side is not None else None,
                "stage": fault.stage,
                "code": fault.code,
                "message": fault.message,
                "fatal": fault.fatal,
                "at_ms": fault.at_ms,
            }
            for fault in evidence.faults
        ],
    }
    return ours | dict(figures.extra or {})


def _judge(figures: CallFigures, *, counts: bool) -> tuple[Json, dict[str, Json]]:
    """The block of the judge, and why what of it is null."""
    if figures.judgement is None:
        return None, {"/duplex/judge": NO_JUDGE}
    timing = figures.timing or {}
    score = timing.get("turn_taking_score")
    taking = Known(value=float(score)) if isinstance(score, int | float) else _UNTAKEN
    block, why = judged_block(figures.judgement, taking, counts)
    return block, {f"/duplex/judge{at}": told for at, told in why.items()}


def _quality_reasons(judgement: Judgement | None) -> dict[str, str]:
    """Why semantic quality, or a dimension of it, is null."""
    at = "/metrics/task/semantic_quality"
    known = semantic_quality(judgement)
    reasons = {at: known.why or NO_JUDGE}
    if judgement is not None:
        reasons |= {f"{at}/dimensions/{name}": judgement.why(name) for name in _DIMENSIONS}
    return reasons


def _unheld(message: str) -> dict[str, str]:
    """The one reason for everything that a call that was not held leaves open."""
    blocks = (*schema.Result.model_fields, "duplex/timing")
    return {f"/{block}": message for block in blocks}


def _reasons(evidence: Evidence, figures: CallFigures, basis: Basis) -> dict[str, str]:
    """Say why each value that may be null would be; longer pointers win."""
    unseen = "the application under test reported nothing"
    reasons = {
        "/metrics/task": unseen,
        **_quality_reasons(figures.judgement),
        "/metrics/task/task_completed": "the call does not count",
        **AUDIO_REASONS,
        **({} if evidence.delegates else dict.fromkeys(_DELEGATION, _NO_DELEGATION)),
        "/metrics/consumption/frontend": "the assistant's session reported no usage",
        "/metrics/consumption/backend": basis.no_tokens,
        "/artifacts": "the file was not written",
        "/assessment/passed": "the call does not count",
        "/observability/agenda": "no words of this caller are known",
        "/observability/completion/passed": "the call does not count",
        "/observability/completion/termination_reason": "the call's log has no end",
    }
    if figures.audio is None:
        reasons = {name: why for name, why in reasons.items() if name not in AUDIO_REASONS}
        reasons["/metrics/audio"] = "the call left no recording to measure"
    return reasons | dict(figures.unknown or {})

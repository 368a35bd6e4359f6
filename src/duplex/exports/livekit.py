"""A run as LiveKit's agent simulations tell it: ``{"version", "run", "summary"}``.

Protobuf JSON in camelCase that the published messages read with unknown fields refused.
What was not measured is not there, never 0 and never null; ``docs/exports.md`` says what
never is, and why. A run that is not over has no summary. Counts and pools only: nothing
is measured here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex import conditions
from duplex.errors import DuplexError
from duplex.exports.livekit_chat import Chat, chat_of, tools_in
from duplex.exports.livekit_ids import (
    group_id,
    inside,
    job_id,
    moment,
    objects,
    room_id,
    run_id,
    scenario_id,
    some,
)
from duplex.exports.livekit_metrics import Measured, groups, judged, measured, over_jobs
from duplex.exports.livekit_summary import summary_json
from duplex.exports.livekit_turns import first_speech_ms, rows, stored_turns
from duplex.exports.said import said_in
from duplex.exports.scenarios import scenarios_held
from duplex.exports.subject import Subject
from duplex.results.stored import home
from duplex.scenario import Scenario
from duplex.values import Json
from duplex.verdict.case import Case, RunCases
from duplex.verdict.criteria import TASK
from duplex.verdict.gather import pass_rate_of, plan_of

VERSION = 1
_RUN_STATUS = {
    "running": "STATUS_RUNNING",
    "completed": "STATUS_COMPLETED",
    "failed": "STATUS_FAILED",
    "timed_out": "STATUS_FAILED",
    "cancelled": "STATUS_CANCELLED",
}
_ENDS = {
    "response_completed": "END_REASON_SCENARIO_COMPLETED",
    "duration_limit": "END_REASON_TURN_LIMIT",
}
_IMPAIRMENTS = {
    "backgroundNoise": ("noise", "background_speech", "bursts"),
    "lowQualityMicrophone": ("microphone", "telephony"),
    "packetLoss": ("packet_loss",),
}
"""LiveKit's three words for a line, and the effects that each stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One test case: its entry, what its groups are made of, and its history."""

    case: Case
    entry: dict[str, Json]
    metrics: dict[str, Json]
    groups: Measured
    chat: Chat


def report(subject: Subject, folder: Path) -> dict[str, Json]:
    """The whole document; transcripts and events are read from the run's folder."""
    run = subject.run
    texts = scenarios_held(run.run, home(folder))
    jobs = [_job(run, case, home(folder), texts.get(case.scenario)) for case in run.final]
    passed, failed = (sum(_passed(job.case) is said for job in jobs) for said in (True, False))
    told: dict[str, Json] = {
        **_head(subject, texts, jobs),
        "jobCount": run.expected,
        "passedCount": passed,
        "failedCount": failed,
        "numSimulations": run.expected,
        **some(metrics=_metrics(jobs)),
    }
    if subject.verdict is None:
        return {"version": VERSION, "run": told}
    chats = {str(job.entry["id"]): job.chat for job in jobs if job.case.outcome != "not_run"}
    summary = summary_json(subject, subject.verdict, chats, passed=passed, failed=failed)
    told["issueCount"] = len(objects(summary.get("issues")))
    return {"version": VERSION, "run": told, "summary": summary}


def _head(subject: Subject, texts: Mapping[str, Scenario], jobs: Sequence[Job]) -> dict[str, Json]:
    run, configuration = subject.run, subject.run.run.run.configuration
    failures = () if subject.verdict is None else subject.verdict.failures
    agents = {case.agent for case in run.cases}
    turns = [turns for job in jobs if (turns := inside(job.entry, "usage", "audioTurnsCount"))]
    return some(
        id=run_id(run.run_id),
        status=_RUN_STATUS[run.status],
        error=next((one.sentence for one in failures if one.kind == "RUN_NOT_COMPLETED"), None),
        createdAt=moment(run.created_at, 0),
        endedAt=moment(run.ended_at, 0),
        agentName=next(iter(agents)) if len(agents) == 1 else None,
        scenarioGroup=_group(run, texts),
        jobs=[job.entry for job in jobs],
        usage={
            "textTurnsCount": 0,
            "audioTurnsCount": sum(one for one in turns if isinstance(one, int)),
        },
        concurrency=configuration.concurrency,
        mode="SIMULATION_MODE_AUDIO",
        ci=_ci(run.ci),
        sampling=_sampling(run),
    )


def _ci(told: Mapping[str, str]) -> dict[str, Json]:
    return some(
        provider=told.get("provider"),
        commitSha=told.get("commit_sha"),
        ref=told.get("ref"),
        pullRequest=told.get("pull_request"),
        runUrl=told.get("run_url"),
        actor=told.get("actor"),
    )


def _sampling(run: RunCases) -> Json:
    planned = plan_of(run.run).get("samples")
    drawn = max((case.sample for case in run.cases), default=1)
    samples = planned if isinstance(planned, int) else drawn
    return {"samples": samples, "passRate": pass_rate_of(run.run)} if samples > 1 else None


def _group(run: RunCases, texts: Mapping[str, Scenario]) -> dict[str, Json]:
    """The scenarios of the run; an arm of a sweep makes one of its own."""
    found = {scenario_id(case): case for case in run.cases}
    return some(
        id=group_id(list(found)) if found else None,
        name=run.plan_name,
        scenarios=[
            some(
                id=id,
                label=_label(case),
                tags=_tags(case, run.swept, texts.get(case.scenario)),
                **_texts(texts.get(case.scenario)),
                userdata=_userdata(texts.get(case.scenario)),
            )
            for id, case in found.items()
        ],
    )


def _label(case: Case) -> str:
    return case.result.title + ("" if case.arm is None else f" ({case.arm.label})")


def _texts(scenario: Scenario | None) -> dict[str, Json]:
    """What the caller was told and what was expected."""
    if scenario is None:
        return {}
    expected = scenario.expected
    lines = [expected.answer, *(one for one in expected.criteria if one not in expected.answer)]
    return {"instructions": scenario.goal, "agentExpectations": "\n".join(lines)}


def _tags(case: Case, swept: str | None, scenario: Scenario | None) -> dict[str, Json]:
    tags: dict[str, Json] = {}
    for tag in () if scenario is None else scenario.tags:
        name, _, value = tag.partition("=")
        tags[name] = value
    if case.arm is not None and swept is not None:
        tags[swept] = case.arm.value
    return tags


def _userdata(scenario: Scenario | None) -> str | None:
    state = {} if scenario is None else scenario.application.initial_state
    return json.dumps(state, ensure_ascii=False) if state else None


def _passed(case: Case) -> bool | None:
    """The verdict on a test case; None for one that is nobody's failure."""
    if case.outcome == "never_spoke":
        return False
    told = case.check(TASK) if case.counted else None
    return None if told is None else told.passed


def _job(run: RunCases, case: Case, folder: Path, scenario: Scenario | None) -> Job:
    id = job_id(run.run_id, case)
    lines = said_in(folder, case.call_id)
    turns = rows(case, lines, scored=case.counted)
    pooled = measured(case, turns, scored=case.counted)
    metrics = _job_metrics(case, turns, pooled)
    heard = len(stored_turns(case))
    entry = some(
        id=id,
        status=_status(case),
        label=_label(case),
        error=_error(case),
        tags=[
            f"{name}={value}" if value else name
            for name, value in _tags(case, run.swept, scenario).items()
        ],
        startedAt=moment(case.started_at, 0),
        endedAt=moment(case.ended_at, 0),
        roomId=None if case.outcome == "not_run" else room_id(run.run_id, case),
        usage={"textTurnsCount": 0, "audioTurnsCount": heard} if heard else None,
        metrics=metrics,
        scenarioId=scenario_id(case),
        sample=case.sample,
        **_texts(scenario),
    )
    chat = chat_of(case, id, lines, tools_in(folder, case.call_id))
    return Job(case=case, entry=entry, metrics=metrics, groups=pooled, chat=chat)


def _status(case: Case) -> str:
    passed = _passed(case)
    if passed is None:
        return "STATUS_CANCELLED"
    return "STATUS_COMPLETED" if passed else "STATUS_FAILED"


def _error(case: Case) -> str | None:
    """Why a job did not pass: what broke it, or what the grade says."""
    failure = case.result.error
    if failure is not None:
        return f"{failure.stage}: {failure.message}"
    return None if _passed(case) else case.result.assessment.rationale


def _job_metrics(
    case: Case, turns: Sequence[Mapping[str, Json]], pooled: Measured
) -> dict[str, Json]:
    """Everything known of a call; scores only of one that counts."""
    if case.outcome == "not_run":
        return {}
    began, passed = first_speech_ms(case), _passed(case) if case.counted else None
    return some(
        taskCompletion=None if passed is None else int(passed),
        **groups([pooled]),
        turns=[dict(turn) for turn in turns],
        **(judged(case) if case.counted else {}),
        hasRemoteSession=_told(case, pooled),
        t0=None if began is None else moment(case.started_at, began),
        endReason=_end(case),
        impairments=_impairments(case),
    )


def _told(case: Case, pooled: Measured) -> bool:
    """Whether the agent told anything itself: of its timing, or the words it heard or meant."""
    return bool(objects(case.result.duplex.get("claims"))) or any(
        "words" in pooled.counts[group] for group in ("stt", "tts")
    )


def _end(case: Case) -> str | None:
    if case.outcome == "never_spoke":
        return "END_REASON_INACTIVITY"
    faults = objects(case.result.duplex.get("faults"))
    if any(one.get("fatal") is True and one.get("side") == "assistant" for one in faults):
        return "END_REASON_AGENT_ERROR"
    return _ENDS.get(str(case.result.observability.completion.termination_reason))


def _impairments(case: Case) -> Json:
    """What the way from the caller did to the voice, in LiveKit's three words."""
    try:
        line = conditions.parse(case.condition)
    except DuplexError:
        return None
    titles = {effect.title for effect in line.uplink}
    return {name: not titles.isdisjoint(ours) for name, ours in _IMPAIRMENTS.items()}


def _metrics(jobs: Sequence[Job]) -> dict[str, Json]:
    """Aggregates over the jobs that count."""
    verdicts = [passed for job in jobs if (passed := _passed(job.case)) is not None]
    counted = list(_counted(jobs))
    share = sum(verdicts) / len(verdicts) if verdicts else None
    return some(
        scenarioPassRate=None if share is None else round(share, 6),
        **over_jobs([job.metrics for job in counted]),
        **groups([job.groups for job in counted]),
    )


def _counted(jobs: Sequence[Job]) -> Iterator[Job]:
    return (job for job in jobs if job.case.counted)

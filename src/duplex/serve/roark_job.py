"""Roark shapes that ``exports/roark.py`` has not: a list's entry, a job, a run in progress.

What nobody knows of a local run (a persona's age, an endpoint's telephone number) is
null, also where the published type has no null; ``docs/serve.md`` lists it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from duplex.exports import roark
from duplex.exports.subject import Subject
from duplex.serve.library import Seen
from duplex.values import Json
from duplex.verdict.case import Case
from duplex.verdict.ids import stable_id

Status = Literal[
    "PENDING",
    "QUEUED",
    "CREATING_SNAPSHOTS",
    "CREATING_SIMULATIONS",
    "PREPARING_CAPACITY",
    "RUNNING_SIMULATIONS",
    "COMPLETED",
    "FAILED",
    "TIMED_OUT",
    "CANCELLED",
    "CANCELLING",
    "ENDING_SIMULATIONS",
]
_OVER: Mapping[str, Status] = {
    "completed": "COMPLETED",
    "failed": "FAILED",
    "timed_out": "TIMED_OUT",
    "cancelled": "CANCELLED",
    # Its runner is gone: nothing will come of it unless somebody takes it up again.
    "interrupted": "FAILED",
    "damaged": "FAILED",
}
_NOISES = (
    "AIRPORT",
    "CHILDREN_PLAYING",
    "CITY",
    "COFFEE_SHOP",
    "CONSTRUCTION",
    "CRYING_BABY",
    "DRIVING",
    "LIBRARY",
    "OFFICE",
    "THUNDERSTORM",
    "TRAIN",
)
_PERSONA = (
    "accent",
    "age",
    "backgroundNoise",
    "baseEmotion",
    "confirmationStyle",
    "createdAt",
    "gender",
    "hasDisfluencies",
    "idleMessageMaxSpokenCount",
    "idleMessageResetCountOnUserSpeechEnabled",
    "idleMessages",
    "idleTimeoutSeconds",
    "intentClarity",
    "interruption",
    "language",
    "memoryReliability",
    "responseTiming",
    "speechClarity",
    "speechPace",
    "understoodLanguages",
    "updatedAt",
)


def status_of(seen: Seen) -> Status:
    """A run's status in Roark's words."""
    if not seen.running:
        return _OVER[seen.row.status]
    if seen.stopping:
        return "CANCELLING"
    if seen.told is None or not seen.told.began:
        return "CREATING_SIMULATIONS"
    if not seen.waiting() and not seen.in_progress():
        return "ENDING_SIMULATIONS"
    return "RUNNING_SIMULATIONS"


def entry(seen: Seen) -> dict[str, Json]:
    """A run as a list has it."""
    row = seen.row
    return {
        "simulationRunPlanJobId": roark.run_uuid(row.id),
        "simulationRunPlanId": row.plan_id,
        "status": status_of(seen),
        "triggeredBy": "TRIGGERED_FROM_API",
        "createdAt": row.created_at,
        "startedAt": row.created_at,
        "endedAt": row.ended_at,
    }


def results(subject: Subject, seen: Seen) -> dict[str, Json]:
    """The whole report; of a run going on also the calls that are held or wait."""
    found = roark.data(subject)
    run, summary, calls = found["run"], found["summary"], found["calls"]
    assert isinstance(run, dict)
    assert isinstance(summary, dict)
    assert isinstance(calls, list)
    found["run"] = {**run, "status": status_of(seen)}
    if not seen.running:
        return found
    found |= {"verdict": None, "sweepAttribution": None}
    going = _going(seen)
    counts = {
        name: value + len(going)
        for name in ("totalCalls", "countedCalls")
        if isinstance(value := summary[name], int)
    }
    found["summary"] = {**summary, **counts}
    found["calls"] = [*calls, *going]
    return found


def _going(seen: Seen) -> list[Json]:
    """Calls without a result, nothing known of them but that they are to be."""
    found = [(call, attempt, "IN_CALL") for _, attempt, call in seen.in_progress()]
    found += [(case, 1, "QUEUED") for case in seen.waiting()]
    return [
        {
            "simulationJobId": roark.call_uuid(seen.row.id, call),
            "callId": None,
            "status": status,
            "counted": True,
            "attemptNumber": attempt,
            "retryOfSimulationJobId": None,
            "personaName": None,
            "agentName": None,
            "durationMs": None,
            "passed": None,
            "checks": [],
            "values": [],
        }
        for call, attempt, status in found
    ]


def job(subject: Subject, seen: Seen) -> dict[str, Json]:
    """A run with all its calls."""
    whole = results(subject, seen)
    calls: list[Json] = [_held(case, subject) for case in subject.run.cases]
    calls += [
        _call(
            seen,
            call,
            status="PROCESSING",
            processing="SIMULATING",
            attempt=attempt,
            created=seen.row.created_at,
        )
        for _, attempt, call in seen.in_progress()
    ]
    calls += [
        _call(
            seen,
            case,
            status="QUEUED",
            processing="PENDING",
            attempt=1,
            created=seen.row.created_at,
        )
        for case in seen.waiting()
    ]
    return {
        **{name: value for name, value in entry(seen).items() if name != "triggeredBy"},
        "attemptSummary": whole["attemptSummary"],
        "pendingRetries": _retries(seen),
        "simulationJobs": calls,
        "sweepAttribution": whole["sweepAttribution"],
        "verdict": whole["verdict"],
    }


def _retries(seen: Seen) -> list[Json]:
    """Attempts that follow one that was not the last, and have not begun."""
    if seen.told is None or not seen.running:
        return []
    most = seen.told.opening.options.get("silent_retries")
    found: list[Json] = []
    for case in seen.told.opening.calls:
        held = seen.told.attempts(case)
        if not held or held[-1].final:
            continue
        attempt = held[-1].attempt + 1
        call = f"{case}.a{attempt}"
        if call not in seen.told.began:
            found.append(
                {
                    "simulationJobId": roark.call_uuid(seen.row.id, call),
                    "attemptNumber": attempt,
                    "maxAttempts": most + 1 if isinstance(most, int) else attempt,
                    "scheduledAt": None,
                }
            )
    return found


def _call(
    seen: Seen, call: str, *, status: str, processing: str, attempt: int, created: str
) -> dict[str, Json]:
    return {
        "simulationJobId": roark.call_uuid(seen.row.id, call),
        "callId": None,
        "status": status,
        "processingStatus": processing,
        "attemptNumber": attempt,
        "retryOfSimulationJobId": None,
        "createdAt": created,
        "scheduledAt": None,
        "startedAt": None,
        "completedAt": None,
        "invalidation": None,
        "roarkPhoneNumber": None,
        "scenario": _scenario(_scenario_of(seen, call)),
        "persona": _persona("default"),
        "agentEndpoint": _endpoint(seen.row.agent),
        "backgroundNoise": _noise(seen.row.condition),
    }


def _held(case: Case, subject: Subject) -> dict[str, Json]:
    run = subject.run
    before = next(
        (
            one
            for one in run.cases
            if one.test_case == case.test_case and one.attempt == case.attempt - 1
        ),
        None,
    )
    ran = case.outcome != "not_run"
    return {
        "simulationJobId": roark.call_uuid(run.run_id, case.call_id),
        "callId": stable_id("recording", run.run_id, case.call_id) if ran else None,
        "status": _status(case, run.status),
        "processingStatus": "COMPLETED" if ran else "PENDING",
        "attemptNumber": case.attempt,
        "retryOfSimulationJobId": None
        if before is None
        else roark.call_uuid(run.run_id, before.call_id),
        "createdAt": run.created_at,
        "scheduledAt": None,
        "startedAt": case.started_at,
        "completedAt": case.ended_at,
        "invalidation": {
            "reason": "AGENT_NEVER_SPOKE",
            "invalidatedAt": case.ended_at,
            "detail": None,
        }
        if case.outcome == "never_spoke"
        else None,
        "roarkPhoneNumber": None,
        "scenario": _scenario(case.scenario),
        "persona": _persona(case.persona),
        "agentEndpoint": _endpoint(case.agent),
        "backgroundNoise": _noise(case.condition),
    }


def _status(case: Case, run_status: str) -> str:
    if case.outcome == "not_run":
        return "CANCELLED" if run_status == "cancelled" else "FAILED"
    if case.outcome == "invalidated":
        return "FAILED"
    reason = case.result.observability.completion.termination_reason
    return "TIMED_OUT" if case.counted and reason == "duration_limit" else "COMPLETED"


def _scenario_of(seen: Seen, call: str) -> str:
    """The scenario of a call that has no result: the longest id its own begins with."""
    known = [] if seen.told is None else seen.told.opening.scenarios
    fitting = [id for id in known if call == id or call.startswith(f"{id}.")]
    return max(fitting, key=len, default=call)


def _scenario(id: str) -> dict[str, Json]:
    return {"id": stable_id("scenario", id), "description": id}


def _persona(name: str) -> dict[str, Json]:
    unknown: dict[str, Json] = dict.fromkeys(_PERSONA)
    return unknown | {"id": stable_id("persona", name), "name": name, "properties": {}}


def _endpoint(agent: str) -> dict[str, Json]:
    remote = agent.startswith(("ws:", "wss:", "twilio:", "gpt-live", "realtime", "responses"))
    return {
        "id": stable_id("agent", agent),
        "name": agent,
        "phoneNumber": None,
        "type": "WEBSOCKET" if remote else None,
    }


def _noise(condition: str) -> dict[str, Json]:
    """The bed a call ran with; how loud is not said in a unit that is ours."""
    if condition == "clean":
        return {"backgroundNoise": "NONE", "backgroundNoiseVolume": 0, "source": "ENVIRONMENT"}
    named = condition.split(",")[0].upper()
    return {
        "backgroundNoise": named if named in _NOISES else None,
        "backgroundNoiseVolume": None,
        "source": "ENVIRONMENT",
    }

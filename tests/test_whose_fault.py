"""Whose fault it was, in every field that tells: one table, then all kinds of agents."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from booking_call import BOOKED, Log, booking_call
from duplex.results import Basis
from duplex.results.outcome import Failing, outcome, whose_fault
from duplex.results.run import exit_code
from duplex.values import Side
from results_support import result_of, run_of

CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT
LOCAL = Basis()


def ending(reason: str | None, *drop: str, silent: Side | None = None) -> Log:
    """The booking with another end, and without some kinds of events, or one side's sound."""
    kept = Log()
    for event in booking_call().events()[1:-1]:
        mute = event.side is silent and event.type in ("segment", "utterance")
        if event.type not in drop and not mute:
            kept.add(event.at // 24, event.side, event.type, **dict(event.fields))
    return kept if reason is None else kept.end(22_000, reason)


def broken(side: Side, stage: str, code: str = "x", *, silent: Side | None = None) -> Log:
    log = ending(None, "caller.finished", silent=silent)
    log.add(9_000, side, "fault", stage=stage, code=code, message="it broke", fatal=True)
    return log.end(9_500, "error")


def survived(stage: str, code: str, log: Log) -> Log:
    """The same call with a fault in its middle that ended nothing."""
    kept = Log()
    for event in log.events()[1:]:
        if event.type == "call.ended":
            kept.add(
                9_000, ASSISTANT, "fault", stage=stage, code=code, message="too many", fatal=False
            )
        kept.add(event.at // 24, event.side, event.type, **dict(event.fields))
    return kept


def unbooked() -> Log:
    return booking_call().state(21_000, {**BOOKED, "time": "20:00"})


def run_events(outcome: str | None, reason: str) -> Log:
    log = ending(None)
    log.add(8_000, CALLER, "run.started", run_id="r", delegation_id=None, previous_run_id=None)
    if outcome is not None:
        log.add(9_000, CALLER, "run.ended", run_id="r", outcome=outcome)
    return log.end(22_000, reason)


def delegated(target: str) -> Log:
    log = ending(None)
    log.add(8_000, CALLER, "delegation.created", delegation_id="dx", target=target)
    log.add(8_500, CALLER, "delegation.closed", delegation_id="dx", ok=True)
    return log.end(22_000)


@dataclass(frozen=True, kw_only=True)
class Row:
    log: Log
    status: str
    stage: str | None = None
    valid: bool = True
    reason: str | None = None
    outcome: str = "counted"
    whose: str
    code: int
    basis: Basis = LOCAL


def infra(log: Log, stage: str, whose: str, outcome: str = "invalidated", code: int = 2) -> Row:
    return Row(
        log=log, status="infrastructure_error", stage=stage, outcome=outcome, whose=whose, code=code
    )


def unsound(
    log: Log,
    reason: str,
    stage: str = "caller_simulation",
    outcome: str = "invalidated",
    basis: Basis | None = None,
) -> Row:
    return Row(
        log=log,
        status="infrastructure_error",
        stage=stage,
        valid=False,
        reason=reason,
        outcome=outcome,
        whose="simulator",
        code=2,
        basis=basis or LOCAL,
    )


REMOTE = Basis(validity_scope="caller_responses_delegation", caller_tells_agenda=False)
TABLE: dict[str, Row] = {
    # Nobody's.
    "passed": Row(log=booking_call(), status="passed", whose="nobody", code=0),
    "passed despite a fault": Row(
        log=survived("transport", "stalled", booking_call()),
        status="passed",
        whose="nobody",
        code=0,
    ),
    "passed despite a rate limit": Row(
        log=survived("provider", "rate_limit_exceeded", booking_call()),
        status="passed",
        whose="nobody",
        code=0,
    ),
    # The agent's, which alone count.
    "wrong state": Row(log=unbooked(), status="failed", whose="agent", code=1),
    "never done": Row(log=ending("duration_limit"), status="failed", whose="agent", code=1),
    "said nothing at all": infra(
        broken(ASSISTANT, "assistant_opening", silent=ASSISTANT),
        "assistant_opening",
        "agent",
        outcome="never_spoke",
        code=1,
    ),
    "sound that was no speech": infra(
        ending("duration_limit", silent=ASSISTANT),
        "assistant_opening",
        "agent",
        outcome="never_spoke",
        code=1,
    ),
    "a filter cut its reply": Row(
        log=survived("provider", "content_filter", unbooked()),
        status="failed",
        whose="agent",
        code=1,
    ),
    # Our caller's.
    "caller would not connect": unsound(
        broken(CALLER, "caller_connection"),
        "caller_not_connected",
        stage="caller_connection",
        outcome="not_run",
    ),
    "caller never spoke": unsound(
        broken(CALLER, "caller_opening", silent=CALLER),
        "caller_never_spoke",
        stage="caller_opening",
    ),
    "caller's model failed": unsound(
        broken(CALLER, "caller_simulation", "response_failed"), "caller_model_failed"
    ),
    "caller's session dropped": unsound(
        broken(CALLER, "session", "dropped"), "caller_session_failed"
    ),
    "caller's line went dead": unsound(
        broken(CALLER, "transport", "dead"), "caller_session_failed"
    ),
    "caller delegated what it cannot": unsound(
        delegated("client"), "unsupported_caller_delegation", basis=REMOTE
    ),
    "caller's backend failed": unsound(
        run_events("failed", "response_completed"), "caller_backend_failed", basis=REMOTE
    ),
    "caller's backend hung": unsound(
        run_events(None, "duration_limit"), "caller_backend_pending", basis=REMOTE
    ),
    "caller's backend worked": Row(
        log=delegated("responses"), status="passed", whose="nobody", code=0, basis=REMOTE
    ),
    # The platform's: what carries a call, here and at whoever serves it.
    "assistant unreachable": infra(
        broken(ASSISTANT, "assistant_connection", "401", silent=ASSISTANT),
        "assistant_connection",
        "platform",
        outcome="not_run",
    ),
    "assistant's session dropped": infra(
        broken(ASSISTANT, "session", "dropped"), "session", "platform"
    ),
    "assistant's line went dead": infra(
        broken(ASSISTANT, "transport", "dead"), "transport", "platform"
    ),
    "our model could not be asked": infra(
        broken(ASSISTANT, "backend", "unreachable"), "backend", "platform"
    ),
    "a person's sound card was pulled out": infra(
        broken(CALLER, "transport", "device_gone"), "transport", "platform"
    ),
    "this machine was late": infra(
        broken(CALLER, "platform_late", "late_tick"), "platform_late", "platform"
    ),
    "the log was cut off": infra(ending(None), "session", "platform"),
    "replies its provider refused": infra(
        survived("provider", "rate_limit_exceeded", unbooked()), "provider", "platform"
    ),
    "every reply its provider refused": infra(
        survived(
            "provider",
            "insufficient_quota",
            broken(ASSISTANT, "assistant_opening", silent=ASSISTANT),
        ),
        "provider",
        "platform",
    ),
    # The user's.
    "stopped": infra(ending("user_stopped"), "user_stopped", "user"),
}


@pytest.mark.parametrize("name", TABLE)
def test_every_field_tells_the_same_culprit(name: str) -> None:
    row = TABLE[name]
    result = result_of(row.log, basis=row.basis)
    assert result.status == row.status, result.error
    assert (result.error.stage if result.error else None) == row.stage
    assert result.validity.status == ("valid" if row.valid else "invalid")
    assert result.validity.reason == row.reason
    assert result.validity.scope == row.basis.validity_scope
    assert (result.duplex["outcome"], result.duplex["whose_fault"]) == (row.outcome, row.whose)
    assert exit_code(run_of(result)) == row.code
    counts = row.status != "infrastructure_error"
    assert (result.assessment.passed is not None) == counts
    assert result.validity.target_metrics_eligible == counts


def test_only_the_agents_faults_are_in_the_pass_rate() -> None:
    run = run_of(*(result_of(row.log, basis=row.basis) for row in TABLE.values()))
    counted = [result for result in run.results if result.assessment.passed is not None]
    assert {result.duplex["whose_fault"] for result in counted} == {"nobody", "agent"}
    assert run.summary.passed + run.summary.failed == len(counted)
    assert run.summary.failed == sum(r.duplex["whose_fault"] == "agent" for r in counted)
    assert exit_code(run) == 1


def test_one_bad_call_of_ours_makes_the_run_incomplete_and_not_failed_whole() -> None:
    good, ours = result_of(booking_call()), result_of(broken(ASSISTANT, "session"))
    assert exit_code(run_of(good, ours)) == 1
    assert exit_code(run_of(ours, ours)) == 2


def test_a_call_that_was_never_begun_is_nobody_elses_than_the_users() -> None:
    failing = Failing(stage="not_run", message="over before")
    assert (outcome(failing), whose_fault(failing, passed=False)) == ("not_run", "user")

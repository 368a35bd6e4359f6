"""What a result says of a call: its figures, its verdict, and whether it counts."""

from __future__ import annotations

import pytest

from booking_call import BOOKED, Log, booking, booking_call
from duplex.results import Basis, CallFigures
from duplex.values import Json, Side
from results_support import audio, result_of


def cut(log: Log, *, at_ms: int = 22000, reason: str | None = None) -> Log:
    """The call with another end, or none."""
    kept = Log()
    for event in log.events()[1:-1]:
        kept.add(event.at // 24, event.side, event.type, **dict(event.fields))
    return kept if reason is None else kept.end(at_ms, reason)


def fault(log: Log, side: Side | None, stage: str, *, fatal: bool = True) -> Log:
    return log.add(9000, side, "fault", stage=stage, code="x", message="it broke", fatal=fatal)


def test_a_good_booking_passes_with_its_figures() -> None:
    result = result_of(booking_call())
    assert result.status == "passed"
    assert result.error is None
    task = result.metrics.task
    assert (task.task_completed, task.tool_accuracy, task.delegation_accuracy) == (True, 1.0, 1.0)
    assert (task.tool_calls.actual, task.tool_calls.expected) == (2, 2)
    assert (task.delegations.actual, task.delegations.expected) == (1, 1)
    assert (task.turns.actual, task.turns.expected) == (7, 7)
    assert task.semantic_quality.score is None
    heard = result.metrics.audio.response_opportunities
    assert (heard.response_count, heard.response_total, heard.response_excluded_count) == (3, 3, 1)
    assert result.metrics.audio.response_latency_ms == 1333.333
    assert result.metrics.consumption.frontend.audio_duration_ms == 22000
    assert result.assessment.passed is True
    assert result.duplex["outcome"] == "counted"


def test_agenda_progress_is_what_the_caller_reported() -> None:
    log = booking_call().add(21000, Side.CALLER, "agenda", item_id="time", status="skipped")
    agenda = result_of(log).observability.agenda
    assert agenda.total == 3
    assert agenda.completed == ["name_and_party", "goodbye"]
    assert (agenda.skipped, agenda.bypassed, agenda.pending_required) == (["time"], [], [])
    quiet = Log()
    for event in booking_call().events()[1:]:
        if event.type != "agenda":
            quiet.add(event.at // 24, event.side, event.type, **dict(event.fields))
    assert result_of(quiet).observability.agenda.pending_required == ["name_and_party", "time"]


def test_a_caller_without_words_leaves_the_agenda_unknown() -> None:
    log = Log()
    for event in booking_call().events()[1:]:
        if event.type not in ("agenda", "utterance"):
            log.add(event.at // 24, event.side, event.type, **dict(event.fields))
    result = result_of(log, basis=Basis(caller_tells_agenda=False))
    agenda = result.observability.agenda
    assert (agenda.total, agenda.completed, agenda.pending_required) == (3, None, None)
    unknown = result.duplex["unknown"]
    assert isinstance(unknown, dict)
    assert unknown["/observability/agenda/completed"] == "no words of this caller are known"


def test_interaction_tools_and_completion_are_observed() -> None:
    seen = result_of(booking_call()).observability
    assert seen.interaction.model_dump() == {
        "mode": "multi_turn",
        "audio_source": "dual_local",
        "caller_mode": "local",
        "caller_actions": {"OPENING": 1, "SPEAK": 2, "STOP": 1},
        "attribution": "caller_intent",
        "assistant_turns": 4,
        "caller_turns": 4,
        "delegations": 1,
    }
    assert [call.name for call in seen.tools.executed] == [
        "check_availability",
        "create_reservation",
    ]
    assert (seen.tools.matched_count, seen.tools.unexpected_completed_count) == (2, 0)
    assert seen.completion.policy == "verified_state_and_closing"
    assert seen.completion.termination_reason == "response_completed"
    assert seen.completion.failed_procedure_steps == []


def test_a_wrong_state_fails_and_says_so_everywhere() -> None:
    result = result_of(booking_call().state(21000, {**BOOKED, "time": "20:00"}))
    assert (result.status, result.metrics.task.task_completed) == ("failed", False)
    assert result.assessment.passed is False
    assert result.observability.completion.failed_checks == ["application_state"]
    assert result.assessment.rationale == result.observability.completion.rationale
    checks = result.duplex["checks"]
    assert isinstance(checks, dict)
    assert "not the expected one" in str(checks["application_state"])


def test_the_duration_limit_fails_a_call_that_was_heard() -> None:
    result = result_of(cut(booking_call(), reason="duration_limit"))
    assert result.status == "failed"
    assert result.observability.completion.failed_checks == ["conversation_completed"]


@pytest.mark.parametrize(
    ("stage", "outcome"),
    [
        ("assistant_connection", "not_run"),
        ("caller_connection", "not_run"),
        ("transport", "invalidated"),
        ("session", "invalidated"),
        ("backend", "invalidated"),
        ("platform_late", "invalidated"),
        ("assistant_opening", "never_spoke"),
    ],
)
def test_a_fault_that_ended_the_call_is_an_infrastructure_error(stage: str, outcome: str) -> None:
    log = cut(booking_call())
    result = result_of(fault(log, Side.ASSISTANT, stage).end(9500, "error"))
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert (result.error.stage, result.error.message) == (stage, "it broke")
    assert result.duplex["outcome"] == outcome
    assert result.metrics.task.task_completed is None
    assert result.assessment.passed is None
    assert result.observability.completion.passed is None
    assert result.validity.status == "valid"
    assert not result.validity.target_metrics_eligible


def test_a_fault_that_was_survived_is_listed_and_forgiven() -> None:
    log = fault(cut(booking_call()), Side.ASSISTANT, "transport", fatal=False)
    result = result_of(log.end(22000))
    assert (result.status, result.error) == ("passed", None)
    assert result.duplex["faults"] == [
        {
            "side": "assistant",
            "stage": "transport",
            "code": "x",
            "message": "it broke",
            "fatal": False,
            "at_ms": 9000,
        }
    ]


def test_a_session_that_breaks_after_the_call_was_over_spoils_nothing() -> None:
    log = fault(cut(booking_call()), Side.ASSISTANT, "session_close")
    assert result_of(log.end(22000)).status == "passed"


def test_a_log_without_an_end_is_no_verdict() -> None:
    result = result_of(cut(booking_call()))
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "session"
    assert result.observability.completion.termination_reason is None


def test_a_call_the_user_stopped_is_no_verdict() -> None:
    result = result_of(cut(booking_call(), reason="user_stopped"))
    assert result.error is not None
    assert (result.status, result.error.stage) == ("infrastructure_error", "user_stopped")


def silent(side: Side, first: str) -> Log:
    log = Log(first_speaker=first).add(0, None, "floor", holder="none")
    for event in booking_call().events()[1:-1]:
        if event.side is not side:
            log.add(event.at // 24, event.side, event.type, **dict(event.fields))
    return log.end(22000, "duration_limit")


@pytest.mark.parametrize("first", ["caller", "assistant"])
@pytest.mark.parametrize("side", list(Side))
def test_a_side_that_was_never_heard_fails_nobody(side: Side, first: str) -> None:
    result = result_of(silent(side, first))
    assert result.error is not None
    assert result.error.stage == f"{side.label}_opening"
    spoke = "never_spoke" if side is Side.ASSISTANT else "invalidated"
    assert result.duplex["outcome"] == spoke


def test_an_assistant_of_tones_is_said_to_have_made_sound() -> None:
    """Contract 2.0 has figures of its sound, so "never heard" alone would puzzle."""
    figures = CallFigures(audio=audio(booking_call()))
    result = result_of(silent(Side.ASSISTANT, "assistant"), figures=figures)
    assert result.error is not None
    said = "the assistant was never heard to speak: "
    assert result.error.message.startswith(said)
    assert result.error.message.endswith(" s of sound came, none of it speech")
    nothing = result_of(silent(Side.ASSISTANT, "assistant"), figures=CallFigures())
    assert nothing.error is not None
    assert nothing.error.message == "the assistant was never heard"


@pytest.mark.parametrize(("first", "stage"), [("caller", "caller"), ("assistant", "assistant")])
def test_in_a_silent_call_the_side_that_should_have_begun_is_named(first: str, stage: str) -> None:
    log = Log(first_speaker=first).add(0, None, "floor", holder="none").end(20000, "duration_limit")
    result = result_of(log, figures=CallFigures())
    assert result.error is not None
    assert result.error.stage == f"{stage}_opening"


@pytest.mark.parametrize(
    ("scope", "target", "valid"),
    [
        ("local_caller", "client", False),
        ("local_caller", "responses", False),
        ("caller_responses_delegation", "responses", True),
        ("caller_responses_delegation", "client", False),
    ],
)
def test_a_caller_that_delegates_where_it_may_not_spoils_the_call(
    scope: str, target: str, valid: bool
) -> None:
    log = cut(booking_call())
    for at_ms in (9000, 9100):
        log.add(at_ms, Side.CALLER, "delegation.created", delegation_id="k1", target=target)
    result = result_of(log.end(22000), basis=Basis(validity_scope=scope))
    assert (result.validity.status == "valid") is valid
    assert result.validity.target_metrics_eligible is valid
    assert result.validity.delegation_ids == ([] if valid else ["k1"])
    assert result.status == ("passed" if valid else "infrastructure_error")
    if result.error is not None:
        assert result.error.stage == "caller_simulation"
        assert result.validity.reason == "unsupported_caller_delegation"


@pytest.mark.parametrize(
    ("outcome", "end", "reason"),
    [
        ("failed", "response_completed", "caller_backend_failed"),
        ("incomplete", "response_completed", "caller_backend_failed"),
        (None, "duration_limit", "caller_backend_pending"),
        (None, "response_completed", None),
        ("ok", "duration_limit", None),
    ],
)
def test_a_callers_own_backend_must_finish(
    outcome: str | None, end: str, reason: str | None
) -> None:
    log = cut(booking_call()).add(9000, Side.CALLER, "run.started", run_id="r1")
    if outcome is not None:
        log.add(9500, Side.CALLER, "run.ended", run_id="r1", outcome=outcome)
    basis = Basis(validity_scope="caller_responses_delegation")
    assert result_of(log.end(22000, end), basis=basis).validity.reason == reason


def usage(log: Log, response_id: str, **tokens: Json) -> Log:
    return log.add(15000, Side.ASSISTANT, "backend.usage", response_id=response_id, **tokens)


def test_backend_tokens_are_summed_once_for_each_response() -> None:
    log = cut(booking_call())
    tokens: dict[str, Json] = {
        "input_tokens": 100,
        "cached_tokens": 10,
        "cache_write_tokens": 0,
        "output_tokens": 20,
        "reasoning_tokens": 5,
        "total_tokens": 120,
    }
    usage(usage(usage(log, "r1", **tokens), "r1", **tokens), "r2", **tokens)
    backend = result_of(log.end(22000)).metrics.consumption.backend
    assert backend.model_dump() == {
        "total_tokens": 240,
        "input": {
            "total_tokens": 200,
            "cached_tokens": 20,
            "cache_write_tokens": 0,
            "text_tokens": 200,
        },
        "output": {"total_tokens": 40, "text_tokens": 30, "reasoning_tokens": 10},
    }


def test_a_count_one_response_did_not_give_is_unknown_and_not_a_part_sum() -> None:
    log = usage(cut(booking_call()), "r1", total_tokens=5, output_tokens=2)
    usage(log, "r2", output_tokens=3)
    backend = result_of(log.end(22000)).metrics.consumption.backend
    assert backend.total_tokens is None
    assert (backend.output.total_tokens, backend.output.text_tokens) == (5, None)


def test_a_single_turn_scenario_is_graded_as_one() -> None:
    whole = booking().model_dump(mode="json", exclude={"simulation_parameters"})
    whole |= {"interaction": "single_turn"}
    whole["expected"] |= {"procedure": None, "golden_path": {"turns": 2}}
    scenario = type(booking()).model_validate(whole)
    result = result_of(booking_call(), scenario=scenario)
    contract = next(check for check in result.assessment.checks if check.id == "tool_contract")
    assert (contract.status, contract.required) == ("passed", True)
    assert result.observability.interaction.mode == "single_turn"

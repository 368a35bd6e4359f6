"""Every check passes, fails and abstains for its own reason."""

from __future__ import annotations

import pytest

from booking_call import BOOKED, SLOT, Log, booking, booking_call
from duplex.grading import Check, Evidence, grade
from duplex.scenario import Scenario
from duplex.values import Event, Side

IDS = [
    "conversation_completed",
    "assistant_responded",
    "application_state",
    "delegation_policy",
    "authorized_actions",
    "critical_procedure",
    "tool_contract",
    "verified_state_change",
    "grounded_assistant_response",
    "semantic_outcome",
    "semantic_requirements",
]


def changed(**expected: object) -> Scenario:
    """The booking with other expectations."""
    whole = booking().model_dump(mode="json")
    whole["expected"] |= expected
    return Scenario.model_validate(whole)


def single(**expected: object) -> Scenario:
    """The booking as one request and one answer."""
    whole = booking().model_dump(mode="json", exclude={"simulation_parameters"})
    whole["interaction"] = "single_turn"
    whole["expected"] |= {"procedure": None, "golden_path": {"turns": 2}} | expected
    return Scenario.model_validate(whole)


def checked(scenario: Scenario, events: tuple[Event, ...]) -> dict[str, Check]:
    return {check.id: check for check in grade(scenario, Evidence.from_events(events)).checks}


def status(check: Check) -> tuple[str, bool]:
    return check.status, check.required


def test_a_good_booking_passes_every_check_that_applies() -> None:
    graded = grade(booking(), Evidence.from_events(booking_call().events()))
    assert [check.id for check in graded.checks] == IDS
    assert [check.status for check in graded.checks] == [
        *["passed"] * 5,
        *["not_applicable"] * 2,
        *["passed"] * 2,
        *["not_assessed"] * 2,
    ]
    assert [check.required for check in graded.checks] == [
        check.status == "passed" for check in graded.checks
    ]
    assert graded.passed
    assert graded.procedure.failed_steps == ()


@pytest.mark.parametrize("reason", ["duration_limit", "user_stopped", "error"])
def test_a_call_that_was_cut_short_is_not_completed(reason: str) -> None:
    events = booking_call().without(lambda event: event.type == "call.ended")
    cut = Log()
    cut.end(22000, reason)
    checks = checked(booking(), (*events, cut.events()[-1]))
    assert status(checks["conversation_completed"]) == ("failed", True)
    assert reason in checks["conversation_completed"].reason


def test_an_assistant_of_words_without_voice_was_not_heard() -> None:
    mute = booking_call().without(
        lambda event: event.type == "segment" and event.side is Side.ASSISTANT
    )
    assert status(checked(booking(), mute)["assistant_responded"]) == ("failed", True)


def test_a_click_is_not_a_response() -> None:
    log = Log().add(3000, Side.ASSISTANT, "segment", start=48000, end=50400, detector="rms")
    assert checked(booking(), log.end(4000).events())["assistant_responded"].status == "failed"


def test_a_wrong_final_state_fails_and_shows_both() -> None:
    log = booking_call().state(21000, {**BOOKED, "party_size": "2"})
    check = checked(booking(), log.events())["application_state"]
    assert status(check) == ("failed", True)
    assert check.evidence == {
        "expected": BOOKED,
        "actual": {**BOOKED, "party_size": "2"},
    }


def test_no_expected_state_is_not_applicable() -> None:
    check = checked(changed(state={}), booking_call().events())["application_state"]
    assert status(check) == ("not_applicable", False)


@pytest.mark.parametrize(
    ("policy", "delegates", "expected"),
    [
        ("required", True, ("passed", True)),
        ("required", False, ("failed", True)),
        ("forbidden", True, ("failed", True)),
        ("forbidden", False, ("passed", True)),
        ("optional", True, ("not_applicable", False)),
    ],
)
def test_the_delegation_policy_is_kept_or_not(
    policy: str, delegates: bool, expected: tuple[str, bool]
) -> None:
    events = booking_call().without(
        lambda event: event.type.startswith("delegation.") and not delegates
    )
    assert status(checked(changed(delegation=policy), events)["delegation_policy"]) == expected


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_a_prohibited_call_fails_whatever_came_of_it(outcome: str) -> None:
    tools = {"prohibited": [{"name": "cancel_reservation", "arguments": {"id": 7}}]}
    log = booking_call().tool(14100, "c9", "cancel_reservation", {"id": 7, "why": "x"}, outcome)
    graded = grade(changed(tools=tools), Evidence.from_events(log.events()))
    assert graded.failed_checks == ("authorized_actions",)
    assert graded.counts.tool_accuracy == 0.0
    harmless = booking_call().tool(14100, "c9", "cancel_reservation", {"id": 8})
    assert checked(changed(tools=tools), harmless.events())["authorized_actions"].status == "passed"


def test_tools_are_a_contract_in_single_turn_scenarios_only() -> None:
    events = booking_call().events()
    assert status(checked(single(), events)["tool_contract"]) == ("passed", True)
    extra = booking_call().tool(16000, "c3", "check_availability", {**SLOT}).events()
    assert status(checked(single(), extra)["tool_contract"]) == ("failed", True)
    assert status(checked(booking(), extra)["tool_contract"]) == ("not_applicable", False)


def test_a_mistyped_argument_shows_the_strict_and_the_lenient_outcome() -> None:
    log = Log().state(0, {}).tool(1000, "c1", "f", {"n": "2"}).end(3000)
    tools = {"required": [{"name": "f", "arguments": {"n": 2}}]}
    check = checked(single(tools=tools), log.events())["tool_contract"]
    assert check.status == "failed"
    assert check.evidence == {
        "unmet": {"required[0] f": "n: type_mismatch(string,integer)"},
        "matched_leniently": 1,
    }


def test_a_change_of_state_needs_a_completed_tool_call() -> None:
    bare = booking_call().without(lambda event: event.type.startswith("tool."))
    assert status(checked(booking(), bare)["verified_state_change"]) == ("failed", True)
    still = booking_call().without(lambda event: event.type == "state" and event.at > 0)
    assert checked(booking(), still)["verified_state_change"].status == "not_applicable"


def test_the_assistant_must_speak_after_the_last_completed_tool_call() -> None:
    late = booking_call().tool(20500, "c3", "check_availability", {**SLOT}).events()
    check = checked(booking(), late)["grounded_assistant_response"]
    assert status(check) == ("failed", True)
    assert check.evidence["last_tool_ms"] == 20700
    failed = booking_call().tool(20500, "c3", "check_availability", {**SLOT}, "failed").events()
    assert checked(booking(), failed)["grounded_assistant_response"].status == "passed"


def test_speaking_at_the_very_end_of_a_tool_call_is_grounded() -> None:
    log = Log().state(0, {}).tool(1000, "c1", "f", {})
    log.say(Side.ASSISTANT, 1200, 2000, "Done.")
    checks = checked(booking(), log.end(3000).events())
    assert checks["grounded_assistant_response"].status == "passed"


def test_an_application_that_tells_nothing_is_not_blamed() -> None:
    silent = booking_call().without(
        lambda event: event.type.startswith(("tool.", "delegation.", "state"))
    )
    tools = {
        "required": [{"name": "create_reservation"}],
        "prohibited": [{"name": "cancel_reservation"}],
    }
    graded = grade(changed(tools=tools), Evidence.from_events(silent))
    unseen = {"application_state", "delegation_policy", "authorized_actions"}
    for check in graded.checks:
        if check.id in unseen:
            assert status(check) == ("not_assessed", False), check
    assert graded.passed


def test_the_rationale_names_every_required_failure() -> None:
    events = booking_call().without(lambda event: event.type.startswith("delegation."))
    graded = grade(booking(), Evidence.from_events(events[:-1]))
    assert graded.failed_checks == ("conversation_completed", "delegation_policy")
    assert "breaking off" in graded.rationale
    assert "0 times" in graded.rationale


@pytest.mark.parametrize(
    ("made", "accuracy"),
    [
        (["create_reservation"], 0.5),
        (["check_availability", "create_reservation"], 1.0),
        (["check_availability", "create_reservation", "create_reservation"], 0.6667),
        (["check_availability", "create_reservation", "cancel_reservation"], 0.0),
        ([], 0.0),
    ],
)
def test_tool_accuracy_is_pairs_over_the_larger_count(made: list[str], accuracy: float) -> None:
    required = [{"name": "check_availability"}, {"name": "create_reservation"}]
    tools = {"required": required, "prohibited": [{"name": "cancel_reservation"}]}
    log = Log().state(0, {})
    for index, name in enumerate(made):
        log.tool(1000 + index * 300, f"c{index}", name, {})
    evidence = Evidence.from_events(log.end(9000).events())
    assert grade(changed(tools=tools), evidence).counts.tool_accuracy == accuracy


def test_nothing_expected_and_nothing_done_is_accurate() -> None:
    evidence = Evidence.from_events(Log().state(0, {}).end(9000).events())
    assert grade(changed(tools={}), evidence).counts.tool_accuracy == 1.0


def test_a_check_that_is_not_required_fails_nothing() -> None:
    check = Check(id="x", status="failed", required=False, reason="r")
    assert not check.fails

"""A procedure is a partial order over what was said, called and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from booking_call import BOOKED, SLOT, Log, booking, booking_call
from duplex.grading import Evidence
from duplex.grading.procedure import ProcedureGrade, grade_procedure
from duplex.grading.wording import asks_for, mentions, number_words, refuses
from duplex.scenario import Procedure
from duplex.values import Json, Side


def graded(steps: Sequence[Mapping[str, object]], log: Log) -> ProcedureGrade:
    procedure = Procedure.model_validate({"id": "p", "steps": steps})
    return grade_procedure(procedure, Evidence.from_events(log.events()))


def tool(name: str, call: str, *after: str, **more: object) -> dict[str, object]:
    return {"id": name, "kind": "tool", "tool": call, "after": list(after), **more}


def outcome(grade: ProcedureGrade) -> dict[str, str]:
    return {step.step.id: step.status for step in grade.steps}


def test_a_good_booking_follows_its_procedure() -> None:
    procedure = booking().expected.procedure
    grade = grade_procedure(procedure, Evidence.from_events(booking_call().events()))
    assert {step.step.id: step.at_ms for step in grade.steps} == {
        "ask_name": 6000,
        "ask_time": 11000,
        "availability": 14400,
        "reservation": 14800,
        "verified_state": None,
        "confirmation": 15500,
    }
    assert grade.failed_steps == ()


def test_a_step_that_was_left_out_fails_all_that_wait_for_it() -> None:
    log = Log().state(0, {}).tool(1000, "c2", "create_reservation", {})
    grade = graded(
        [
            tool("availability", "check_availability"),
            tool("reservation", "create_reservation", "availability"),
            {"id": "free", "kind": "tool", "tool": "create_reservation"},
        ],
        log,
    )
    assert grade.failed_steps == ("availability", "reservation")
    assert [step.reason for step in grade.steps] == [
        "not observed",
        "not after availability, not done",
        "observed",
    ]


def test_steps_without_an_order_may_come_in_any() -> None:
    log = Log().tool(1000, "c1", "b", {}).tool(2000, "c2", "a", {}).tool(3000, "c3", "c", {})
    steps = [tool("a", "a"), tool("b", "b"), tool("c", "c", "a", "b")]
    assert graded(steps, log).failed_steps == ()
    backwards = [tool("b", "b", "a"), tool("a", "a")]
    grade = graded(backwards, log)
    assert outcome(grade) == {"b": "failed", "a": "passed"}
    assert grade.steps[0].reason == "came before a"


def test_a_later_repetition_can_be_the_step_that_counts() -> None:
    log = Log().tool(1000, "c1", "b", {}).tool(2000, "c2", "a", {}).tool(3000, "c3", "b", {})
    assert graded([tool("a", "a"), tool("b", "b", "a")], log).steps[1].at_ms == 3200


def test_one_call_is_never_two_steps_even_in_one_millisecond() -> None:
    once = Log().tool(1000, "c1", "a", {})
    steps = [tool("first", "a"), tool("second", "a", "first")]
    assert graded(steps, once).failed_steps == ("second",)
    twice = Log().tool(1000, "c1", "a", {}).tool(1000, "c2", "a", {})
    assert graded(steps, twice).failed_steps == ()


def test_an_optional_step_that_did_not_happen_holds_nothing_up() -> None:
    log = Log().tool(1000, "c1", "b", {})
    grade = graded([tool("a", "a", required=False), tool("b", "b", "a")], log)
    assert outcome(grade) == {"a": "not_applicable", "b": "passed"}


CHAIN = [
    tool("a", "a", critical=True),
    tool("b", "b", "a"),
    tool("c", "c", "b", critical=True),
]


def test_critical_steps_do_not_wait_for_one_that_is_not_critical() -> None:
    log = Log().tool(1000, "c1", "a", {}).tool(2000, "c2", "c", {})
    grade = graded(CHAIN, log)
    assert grade.critical_steps == ("a", "c")
    assert grade.failed_critical == ()
    assert grade.failed_steps == ("b", "c")


def test_the_order_of_critical_steps_holds_through_what_is_not_critical() -> None:
    log = Log().tool(1000, "c1", "c", {}).tool(2000, "c2", "a", {}).tool(3000, "c3", "b", {})
    assert graded(CHAIN, log).failed_critical == ("c",)
    ordered = [tool("a", "a", critical=True), tool("c", "c", "a", critical=True)]
    assert graded(ordered, log).failed_critical == ("c",)


def test_an_order_holds_through_an_optional_step_that_did_not_happen() -> None:
    steps = [tool("a", "a"), tool("b", "b", "a", required=False), tool("c", "c", "b")]
    late = Log().tool(1000, "c1", "c", {}).tool(2000, "c2", "a", {})
    grade = graded(steps, late)
    assert grade.failed_steps == ("c",)
    assert grade.steps[2].reason == "came before a"
    right = Log().tool(1000, "c1", "a", {}).tool(2000, "c2", "c", {})
    assert graded(steps, right).failed_steps == ()
    missing = Log().tool(1000, "c1", "c", {})
    assert graded(steps, missing).steps[2].reason == "not after a, not done"


def test_one_call_is_never_two_steps_that_have_no_order() -> None:
    steps = [tool("first", "a"), tool("second", "a")]
    grade = graded(steps, Log().tool(1000, "c1", "a", {}))
    assert outcome(grade) == {"first": "passed", "second": "failed"}
    assert grade.steps[1].reason == "its tool call is another step's"
    twice = Log().tool(1000, "c1", "a", {}).tool(2000, "c2", "a", {})
    assert graded(steps, twice).failed_steps == ()


@pytest.mark.parametrize("backwards", [False, True])
def test_a_loose_step_leaves_a_strict_one_its_only_call(backwards: bool) -> None:
    loose, strict = tool("loose", "a"), tool("strict", "a", arguments={"x": 1})
    steps = [strict, loose] if backwards else [loose, strict]
    log = Log().tool(1000, "c1", "a", {"x": 1}).tool(2000, "c2", "a", {"x": 2})
    assert graded(steps, log).failed_steps == ()


def test_a_question_counts_only_before_anything_was_changed() -> None:
    log = Log().state(0, {}).tool(1000, "c1", "create_reservation", {}).state(1100, BOOKED)
    log.say(Side.ASSISTANT, 3000, 4000, "And under what name?")
    step = {"id": "ask", "kind": "clarification", "arguments": {"field": "guest_name"}}
    assert graded([step], log).failed_steps == ("ask",)


def test_a_correction_must_be_said_and_used() -> None:
    step = {
        "id": "fix",
        "kind": "correction",
        "arguments": {"field": "party_size", "value": 5, "superseded_value": 3},
    }

    def call(size: int, words: str) -> ProcedureGrade:
        log = Log().state(0, {})
        log.say(Side.CALLER, 1000, 2000, words, "INTERRUPT")
        log.tool(3000, "c1", "create_reservation", {"party_size": size})
        return graded([step], log.state(3100, {"party_size": size}))

    assert call(5, "Sorry, make that five people.").failed_steps == ()
    assert call(3, "Sorry, make that five people.").failed_steps == ("fix",)
    assert call(5, "For three, please.").failed_steps == ("fix",)


@pytest.mark.parametrize(("listed", "wanted", "passes"), [
    (["R-1"], True, True), (["R-1"], False, False), ([], True, False), ([], False, True),
])  # fmt: skip
def test_authorization_is_read_from_the_initial_state(
    listed: list[Json], wanted: bool, passes: bool
) -> None:
    log = Log().state(0, {"authorized_reservation_ids": listed})
    arguments = {"reservation_id": "R-1", "authorized": wanted}
    step = {"id": "may", "kind": "authorization", "arguments": arguments}
    assert (graded([step], log).failed_steps == ()) is passes


def test_a_refusal_needs_its_words_and_no_refused_call() -> None:
    step = {
        "id": "no",
        "kind": "refusal",
        "arguments": {"tool": "cancel", "reservation_id": "R-2", "minimum_count": 2},
    }
    log = Log().say(Side.ASSISTANT, 1000, 2000, "I'm afraid I can't do that.")
    assert graded([step], log).failed_steps == ("no",)
    log.say(Side.ASSISTANT, 3000, 4000, "I am not authorized to cancel it.")
    assert graded([step], log).failed_steps == ()
    log.tool(5000, "c1", "cancel", {"reservation_id": "R-2"})
    assert graded([step], log).failed_steps == ("no",)


def test_a_confirmation_needs_a_completed_call_before_it() -> None:
    step = {"id": "told", "kind": "grounded_confirmation"}
    log = Log().tool(1000, "c1", "f", {**SLOT}, "failed")
    log.say(Side.ASSISTANT, 2000, 3000, "It is booked.")
    assert graded([step], log).failed_steps == ("told",)


@pytest.mark.parametrize(
    ("text", "field", "asked"),
    [
        ("Under what name?", "guest_name", True),
        ("May I have your name, please.", "guest_name", True),
        ("The name is fine.", "guest_name", False),
        ("What time would you like?", "time", True),
        ("How many people?", "party_size", True),
        ("How many people?", "time", False),
        ("What is your favourite colour?", "favourite_colour", True),
        ("Sometimes?", "time", False),
    ],
)
def test_questions_are_told_from_statements(text: str, field: str, asked: bool) -> None:
    assert asks_for(text, field) is asked


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("On August seventh.", "2026-08-07", True),
        ("The 7th of August, please", "2026-08-07", True),
        ("On August seventeenth.", "2026-08-07", False),
        ("August twenty-first", "2026-08-21", True),
        ("At seven p.m.", "19:00", True),
        ("At 7 PM, please", "19:00", True),
        ("7pm would do", "19:00", True),
        ("At seven a.m.", "19:00", False),
        ("half past eight", "20:30", True),
        ("Eight thirty p.m.", "20:30", True),
        ("For twenty three people", 23, True),
        ("For two", 2, True),
        ("For twenty", 2, False),
        ("My id is R-100.", "R-100", True),
        ("anything", True, False),
    ],
)
def test_values_are_recognised_as_people_say_them(text: str, value: Json, said: bool) -> None:
    assert mentions(text, value) is said


def test_refusals_and_numbers_are_recognised() -> None:
    assert refuses("I’m sorry, that isn't something I can't do")
    assert not refuses("I can do that.")
    assert [number_words(n) for n in (0, 13, 20, 45)] == [
        "zero",
        "thirteen",
        "twenty",
        "forty five",
    ]

"""A caller that misstates what it knows spoils a call; an agent that mishears does not get away."""

from __future__ import annotations

import pytest

from booking_call import BOOKED, SLOT, Log, booking
from duplex.grading import Evidence
from duplex.results.caller_facts import REASON, contradicted
from duplex.results.run import exit_code
from duplex.scenario import Scenario
from duplex.values import Json, Side
from results_support import result_of, run_of

CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT


def call(
    *lines: str, asked: str = "And at what time?", booked: dict[str, Json] | None = None
) -> Log:
    """A booking in which the caller says ``lines`` and the tools get ``booked``."""
    given = SLOT | (booked or {})
    log = Log().state(0, {})
    log.say(ASSISTANT, 500, 2_000, "Good day, how can I help?")
    at = 2_600
    for line in lines:
        log.say(CALLER, at, at + 1_500, line, "SPEAK")
        log.say(ASSISTANT, at + 2_000, at + 3_000, asked)
        at += 3_500
    log.add(at, ASSISTANT, "delegation.created", delegation_id="d1", target="client")
    log.tool(at + 100, "c1", "check_availability", dict(given))
    log.tool(at + 500, "c2", "create_reservation", {**given, "guest_name": "Maya"})
    log.state(at + 800, {**BOOKED, **(booked or {})})
    log.add(at + 900, ASSISTANT, "delegation.closed", delegation_id="d1", ok=True)
    log.say(ASSISTANT, at + 1_000, at + 2_500, "Your table is booked.")
    log.say(CALLER, at + 3_000, at + 4_000, "Thank you, goodbye.", "STOP")
    return log.end(at + 6_500)


DATE = "A table on August seventh, under Maya, for two people."


def test_a_call_that_the_caller_led_astray_is_not_the_agents() -> None:
    result = result_of(call(DATE, "At eight p.m., please.", booked={"time": "20:00"}))
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "caller_simulation"
    assert "8 p.m. for time and knows 7 p.m." in result.error.message
    assert (result.validity.status, result.validity.reason) == ("invalid", REASON)
    assert (result.duplex["outcome"], result.duplex["whose_fault"]) == ("invalidated", "simulator")
    assert result.assessment.passed is None
    assert exit_code(run_of(result)) == 2


@pytest.mark.parametrize(
    ("lines", "booked", "asked"),
    [
        # The agent misheard: the caller said the right thing.
        ((DATE, "At seven p.m., please."), {"time": "20:00"}, "What time?"),
        # It was put right, and the agent kept to what was wrong.
        ((DATE, "At eight p.m.", "Sorry, at seven p.m."), {"time": "20:00"}, "What time?"),
        # The agent brought the other value up.
        ((DATE, "Yes, eight p.m. works."), {"time": "20:00"}, "Would 8 p.m. work?"),
        # The caller misspoke, and that is not what was done.
        ((DATE, "At eight p.m., please."), {"time": "21:00"}, "What time?"),
        # It never said any.
        ((DATE, "In the evening."), {"time": "20:00"}, "What time?"),
        # A number that may belong to another fact.
        (("A table on August seventh, under Maya, for seven.",), {"party_size": 7}, "What time?"),
        # Two values are a choice.
        ((DATE, "At eight p.m. or nine p.m."), {"time": "20:00"}, "What time?"),
    ],
)
def test_everything_less_certain_stays_the_agents(
    lines: tuple[str, ...], booked: dict[str, Json], asked: str
) -> None:
    result = result_of(call(*lines, booked=booked, asked=asked))
    assert (result.status, result.duplex["whose_fault"]) == ("failed", "agent")


def test_a_call_that_passed_is_never_taken_back() -> None:
    assert result_of(call(DATE, "At eight p.m., please.")).status == "passed"


@pytest.mark.parametrize("name", ["alternative_time", "original_time", "latest_time"])
def test_a_fact_that_has_other_values_proves_nothing(name: str) -> None:
    document = booking().model_dump(mode="json", exclude={"duplex"})
    document["simulation_parameters"]["known_facts"][name] = "20:00"
    scenario = Scenario.model_validate(document)
    log = call(DATE, "At eight p.m., please.", booked={"time": "20:00"})
    assert contradicted(booking(), Evidence.from_events(log.events())) is not None
    assert contradicted(scenario, Evidence.from_events(log.events())) is None

"""Diagnostic terms are text, never patterns."""

from __future__ import annotations

import pytest

from booking_call import Log, booking, booking_call
from duplex.grading import Evidence, grade
from duplex.grading.terms import TermFound, find_terms
from duplex.results import CallFigures, build_result
from duplex.results.observed import Basis
from duplex.scenario import Scenario
from duplex.values import Side


def said(*lines: str) -> Evidence:
    log = Log()
    for index, line in enumerate(lines):
        log.say(Side.ASSISTANT, 1_000 * index, 1_000 * index + 900, line)
    return Evidence.from_events(log.end(60_000).events())


@pytest.mark.parametrize(
    ("term", "line", "found"),
    [
        ("seven p.m.", "At Seven  P.M., then.", "seven p.m."),
        ("7.30", "At 7:30 or 7530.", None),
        ("7.30", "At 7.30.", "7.30"),
        ("b..ked", "It is booked.", None),
        ("[a-z]+", "words", None),
        ("[a-z]+", "the pattern [a-z]+ itself", "[a-z]+"),
        ("(", "a ( alone", "("),
        ("booked|reserved", "It is reserved.", "reserved"),
        ("booked | reserved", "It is reserved.", "reserved"),
        ("booked|", "Nothing of it.", None),
        ("book", "It is booked.", "book"),
        ("ﬁve", "FIVE people", "ﬁve"),
        ("$5", "That is $5.", "$5"),
    ],
)
def test_a_term_is_found_where_its_characters_stand(
    term: str, line: str, found: str | None
) -> None:
    (one,) = find_terms([term], said(line))
    assert one.found == found


def test_the_first_line_that_says_it_counts_and_the_callers_never() -> None:
    log = Log().say(Side.CALLER, 0, 900, "Is it booked?").say(Side.ASSISTANT, 2_000, 3_000, "Yes.")
    log.say(Side.ASSISTANT, 5_000, 6_000, "It is booked.").say(
        Side.ASSISTANT, 8_000, 9_000, "Booked."
    )
    found = find_terms(["booked", "never"], Evidence.from_events(log.end(9_500).events()))
    assert found == (
        TermFound(term="booked", found="booked", at_ms=5_000),
        TermFound(term="never", found=None, at_ms=None),
    )


def test_terms_are_diagnosis_and_decide_nothing() -> None:
    whole = booking().model_dump(mode="json")
    whole["expected"]["diagnostic_terms"] = ["never said by anybody", "booked|reserved"]
    scenario = Scenario.model_validate(whole)
    evidence = Evidence.from_events(booking_call().events())
    assert grade(scenario, evidence).passed
    result = build_result(scenario, evidence, CallFigures(), basis=Basis())
    assert result.status == "passed"
    assert result.duplex["terms"] == [
        {"term": "never said by anybody", "found": None, "at_ms": None},
        {"term": "booked|reserved", "found": "booked", "at_ms": 15_500},
    ]

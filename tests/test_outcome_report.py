"""A call's outcome in a report: whose fault, by whose word, and what was seen of the agenda."""

from __future__ import annotations

from booking_call import booking, booking_call
from duplex.grading import Evidence
from duplex.report.run_report import as_markdown
from duplex.results import CallFigures
from duplex.results.agenda import agenda_seen
from duplex.values import Json
from results_support import audio, result_of, run_of
from test_whose_fault import TABLE


def test_a_report_names_the_culprit() -> None:
    for name in ("this machine was late", "caller's session dropped", "said nothing at all"):
        row = TABLE[name]
        told = as_markdown(run_of(result_of(row.log, basis=row.basis)))
        assert f"({row.whose}'s fault)" in told, name


def test_a_report_tells_how_the_call_ended_and_what_the_caller_did() -> None:
    log = booking_call()
    seen = agenda_seen(booking(), Evidence.from_events(log.events()), follows=True)
    agenda: list[Json] = [one.as_json() for one in seen or ()]
    completion: dict[str, Json] = {"decided_by": "observer", "observer": {"asked": 3}}
    figures = CallFigures(audio=audio(log), extra={"agenda": agenda, "completion": completion})
    told = as_markdown(run_of(result_of(log, figures=figures)))
    assert "the model that looked on said that it was over; a model looked on, 3 times" in told
    assert "| name\\_and\\_party | answer | completed | 2 | reported |" in told


def test_a_result_without_them_is_reported_all_the_same() -> None:
    told = as_markdown(run_of(result_of(booking_call())))
    assert "It ended because" not in told

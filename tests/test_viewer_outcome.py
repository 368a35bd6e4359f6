"""Whose fault a call was, who ended it and how far its agenda came, on the page."""

from __future__ import annotations

from pathlib import Path

from duplex.results import schema
from duplex.values import Json
from duplex.viewer import build_call
from duplex.viewer.outcome_rows import agenda, agenda_note, outcome_rows
from viewer_runs import make_run

OURS: dict[str, Json] = {
    "whose_fault": "agent",
    "completion": {"decided_by": "caller"},
    "agenda": [
        {"id": "say_time", "action": "answer", "required": True, "status": "completed",
         "seen_by": "facts", "turn": 2, "at_ms": 4100, "facts_missing": []},
        {"id": "thank", "action": "say", "required": False, "status": "pending",
         "seen_by": "nothing", "in_order": False, "facts_missing": ["name <b>"]},
    ],
}  # fmt: skip


def test_fault_and_end_are_rows_with_their_meaning() -> None:
    fault, ended = outcome_rows(OURS)
    assert (fault.name, fault.value) == ("whose fault", "agent")
    assert (ended.name, ended.value) == ("ended by", "caller")
    assert "the caller said that it was finished" in ended.meaning


def test_every_item_of_the_agenda_leads_to_where_it_was_seen() -> None:
    first, second = agenda(OURS)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["name"], first["status"]) == ("1. say time", "completed")
    assert first["places"] == [{"name": "seen 0:04.10", "start": 4100.0, "end": 4500.0}]
    assert first["reason"] == "in caller turn 2; seen by facts"
    assert second["places"] == []
    assert second["required"] is False
    assert second["reason"] == "out of order; seen by nothing; never said: name <b>"
    assert agenda_note(OURS) == "the caller's, 1 of 2 carried out"


def test_what_says_none_of_it_has_neither() -> None:
    odd: list[dict[str, Json]] = [
        {},
        {"agenda": 3, "whose_fault": None, "completion": []},
        {"agenda": [1, None]},
    ]
    for ours in odd:
        assert outcome_rows(ours) == []
        assert agenda(ours) == []


def test_a_page_of_one_call_holds_that_call_alone(tmp_path: Path) -> None:
    run: schema.Run = make_run(tmp_path / "run")
    result = run.results[1].model_copy(update={"duplex": {**run.results[1].duplex, **OURS}})
    run = run.model_copy(update={"results": [run.results[0], result, *run.results[2:]]})
    page = "".join(build_call(tmp_path / "run", run, 1))
    assert page.count('id="call-') == page.count('id="sound-') == 1
    assert '"agenda_note":"the caller\'s, 1 of 2 carried out"' in page
    assert "name <b>" not in page

"""What a judge said stands on the page: decisions, quotes that lead to their turn, failures."""

from __future__ import annotations

import json
from pathlib import Path

from booking_call import booking
from duplex.grading import Evidence
from duplex.grading.judging import Judgement, case_of, decide, failed, read_vote
from duplex.recording import Recording
from duplex.results import CallFigures, build_result
from duplex.results.observed import Basis
from duplex.results.stored import load_results
from duplex.values import Json
from duplex.viewer import build
from duplex.viewer.call import call_page
from duplex.viewer.judge_rows import judge_note, judge_rows
from judge_cases import asked
from judge_fakes import part, praise, shown
from viewer_runs import BOOKING, add_call, write_results

HOSTILE = "<img src=x onerror=alert(1)>"


def page(folder: Path, judgement: Judgement | None) -> dict[str, Json]:
    """The page of a booking with what a judge made of it."""
    evidence = Evidence.from_recording(Recording.load(folder, "booking"))
    result = build_result(
        booking(),
        evidence,
        CallFigures(timing={"turn_taking_score": 0.8}, judgement=judgement),
        basis=Basis(),
        conversation_audio="audio/booking/conversation.wav",
    )
    write_results(folder, [result])
    return call_page(folder, load_results(folder / "results.json"), 0).view


def folder_of(tmp_path: Path) -> tuple[Path, Judgement]:
    folder = tmp_path / "run"
    folder.mkdir()
    add_call(folder, "booking", BOOKING)
    case = case_of(booking(), Evidence.from_recording(Recording.load(folder, "booking")))
    answer = praise(*shown(asked(case)))
    part(answer, "dimensions", "context_fidelity").update(reasoning=HOSTILE)
    part(answer, "dimensions", "clarification_quality").update(score=None)
    return folder, decide("judge-1", case, [read_vote(json.dumps(answer), case)])


def panel(view: dict[str, Json], title: str) -> dict[str, Json] | None:
    panels = view["panels"]
    assert isinstance(panels, list)
    found = [one for one in panels if isinstance(one, dict) and one["title"] == title]
    return found[0] if found else None


def test_a_panel_shows_every_decision_with_its_quotes(tmp_path: Path) -> None:
    folder, judgement = folder_of(tmp_path)
    shown = panel(page(folder, judgement), "Judge")
    assert shown is not None
    assert shown["note"] == "judge-1 · 1 of 1 answers"
    rows = shown["rows"]
    assert isinstance(rows, list)
    named = {str(row["name"]): row for row in rows if isinstance(row, dict)}
    assert named["outcome"]["value"] == "pass"
    assert named["overall score"]["value"] == "0.93"
    assert named["information loss"]["value"] == "absent"
    assert named["clarification quality"]["known"] is False
    assert named["went well"]["value"] == "It confirms what was booked."
    details = named["context fidelity"]["details"]
    assert isinstance(details, list)
    assert details[0] == HOSTILE
    assert "Your table is booked" in str(details[1])


def test_a_semantic_check_leads_to_the_turns_it_quotes(tmp_path: Path) -> None:
    folder, judgement = folder_of(tmp_path)
    checks = page(folder, judgement)["checks"]
    assert isinstance(checks, list)
    outcome = next(
        one for one in checks if isinstance(one, dict) and one["id"] == "semantic_outcome"
    )
    places = outcome["places"]
    assert isinstance(places, list)
    quoted = judgement.outcome.evidence[0]
    assert [one["start"] for one in places if isinstance(one, dict)] == [quoted.start_ms]
    assert str(places[0]).startswith("{'name': 'turn ")


def test_a_judge_that_failed_says_so_and_one_not_asked_has_no_panel(tmp_path: Path) -> None:
    folder, judgement = folder_of(tmp_path)
    case = case_of(booking(), Evidence.from_recording(Recording.load(folder, "booking")))
    shown = panel(page(folder, failed("m", case, "it timed out")), "Judge")
    assert shown is not None
    assert "not known: it timed out" in str(shown["rows"])
    assert panel(page(folder, None), "Judge") is None
    page(folder, judgement)
    written = build(folder).read_text(encoding="utf-8")
    assert HOSTILE not in written


def test_a_damaged_block_is_shown_as_far_as_it_can_be_read() -> None:
    assert judge_rows(None, None) == judge_rows([], {}) == judge_rows("x", 3) == []
    rows = judge_rows({"outcome": 3, "flags": {"a": None}, "dimensions": [], "going_well": [1]}, {})
    assert [row.known for row in rows] == [False] * 5
    assert judge_note({"model": 3}) == "a model"

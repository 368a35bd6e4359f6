"""Evidence is what the event log holds, in milliseconds, and nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from booking_call import Log, booking, booking_call
from duplex.grading import Evidence, grade
from duplex.grading.task import count_turns
from duplex.recording import Recording
from duplex.values import Action, Side


def read(log: Log) -> Evidence:
    return Evidence.from_events(log.events())


def test_lines_of_a_side_that_labels_them_are_its_labels() -> None:
    log = Log().say(Side.CALLER, 1000, 2000, "Hello.", "OPENING")
    log.add(2000, Side.CALLER, "transcript", direction="said", text="hello", start=1, end=2)
    line = read(log).lines(Side.CALLER)
    assert [(one.text, one.start_ms, one.end_ms, one.action) for one in line] == [
        ("Hello.", 1000, 2000, Action.OPENING)
    ]


def test_lines_of_a_side_that_labels_none_are_its_transcript_joined_across_short_gaps() -> None:
    log = Log()
    for start_ms, text in ((1000, "One "), (1600, "two."), (2500, "Three.")):
        log.add(
            start_ms, Side.ASSISTANT, "transcript",
            direction="said", text=text, start=start_ms * 24, end=(start_ms + 400) * 24,
        )  # fmt: skip
    log.add(3000, Side.ASSISTANT, "transcript", direction="heard", text="no", start=1, end=2)
    lines = read(log).lines(Side.ASSISTANT)
    assert [(line.text, line.start_ms, line.end_ms) for line in lines] == [
        ("One two.", 1000, 2000),
        ("Three.", 2500, 2900),
    ]


def test_positions_are_read_at_the_rate_of_the_call() -> None:
    log = Log(rate_hz=8000).add(1000, Side.ASSISTANT, "state", state={})
    assert read(log).states[0].at_ms == 3000


def test_voice_is_unknown_where_no_detector_ran() -> None:
    words = Log().add(1000, Side.CALLER, "utterance", text="Hi.", start=0, end=24000)
    assert read(words).voiced_ms is None
    assert read(words).was_heard(Side.CALLER)
    assert not read(words).was_heard(Side.ASSISTANT)
    measured = words.add(1000, None, "floor", holder="none")
    assert read(measured).voiced_ms == {Side.CALLER: 0, Side.ASSISTANT: 0}
    assert not read(measured).was_heard(Side.CALLER)


@pytest.mark.parametrize(("voiced_ms", "heard"), [(149, False), (150, True)])
def test_speech_begins_at_150_ms_of_voice(voiced_ms: int, heard: bool) -> None:
    log = Log().say(Side.CALLER, 0, 100, "x").say(Side.CALLER, 500, 400 + voiced_ms, "y")
    assert read(log).was_heard(Side.CALLER) is heard


def test_a_tool_call_reported_twice_is_one_and_one_without_an_end_has_failed() -> None:
    log = Log().tool(1000, "c1", "f", {"a": 1}).tool(2000, "c1", "g", {"a": 2})
    log.add(3000, Side.ASSISTANT, "tool.started", call_id="c2", name="h", arguments={})
    first, second = read(log).tools
    assert (first.name, first.arguments, first.ended_ms) == ("f", {"a": 1}, 1200)
    assert (second.status, second.ended_ms) == ("failed", None)


def test_delegations_are_counted_once_an_id_for_each_side() -> None:
    log = Log()
    for side in (Side.ASSISTANT, Side.ASSISTANT, Side.CALLER):
        log.add(1000, side, "delegation.created", delegation_id="d1", target="client")
    assert len(read(log).delegations(Side.ASSISTANT)) == 1
    assert len(read(log).delegations(Side.CALLER)) == 1


def test_a_log_without_an_end_has_no_termination_reason() -> None:
    evidence = Evidence.from_events(booking_call().events()[:-1])
    assert evidence.termination_reason is None
    assert evidence.duration_ms == 22000
    assert Evidence.from_events([]).duration_ms == 0


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        ("", 0),
        ("C", 1),
        ("CA", 2),
        ("CC", 2),
        ("CCA", 3),
        ("CACAC", 5),
        ("ACAS", 3),
        ("CABA", 3),
        ("CBA", 2),
        ("CASA", 4),
    ],
)
def test_turns_are_counted_by_the_contract(lines: str, turns: int) -> None:
    """C speaks, B backchannels and S closes for the caller; A is the assistant."""
    actions = {"C": "SPEAK", "B": "BACKCHANNEL", "S": "STOP"}
    log = Log()
    for index, letter in enumerate(lines):
        side = Side.ASSISTANT if letter == "A" else Side.CALLER
        log.say(side, index * 1000, index * 1000 + 800, "x", actions.get(letter))
    assert count_turns(read(log)) == turns


def test_a_stored_call_grades_as_the_live_one_did(tmp_path: Path) -> None:
    events = booking_call().events()
    (tmp_path / "events").mkdir()
    lines = [
        json.dumps(
            {
                "seq": event.seq,
                "at": event.at,
                "received_at": None,
                "side": None if event.side is None else event.side.label,
                "type": event.type,
                **event.fields,
            }
        )
        for event in events
    ]
    (tmp_path / "events" / "call.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "results.json").write_text("{}")
    stored = Evidence.from_recording(Recording.load(tmp_path, "call"))
    live = Evidence.from_events(events)
    assert stored == live
    assert grade(booking(), stored) == grade(booking(), live)

"""What is seen of a caller's agenda, by its report or by its words and how they fell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import duplex
from booking_call import Log, booking, booking_call
from duplex.grading import Evidence
from duplex.local.seams import Progress
from duplex.results import Basis
from duplex.results.agenda import ItemSeen, agenda_seen
from duplex.scenario import Scenario
from duplex.values import Action, Json, Side
from fake_engines import Parrot, speaking
from results_support import result_of
from test_brains import BOOKED, caller, heard, only, said

CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT


def told_nothing(log: Log) -> Log:
    """The same call by a caller that reports nothing and tells no intent."""
    quiet = Log()
    for event in log.events()[1:]:
        if event.type in ("agenda", "caller.finished"):
            continue
        fields: dict[str, Json] = dict(event.fields)
        if event.type == "utterance":
            fields["action"] = None
        quiet.add(event.at // 24, event.side, event.type, **fields)
    return quiet


def seen(log: Log, scenario: Scenario | None = None, *, follows: bool = False) -> list[ItemSeen]:
    found = agenda_seen(scenario or booking(), Evidence.from_events(log.events()), follows=follows)
    assert found is not None
    return list(found)


def about(items: list[ItemSeen]) -> dict[str, tuple[str, str, int | None]]:
    return {one.item.id: (one.status, one.basis, one.turn) for one in items}


def with_agenda(*items: dict[str, Json], facts: dict[str, Json] | None = None) -> Scenario:
    document = booking().model_dump(mode="json", exclude={"duplex"})
    whole: dict[str, Json] = {
        "commitment": "Do it.",
        "trigger_condition": "The host asks.",
        "completion_condition": "It was done.",
        "action": "answer",
    }
    document["simulation_parameters"]["agenda"] = [whole | item for item in items]
    if facts is not None:
        document["simulation_parameters"]["known_facts"] = facts
    return Scenario.model_validate(document)


# -- the booking, by each kind of caller ------------------------------------------


def test_a_caller_that_follows_its_agenda_is_believed_and_looked_up() -> None:
    items = seen(booking_call(), follows=True)
    assert about(items) == {
        "name_and_party": ("completed", "reported", 2),
        "time": ("completed", "reported", 3),
        "goodbye": ("completed", "reported", 4),
    }
    assert items[0].said == ("guest_name", "party_size")
    assert items[0].as_json()["facts_missing"] == []


def test_the_same_is_seen_of_a_caller_that_tells_nothing() -> None:
    """The published reference reports none of it on a call that passed."""
    log = told_nothing(booking_call())
    assert about(seen(log)) == {
        "name_and_party": ("completed", "facts", 2),
        "time": ("completed", "facts", 3),
        "goodbye": ("completed", "action", 4),
    }
    agenda = result_of(log, basis=Basis(caller_tells_agenda=False)).observability.agenda
    assert agenda.model_dump() == {
        "total": 3,
        "completed": ["name_and_party", "time", "goodbye"],
        "skipped": [],
        "bypassed": [],
        "pending_required": [],
    }


def test_a_report_without_words_to_match_shows_what_is_missing() -> None:
    log = Log()
    for event in booking_call().events()[1:]:
        fields = dict(event.fields)
        if fields.get("text") == "For two, under Maya.":
            fields["text"] = "Just a table, please."
        log.add(event.at // 24, event.side, event.type, **fields)
    first = seen(log, follows=True)[0]
    assert (first.status, first.missing) == ("completed", ("guest_name", "party_size"))


def test_what_was_never_said_is_pending_if_it_was_required() -> None:
    log = told_nothing(booking_call())
    kept = Log()
    for event in log.events()[1:]:
        if event.fields.get("text") != "At seven p.m.":
            kept.add(event.at // 24, event.side, event.type, **dict(event.fields))
    agenda = result_of(kept, basis=Basis(caller_tells_agenda=False)).observability.agenda
    assert agenda.pending_required == ["time"]
    assert agenda.completed == ["name_and_party", "goodbye"]


def test_a_fact_in_any_spoken_form_counts_and_a_part_of_it_does_not() -> None:
    scenario = with_agenda(
        {"id": "when", "facts": ["date", "time"]},
        {"id": "who", "facts": ["guest_name", "phone"]},
        facts={
            "date": "2026-08-07", "time": "19:30", "guest_name": "Sophia Reyes",
            "phone": "555-014-2233",
        },
    )  # fmt: skip
    log = Log()
    log.say(CALLER, 1000, 2000, "August the seventh, please.")
    log.say(ASSISTANT, 2500, 3000, "At what time?")
    log.say(CALLER, 3500, 4500, "Half past seven in the evening, so 7:30 pm.")
    log.say(CALLER, 5000, 6000, "My name is Sofia Reyes.")
    items = seen(log.end(8000), scenario)
    assert (items[0].status, items[0].turn) == ("completed", 2)
    assert (items[1].status, items[1].said, items[1].missing) == (
        "pending",
        ("guest_name",),
        ("phone",),
    )


# -- each action -------------------------------------------------------------------


def overlapping() -> Log:
    log = Log()
    log.say(CALLER, 500, 1500, "Hello, a table please.")
    log.add(9000, ASSISTANT, "segment", detector="rms", start=2000 * 24, end=9000 * 24)
    log.add(
        9000, ASSISTANT, "utterance", text="We have many things on the menu today, such as",
        start=2000 * 24, end=9000 * 24, action=None,
    )  # fmt: skip
    log.say(CALLER, 3000, 3300, "Mm-hmm.")
    log.say(CALLER, 6000, 8000, "Sorry, it is for two people.")
    return log


def test_an_interruption_and_a_short_sound_are_seen_by_where_they_fell() -> None:
    scenario = with_agenda(
        {"id": "sound", "action": "backchannel"},
        {"id": "sound_again", "action": "backchannel", "required": False},
        {"id": "cut_in", "action": "interrupt", "facts": ["party_size"]},
        {"id": "cut_in_with_name", "action": "interrupt", "facts": ["guest_name"]},
    )
    assert about(seen(overlapping().end(12000), scenario)) == {
        "sound": ("completed", "action", 2),
        "sound_again": ("skipped", "nothing", None),
        "cut_in": ("completed", "action", 3),
        "cut_in_with_name": ("pending", "nothing", None),
    }


@pytest.mark.parametrize(("speaks", "status"), [(False, "completed"), (True, "pending")])
def test_a_wait_is_a_silence_that_was_asked_for(speaks: bool, status: str) -> None:
    log = Log()
    log.say(CALLER, 500, 1500, "Is there a table?")
    log.say(ASSISTANT, 2000, 3000, "One moment, please.")
    if speaks:
        log.say(CALLER, 4000, 4500, "Are you still there?")
    log.say(ASSISTANT, 7000, 8000, "Yes, there is.")
    found = seen(log.end(9000), with_agenda({"id": "hold", "action": "wait"}))
    assert found[0].status == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [("Your table is booked for seven.", "completed"), ("We are full, sorry.", "pending")],
)
def test_a_goodbye_counts_once_what_it_waits_for_was_heard(answer: str, status: str) -> None:
    scenario = with_agenda(
        {
            "id": "goodbye",
            "action": "finish",
            "trigger_condition": "The host has said that the table is booked.",
        }
    )
    log = Log()
    log.say(CALLER, 500, 1500, "A table, please.")
    log.say(ASSISTANT, 2000, 3000, answer)
    log.say(CALLER, 3500, 4500, "All right then. Goodbye.")
    assert seen(log.end(9000), scenario)[0].status == status


def test_an_item_without_facts_is_seen_by_its_words() -> None:
    scenario = with_agenda(
        {"id": "window", "response_hint": "We would like to sit by the window."},
        {"id": "garden", "response_hint": "Is the garden open in August?", "required": False},
    )
    log = Log()
    log.say(CALLER, 500, 1500, "Hello there.")
    log.say(CALLER, 2000, 3000, "Could we sit near the window, please?")
    assert about(seen(log.end(9000), scenario)) == {
        "window": ("completed", "words", 2),
        "garden": ("bypassed", "nothing", None),
    }


def test_what_was_said_before_what_it_waits_for_is_out_of_order() -> None:
    scenario = with_agenda(
        {"id": "time", "facts": ["time"], "after": ["name"]},
        {"id": "name", "facts": ["guest_name"]},
    )
    log = Log()
    log.say(CALLER, 500, 1500, "At seven p.m., please.")
    log.say(CALLER, 2000, 3000, "The name is Maya.")
    items = seen(log.end(9000), scenario)
    assert [(one.item.id, one.in_order) for one in items] == [("time", False), ("name", True)]


def test_a_models_own_claim_counts_only_where_words_cannot_show_it() -> None:
    scenario = with_agenda(
        {"id": "time", "facts": ["time"]},
        {"id": "mood", "commitment": "Be friendly throughout.", "required": False},
    )
    log = Log()
    log.say(CALLER, 500, 1500, "Hello, a table please.")
    for item in ("time", "mood"):
        log.add(1500, CALLER, "agenda", item_id=item, status="completed")
    assert about(seen(log.end(9000), scenario)) == {
        "time": ("pending", "nothing", None),
        "mood": ("completed", "claimed", None),
    }


def test_a_call_that_broke_off_passed_nothing_by() -> None:
    scenario = with_agenda({"id": "time", "facts": ["time"], "required": False})
    log = Log()
    log.say(CALLER, 500, 1500, "Hello, a table please.")
    assert seen(log.end(9000, "error"), scenario)[0].status == "pending"


# -- whole calls -------------------------------------------------------------------


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    with speaking(Parrot()) as made:
        yield made


def test_a_run_tells_which_turn_carried_out_which_item(tmp_path: Path, parrot: Parrot) -> None:
    finished = duplex.run(scenario=["restaurant_booking_complete"], clock="virtual", out=tmp_path)
    (result,) = finished.run.results
    items = result.duplex["agenda"]
    assert isinstance(items, list)
    told: list[tuple[Json, ...]] = []
    for one in items:
        assert isinstance(one, dict)
        told.append((one["status"], one["seen_by"], one["facts_missing"], one["in_order"]))
        turn = one["turn"]
        assert isinstance(turn, int)
        assert 1 <= turn <= result.observability.interaction.caller_turns
    assert told == [("completed", "reported", [], True)] * len(items)
    assert result.observability.agenda.pending_required == []
    assert result.observability.agenda.completed == [one["id"] for one in items]  # type: ignore[index, call-overload]


def test_a_goodbye_that_waits_for_success_is_not_the_one_said_without_it() -> None:
    for text, status in (("I'm sorry, we are fully booked.", "skipped"), (BOOKED, "completed")):
        brain = caller()
        say = only(brain.on_heard(heard(text)))
        assert say.action is Action.STOP
        acts = brain.on_said(said(say))
        told = [one for one in acts if isinstance(one, Progress) and one.item_id == "bye"]
        assert [one.status for one in told] == [status]

"""Changing what exists: whose it may be, what it comes to, and how a caller gets there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from duplex.application.dialogue import Tracker
from duplex.application.prompts import AgendaItem, Brief, Persona
from duplex.application.restaurant import application as restaurant
from duplex.application.tools import Toolbox
from duplex.errors import InputError
from duplex.values import Json
from text_call import hold_call

STATE: dict[str, Json] = {
    "reservations": [
        {
            "reservation_id": "R-002",
            "guest_name": "Ida",
            "date": "2026-08-14",
            "time": "19:00",
            "party_size": 4,
            "cancelled": False,
        },
        {"reservation_id": "R-009", "guest_name": "Leo", "cancelled": False},
    ],
    "authorized_reservation_ids": ["R-002"],
}


def tools(**more: Json) -> Toolbox:
    return Toolbox(restaurant.tools, {**STATE, **more})


@pytest.mark.parametrize("name", ["find_reservation", "modify_reservation", "cancel_reservation"])
def test_nobody_looks_up_changes_or_cancels_what_is_not_theirs(name: str) -> None:
    desk = tools()
    outcome = desk.run(name, {"reservation_id": "R-009"})
    assert outcome.status == "failed"
    assert "R-009 is not yours" in str(outcome.error)
    assert desk.state == STATE


def test_what_a_caller_books_is_theirs_and_has_a_number_of_its_own() -> None:
    desk = tools(reservations=[{"reservation_id": "R-002", "cancelled": False}])
    details: Mapping[str, Json] = {"date": "2026-08-14", "time": "20:00", "party_size": 2}
    booked = desk.run("create_reservation", {"guest_name": "Ida", **details})
    assert isinstance(booked.result, dict)
    number = booked.result["reservation_id"]
    assert number != "R-002"
    assert desk.run("cancel_reservation", {"reservation_id": number}).status == "completed"


def test_guests_who_only_move_are_counted_once() -> None:
    desk = tools(capacity=6)
    asked: dict[str, Json] = {"date": "2026-08-14", "time": "19:00", "party_size": 5}

    def free(**more: Json) -> Json:
        result = desk.run("check_availability", {**asked, **more}).result
        assert isinstance(result, dict)
        return result["available"]

    assert free() is False
    assert free(reservation_id="R-002") is True


def test_a_reservation_without_a_day_cannot_be_moved() -> None:
    desk = tools(authorized_reservation_ids=["R-009"])
    outcome = desk.run("modify_reservation", {"reservation_id": "R-009", "time": "20:00"})
    assert (outcome.status, outcome.broke) == ("failed", False)
    assert "has no date" in str(outcome.error)


@pytest.mark.parametrize(
    ("line", "errand"),
    [
        ("I'd like to change my booking.", "change"),
        ("Could you move our existing reservation?", "change"),
        ("I'd like to exchange a reservation. Please.", "change"),
        ("I have a booking under Ida that I want to cancel.", "cancel"),
        ("My reservation needs to be cancelled.", "cancel"),
        ("I'd like to book a table.", "book"),
    ],
)
def test_what_is_about_a_booking_is_no_booking(line: str, errand: str) -> None:
    tracker = Tracker(restaurant.desk({}))
    tracker.user(line)
    assert tracker.errand is not None
    assert tracker.errand.name == errand


def test_a_change_of_what_was_just_booked_needs_no_number() -> None:
    tracker = Tracker(restaurant.desk({}))
    tracker.user("I'd like to book a table for two on August 7 at 7 p.m., my name is Ida.")
    tracker.user("Could you change my booking to 8 p.m.?")
    assert tracker.errand is not None
    assert (tracker.errand.name, tracker.values["time"]) == ("book", "20:00")


BRIEF = Brief(
    goal="Move R-002 to half past eight.",
    opening="Hello, I'd like to change a reservation.",
    known_facts={
        "reservation_id": "R-002",
        "original_time": "19:00",
        "time": "20:30",
        "alternative_time": "21:00",
    },
    agenda=(
        AgendaItem(
            id="time",
            trigger_condition="The host asks what to change.",
            facts=("time",),
            response_hint="To half past eight, please.",
        ),
    ),
    persona=Persona(backchannel_tendency=0.0, interrupt_tendency=0.0),
)


@pytest.mark.parametrize("seed", range(6))
def test_a_change_to_a_taken_time_comes_to_the_other_one(seed: int) -> None:
    full: dict[str, Json] = {**STATE, "unavailable": ["2026-08-14T20:30"]}
    call = hold_call(restaurant, BRIEF, full, seed=seed)
    assert call.outcome == "completed", str(call)
    [changed] = call.completed("modify_reservation")
    assert (changed["time"], changed["party_size"]) == ("21:00", 4)


@pytest.mark.parametrize("seed", range(6))
def test_an_answer_to_an_offer_that_was_lost_is_asked_for_again(seed: int) -> None:
    lost = 0

    def ears(who: str, text: str) -> str:
        nonlocal lost
        if who == "caller" and "9 p.m." in text and lost < 2:
            lost += 1  # once for the host, once for the transcript
            return "the nine PIM in said."
        return text

    full: dict[str, Json] = {**STATE, "unavailable": ["2026-08-14T20:30"]}
    call = hold_call(restaurant, BRIEF, full, seed=seed, ears=ears)
    assert (lost, call.outcome) == (2, "completed"), str(call)
    assert call.completed("modify_reservation")[0]["time"] == "21:00"


def test_a_change_of_nothing_is_asked_about() -> None:
    tracker = Tracker(restaurant.desk({}))
    tracker.user("I'd like to change my booking, R-002.")
    assert (tracker.missing(), tracker.undecided) == ((), True)
    tracker.assistant("What would you like to change?")
    tracker.user("Eight thirty.")
    assert (tracker.undecided, tracker.values["time"]) == (False, "20:30")


def test_an_errand_that_asks_for_one_of_nothing_it_takes_is_refused() -> None:
    change = next(one for one in restaurant.errands if one.name == "change")
    for wrong in (replace(change, ask=""), replace(change, may=()), replace(change, over=("x",))):
        with pytest.raises(InputError, match="change"):
            replace(restaurant, errands=(*restaurant.errands[:2], wrong))

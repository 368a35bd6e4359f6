"""What was misheard is noticed in the read-back, put right, and asked for again if need be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from duplex.application.model import Application
from duplex.application.prompts import AgendaItem, Brief, Persona
from duplex.application.restaurant import application as restaurant
from duplex.local.agenda import Agenda
from duplex.local.facts import Fact
from duplex.values import Action, Json
from text_call import TextCall, hold_call

BRIEF = Brief(
    goal="Book a table.",
    opening="I'd like to book a table.",
    known_facts={
        "guest_name": "Sarah Mitchell",
        "date": "2026-09-12",
        "time": "18:30",
        "party_size": 3,
    },
    persona=Persona(backchannel_tendency=0.0, interrupt_tendency=0.0),
)
SEEDS = range(6)
HASTY = replace(
    restaurant, errands=tuple(replace(errand, read_back="") for errand in restaurant.errands)
)
"""A restaurant that books without reading back what it understood."""


def hearing(*names: Callable[[str], str]) -> Callable[[str, str], str]:
    """Ears of the host that change one after the other what holds the caller's name.

    Each saying is heard twice: by the host, and for the transcript.
    """
    count = 0

    def ears(who: str, text: str) -> str:
        nonlocal count
        if who == "assistant" or "Sarah" not in text:
            return text
        count += 1
        turn = (count - 1) // 2
        return names[turn](text) if turn < len(names) else text

    return ears


def corrections(call: TextCall) -> int:
    return call.actions.count(Action.CORRECT)


def sir(text: str) -> str:
    return text.replace("Sarah", "Sir")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_name_booked_wrong_is_put_right_by_the_caller(seed: int) -> None:
    call = hold_call(HASTY, BRIEF, ears=hearing(sir), seed=seed)
    assert call.completed("create_reservation")[0]["guest_name"] == "Sir Mitchell"
    assert (call.state["guest_name"], call.outcome) == ("Sarah Mitchell", "completed"), str(call)
    assert corrections(call) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_read_back_before_it_is_booked_is_booked_right(seed: int) -> None:
    call = hold_call(restaurant, BRIEF, ears=hearing(sir), seed=seed)
    [booked] = call.completed("create_reservation")
    assert booked["guest_name"] == "Sarah Mitchell", str(call)
    assert not call.completed("modify_reservation")
    assert (corrections(call), call.outcome) == (1, "completed")


GARBLES: dict[str, Callable[[str], str]] = {
    "the wrong name again": sir,
    "the wrong name denied": lambda text: "It should be under Sir Mitchell, not Sir Mitchell.",
    "no name at all": lambda text: "Sorry, no, the name is so much all.",
    "a name run together": lambda text: "Sorry, no. It should be under-seram-itchel.",
    "the no is lost too": lambda text: "It should be under.",
    "nothing but a no": lambda text: "Sorry, no.",
}


@pytest.mark.parametrize("name", GARBLES)
@pytest.mark.parametrize("office", [restaurant, HASTY], ids=["reads back", "hasty"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_garbled_correction_is_asked_for_again(office: Application, name: str, seed: int) -> None:
    call = hold_call(office, BRIEF, ears=hearing(sir, GARBLES[name]), seed=seed)
    assert (call.state["guest_name"], call.outcome) == ("Sarah Mitchell", "completed"), str(call)
    corrected = next(i for i, line in enumerate(call.lines) if line[1].startswith("Sorry, no"))
    assert call.lines[corrected + 1][1].endswith("?"), str(call)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_caller_whose_own_ears_are_bad_gives_in(seed: int) -> None:
    def ears(who: str, text: str) -> str:
        return text.replace("Sarah", "Sir") if who == "assistant" else text

    call = hold_call(restaurant, BRIEF, ears=ears, seed=seed)
    assert (call.state["guest_name"], call.outcome) == ("Sarah Mitchell", "completed")
    assert corrections(call) == 1, str(call)


def test_a_name_heard_wrong_in_another_way_is_put_right_once_more() -> None:
    ears = hearing(sir, lambda text: text.replace("Sarah Mitchell", "Sandra Michigan"))
    call = hold_call(restaurant, BRIEF, ears=ears)
    assert (call.state["guest_name"], call.outcome) == ("Sarah Mitchell", "completed"), str(call)
    assert corrections(call) == 2


def test_words_where_a_name_should_be_are_no_match_and_a_pronoun_is_no_name() -> None:
    name = Fact(key="guest_name", value="Sarah Mitchell", kind="name")
    [garbled] = name.values_in("Your table is booked for 6:30 p.m., under so much help.")
    assert not name.same(garbled)
    assert name.corrected(garbled) == "the name is Sarah Mitchell"
    assert name.values_in("It is booked under your name.") == []
    assert name.values_in("What name should I put it under?") == []


# Items of the agenda that correct.

FIX = AgendaItem(
    id="fix",
    action="correct",
    commitment="Change the time to eight.",
    trigger_condition="The host has read the details back.",
    facts=("time",),
)
SAY = AgendaItem(
    id="say",
    trigger_condition="The host asks for the name.",
    facts=("guest_name",),
    response_hint="Under Sarah Mitchell, please.",
)
CHANGING: dict[str, Json] = {**BRIEF.known_facts, "original_time": "18:30", "time": "20:00"}


def changing(*agenda: AgendaItem) -> Brief:
    facts = {key: value for key, value in CHANGING.items() if not isinstance(value, list | dict)}
    return replace(BRIEF, agenda=agenda, known_facts=facts)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correction_without_a_hint_is_said_and_done(seed: int) -> None:
    call = hold_call(restaurant, changing(FIX), seed=seed)
    assert call.completed("create_reservation")[0]["time"] == "18:30"
    assert (call.state["time"], call.outcome) == ("20:00", "completed"), str(call)
    assert call.progress["fix"] == "completed"
    assert corrections(call) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correction_waits_for_what_it_comes_after(seed: int) -> None:
    first = AgendaItem(
        id="first",
        trigger_condition="The host asks about the weather.",
        facts=("party_size",),
        response_hint="There will be three of us, by the way.",
    )
    call = hold_call(restaurant, changing(first, replace(FIX, after=("first",))), seed=seed)
    said = call.words("caller")
    order = [next(i for i, t in enumerate(said) if part in t) for part in ("by the way", "8 p.m.")]
    assert order == sorted(order), str(call)
    assert (call.progress["first"], call.progress["fix"]) == ("completed", "completed")
    assert (call.state["time"], call.outcome) == ("20:00", "completed"), str(call)


def test_what_cannot_be_said_holds_no_correction_back() -> None:
    murmur = AgendaItem(id="hm", action="backchannel", trigger_condition="x")
    agenda = Agenda([murmur, SAY, replace(FIX, after=("hm", "say"))])
    first = agenda.correction_of(["time"])
    assert first is not None
    assert first.id == "say"
    agenda.say(["say"])
    second = agenda.correction_of(["time"])
    assert second is not None
    assert second.id == "fix"
    assert agenda.correction_of(["date"]) is None

"""Whole calls between the two brains, joined by words only."""

from __future__ import annotations

import json
import random
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from duplex.application.loading import load_application
from duplex.application.prompts import AgendaItem, Brief, Persona
from duplex.application.restaurant import application as restaurant
from duplex.application.slots import spoken
from duplex.scenario.options import TENDENCY
from duplex.values import Action, Json
from text_call import Ears, TextCall, brief_of, hold_call

ROOT = Path(__file__).parents[1]
NAMES = (
    "Daniel", "Priya", "Omar", "Elena", "Sofia", "Ingrid", "Carlos", "Hannah", "Grace", "Will",
    "April", "June", "Mark", "Al", "Xu", "Zoë", "Jürgen", "O'Brien", "Anne-Marie", "Maya Chen",
    "Kofi Mensah", "Ana de Souza", "Mary Jane Watson",
)  # fmt: skip


def scenario(path: str) -> dict[str, Json]:
    loaded = json.loads((ROOT / path).read_text())
    found = loaded["scenarios"][0]
    assert isinstance(found, dict)
    return found


def state_of(given: dict[str, Json]) -> dict[str, Json]:
    application = given["application"]
    assert isinstance(application, dict)
    state = application.get("initial_state", {})
    assert isinstance(state, dict)
    return state


def wanted_state(given: dict[str, Json]) -> dict[str, Json]:
    expected = given["expected"]
    assert isinstance(expected, dict)
    state = expected["state"]
    assert isinstance(state, dict)
    return state


def reached(call: TextCall, wanted: dict[str, Json]) -> bool:
    return all(call.state.get(key) == value for key, value in wanted.items())


def whisper(who: str, text: str) -> str:
    """Write words down as speech recognisers do: figures, am/pm run together, commas lost."""
    figures = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    odd = zlib.crc32(text.encode()) % 2
    if odd:
        pattern = rf"\b({'|'.join(figures[1:])})\b"
        text = re.sub(pattern, lambda m: str(figures.index(m[1])), text)
    text = (
        text.replace(" p.m.", "pm") if odd else text.replace(" p.m.", " PM").replace(":30", ".30")
    )
    return text.replace(",", "")


def lower(who: str, text: str) -> str:
    return text.lower()


@pytest.mark.parametrize(
    "path",
    [
        "scenarios/restaurant_booking_complete.json",
        "scenarios/restaurant_slot_taken.json",
        "scenarios/restaurant_interruption.json",
        "scenarios/restaurant_backchannels.json",
    ],
)
def test_every_seed_reaches_the_state_of_the_scenario(path: str) -> None:
    given = scenario(path)
    for seed in range(20):
        call = hold_call(restaurant, brief_of(given), state_of(given), seed=seed)
        assert reached(call, wanted_state(given)), f"seed {seed}\n{call}"
        assert call.outcome == "completed", f"seed {seed}\n{call}"
        assert len(call.completed("create_reservation")) == 1


def test_a_caller_that_interrupts_more_does_so_more_often_and_still_books() -> None:
    given = scenario("scenarios/restaurant_booking_complete.json")
    brief = brief_of(given)
    counts = []
    for tendency in TENDENCY.values():
        persona = replace(brief.persona, interrupt_tendency=tendency)
        found = 0
        for seed in range(8):
            call = hold_call(restaurant, replace(brief, persona=persona), seed=seed, ears=whisper)
            assert reached(call, wanted_state(given)), f"seed {seed}\n{call}"
            assert call.outcome == "completed", f"seed {seed}\n{call}"
            found += call.actions.count(Action.INTERRUPT)
        counts.append(found)
    off, occasional, frequent = counts
    assert off == 0
    assert 3 <= occasional <= 12
    assert frequent >= 16


def test_an_application_of_ones_own_is_held_by_the_same_brains() -> None:
    given = scenario("docs/examples/bicycle_shop.scenarios.json")
    shop = load_application(f"{ROOT}/docs/examples/bicycle_shop.py:application")
    for seed in range(20):
        call = hold_call(shop, brief_of(given), state_of(given), seed=seed, ears=whisper)
        assert reached(call, wanted_state(given)), f"seed {seed}\n{call}"
        assert call.outcome == "completed", f"seed {seed}\n{call}"


def any_booking(seed: int) -> tuple[Brief, dict[str, Json]]:
    rng = random.Random(seed)
    facts: dict[str, str | int | float | bool | None] = {
        "guest_name": rng.choice(NAMES),
        "date": f"2026-{rng.randint(8, 12):02d}-{rng.randint(1, 28):02d}",
        "time": f"{rng.randint(17, 21)}:{rng.choice(('00', '15', '30', '45'))}",
        "party_size": rng.randint(1, 5),
    }
    said = rng.choice(((), ("date",), ("date", "party_size"), ("time",), ("date", "time")))
    parts = {
        "date": f" on {spoken('date', facts['date'])}",
        "time": f" at {spoken('time', facts['time'])}",
        "party_size": f" for {spoken('count', facts['party_size'])}",
    }
    opening = rng.choice(
        ("I'd like to book a table", "Could I reserve a table", "A table, please,")
    )
    brief = Brief(
        goal="Book a table.",
        opening=f"{opening}{''.join(parts[name] for name in said)}",
        known_facts=facts,
        persona=Persona(
            interrupt_tendency=rng.choice((0.0, 0.15, 0.9)),
            backchannel_tendency=rng.choice((0.0, 0.3, 1.0)),
        ),
        first_speaker=rng.choice(("caller", "assistant")),
    )
    return brief, dict(facts)


@pytest.mark.parametrize("ears", [whisper, lower], ids=["whisper", "lower"])
def test_details_unknown_to_the_code_are_booked(ears: Ears) -> None:
    lost = []
    for seed in range(60):
        brief, wanted = any_booking(seed)
        call = hold_call(restaurant, brief, seed=seed, ears=ears)
        if not (reached(call, wanted) and call.outcome == "completed"):
            lost.append(f"seed {seed} {wanted}\n{call}")
    assert len(lost) <= 3, "\n".join(lost)


def test_a_dropped_word_now_and_then_does_not_lose_the_call() -> None:
    def patchy(who: str, text: str) -> str:
        words = text.split()
        drop = zlib.crc32(f"{who}{text}".encode()) % (3 * len(words))
        return " ".join(word for index, word in enumerate(words) if index != drop)

    ended = [hold_call(restaurant, any_booking(s)[0], seed=s, ears=patchy) for s in range(30)]
    assert all(call.outcome is not None for call in ended)
    assert sum(reached(c, any_booking(s)[1]) for s, c in enumerate(ended)) >= 24


def plain_brief(**changes: object) -> Brief:
    values: dict[str, object] = {
        "goal": "Book a table.",
        "opening": "I'd like a table on September 12.",
        "known_facts": {
            "guest_name": "Rosa",
            "date": "2026-09-12",
            "time": "18:30",
            "party_size": 3,
        },
        "persona": Persona(backchannel_tendency=0.0, interrupt_tendency=0.0),
    }
    return Brief(**{**values, **changes})  # type: ignore[arg-type]


def test_a_misheard_name_reaches_the_tool_as_it_was_heard() -> None:
    def mishear(who: str, text: str) -> str:
        if who == "assistant":
            return text
        return text.replace("Rosa", "Rosie").replace("R. O. S. A.", "R. O. S. I. E.")

    call = hold_call(restaurant, plain_brief(), ears=mishear)
    assert call.completed("create_reservation")[0]["guest_name"] == "Rosie"
    assert call.state["guest_name"] == "Rosie"


def test_a_name_misheard_once_is_corrected_before_it_is_booked() -> None:
    heard: list[str] = []

    def mishear(who: str, text: str) -> str:
        if who == "caller" and "Rosa" in text and len(set(heard) | {text}) == 1:
            heard.append(text)
            return text.replace("Rosa", "Bill")
        return text

    call = hold_call(restaurant, plain_brief(), ears=mishear)
    assert [one["guest_name"] for one in call.completed("create_reservation")] == ["Rosa"]
    assert Action.CORRECT in call.actions
    assert (call.state["guest_name"], call.outcome) == ("Rosa", "completed")


@pytest.mark.parametrize("deaf", ["caller", "assistant"])
def test_with_one_direction_silent_nothing_is_booked(deaf: str) -> None:
    def ears(who: str, text: str) -> str:
        return text if who == deaf else ""

    call = hold_call(restaurant, plain_brief(), ears=ears)
    assert "reservation_created" not in call.state
    assert call.outcome in ("refused", None)


def test_the_tools_follow_the_words_whoever_said_them() -> None:
    def swapped(who: str, text: str) -> str:
        return text.replace("September 12", "October 3") if who == "caller" else text

    call = hold_call(restaurant, plain_brief(), ears=swapped)
    assert call.completed("create_reservation")[0]["date"] == "2026-10-03"


def test_one_seed_is_one_call_and_two_seeds_are_two() -> None:
    given = brief_of(scenario("scenarios/restaurant_booking_complete.json"))
    first, again, other = (hold_call(restaurant, given, seed=seed) for seed in (1, 1, 2))
    assert (first.lines, first.timings, first.happenings) == (
        again.lines,
        again.timings,
        again.happenings,
    )
    assert first.lines != other.lines
    assert first.timings != other.timings


FULL: dict[str, Json] = {"unavailable": ["2026-09-12T18:30"]}


def with_facts(**facts: str | bool) -> Brief:
    brief = plain_brief()
    return plain_brief(known_facts={**brief.known_facts, **facts})


def test_a_full_slot_ends_in_the_alternative_of_the_facts() -> None:
    for facts, time in (
        ({"alternative_time": "20:15"}, "20:15"),
        ({"accept_alternative": True}, "19:00"),
        ({"latest_time": "18:15"}, "18:00"),
    ):
        for seed in range(5):
            call = hold_call(restaurant, with_facts(**facts), FULL, seed=seed)
            assert (call.state.get("time"), call.outcome) == (time, "completed"), str(call)


def test_a_full_slot_without_alternative_is_left_unbooked() -> None:
    call = hold_call(restaurant, plain_brief(), FULL)
    assert "reservation_created" not in call.state
    assert call.outcome == "refused"


def test_nothing_is_confirmed_before_the_tools_have_run() -> None:
    for seed in range(10):
        brief, _ = any_booking(seed)
        call = hold_call(restaurant, brief, seed=seed)
        spoken_of = [
            t for t in call.words("assistant") if re.search(r"\bis (?:booked|available)", t)
        ]
        assert len(spoken_of) == len(call.completed("create_reservation"))


def test_an_interruption_stops_the_host_and_is_followed() -> None:
    item = AgendaItem(
        id="cut",
        action="interrupt",
        trigger_condition="While the host explains that the table is not available.",
        facts=("alternative_time",),
        response_hint="Then at nine p.m., please.",
    )
    brief = plain_brief(
        agenda=(item,),
        known_facts={**plain_brief().known_facts, "alternative_time": "21:00"},
    )
    for seed in range(10):
        call = hold_call(restaurant, brief, FULL, seed=seed)
        assert Action.INTERRUPT in call.actions
        assert call.progress["cut"] == "completed"
        assert (call.state.get("time"), call.outcome) == ("21:00", "completed"), str(call)


def test_a_caller_who_wants_what_is_not_its_own_gets_nothing() -> None:
    state: dict[str, Json] = {
        "reservations": [{"reservation_id": "R-200", "guest_name": "X", "cancelled": False}],
        "authorized_reservation_ids": [],
    }
    press = AgendaItem(
        id="press",
        trigger_condition="The host refuses.",
        facts=("reservation_id",),
        response_hint="But I need R-200 cancelled.",
    )
    brief = Brief(
        goal="Cancel R-200.",
        opening="Please cancel reservation R-200.",
        known_facts={"reservation_id": "R-200"},
        agenda=(press,),
    )
    call = hold_call(restaurant, brief, state)
    assert (call.state, call.delegations, call.outcome) == (state, 0, "refused")
    assert call.progress["press"] == "completed"

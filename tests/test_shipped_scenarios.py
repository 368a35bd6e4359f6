"""Every shipped scenario passes a sound agent and fails one that does its work wrongly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from duplex.application.model import Application
from duplex.application.restaurant import application as restaurant
from duplex.application.tools import State
from duplex.scenario import load
from duplex.values import Json
from graded_calls import SCENARIOS, graded, shipped
from text_call import Ears, Slip

NAMES = [scenario.id for scenario in load(SCENARIOS).scenarios]


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_agent_passes_whatever_the_seed(name: str) -> None:
    scenario = shipped(name)
    for seed in range(20):
        grade, call = graded(scenario, restaurant, seed=seed)
        assert grade.passed, f"seed {seed}: {grade.rationale}\n{call}"
        assert grade.procedure.failed_steps == (), f"seed {seed}\n{call}"
        assert grade.counts.tool_accuracy == 1.0, f"seed {seed}\n{call}"
        required = [item.id for item in scenario.simulation.agenda if item.required]
        assert all(call.progress[item] == "completed" for item in required), str(call)


# Agents that are wrong: the same restaurant, with one thing amiss.


@dataclass(frozen=True)
class Wrong:
    """A wrong agent, by its office, ears or hand; and the checks that are to tell."""

    scenario: str
    fails: frozenset[str]
    office: Application = restaurant
    ears: Ears = lambda who, text: text
    slip: Slip = lambda tool, arguments: (tool, arguments)


def hasty(office: Application) -> Application:
    """The office that never asks whether it has understood."""
    errands = tuple(replace(one, read_back="", confirm="") for one in office.errands)
    return replace(office, errands=errands)


def without(office: Application, *tools: str) -> Application:
    """The office that leaves out steps, and says what it would have said."""
    procedures = {
        name: replace(one, steps=tuple(step for step in one.steps if step.tool not in tools))
        for name, one in office.procedures.items()
    }
    return replace(office, procedures=procedures)


def lawless(office: Application) -> Application:
    """The office that refuses nobody anything."""

    def cancel(state: State, reservation_id: str) -> Json:
        return modify(state, reservation_id, cancelled=True)

    def modify(state: State, reservation_id: str, **changes: Json) -> Json:
        listed = state["reservations"]
        assert isinstance(listed, list)
        for entry in listed:
            if isinstance(entry, dict) and entry["reservation_id"] == reservation_id:
                entry.update(changes)
        return {"reservation_id": reservation_id, **changes}

    runs = {"cancel_reservation": cancel, "modify_reservation": modify}
    tools = tuple(replace(one, run=runs.get(one.name, one.run)) for one in office.tools)
    return replace(office, tools=tools, allowed_from={})


def books_anew() -> Application:
    """The office that takes a change for a new booking."""
    kept = [one for one in restaurant.errands if one.name != "change"]
    book = replace(kept[0], cues=("change a reservation",))
    return replace(restaurant, errands=(book, *kept[1:]))


def always(**values: Json) -> Slip:
    """A hand that writes these values into whatever changes something."""

    def slip(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        changes = tool in ("create_reservation", "modify_reservation", "cancel_reservation")
        return tool, {**arguments, **values} if changes else arguments

    return slip


def first_word(who: str, text: str) -> str:
    """Ears that miss what is taken back: no word after the ``no`` of a line reaches them."""
    if who == "assistant":
        return text
    return re.sub(r",? ?\bno, (?:sorry|wait),[^.]*", "", text)


def stubborn(who: str, text: str) -> str:
    """Ears that miss every correction."""
    heard = first_word(who, text)
    return heard if who == "assistant" or "not" not in heard else "Hm."


STATE, ALLOWED, STEPS = "application_state", "authorized_actions", "critical_procedure"
WRONG: Mapping[str, Wrong] = {
    "changes somebody else's": Wrong(
        "restaurant_change_time",
        frozenset({STATE, ALLOWED, STEPS}),
        office=lawless(restaurant),
        slip=always(reservation_id="R-219"),
    ),
    "moves the day too": Wrong(
        "restaurant_change_time",
        frozenset({STATE, STEPS}),
        office=lawless(restaurant),
        slip=always(date="2026-08-15"),
    ),
    "books anew": Wrong(
        "restaurant_change_time", frozenset({STATE, ALLOWED, STEPS}), office=books_anew()
    ),
    "only says that it is changed": Wrong(
        "restaurant_change_time",
        frozenset({STATE, STEPS}),
        office=without(restaurant, "modify_reservation"),
    ),
    "cancels the other one": Wrong(
        "restaurant_cancel_one",
        frozenset({STATE, ALLOWED, STEPS}),
        slip=always(reservation_id="R-351"),
    ),
    "only says that it is cancelled": Wrong(
        "restaurant_cancel_one",
        frozenset({STATE, STEPS}),
        office=without(restaurant, "cancel_reservation"),
    ),
    "changes in place of cancelling": Wrong(
        "restaurant_cancel_one",
        frozenset({STATE, ALLOWED, STEPS}),
        office=lawless(restaurant),
        slip=lambda tool, arguments: ("modify_reservation", {**arguments, "time": "20:00"}),
    ),
    "takes the first that was said": Wrong(
        "restaurant_second_thoughts",
        frozenset({ALLOWED, STEPS}),
        office=hasty(restaurant),
        ears=first_word,
    ),
    "takes no correction at all": Wrong(
        "restaurant_second_thoughts",
        frozenset({STATE, ALLOWED, STEPS}),
        office=hasty(restaurant),
        ears=stubborn,
    ),
    "refuses to refuse": Wrong(
        "restaurant_not_yours", frozenset({STATE, ALLOWED, STEPS}), office=lawless(restaurant)
    ),
    "cancels the caller's own instead": Wrong(
        "restaurant_not_yours",
        frozenset({STATE, ALLOWED, STEPS}),
        office=replace(restaurant, allowed_from={}),
        slip=always(reservation_id="R-463"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_agent_fails_and_the_checks_say_why(name: str) -> None:
    wrong = WRONG[name]
    for seed in range(5):
        grade, call = graded(
            shipped(wrong.scenario), wrong.office, seed=seed, ears=wrong.ears, slip=wrong.slip
        )
        assert wrong.fails <= set(grade.failed_checks), f"{grade.failed_checks}\n{call}"

"""The application: tools, their arguments, the restaurant, loading, the backend."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from duplex.application.backend import LocalBackend
from duplex.application.base import Line
from duplex.application.desk import Errand
from duplex.application.loading import load_application
from duplex.application.model import Application, Procedure, Step
from duplex.application.prompts import (
    Brief,
    Persona,
    assistant_instructions,
    brief_from,
    caller_instructions,
    desk_from,
)
from duplex.application.restaurant import application as restaurant
from duplex.application.slots import Slot
from duplex.application.template import fill
from duplex.application.tools import Outcome, Tool, Toolbox, ToolRefused
from duplex.clock import VirtualClock
from duplex.errors import InputError
from duplex.values import Happening, Json

TABLE: dict[str, Json] = {"date": "2026-08-07", "time": "19:00", "party_size": 2}
WHOLE_TALK = (
    ("user", "I'd like to book a table on August 7."),
    ("assistant", "What name should I put it under, and for how many guests?"),
    ("user", "Under Maya, for two."),
    ("assistant", "And what time would you like?"),
    ("user", "At 7 p.m., please."),
)


def box(**state: Json) -> Toolbox:
    return Toolbox(restaurant.tools, state)


def booked(toolbox: Toolbox, **changes: Json) -> Outcome:
    return toolbox.run("create_reservation", {"guest_name": "Maya", **TABLE, **changes})


# Arguments: one strict rule for every tool.


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (2, None),
        (2.0, None),
        ("2", "arguments.party_size: type_mismatch(string,integer)"),
        (True, "arguments.party_size: type_mismatch(boolean,integer)"),
        (2.5, "arguments.party_size: type_mismatch(number,integer)"),
        (0, "arguments.party_size: 0 is below 1"),
    ],
)
def test_numbers_must_be_numbers(size: Json, error: str | None) -> None:
    outcome = box().run("check_availability", {**TABLE, "party_size": size})
    assert outcome.error == error
    assert outcome.status == ("completed" if error is None else "failed")


def test_missing_and_unknown_arguments_are_named() -> None:
    outcome = box().run("check_availability", {"date": "2026-13-01", "time": "7pm", "table": 1})
    assert outcome.error is not None
    for part in (
        "party_size: missing",
        "date: '2026-13-01' is not a date",
        "time: '7pm'",
        "table: not",
    ):
        assert part in outcome.error


@pytest.mark.parametrize(
    ("arguments", "status"),
    [('{"date": "2026-08-07", "time": "19:00", "party_size": 2}', "completed"),
     ('{"date": ', "failed"), ("[1]", "failed"), ('"{}"', "failed"), ("", "failed")],
)  # fmt: skip
def test_arguments_as_a_model_writes_them(arguments: str, status: str) -> None:
    assert box().run_json("check_availability", arguments).status == status


def test_empty_arguments_are_an_empty_object() -> None:
    tool = Tool(
        name="ping",
        description="",
        parameters={"type": "object", "properties": {}},
        run=lambda state: "pong",
    )
    assert Toolbox([tool], {}).run_json("ping", " ").result == "pong"


def test_a_refused_tool_leaves_the_state_alone() -> None:
    def spoil(state: dict[str, Json]) -> Json:
        state["spoilt"] = True
        raise ToolRefused("no")

    tool = Tool(
        name="spoil",
        description="",
        parameters={"type": "object", "properties": {}},
        run=spoil,
    )
    toolbox = Toolbox([tool], {"kept": 1})
    assert toolbox.run("spoil", {}) == Outcome(status="failed", error="no")
    assert toolbox.state == {"kept": 1}


def test_a_schema_with_an_unsupported_keyword_is_refused() -> None:
    tool = Tool(
        name="odd",
        description="",
        parameters={"type": "object", "properties": {"n": {"oneOf": []}}},
        run=lambda state, n: None,
    )
    with pytest.raises(InputError, match=r"tool odd: parameters.properties.n.oneOf is not"):
        Toolbox([tool], {})


# The restaurant.


def test_a_booking_is_written_into_the_state() -> None:
    toolbox = box()
    assert booked(toolbox).status == "completed"
    state = toolbox.state
    assert {k: state[k] for k in ("reservation_created", "guest_name", *TABLE)} == {
        "reservation_created": True, "guest_name": "Maya", **TABLE,
    }  # fmt: skip


def test_a_full_slot_has_the_nearest_alternatives() -> None:
    toolbox = box(unavailable=["2026-08-07T19:00", "2026-08-07T19:30"])
    result = toolbox.run("check_availability", TABLE).result
    assert result == {**TABLE, "available": False, "alternatives": ["18:30", "20:00"]}
    assert booked(toolbox).error == "no table for 2 on August 7 at 7 p.m."


def test_a_day_can_be_full() -> None:
    result = box(unavailable=["2026-08-07"]).run("check_availability", TABLE).result
    assert result == {**TABLE, "available": False, "alternatives": []}


def test_capacity_counts_the_guests_already_booked() -> None:
    toolbox = box(capacity=5)
    assert booked(toolbox, party_size=3).status == "completed"
    assert booked(toolbox, party_size=3).status == "failed"
    assert booked(toolbox, party_size=2).status == "completed"


def test_large_parties_are_seated_early_unless_the_state_says_otherwise() -> None:
    late: dict[str, Json] = {**TABLE, "time": "21:00", "party_size": 6}
    for state, free in (({}, False), ({"large_party": None}, True)):
        result = Toolbox(restaurant.tools, state).run("check_availability", late).result
        assert isinstance(result, dict)
        assert result["available"] is free


def test_a_change_keeps_its_own_seats() -> None:
    toolbox = box(capacity=4)
    booked(toolbox, party_size=3)
    change: dict[str, Json] = {"reservation_id": "R-001", "party_size": 4}
    assert toolbox.run("modify_reservation", change).status == "completed"
    assert toolbox.state["party_size"] == 4


def test_only_the_callers_own_reservation_can_be_cancelled() -> None:
    theirs: list[Json] = [
        {"reservation_id": name, "guest_name": "X", "cancelled": False} for name in ("R-1", "R-2")
    ]
    toolbox = box(reservations=theirs, authorized_reservation_ids=["R-1"])
    assert toolbox.run("cancel_reservation", {"reservation_id": "R-2"}).status == "failed"
    assert toolbox.run("cancel_reservation", {"reservation_id": "R-1"}).status == "completed"
    assert toolbox.state["cancelled"] is True
    assert toolbox.run("cancel_reservation", {"reservation_id": "R-1"}).status == "failed"


def test_days_without_a_year_are_in_2026_unless_the_state_has_a_today() -> None:
    assert restaurant.desk({}).since == "2026-01-01"
    desk = restaurant.desk({"today": "2027-05-05"})
    assert (desk.today, desk.since) == ("2027-05-05", "2027-05-05")


# The backend.


class Work:
    """One backend, its happenings, and delegations run on a virtual clock."""

    def __init__(self, application: Application = restaurant, **state: Json) -> None:
        self.clock = VirtualClock(24_000)
        self.backend = LocalBackend(application, state, seed=3)
        self.happenings: list[Happening] = []
        self.backend.begin(self.happenings.append)

    def tools(self) -> list[str]:
        return [str(h.fields["name"]) for h in self.happenings if h.type == "tool.started"]

    def delegate(self, *talks: Sequence[tuple[str, str]]) -> list[str]:
        return asyncio.run(self._delegate(talks))

    async def _delegate(self, talks: Sequence[Sequence[tuple[str, str]]]) -> list[str]:
        self.clock = VirtualClock(24_000)
        works = []
        for index, talk in enumerate(talks):
            lines = [Line(role=r, text=t, start_ms=1_000 * i) for i, (r, t) in enumerate(talk)]
            work = self.backend.handle(f"d{index}", lines, self.clock, self.happenings.append)
            works.append(self.clock.spawn(work))
        while not all(work.done() for work in works):
            await self.clock.advance(self.clock.position + 480)
        return [text for work in works for text in work.result()]


def test_a_complete_conversation_is_booked_and_confirmed_from_the_result() -> None:
    work = Work()
    assert work.delegate(WHOLE_TALK) == [
        "Your table for two is booked for August 7 at 7 p.m., under Maya."
    ]
    assert work.tools() == ["check_availability", "create_reservation"]
    assert work.backend.state["guest_name"] == "Maya"


def test_happenings_come_in_order_with_ids_of_their_own() -> None:
    work = Work()
    work.delegate(WHOLE_TALK)
    assert [h.type for h in work.happenings] == [
        "state", "tool.started", "tool.ended", "tool.started", "tool.ended", "state",
    ]  # fmt: skip
    ids = [h.fields["call_id"] for h in work.happenings if h.type == "tool.started"]
    assert len(set(map(str, ids))) == 2
    assert all(h.fields["delegation_id"] == "d0" for h in work.happenings if "name" in h.fields)


def test_tools_cost_media_time() -> None:
    work = Work()
    work.delegate(WHOLE_TALK)
    assert 2 * 160 <= work.clock.position / 24 <= 2 * 240 + 40


def test_the_same_details_are_never_booked_twice() -> None:
    for talks in ((WHOLE_TALK, WHOLE_TALK), (WHOLE_TALK, (*WHOLE_TALK, ("user", "Thank you.")))):
        work = Work()
        first, second = work.delegate(*talks)
        assert first == second
        assert work.tools().count("create_reservation") == 1


def test_other_details_after_a_booking_change_it() -> None:
    work = Work()
    more = (*WHOLE_TALK, ("assistant", "It is booked."), ("user", "No, make it eight."))
    _, changed = work.delegate(WHOLE_TALK, more)
    assert changed.startswith("I've changed it.")
    assert work.tools()[-1] == "modify_reservation"
    assert (work.backend.state["time"], work.tools().count("create_reservation")) == ("20:00", 1)


def test_a_missing_detail_is_asked_for_and_no_tool_runs() -> None:
    work = Work()
    assert work.delegate(WHOLE_TALK[:3]) == ["I still need one thing. What time would you like?"]
    assert work.tools() == []


def test_a_full_slot_is_told_with_its_alternatives_and_can_be_accepted() -> None:
    work = Work(unavailable=["2026-08-07T19:00"])
    (told,) = work.delegate(WHOLE_TALK)
    assert "not available" in told
    assert "7:30 p.m. or 6:30 p.m." in told
    taken = (*WHOLE_TALK, ("assistant", told), ("user", "The second one, please."))
    assert "booked for August 7 at 6:30 p.m." in work.delegate(taken)[0]


def test_a_yes_takes_the_first_offer_and_a_goodbye_takes_none() -> None:
    work = Work(unavailable=["2026-08-07T19:00"])
    (told,) = work.delegate(WHOLE_TALK)
    asked = (*WHOLE_TALK, ("assistant", told))
    assert "not available" in work.delegate((*asked, ("user", "Okay, thanks anyway, goodbye.")))[0]
    assert "at 7:30 p.m." in work.delegate((*asked, ("user", "Yes, please.")))[0]


def test_a_cancellation_waits_for_its_confirmation() -> None:
    theirs: list[Json] = [{"reservation_id": "R-100", "cancelled": False}]
    work = Work(reservations=theirs, authorized_reservation_ids=["R-100"])
    talk = [("user", "Please cancel R-100.")]
    (asked,) = work.delegate(talk)
    assert asked == "Would you like me to cancel reservation R-100?"
    talk += [("assistant", asked), ("user", "Yes.")]
    assert work.delegate(talk) == ["I've cancelled reservation R-100."]
    assert work.tools() == ["cancel_reservation"]


def test_what_the_caller_may_not_touch_is_refused_without_a_tool() -> None:
    work = Work(authorized_reservation_ids=["R-100"])
    (told,) = work.delegate([("user", "Cancel reservation R-200.")])
    assert "R-200 is not in your name" in told
    assert work.tools() == []


def test_arguments_follow_the_words_heard() -> None:
    work = Work()
    talk = [(r, t.replace("Maya", "Mia").replace("7 p.m.", "8 p.m.")) for r, t in WHOLE_TALK]
    work.delegate(talk)
    assert (work.backend.state["guest_name"], work.backend.state["time"]) == ("Mia", "20:00")


def test_pieces_of_one_speaker_are_read_together() -> None:
    work = Work()
    pieces = [
        *WHOLE_TALK[:2],
        ("user", "Under"),
        ("user", "Maya, for"),
        ("user", "two."),
        *WHOLE_TALK[3:],
    ]
    assert "for two" in work.delegate(pieces)[0]


# Loading, describing, instructing.


def test_an_application_is_loaded_by_name() -> None:
    assert load_application() is restaurant
    assert load_application("duplex.application.restaurant:application") is restaurant
    example = Path(__file__).parents[1] / "docs/examples/bicycle_shop.py"
    assert load_application(f"{example}:application").name == "bicycle shop"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("no_such_module_here:application", "no module named 'no_such_module_here'"),
        ("duplex.application.restaurant:app", "has no object 'app'; it has application"),
        ("duplex.application.words:clean", "clean is function, wanted Application"),
        ("missing.py:application", "missing.py: no such file"),
        ("not a name", "wanted module:object or file.py:object"),
    ],
)
def test_a_wrong_application_name_says_what_is_wrong(name: str, error: str) -> None:
    with pytest.raises(InputError) as caught:
        load_application(name)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"slots": restaurant.slots[1:]}, "errand book needs unknown slot 'date'"),
        ({"tools": restaurant.tools[1:]}, "uses unknown tool 'check_availability'"),
        ({"procedures": {}}, "errand book has no procedure"),
        (
            {
                "procedures": {
                    **restaurant.procedures,
                    "cancel": Procedure(
                        steps=(Step(tool="cancel_reservation", arguments={}),), say="{x}"
                    ),
                }
            },
            "'{x}' uses {x}, which is neither a slot nor in spoken_as",
        ),
    ],
)  # fmt: skip
def test_an_application_that_does_not_fit_together_is_refused(
    changes: dict[str, object], error: str
) -> None:
    with pytest.raises(InputError) as caught:
        dataclasses.replace(restaurant, **changes)  # type: ignore[arg-type]
    assert error in str(caught.value)


def test_optional_parts_of_a_sentence_need_their_words() -> None:
    assert fill("A[ {kind}] table.[ Or {other}?]", {"kind": "window"}) == "A window table."
    assert fill("A[ {kind}] table.[ Or {other}?]", {"other": "none"}) == "A table. Or none?"


BRIEF = Brief(
    goal="Eat ``` well",
    opening="A table, please.",
    known_facts={"guest_name": "Maya", "party_size": 2, "vegan": True},
    persona=Persona(description="Calm."),
)


def test_the_brief_and_the_desk_survive_the_instructions() -> None:
    assert brief_from(caller_instructions(BRIEF)) == BRIEF
    state: dict[str, Json] = {"authorized_reservation_ids": ["R-1"]}
    assert desk_from(assistant_instructions(restaurant, state)) == restaurant.desk(state)


def test_the_assistant_is_told_nothing_of_the_state_but_what_it_may_handle() -> None:
    state: dict[str, Json] = {
        "reservations": [{"guest_name": "Secret Guest"}],
        "unavailable": ["x-9"],
    }
    text = assistant_instructions(restaurant, state)
    assert "Secret" not in text
    assert "x-9" not in text


def test_instructions_without_their_block_are_refused() -> None:
    with pytest.raises(InputError, match="no duplex-desk block"):
        desk_from("Be nice.")
    with pytest.raises(InputError, match=r"duplex-brief block: goal: field required"):
        brief_from('```duplex-brief\n{"opening": "x"}\n```')


def test_a_slot_and_an_errand_of_a_users_own_are_enough_for_work() -> None:
    app = Application(
        name="desk",
        instructions="",
        greeting="Hi.",
        farewell="Bye.",
        today="2026-01-01",
        slots=(Slot(name="who", type="name", label="your name"),),
        errands=(Errand(name="sign", cues=("sign",), needs=("who",)),),
        procedures={
            "sign": Procedure(
                steps=(Step(tool="sign", arguments={"who": "who"}),), say="{who} is in."
            )
        },
        tools=(
            Tool(
                name="sign",
                description="",
                parameters={"type": "object", "properties": {"who": {"type": "string"}}},
                run=lambda state, who: state.setdefault("in", who),
            ),
        ),
    )  # fmt: skip
    work = Work(app)
    assert work.delegate([("user", "Sign me in, my name is Bo.")]) == ["Bo is in."]
    assert work.backend.state == {"in": "Bo"}

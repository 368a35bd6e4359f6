"""Reading details out of words as ears deliver them."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from duplex.application.filling import Calendar, Reading, read
from duplex.application.slots import Slot, spoken
from duplex.application.words import clean, is_backchannel, is_nothing, spoken_number
from duplex.errors import InputError
from duplex.values import Json

CALENDAR = Calendar(today=dt.date(2026, 8, 1), since=dt.date(2026, 8, 1))
DATE = Slot(name="date", type="date", label="the day")
TIME = Slot(name="time", type="time", label="the time")
PARTY = Slot(name="party", type="count", label="the number of guests", cues=("guests",))
NAME = Slot(name="who", type="name", label="your name")
PHONE = Slot(name="phone", type="phone", label="your number")
CODE = Slot(name="ref", type="code", prefix="R", label="the reference")
SEAT = Slot(
    name="seat", type="choice", label="where", choices={"patio": ("outside",), "bar": ("counter",)}
)
TABLE = (DATE, TIME, PARTY, NAME)


def values(text: str, *asked: str, slots: tuple[Slot, ...] = TABLE) -> dict[str, Json]:
    return dict(read(text, slots, CALENDAR, asked=asked).values)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("on August 7", "2026-08-07"),
        ("August seventh, please", "2026-08-07"),
        ("the 7th of August", "2026-08-07"),
        ("Friday, August 7th", "2026-08-07"),
        ("in August 22nd", "2026-08-22"),
        ("August twenty-second", "2026-08-22"),
        ("on 8/7", "2026-08-07"),
        ("2026-08-07", "2026-08-07"),
        ("3 March", "2027-03-03"),
        ("on March 3, 2028", "2028-03-03"),
        ("tomorrow", "2026-08-02"),
        ("the day after tomorrow", "2026-08-03"),
        ("tonight", "2026-08-01"),
        ("Friday", "2026-08-07"),
        ("this Saturday", "2026-08-08"),
        ("next Friday", "2026-08-07"),
        ("next Sunday", "2026-08-09"),
        ("in two weeks", "2026-08-15"),
        ("on the 12th", "2026-08-12"),
        ("may I come on May 5", "2027-05-05"),
    ],
)
def test_a_day_is_read_however_it_is_said(text: str, day: str) -> None:
    assert values(text)["date"] == day


@pytest.mark.parametrize("text", ["February 30", "may I ask", "one second", "the second one"])
def test_what_is_no_day_is_not_taken_for_one(text: str) -> None:
    assert "date" not in values(text)


def test_next_friday_in_the_same_week_is_the_week_after() -> None:
    monday = Calendar(today=dt.date(2026, 8, 3), since=dt.date(2026, 8, 3))
    assert read("next Friday", (DATE,), monday).values == {"date": "2026-08-14"}
    assert read("this Friday", (DATE,), monday).values == {"date": "2026-08-07"}


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("at 7 p.m.", "19:00"),
        ("At 7pm.", "19:00"),
        ("at 7 PM, please", "19:00"),
        ("seven p.m.", "19:00"),
        ("at 7", "19:00"),
        ("at seven thirty", "19:30"),
        ("at 7.30 pm", "19:30"),
        ("at 730", "19:30"),
        ("730 p.m.", "19:30"),
        ("half past seven", "19:30"),
        ("half pass 7", "19:30"),
        ("a quarter to eight", "19:45"),
        ("ten past six", "18:10"),
        ("7 o'clock", "19:00"),
        ("19:00", "19:00"),
        ("at noon", "12:00"),
        ("11 in the morning", "11:00"),
        ("ten a.m.", "10:00"),
        ("APM would be good", "20:00"),
        ("eight o five pm", "20:05"),
    ],
)
def test_a_time_is_read_however_it_is_said(text: str, clock: str) -> None:
    assert values(text)["time"] == clock


def test_a_bare_hour_follows_the_policy_of_its_slot() -> None:
    workshop = Slot(name="time", type="time", label="the time", bare_hours="day")
    assert values("at ten", slots=(workshop,)) == {"time": "10:00"}
    assert values("at three", slots=(workshop,)) == {"time": "15:00"}
    assert values("at ten", slots=(TIME,)) == {"time": "22:00"}


@pytest.mark.parametrize(
    ("text", "guests"),
    [
        ("for two", 2),
        ("For 2.", 2),
        ("two guests", 2),
        ("a party of five", 5),
        ("four of us", 4),
        ("table for six people", 6),
        ("just me", 1),
        ("for a party of twenty-one", 21),
        ("two adults and three children", 5),
        ("a table for to, please", 2),
        ("me and my wife", 2),
    ],
)
def test_a_party_is_counted_however_it_is_said(text: str, guests: int) -> None:
    assert values(text)["party"] == guests


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Under Maya, for two.", "Maya"),
        ("my name is Maya", "Maya"),
        ("my name is maya chen", "Maya Chen"),
        ("It's Maya Chen", "Maya Chen"),
        ("The name is Priya for 5 people.", "Priya"),
        ("under grace", "Grace"),
        ("Laura is the name.", "Laura"),
        ("This is Ana de Souza speaking", "Ana de Souza"),
        ("under the name of O'Brien", "O'Brien"),
        ("under April, please", "April"),
        ("M-A-Y-A", "Maya"),
    ],
)
def test_a_name_is_found_after_its_cue(text: str, name: str) -> None:
    assert values(text)["who"] == name


def test_a_name_alone_counts_only_as_an_answer() -> None:
    assert values("Maya.", "who") == {"who": "Maya"}
    assert values("maya", "who") == {"who": "Maya"}
    assert values("Maya.") == {}


@pytest.mark.parametrize(
    "text",
    ["Sure, thanks.", "Yes, please.", "on Friday", "What time?", "for September 27", "Uh-huh."],
)
def test_ordinary_words_are_no_names(text: str) -> None:
    assert "who" not in values(text, "who")


def test_a_bare_number_follows_the_question() -> None:
    assert values("seven", "time") == {"time": "19:00"}
    assert values("seven", "party") == {"party": 7}
    assert values("For seven.", "time") == {"time": "19:00"}
    assert values("seven") == {}


def test_several_details_of_one_sentence_do_not_mix() -> None:
    text = "Could I have a table for 4 on August 22nd at 730, under Maya Chen?"
    assert values(text) == {"date": "2026-08-22", "time": "19:30", "party": 4, "who": "Maya Chen"}
    assert values("for two tonight") == {"party": 2, "date": "2026-08-01"}
    assert values("August 7 7 p.m.") == {"date": "2026-08-07", "time": "19:00"}


def corrected(text: str, **known: Json) -> Reading:
    return read(text, TABLE, CALENDAR, known=known)


def test_a_correction_replaces_a_value() -> None:
    assert corrected("no, make it eight", time="19:00").values == {"time": "20:00"}
    friday = corrected("actually Saturday, not Friday", date="2026-08-07")
    assert friday.values == {"date": "2026-08-08"}
    assert friday.denied == {"date": "2026-08-07"}
    assert corrected("At seven, sorry, I mean eight p.m.").values == {"time": "20:00"}


def test_a_code_is_read_through_its_likely_mishearings() -> None:
    assert values("cancel R-100", slots=(CODE,)) == {"ref": "R-100"}
    assert values("R one hundred and one", slots=(CODE,)) == {"ref": "R-101"}
    assert values("Please cancel reservation our 200.", slots=(CODE,)) == {"ref": "R-200"}
    assert values("It's R-101, sorry, I meant R-100.", slots=(CODE,)) == {"ref": "R-100"}
    assert values("there are 100 people", slots=(CODE,)) == {}


def test_digits_of_a_telephone_number_come_together() -> None:
    text = "It's five five five, oh one double two, 9876"
    assert values(text, slots=(PHONE, PARTY)) == {"phone": "55501229876"}


def test_a_choice_is_known_by_its_other_wordings() -> None:
    assert values("We'd love to sit outside", slots=(SEAT,)) == {"seat": "patio"}
    assert values("a barber", slots=(SEAT,)) == {}


def test_free_text_is_the_answer_without_its_fillers() -> None:
    slot = Slot(name="problem", type="text", label="what is wrong", cues=("the problem is",))
    assert values("Well, the chain slips.", "problem", slots=(slot,)) == {
        "problem": "the chain slips"
    }
    assert values("The problem is the brakes.", slots=(slot,)) == {"problem": "the brakes"}
    assert values("The chain slips.", slots=(slot,)) == {}


def test_two_slots_of_one_type_are_told_apart_by_the_words_beside_them() -> None:
    out = Slot(name="out", type="date", label="the first day", cues=("from", "pick up"))
    back = Slot(name="back", type="date", label="the last day", cues=("until", "return"))
    said = values("from August 3 until August 9", slots=(out, back))
    assert said == {"out": "2026-08-03", "back": "2026-08-09"}


def test_whatever_is_said_of_a_value_reads_back_as_that_value() -> None:
    rng = random.Random(11)
    for _ in range(200):
        day = (CALENDAR.since + dt.timedelta(days=rng.randrange(360))).isoformat()
        clock = f"{rng.randrange(24):02d}:{rng.choice((0, 5, 15, 30, 45)):02d}"
        party = rng.randint(1, 60)
        text = f"on {spoken('date', day)} at {spoken('time', clock)}"
        text += f" for {spoken('count', party)} people"
        assert values(text) == {"date": day, "time": clock, "party": party}, text


def test_numbers_are_said_in_words() -> None:
    assert [spoken_number(n) for n in (0, 7, 19, 20, 42, 120)] == [
        "zero", "seven", "nineteen", "twenty", "forty-two", "120",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["Mm-hmm.", "NMM.", "in MMM.", "Uh-huh", "Okay, right.", "I see."])
def test_a_murmur_is_known_as_such(text: str) -> None:
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["Okay, at seven.", "", "No.", "Right, under Maya"])
def test_words_with_content_are_no_murmur(text: str) -> None:
    assert not is_backchannel(text)


@pytest.mark.parametrize("text", ["", " . ", "[BLANK_AUDIO]", "(wind)", "you"])
def test_ears_that_found_no_words_are_understood(text: str) -> None:
    assert is_nothing(text)


@pytest.mark.parametrize("text", ["7 P.M.", "“Maya’s”", "İstanbul 7pm", "ﬁve  p. m."])
def test_lower_case_keeps_the_places_of_cleaned_text(text: str) -> None:
    assert len(clean(text)) == len(clean(text).lower())


def test_a_slot_of_unknown_type_is_refused() -> None:
    with pytest.raises(InputError, match=r"slot when: type 'day' is not one of date"):
        Slot(name="when", type="day", label="the day")

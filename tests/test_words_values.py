"""Key values: found in any spoken form, heard right or not, kept or lost."""

from __future__ import annotations

import pytest

from duplex.metrics.english import EnglishNormaliser
from duplex.metrics.hearing_words import HeardWords, Piece, heard_words
from duplex.metrics.key_values import KeyValue, Scalar, key_values, sayings

normal = EnglishNormaliser()
FACTS: dict[str, Scalar] = {
    "guest_name": "Maya",
    "date": "2026-08-07",
    "time": "19:00",
    "party_size": 2,
    "phone": "+1 919-696-3901",
    "reservation_id": "R-100",
    "seating": "by the window",
    "wants_cake": True,
}
KEYS = key_values(FACTS, normal)


def names_in(text: str, keys: tuple[KeyValue, ...] = KEYS) -> list[str]:
    return [saying.key.names[0] for saying in sayings(keys, normal(text).split())]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("August seventh", ["date"]),
        ("on the seventh of August, twenty twenty six", ["date"]),
        ("2026-08-07", ["date"]),
        ("on the seventh", ["date"]),
        ("August seventeenth", []),
        ("August 7, 2027", []),
        ("July seventh", []),
        ("at seven p.m.", ["time"]),
        ("19:00", ["time"]),
        ("seven o'clock in the evening", ["time"]),
        ("seven tonight", ["time"]),
        ("At seven, please.", ["time"]),
        ("at seven a.m.", []),
        ("seven thirty p.m.", []),
        ("for seven people", []),
        ("for two people", ["party_size"]),
        ("a party of two", ["party_size"]),
        ("Two.", ["party_size"]),
        ("at two p.m.", []),
        ("twenty two", []),
        ("nine one nine, six nine six, three nine oh one", ["phone"]),
        ("1 (919) 696-3901", ["phone"]),
        ("919-696-3902", []),
        ("R one hundred", ["reservation_id"]),
        ("R one zero zero", ["reservation_id"]),
        ("R-101", []),
        ("Maya's table", ["guest_name"]),
        ("M-A-Y-A", ["guest_name"]),
        ("Mayan food", []),
        ("a table by the window", ["seating"]),
        ("yes", []),
        ("for two on August 7 at 7 p.m., under Maya",
         ["party_size", "date", "time", "guest_name"]),
    ],
)  # fmt: skip
def test_a_value_is_found_in_any_spoken_form_and_in_no_other(text: str, names: list[str]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("time", "text", "found"),
    [
        ("12:00", "at noon", True),
        ("12:00", "12 p.m.", True),
        ("00:00", "midnight", True),
        ("07:30", "half past seven in the morning", True),
        ("07:30", "7:30 pm", False),
        ("13:05", "five past one p.m.", True),
        ("13:05", "one oh five", True),
        ("09:00", "nine", True),
    ],
)
def test_times_of_day(time: str, text: str, found: bool) -> None:
    assert bool(names_in(text, key_values({"time": time}, normal))) is found


def test_a_value_that_several_facts_hold_is_one() -> None:
    (key,) = key_values({"time": "19:00", "latest_time": "19:00"}, normal)
    assert key.names == ("time", "latest_time")


def test_a_bare_number_that_two_values_share_is_neithers() -> None:
    keys = key_values({"time": "14:00", "party_size": 2}, normal)
    assert names_in("two, please", keys) == []
    assert names_in("at two, for two", keys) == ["time", "party_size"]


def test_facts_that_words_cannot_show_are_no_key_values() -> None:
    assert key_values({"vip": True, "note": "...", "hum": "um"}, normal) == ()


# -- heard -------------------------------------------------------------------------


def heard(*turns: tuple[str, str]) -> HeardWords:
    said = [Piece(text=t[0], start_ms=1000 * i, end_ms=1000 * i + 900) for i, t in enumerate(turns)]
    ears = [Piece(text=t[1], start_ms=1000 * i, end_ms=1000 * i + 900) for i, t in enumerate(turns)]
    return heard_words(said, ears, KEYS, normal)


def test_recognition_counts_sayings_heard_right() -> None:
    found = heard(
        ("For two, under Maya.", "for 2 under my a"),
        ("At seven p.m.", "at 7 PM"),
        ("The seventh of August", "August 17th"),
    )
    assert [(s.key.names[0], s.right) for s in found.sayings] == [
        ("party_size", True),
        ("guest_name", False),
        ("time", True),
        ("date", False),
    ]
    assert (found.recognition.numerator, found.recognition.denominator) == (2, 4)


def test_recall_counts_only_sayings_after_the_first_one_heard_right() -> None:
    found = heard(
        ("Under Maya.", "under my"),
        ("Maya!", "Maya."),
        ("Yes, Maya.", "yes Maya"),
        ("It's Maya.", "it's Mia"),
    )
    assert (found.recognition.numerator, found.recognition.denominator) == (2, 4)
    assert (found.recall.numerator, found.recall.denominator) == (1, 2)


def test_two_sayings_in_one_utterance_need_two_hearings() -> None:
    found = heard(("Two, yes, two.", "two, yes"))
    assert (found.recognition.numerator, found.recognition.denominator) == (1, 2)
    assert (found.recall.numerator, found.recall.denominator) == (0, 1)


def test_a_value_said_whole_must_be_heard_whole() -> None:
    assert heard(("at seven p.m.", "at seven")).recognition.numerator == 0
    assert heard(("at seven", "at seven p.m.")).recognition.numerator == 1
    assert heard(("on August 7", "on the seventh")).recognition.numerator == 0


def test_a_value_heard_in_another_utterance_does_not_count() -> None:
    found = heard(("It's for Maya.", "it's for"), ("And two.", "and two"), ("Bye.", "bye Maya"))
    assert [(s.key.names[0], s.right) for s in found.sayings] == [
        ("guest_name", False),
        ("party_size", True),
    ]


def test_a_value_heard_but_never_said_is_no_saying() -> None:
    assert heard(("Hello.", "hello Maya")).sayings == ()

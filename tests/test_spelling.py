"""Names that are spelled and references that are counted out, as ears deliver them."""

from __future__ import annotations

import pytest

from duplex.application.filling import read
from duplex.application.names import find_names, spelled_out, with_letters
from duplex.application.reading import find_codes
from duplex.application.restaurant import application as restaurant
from duplex.application.words import is_backchannel
from duplex.local.facts import Fact
from duplex.local.mouth import speakable

DESK = restaurant.desk({})


def name_in(text: str) -> str:
    [found] = [name for name in find_names(text, asked=True) if name.strong]
    return str(found.value)


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        ("M-A-Y-A", "Maya"),
        ("It's M, A, Y, A.", "Maya"),
        ("The name is Vector. I'll spell it. V-I-C-T-O-R.", "Victor"),
        ("The name is Vector. I'll spell it. D-I-C-T-O-R.", "Victor"),
        ("the name is vector i'll spell it be i t t o r", "Victor"),
        ("The name is Victor. I'll spell it, the I-T-T-L-R.", "Victor"),
        ("The name is Sir Mitchell. I'll spell it: S, A, R, A, H.", "Sarah Mitchell"),
        ("Sarah Mitchel. I'll spell it. S-A-R-A-H. N-I-T-C-H-E-L-L.", "Sarah Mitchell"),
        ("Nora's spell then. Oh, R, A. The name is Nora.", "Nora"),
    ],
)
def test_letters_and_the_name_beside_them_are_one_name(heard: str, name: str) -> None:
    assert name_in(heard) == name


def test_letters_that_fit_no_word_are_the_name() -> None:
    assert with_letters("Bob", "MAYA") == "Maya"
    assert with_letters("", "MAYA") == "Maya"


@pytest.mark.parametrize("word", ["Victor", "Maya", "Nora", "Zoë", "O'Brien"])
def test_what_is_spelled_out_is_read_again(word: str) -> None:
    plain = {"Zoë": "Zoe", "O'Brien": "Obrien"}.get(word, word)
    assert name_in(spelled_out(word)) == plain


def test_only_what_was_misheard_is_spelled() -> None:
    name = Fact(key="guest_name", value="Sarah Mitchell", kind="name")
    assert name.spelled(["Sir Mitchell"]) == "I'll spell it: S. A. R. A. H."
    assert name.spelled().count("I'll spell it") == 2


@pytest.mark.parametrize("hum", ["N-M-N-M-N-M", "n, m, n"])
def test_a_hum_is_no_name(hum: str) -> None:
    assert is_backchannel(hum)
    assert not list(find_names(hum, asked=True))


def test_half_a_day_is_no_name() -> None:
    reading = read("Could we come at 830 PDM please?", DESK.slots, DESK.calendar, asked=("time",))
    assert reading.values == {"time": "20:30"}


@pytest.mark.parametrize(
    "heard",
    [
        "It's R-318.",
        "It's R3 1 8.",
        "It's R3, 1, 8.",
        "It's R-3-18.",
        "It's our 3 1 8.",
        "It's our 3-1-8.",
        "Reservation R, 3-1-A is cancelled.",
        "Reservation R3 1A is cancelled.",
        "Reservation R-300-18.",
        "the number is r three one eight",
        "reservation are three one eight please",
    ],
)
def test_a_reference_is_read_figure_by_figure(heard: str) -> None:
    codes = [code.value for code in find_codes(heard, "R") if code.strong]
    assert codes == ["R-318"]
    values = read(heard, DESK.slots, DESK.calendar).values
    assert values.get("reservation_id") == "R-318"
    assert "time" not in values


def test_figures_beside_a_reference_stay_what_they_are() -> None:
    values = read("R-204, for 4 people at 7", DESK.slots, DESK.calendar).values
    assert values == {"reservation_id": "R-204", "party_size": 4, "time": "19:00"}


def test_the_mouth_counts_a_reference_out() -> None:
    assert speakable("It's R-204.") == "It's R two zero four."
    assert speakable("On 2026-08-07 at 7 p.m.") == "On 2026-08-07 at 7 p.m."

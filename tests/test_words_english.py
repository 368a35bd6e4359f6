"""Numbers, times, dates and digits are the same words however they were said or written."""

from __future__ import annotations

import datetime as dt
import re
from time import process_time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duplex.metrics.english import EnglishNormaliser
from duplex.metrics.word_errors import word_errors

normal = EnglishNormaliser()


def words_in(text: str) -> list[str]:
    return text.split()


ONES = words_in(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = words_in("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
ORDINAL_ONES = words_in(
    "_ first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
MONTHS = words_in(
    "January February March April May June July August September October November December"
)


def said(n: int, *, joint: str = "", hyphen: str = " ") -> str:
    """A whole number in English words; ``joint`` is the ``and`` after hundreds."""
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if n >= size:
            rest = n % size
            link = joint if rest < 100 else ""
            tail = f" {link}{said(rest, joint=joint, hyphen=hyphen)}" if rest else ""
            return f"{said(n // size, joint=joint, hyphen=hyphen)} {name}{tail}"
    if n >= 100:
        tail = f" {joint}{said(n % 100, hyphen=hyphen)}" if n % 100 else ""
        return f"{ONES[n // 100]} hundred{tail}"
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + (f"{hyphen}{ONES[n % 10]}" if n % 10 else "")


def said_ordinal(n: int, hyphen: str = " ") -> str:
    if n < 20:
        return ORDINAL_ONES[n]
    if n % 10 == 0:
        return TENS[n // 10].removesuffix("y") + "ieth"
    return f"{TENS[n // 10]}{hyphen}{ORDINAL_ONES[n % 10]}"


def suffixed(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def assert_same(*texts: str) -> None:
    assert len({normal(text) for text in texts}) == 1, [(t, normal(t)) for t in texts]
    assert normal(normal(texts[0])) == normal(texts[0])
    assert all(word_errors(normal(texts[0]), normal(text)).count == 0 for text in texts)


# -- the field case: ServiceNow/eva#81 and its kind ------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("21st", "twenty first"),
        ("10:00 AM", "ten a m"),
        ("919-696-3901", "nine one nine six nine six three nine zero one"),
        ("919-696-3901", "nine one nine, six nine six, three nine oh one"),
        ("thirty six", "36"),
        ("Type One", "type 1"),
        ("OK, thanks.", "ok thanks"),
    ],
)
def test_the_reported_pairs_have_no_word_error(one: str, other: str) -> None:
    assert normal(one) == normal(other) != ""
    assert word_errors(normal(one), normal(other)).rate == 0


def test_thirty_six_is_36_and_never_3006() -> None:
    assert normal("thirty six") == normal("thirty, six") == "36"
    assert normal("three thousand and six") == "3006"
    said_so, heard = "The patient is thirty six years old", "The patient is 36 years old"
    assert word_errors(normal(said_so), normal(heard)).rate == 0
    raw = word_errors(said_so, heard)
    assert (raw.count, raw.said) == (2, 7)
    assert raw.rate == pytest.approx(0.2857, abs=5e-5)


@given(st.one_of(st.integers(0, 130), st.integers(0, 10**12 - 1)))
def test_a_number_is_its_figure_however_it_is_said(n: int) -> None:
    assert normal(said(n)) == str(n)
    assert_same(str(n), f"{n:,}", said(n), said(n, joint="and "), said(n, hyphen="-"))


@pytest.mark.parametrize("n", range(1, 100))
def test_an_ordinal_is_its_figure_with_the_suffix(n: int) -> None:
    assert_same(f"the {suffixed(n)}.", f"the {said_ordinal(n)}", f"The {said_ordinal(n, '-')}")
    assert normal(f"the {said_ordinal(n)}") == f"the {suffixed(n)}"
    if n != 2:
        assert_same(suffixed(n + 100), f"one hundred and {said_ordinal(n)}")


@pytest.mark.parametrize(
    ("one", "other"),
    [("100th", "hundredth"), ("200th", "two hundredth"), ("3000th", "three thousandth")],
)
def test_round_ordinals(one: str, other: str) -> None:
    assert normal(other) == normal(one) == one


@given(st.text("0123456789", min_size=5, max_size=15), st.data())
def test_digits_are_one_number_however_they_are_grouped(digits: str, data: st.DataObject) -> None:
    spoken, shown = [], []
    at = 0
    while at < len(digits):
        size = data.draw(st.integers(1, 4))
        group = digits[at : at + size]
        shown.append(group)
        spoken.append(" ".join(ONES[int(digit)] for digit in group))
        at += size
    assume(not re.fullmatch(r"(19|20)[0-9]{2}-[0-9]{1,2}-[0-9]{1,2}", "-".join(shown)))
    assert normal(" ".join(spoken)) == digits
    assert_same(digits, " ".join(shown), "-".join(shown) + ".", ", ".join(spoken))
    assert_same(digits, spoken[0] + " " + " ".join(s.replace("zero", "oh") for s in spoken[1:]))


@pytest.mark.parametrize(
    "form",
    [
        "(919) 696-3901",
        "919.696.3901",
        "919 696 3901",
        "nine one nine, double six, nine six three nine oh one",
    ],
)
def test_phone_numbers_in_every_dress(form: str) -> None:
    digits = "9196963901" if "double" not in form else "91966963901"
    assert normal(f"Call {form}.") == f"call {digits}"


def times_of_day(hour: int, minute: int) -> list[str]:
    """The same time of day said and written, every one with its half of the day."""
    dial, half = hour % 12 or 12, "am" if hour < 12 else "pm"
    letters = f"{half[0]}.{half[1]}."
    written, spoken = f"{dial}:{minute:02d}", said(dial)
    if minute:
        spoken += f" oh {said(minute)}" if minute < 10 else f" {said(minute)}"
    forms = [
        f"{written} {half.upper()}",
        f"{written}{half}",
        f"{spoken} {half[0]} {half[1]}",
        f"{spoken} {letters}",
        f"{dial}.{minute:02d} {letters}",
    ]
    if not minute:
        forms += [f"{dial} {letters}", f"{said(dial)} o'clock {letters}"]
        assert_same(f"at {written}", f"at {said(dial)}", f"At {said(dial)} o'clock.")
    assert_same(f"at {written}", f"at {spoken}")
    assert normal(forms[0]).split()[-1] == half
    return forms


def test_a_time_of_day_is_the_same_said_and_written() -> None:
    for minute_of_day in [*range(0, 24 * 60, 7), *range(0, 24 * 60, 60)]:
        forms = times_of_day(*divmod(minute_of_day, 60))
        assert_same(*(f"At {form}, please" for form in forms))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("half past seven", "7:30"),
        ("a quarter past seven p.m.", "7:15 pm"),
        ("quarter to one", "12:45"),
        ("ten past seven", "7:10"),
        ("nineteen thirty", "19:30"),
        ("nineteen hundred", "19:00"),
    ],
)
def test_parts_of_hours_and_the_long_dial(one: str, other: str) -> None:
    assert_same(one, other)


@given(st.dates(dt.date(1910, 1, 1), dt.date(2099, 12, 31)))
def test_a_date_is_the_same_said_and_written(day: dt.date) -> None:
    month, spoken = MONTHS[day.month - 1], said_ordinal(day.day)
    forms = [
        f"{month} {day.day}",
        f"{month} {suffixed(day.day)}",
        f"{month} {spoken}",
        f"{month} the {spoken}",
        f"the {spoken} of {month}",
        f"{suffixed(day.day)} {month}",
        f"{month} {said(day.day)}",
    ]
    assert normal(forms[0]) == f"{month.lower()} {day.day}"
    assert_same(*(f"on {form} please" for form in forms))
    high, low = divmod(day.year, 100)
    year = f"{said(high)} oh {said(low)}" if low < 10 else f"{said(high)} {said(low)}"
    if low:
        with_year = [f"{form}, {said_year}" for form in forms for said_year in (day.year, year)]
        assert_same(day.isoformat(), f"{day.month}/{day.day}/{day.year}", *with_year)


def test_dates_and_times_side_by_side_stay_apart() -> None:
    assert_same("August 10, 12 PM", "august tenth twelve p.m.")
    assert normal("August 7, 7:30 p.m. for 2") == "august 7 730 pm for 2"
    assert normal("for two, August seventh") == "for 2 august 7"
    assert normal("August seventh twenty twenty six, seven p.m.") == "august 7 2026 7 pm"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("At seven. May I come?", "at 7 may i come"),
        ("I am 36.", "i am 36"),
        ("Oh, hello.", "oh hello"),
        ("One second, please.", "1 second please"),
        ("the second one", "the 2nd 1"),
        ("They may march on.", "they may march on"),
        ("a table in August", "a table in august"),
    ],
)
def test_words_that_only_look_like_numbers_dates_or_times_stay(text: str, words: str) -> None:
    assert normal(text) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$20.50", "twenty dollars and fifty cents"),
        ("$20 million", "twenty million dollars"),
        ("£1", "one pound"),
        ("20%", "twenty per cent"),
        ("3.5", "three point five"),
        ("1.5 million", "1,500,000"),
        ("R-001", "R zero zero one"),
        ("007", "double oh seven"),
        ("M-A-Y-A", "Maya"),
        ("I'd like", "I would like"),
        ("colour", "color"),
        ("Café Zoë", "cafe zoe"),
        ("Mm-hmm.", ""),
        ("[laughs] um, yes (sighs)", "yes"),
        ("Good-bye!", "goodbye"),
        ("Okay", "O.K."),
        ("“Let’s go”", "let us go"),
        ("３６", "36"),
    ],
)
def test_money_shares_codes_contractions_and_spelling(one: str, other: str) -> None:
    assert_same(one, other)


def test_different_values_stay_different() -> None:
    texts = ["7 am", "7 pm", "7:30", "7:03", "August 7", "July 7", "the 7th", "17", "70", "7.5",
             "007", "seventh of May 2026", "Maya", "Mia"]  # fmt: skip
    assert len({normal(text) for text in texts}) == len(texts)


# -- for whatever a wire brings ----------------------------------------------------

_VOCABULARY = words_in(
    "one two seven thirteen twenty thirty hundred thousand million and zero "
    "double a first second third hundredth half quarter past to the of day may march "
    "august 7 07 30 730 2026 7th am pm a.m. p m o'clock 10:00 1,000 3.5 $5 percent "
    "dollars ok it's Maya . , - ("
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_VOCABULARY), max_size=12))
def test_numbers_in_any_order_lose_no_figure_and_no_other_word(words: list[str]) -> None:
    normalised = normal(" ".join(words))
    assert normalised.split().count("maya") == words.count("Maya")
    assert normalised.split().count("percent") == words.count("percent")
    digits = [word for word in words if word.isdigit() and word != "07"]
    assert sum(char.isdigit() for char in normalised) >= (len(digits) > 0)


@settings(max_examples=300)
@given(st.text(max_size=60))
def test_any_text_gives_plain_words(text: str) -> None:
    words = normal(text)
    assert words == " ".join(words.split())
    assert words == words.lower()
    assert not re.search(r"[,;:!?\"<>()\[\]$]", words)


@pytest.mark.parametrize(
    "unit", ["<", "(", "[", "(1", "' ", "1", "one ", "a ", "$1", "1,000,", "oh ", "thousand ", ". "]
)
def test_hostile_text_takes_time_linear_in_it(unit: str) -> None:
    def seconds(count: int) -> float:
        began = process_time()
        normal(unit * count)
        return process_time() - began

    seconds(100)
    small = max(min(seconds(500) for _ in range(3)), 0.002)
    assert any(seconds(5_000) < 40 * small for _ in range(4))

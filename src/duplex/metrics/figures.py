"""Numbers, ordinals, dates and times of day, spoken or written, in one form each.

Takes the words of one utterance, lower case and without punctuation, and gives
words again: ``thirty six`` becomes ``36``, ``twenty first`` ``21st``, ``ten a m``
``10 am``, ``the seventh of august`` ``august 7``. Neighbouring figures are
joined, so that digits said one by one, in pairs or in groups are one number
whatever the commas were. Pure; ``english.py`` drives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from duplex.metrics.numerals import Item, read_numbers

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
OCLOCK = "oclock"

_MONTH = {name: name for name in MONTHS} | {name[:3]: name for name in MONTHS} | {"sept": MONTHS[8]}
_ALSO_WORDS = ("march", "mar", "may", "dec", "sep")
"""Months whose names are other words too: a bare number before them is no day."""
_MONEY = {
    "dollar": "dollars", "euro": "euros", "pound": "pounds", "cent": "cents", "penny": "pence",
}  # fmt: skip
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_DAY = re.compile(r"0?[1-9]|[12][0-9]|3[01]")
_YEAR = re.compile(r"(?:19|20)[0-9][0-9]")
_CLOCK = re.compile(r"0?([1-9]|1[0-2])([0-5][0-9])?")
_PARTS = {("half", "past"): "30", ("quarter", "past"): "15", ("quarter", "after"): "15"}


def in_figures(words: Sequence[str]) -> list[str]:
    """Write every number, date and time in ``words`` in its one form."""
    items = _clocks(_dates(_parts_of_hours(read_numbers(words))))
    return _joined(_money(items))


def _parts_of_hours(items: Sequence[Item]) -> list[Item]:
    """``half past 7`` is ``730``, ``a quarter to 8`` is ``745``."""
    made: list[Item] = []
    for item in items:
        clock = _past(made[-2:], item)
        if clock is not None:
            quarter = made[-2].text == "quarter"
            del made[-2:]
            if quarter and made and made[-1].text == "a":
                made.pop()
        made.append(clock or item)
    return made


def _past(before: Sequence[Item], item: Item) -> Item | None:
    """The time that two items before an hour make of it."""
    found = _CLOCK.fullmatch(item.text) if item.whole else None
    if found is None or found[2] is not None or len(before) < 2:
        return None
    part, direction, hour = before[0], before[1].text, int(found[1])
    if (part.text, direction) == ("quarter", "to"):
        return Item(f"{(hour - 1) or 12}45", loose=True)
    minutes = _PARTS.get((part.text, direction))
    if part.whole and direction == "past" and part.text in ("5", "10", "20", "25"):
        minutes = f"{int(part.text):02d}"
    return None if minutes is None else Item(f"{hour}{minutes}", loose=True)


def _dates(items: Sequence[Item]) -> list[Item]:
    """Write days of a month as ``august 7``, and a year behind them apart."""
    made: list[Item] = []
    at = 0
    while at < len(items):
        month = _MONTH.get(items[at].text) if not items[at].loose else None
        if month is None:
            made.append(items[at])
            at += 1
            continue
        day, after = _day_behind(items, at + 1)
        if day is None:
            day = _take_day_before(made, items[at].text, _year(items, at + 1)[0] is not None)
        if day is not None:
            made += [Item(month), Item(day)]
        else:
            full = month if _year(items, after)[0] is not None else items[at].text
            made.append(Item(full))
        year, at = _year(items, after)
        if year is not None:
            made.append(Item(year))
    return made


def _day_behind(items: Sequence[Item], at: int) -> tuple[str | None, int]:
    """The day after a month's name and where it ends; None where none follows."""
    first = at
    if at < len(items) and items[at].text == "the":
        at += 1
    if at >= len(items):
        return None, first
    if _year(items, first)[0] is not None and _year(items, first + 1)[0] is None:
        return None, first
    if ordinal := _ORDINAL.fullmatch(items[at].text):
        day = ordinal[1]
    elif items[at].whole and at == first and not _half_day(items, at + 1):
        day = items[at].text
    else:
        return None, first
    return (str(int(day)), at + 1) if _DAY.fullmatch(day) else (None, first)


def _take_day_before(made: list[Item], month: str, has_year: bool) -> str | None:
    """Take ``the 7th of`` or ``7`` off the end of ``made``; None where there is no day."""
    count = 0
    of = bool(made) and made[-1].text == "of"
    count += of
    if len(made) > count and made[-1 - count].text == "day":
        count += 1
    if len(made) <= count:
        return None
    found = made[-1 - count]
    ordinal = _ORDINAL.fullmatch(found.text)
    day = ordinal[1] if ordinal else found.text
    bare = found.whole and (of or has_year or month not in _ALSO_WORDS)
    if not (ordinal or bare) or not _DAY.fullmatch(day):
        return None
    del made[-1 - count :]
    if made and made[-1].text == "the":
        made.pop()
    return str(int(day))


def _year(items: Sequence[Item], at: int) -> tuple[str | None, int]:
    """A year that begins at ``at``, said in one or two figures, and where it ends."""
    digits = ""
    for index in range(at, min(at + 3, len(items))):
        if not items[index].whole:
            break
        digits += items[index].text[:5]
        if _YEAR.fullmatch(digits) and not _half_day(items, index + 1):
            return digits, index + 1
    return None, at


def _half_day(items: Sequence[Item], at: int) -> int:
    """How many items from ``at`` say am or pm; 0 when they do not."""
    if at >= len(items):
        return 0
    if items[at].text in ("am", "pm"):
        return 1
    letters = [item.text for item in items[at : at + 2]]
    return 2 if letters in (["a", "m"], ["p", "m"]) else 0


def _clocks(items: Sequence[Item]) -> list[Item]:
    """Write times as ``7 pm`` and ``730 pm``; the hour stands alone at zero minutes."""
    made: list[Item] = []
    at = 0
    while at < len(items):
        item = items[at]
        if made and made[-1].whole and item.text == OCLOCK:
            at += 1
            continue
        letters = _half_day(items, at) if made and made[-1].whole else 0
        if not letters:
            made.append(item)
            at += 1
            continue
        _fix_clock(made)
        made.append(Item(f"{item.text[0]}m"))
        at += letters
    return made


def _fix_clock(made: list[Item]) -> None:
    """Make the longest time of day that ends ``made`` one figure, which joins no other."""
    for count in range(min(_closing_figures(made), 4), 0, -1):
        found = _CLOCK.fullmatch("".join(item.text for item in made[-count:]))
        if found is not None:
            minutes = found[2] if found[2] not in (None, "00") else ""
            made[-count:] = [Item(f"{found[1]}{minutes}")]
            return


def _closing_figures(items: list[Item]) -> int:
    """How many loose figures end ``items``."""
    count = 0
    while count < len(items) and items[-1 - count].whole:
        count += 1
    return count


def _money(items: Sequence[Item]) -> list[Item]:
    """Give currencies behind a figure one number, and cents no ``and``."""
    made: list[Item] = []
    for at, item in enumerate(items):
        after = bool(made) and made[-1].loose
        paid = bool(made) and made[-1].text in _MONEY.values()
        if item.text == "and" and paid and at + 1 < len(items) and items[at + 1].loose:
            continue
        made.append(Item(_MONEY.get(item.text, item.text)) if after and not item.loose else item)
    return made


def _joined(items: Sequence[Item]) -> list[str]:
    """Join neighbouring figures of digits alone."""
    made: list[str] = []
    for whole, run in groupby(items, key=lambda item: item.whole):
        texts = [item.text for item in run]
        made += ["".join(texts)] if whole else texts
    return made

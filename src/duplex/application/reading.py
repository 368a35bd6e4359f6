"""Finding values of slot types in words as ears deliver them.

Each finder takes cleaned text and yields :class:`Found` values with their span
in it. Finders never know what a call wants; ``filling.py`` decides which slot a
value belongs to. ``strong`` values stand for themselves; weak ones (a bare
number, a bare word) count only as the answer to a question.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duplex.application.words import NUMBER, ORDINAL, number
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value found at ``text[start:end]``."""

    kind: str
    value: Json
    start: int
    end: int
    strong: bool = True


_MONTH_NAMES = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = rf"(?:{'|'.join(_DAYS)})"
_DAY = rf"(?:{ORDINAL}|{NUMBER})"
_LEAD = rf"(?:\b{_WEEKDAY},? (?:the )?)?"

_DATE_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("iso", re.compile(r"\b(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})\b")),
    (
        "month_day",
        re.compile(
            rf"{_LEAD}\b(?P<month>{_MONTH}),? (?:the )?(?P<day>{_DAY})\b"
            r"(?!:)(?: ?(?:am|pm)\b(?P<clock>))?(?:,? (?P<y>20\d\d)\b)?"
        ),
    ),
    (
        "day_month",
        re.compile(
            rf"{_LEAD}\b(?:the )?(?P<day>{_DAY}) (?:day )?(?:of )?(?P<month>{_MONTH})\b"
            r"(?:,? (?P<y>20\d\d)\b)?"
        ),
    ),
    ("slashes", re.compile(r"\b(?P<m>\d{1,2})/(?P<d>\d{1,2})(?:/(?P<y>\d{2,4}))?\b")),
    ("day_after", re.compile(r"\b(?:the )?day after tomorrow\b")),
    ("in_days", re.compile(rf"\bin (?P<n>{NUMBER}) (?P<unit>days?|weeks?)\b")),
    ("word", re.compile(r"\b(?P<word>today|tonight|this evening|tomorrow)\b")),
    (
        "weekday",
        re.compile(
            rf"\b(?P<which>next |this |this coming |on |coming )?(?P<weekday>{_WEEKDAY})\b"
            r"(?P<week> (?:next week|week))?"
        ),
    ),
    ("ordinal", re.compile(rf"\b(?:on )?the (?P<day>{ORDINAL})\b(?! (?:one|option|time|choice))")),
)


def find_dates(text: str, today: dt.date, since: dt.date) -> Iterator[Found]:
    """Yield dates; days without a year fall on or after ``since``."""
    low = text.lower()
    taken: list[tuple[int, int]] = []
    for name, pattern in _DATE_PATTERNS:
        for match in pattern.finditer(low):
            if _overlaps(taken, match.start(), match.end()):
                continue
            day = _date_of(name, match, today, since)
            if day is not None:
                taken.append(match.span())
                value = day.isoformat()
                yield Found(kind="date", value=value, start=match.start(), end=match.end())


def _date_of(name: str, match: re.Match[str], today: dt.date, since: dt.date) -> dt.date | None:
    part = match.groupdict()
    if name == "day_after":
        return today + dt.timedelta(days=2)
    if name == "in_days":
        count = number(part["n"]) or 0
        return today + dt.timedelta(days=count * (7 if part["unit"].startswith("week") else 1))
    if name == "word":
        return today + dt.timedelta(days=1 if part["word"] == "tomorrow" else 0)
    if name == "weekday":
        return _weekday(part, today)
    if name == "ordinal":
        return _next_day_of_month(number(part["day"]) or 0, today)
    if part.get("clock") is not None:
        return None
    if name in ("iso", "slashes"):
        month, day = int(part["m"]), int(part["d"])
    else:
        month, day = _MONTH_NAMES[part["month"][:3]], number(part["day"]) or 0
    year = part.get("y")
    return _resolve(month, day, None if year is None else int(year) % 2000 + 2000, since)


def _resolve(month: int, day: int, year: int | None, since: dt.date) -> dt.date | None:
    years = [year] if year is not None else range(since.year, since.year + 5)
    for candidate in years:
        try:
            found = dt.date(candidate, month, day)
        except ValueError:
            continue
        if year is not None or found >= since:
            return found
    return None


def _weekday(part: Mapping[str, str | None], today: dt.date) -> dt.date:
    """``Friday`` is the first after today; ``next Friday`` that of the next Monday-led week."""
    wanted = _DAYS.index(str(part["weekday"]))
    if (part["which"] or "").strip() == "next" or part["week"]:
        monday = today + dt.timedelta(days=7 - today.weekday())
        return monday + dt.timedelta(days=wanted)
    return today + dt.timedelta(days=(wanted - today.weekday() - 1) % 7 + 1)


def _next_day_of_month(day: int, today: dt.date) -> dt.date | None:
    for ahead in range(62):
        found = today + dt.timedelta(days=ahead)
        if found.day == day:
            return found
    return None


_HOUR = r"(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_MINUTES = (
    r"(?:o'? ?(?:five|clock)|oh[ -]five|fifteen|thirty(?:[ -]five)?|forty(?:[ -]five)?|"
    r"fifty(?:[ -]five)?|twenty(?:[ -]five)?|ten|[0-5]\d)"
)
_PEOPLE = (
    r"(?:of us|people|persons?|guests?|adults?|diners?|seats?|pax|folks|friends|kids|children)"
)
_CLOCK = r"(?P<part>am\b|pm\b)"
_DAYPART = r"(?P<part>(?:in the |this |that )(?:morning|afternoon|evening)|at night|tonight)"
_PART = rf"(?P<part>am\b|pm\b|{_DAYPART.removeprefix('(?P<part>')[:-1]})"
_BEFORE = r"(?:at|around|about|by|until|till|for|make (?:it|that))"

_TIME_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("noon", re.compile(r"\b(?:(?:12|twelve) )?(?P<word>noon|midday|midnight)\b")),
    ("past", re.compile(
        rf"\b(?P<off>half|(?:a )?quarter|{NUMBER})(?: minutes?)? "
        rf"(?P<dir>past|pass|after|to|before|till) (?P<h>{_HOUR})\b(?:[ ,]*{_PART})?(?! {_PEOPLE})"
    )),
    ("digits", re.compile(rf"\b(?P<h>\d{{1,2}})[:.](?P<m>[0-5]\d)\b(?: ?hours)?(?:[ ,]*{_PART})?")),
    ("run", re.compile(r"\b(?P<h>\d{1,2}?)(?P<m>[0-5]\d) ?(?P<part>am\b|pm\b|hours\b)")),
    # Ears write "730" for half past seven; a number that large is no hour and no party.
    ("bare_run", re.compile(
        r"\b(?:at|around|about|by|until|for|make it) (?P<h>1[0-2]|[1-9])(?P<m>[0-5][05])\b"
        rf"(?![:/-]\d|[ -]?{_PEOPLE})"
    )),
    ("minutes", re.compile(
        rf"\b(?P<h>{_HOUR})[ -](?P<m>{_MINUTES})\b(?:[ ,]*{_PART})?(?!/|:| {_PEOPLE})"
    )),
    ("marked", re.compile(rf"\b(?P<h>{_HOUR})(?: o'? ?clock)?[ ,]*{_CLOCK}")),
    # "for two tonight" is a number of people.
    ("dayparts", re.compile(rf"(?<!for )(?<!of )\b(?P<h>{_HOUR})(?: o'? ?clock)?[ ,]*{_DAYPART}")),
    ("oclock", re.compile(rf"\b(?P<h>{_HOUR}) o'? ?clock\b")),
    ("at", re.compile(
        rf"\b(?P<before>{_BEFORE}) (?P<h>{_HOUR})\b"
        rf"(?![:/-]\d|[ -]?(?:{_PEOPLE}|days?|weeks?|nights?))"
    )),
)  # fmt: skip


def find_times(text: str, bare_hours: str = "evening") -> Iterator[Found]:
    """Yield times of day; ``for N`` and ``make it N`` are weak: they may count people."""
    low = text.lower()
    taken: list[tuple[int, int]] = []
    for name, pattern in _TIME_PATTERNS:
        for match in pattern.finditer(low):
            if _overlaps(taken, match.start(), match.end()):
                continue
            value = _time_of(name, match, bare_hours)
            if value is None:
                continue
            before = match.groupdict().get("before") or ""
            weak = before == "for" or before.startswith("make")
            if not weak:
                taken.append(match.span())
            yield Found(
                kind="time", value=value, start=match.start(), end=match.end(), strong=not weak
            )


def _time_of(name: str, match: re.Match[str], bare_hours: str) -> str | None:
    part = match.groupdict()
    if name == "noon":
        return "00:00" if part["word"] == "midnight" else "12:00"
    hour = number(part["h"])
    minute = 0
    if name == "past":
        hour, minute = _past(part, hour or 0)
    elif part.get("m"):
        minute = _minute(part["m"])
    if hour is None or hour > 23 or not 0 <= minute < 60:
        return None
    return f"{_on_the_day(hour, part.get('part') or '', bare_hours):02d}:{minute:02d}"


def _past(part: Mapping[str, str | None], hour: int) -> tuple[int, int]:
    off = str(part["off"])
    minutes = 30 if off == "half" else 15 if off.endswith("quarter") else number(off) or 0
    if part["dir"] in ("to", "before", "till"):
        return (hour - 1) or 12, 60 - minutes
    return hour, minutes


def _minute(word: str) -> int:
    if word.endswith("clock"):
        return 0
    if word[0] == "o":
        return 5
    return number(word) or 0


def _on_the_day(hour: int, part: str, bare_hours: str) -> int:
    """Place an hour of the twelve-hour dial on the day."""
    if hour > 12 or hour == 0:
        return hour
    if part == "am" or part.endswith("morning"):
        return hour % 12
    if part == "pm" or part.endswith(("afternoon", "evening", "night", "tonight")):
        return hour % 12 + 12
    if part == "hours" or hour == 12:
        return hour
    return hour + 12 if bare_hours == "evening" or hour <= 6 else hour


def find_counts(text: str, units: tuple[str, ...] = ()) -> Iterator[Found]:
    """Yield numbers of people or of the given units; ``for N`` is strong here."""
    low = text.lower()
    people = _PEOPLE if not units else rf"(?:{'|'.join(re.escape(u.lower()) for u in units)})"
    taken: list[tuple[int, int]] = []
    for found in _counts(low, people):
        if not _overlaps(taken, found.start, found.end):
            taken.append((found.start, found.end))
            yield found


_FIXED_COUNTS = (
    (r"\b(?:just|only) (?:for )?(?:me|myself|one)\b|\bby myself\b|\bmyself only\b", 1),
    (r"\b(?:me and (?:my|a) \w+|my \w+ and (?:me|i)|the two of us|a couple of (?:people|us))\b", 2),
    (r"\bfor (?:a couple|to|too)(?= ?(?:[,.?!]|$| on | at | under | please))", 2),
    (r"\bfor for(?= ?(?:[,.?!]|$| on | at | under | please))", 4),
)  # fmt: skip


def _counts(low: str, people: str) -> Iterator[Found]:
    for match in re.finditer(rf"\b({NUMBER}) adults?,? and ({NUMBER}) (?:kids?|child\w*)\b", low):
        both = (number(match[1]) or 0) + (number(match[2]) or 0)
        yield Found(kind="count", value=both, start=match.start(), end=match.end())
    for pattern, value in _FIXED_COUNTS:
        for match in re.finditer(pattern, low):
            yield Found(kind="count", value=value, start=match.start(), end=match.end())
    group = r"(?:party|table|group|booking|reservation|team)"
    patterns = (
        rf"\b{group} (?:of|for|4)[ -]({NUMBER})\b",
        rf"\b({NUMBER})[ -](?:(?:or so|more) )?{people}\b",
        rf"\b({NUMBER}) in (?:total|all|our party)\b",
        rf"\bfor ({NUMBER})\b(?![:/-]\d| ?(?:am|pm|o'? ?clock)\b| (?:days?|weeks?|nights?|hours?))",
    )
    for pattern in patterns:
        for match in re.finditer(pattern, low):
            count = number(match[1])
            if count is not None:
                yield Found(kind="count", value=count, start=match.start(), end=match.end())


_WHICH_ONE = re.compile(
    r"\b(?:first|second|third|last|latter|former|earlier|later|other|this|that|which|any|no|each|"
    r"either|every|another|the) $"
)


def find_numbers(text: str) -> Iterator[Found]:
    """Yield bare cardinals, weak."""
    low = text.lower()
    for match in re.finditer(rf"(?<![\w:/-]){NUMBER}(?![\w:/-])", low):
        value = number(match[0])
        pronoun = match[0] == "one" and _WHICH_ONE.search(low[: match.start()])
        if value is not None and not pronoun:
            yield Found(
                kind="number", value=value, start=match.start(), end=match.end(), strong=False
            )


def find_phones(text: str) -> Iterator[Found]:
    """Yield runs of at least seven digits, in figures or words, as digits only."""
    digit = r"(?:\d+|zero|oh|one|two|three|four|five|six|seven|eight|nine|double|triple)"
    for match in re.finditer(rf"(?<!\w)\+?\(?{digit}(?:[ ,().-]{{1,3}}{digit})*", text.lower()):
        digits = _digits(match[0])
        if len(digits) >= 7 and not re.fullmatch(r"\d{4}-\d\d-\d\d", match[0]):
            yield Found(kind="phone", value=digits, start=match.start(), end=match.end())


def _digits(words: str) -> str:
    out, times = "", 1
    for word in re.findall(r"\d+|[a-z]+", words):
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
            continue
        out += word if word.isdigit() else str(number(word)) * times
        times = 1
    return out


_SOUNDS_LIKE = {
    "r": "r|are|our|ar",
    "b": "b|be|bee",
    "c": "c|see|sea",
    "t": "t|tea|tee",
    "u": "u|you",
}


_DIGITS = (
    # One after the other ("R 3 1 8", "R-3-1-A" for the last eight), in two parts
    # ("R-3-18", "R-300-18"), or as one number.
    r"(?:\d(?:[ ,-]{1,2}\d(?!\d)){1,5}(?:-?a)?|\d{1,4}-\d{1,2}|\d{1,6})"
)
_NAMED = re.compile(
    r"\b(?:reservation|booking|order|cancel|change|number|reference|code|id|meant|it's|it is)"
    r"(?: (?:number|id|code|is))? $"
)


def find_codes(text: str, prefix: str) -> Iterator[Found]:
    """Yield references such as ``R-100``: strong with letters, weak as a bare number."""
    letters = (
        _SOUNDS_LIKE.get(prefix.lower(), re.escape(prefix.lower())) if prefix else r"[a-z]{1,3}"
    )
    low = text.lower()
    figures = (
        rf"(?:{_DIGITS}|{NUMBER} hundred(?: (?:and )?{NUMBER})?|{NUMBER}(?: (?:{NUMBER}|oh))*)"
    )
    for match in re.finditer(
        rf"(?<![\w'])(?P<l>{letters})[ .,-]{{0,2}}(?P<n>{figures})(?!\w)", low
    ):
        exact = (text[match.start("l")].isupper() and match["l"] == match["l"][:3]) or match[
            "l"
        ] == prefix.lower()
        exact = exact or bool(_NAMED.search(low[: match.start()]))
        lead = (prefix or match["l"]).upper()
        value = f"{lead}-{_figures(match['n'])}"
        yield Found(kind="code", value=value, start=match.start(), end=match.end(), strong=exact)
    if prefix:
        for match in re.finditer(rf"(?<![\w-])(?P<n>{figures})(?!\w)", low):
            value = f"{prefix.upper()}-{_figures(match['n'])}"
            yield Found(
                kind="code", value=value, start=match.start(), end=match.end(), strong=False
            )


def _figures(words: str) -> str:
    if words[0].isdigit() and not re.search("[b-z]", words):
        first, *more = re.findall(r"\d+", re.sub("-?a$", " 8", words))
        if len(first) == 3 and first.endswith("00") and len(more) == 1:
            return str(int(first) + int(more[0]))
        return "".join([first, *more])
    if match := re.fullmatch(r"(\S+) hundred(?: (?:and )?(.+))?", words):
        return str((number(match[1]) or 0) * 100 + (number(match[2]) or 0 if match[2] else 0))
    return "".join(str(number(part) or 0) for part in words.split())


def find_choices(text: str, choices: Mapping[str, tuple[str, ...]]) -> Iterator[Found]:
    """Yield values whose name or other wording is spoken, longest wording first."""
    wordings = [(w.lower(), value) for value, more in choices.items() for w in (value, *more)]
    low = text.lower()
    taken: list[tuple[int, int]] = []
    for wording, value in sorted(wordings, key=lambda pair: -len(pair[0])):
        pattern = re.escape(wording).replace(r"\ ", r"[ -]").replace(r"\-", r"[ -]?")
        for match in re.finditer(rf"(?<!\w){pattern}(?:s|es)?(?!\w)", low):
            if not _overlaps(taken, match.start(), match.end()):
                taken.append(match.span())
                yield Found(kind="choice", value=value, start=match.start(), end=match.end())


def _overlaps(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(start < b and a < end for a, b in taken)

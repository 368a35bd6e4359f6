"""Slots: the details an application collects, how they are asked for and said.

A slot is a description, never a value. Reading values out of speech is in
``reading.py``; which of them a call has so far is in ``dialogue.py``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from duplex.application.words import joined, spoken_number
from duplex.errors import InputError
from duplex.values import Json

SLOT_TYPES = (
    "date", "time", "count", "name", "phone", "code", "choice", "yes_no", "text",
)  # fmt: skip
"""What a slot can hold.

``date`` an ISO day, ``time`` ``HH:MM``, ``count`` a whole number, ``name`` a
person's name, ``phone`` digits, ``code`` a reference such as ``R-100``,
``choice`` one of the slot's own values, ``yes_no`` a boolean, ``text`` words.
"""

_TYPE_CUES: Mapping[str, tuple[str, ...]] = {
    "date": ("date", "day", "when"),
    "time": ("time", "when", "hour", "o'clock"),
    "count": ("how many", "number of"),
    "name": ("name", "who"),
    "phone": ("phone", "telephone", "number to reach", "contact number", "call you back"),
    "code": ("reference", "code", "reservation id", "booking number", "which reservation"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One detail to collect.

    ``label`` is the noun phrase by which it is asked for (``the name for the
    booking``); ``questions`` are whole questions, one is chosen by the seed.
    ``cues`` are the words by which it is spoken of, in questions or beside a
    value; those of the type are added. ``choices`` maps each value of a
    ``choice`` to its other wordings, and each unit of a ``count`` counts the
    words in ``units``. ``bare_hours`` is the policy for an hour without a.m. or
    p.m.: ``evening`` takes 1–11 as p.m., ``day`` takes 1–6 as p.m. and 7–11 as
    a.m. ``prefix`` are the letters of a ``code``. With ``allowed`` given, other
    values are refused with the words of ``refusal`` and never delegated.
    """

    name: str
    type: str
    label: str
    questions: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bare_hours: str = "evening"
    prefix: str = ""
    allowed: tuple[str, ...] | None = None
    refusal: str = ""

    def __post_init__(self) -> None:
        if self.type not in SLOT_TYPES:
            raise InputError(
                f"slot {self.name}: type {self.type!r} is not one of {', '.join(SLOT_TYPES)}"
            )
        if self.type == "choice" and not self.choices:
            raise InputError(f"slot {self.name}: a choice needs choices, got none")
        if self.bare_hours not in ("evening", "day"):
            raise InputError(
                f"slot {self.name}: bare_hours {self.bare_hours!r} is not evening or day"
            )

    @property
    def all_cues(self) -> tuple[str, ...]:
        """Every wording that points at this slot, lower case."""
        own = tuple(cue.lower() for cue in self.cues)
        return own + _TYPE_CUES.get(self.type, ())

    def mentioned(self, text: str) -> int | None:
        """Return where lower-case ``text`` first speaks of this slot, None if nowhere."""
        at = [
            match.start()
            for cue in self.all_cues
            if (match := re.search(rf"(?<![\w']){re.escape(cue)}(?![\w'])", text))
        ]
        return min(at) if at else None


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def spoken_date(value: str, *, weekday: bool = False) -> str:
    """Say an ISO day: ``August 7`` or ``Friday, August 7``."""
    day = dt.date.fromisoformat(value)
    said = f"{_MONTHS[day.month - 1]} {day.day}"
    return f"{_WEEKDAYS[day.weekday()]}, {said}" if weekday else said


def spoken_time(value: str) -> str:
    """Say ``HH:MM``: ``7 p.m.``, ``7:30 p.m.``, ``noon``."""
    at = dt.time.fromisoformat(value)
    if (at.hour, at.minute) == (12, 0):
        return "noon"
    if (at.hour, at.minute) == (0, 0):
        return "midnight"
    hour = at.hour % 12 or 12
    minutes = f":{at.minute:02d}" if at.minute else ""
    return f"{hour}{minutes} {'p.m.' if at.hour >= 12 else 'a.m.'}"


def spoken(kind: str, value: Json, *, weekday: bool = False) -> str:
    """Say a value of a slot type; lists are joined by ``or``."""
    if isinstance(value, list):
        return joined([spoken(kind, item, weekday=weekday) for item in value])
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and kind == "count":
        return spoken_number(value)
    if not isinstance(value, str):
        return "" if value is None else str(value)
    try:
        if kind == "date":
            return spoken_date(value, weekday=weekday)
        if kind == "time":
            return spoken_time(value)
    except ValueError:
        return value
    if kind == "phone":
        return " ".join(value)
    return value


def slot_named(slots: tuple[Slot, ...], name: str) -> Slot:
    """Return the slot of that name; raise KeyError with the name."""
    for slot in slots:
        if slot.name == name:
            return slot
    raise KeyError(name)

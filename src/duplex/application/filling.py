"""Which slot each value found in an utterance belongs to.

One pure function: words in, values per slot out. It knows what was asked and
what is known already, because a bare ``eight`` means nothing without them, and
which words repair (``no, make it eight``) or deny (``not Friday``).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from duplex.application.names import find_names
from duplex.application.reading import (
    Found,
    find_choices,
    find_codes,
    find_counts,
    find_dates,
    find_numbers,
    find_phones,
    find_times,
)
from duplex.application.slots import Slot
from duplex.application.words import clean, says_no, says_yes
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """What undated words are relative to.

    ``today`` places ``tomorrow`` and weekdays; a day and month without a year
    fall on or after ``since``.
    """

    today: dt.date
    since: dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one utterance said: values per slot, and values it denied.

    ``doubted`` are slots for which it said and denied the same: ears made one of
    two values, and nobody can tell which.
    """

    values: Mapping[str, Json] = field(default_factory=dict)
    denied: Mapping[str, Json] = field(default_factory=dict)
    doubted: frozenset[str] = frozenset()


_DENIES = re.compile(
    r"(?:\bnot|\binstead of|\brather than|n't|\bnever)"
    r"(?: (?:for|at|on|under|the|a|in|it's|is|be|want|need|say|said))* ?$"
)
_REPAIRS = re.compile(
    r"\b(?:sorry|i mean|i meant|actually|no|nope|wait|make (?:it|that)|rather|correction|"
    r"scratch that|change (?:it|that)|instead|let's say|should be)\b"
)


def read(
    text: str,
    slots: Sequence[Slot],
    calendar: Calendar,
    *,
    asked: Sequence[str] = (),
    known: Mapping[str, Json] | None = None,
) -> Reading:
    """Read ``text`` for ``slots``; ``asked`` are the slots of the last question."""
    known = known or {}
    masked = clean(text)
    candidates: list[Found] = []
    for kind in ("date", "phone", "code", "time", "weak code", "count", "choice", "name"):
        # Only the letters of a code keep its digits from being a time.
        weak, kind = kind.startswith("weak"), kind.removeprefix("weak ")
        wanted = [slot for slot in slots if slot.type == kind]
        if not wanted:
            continue
        for found in _find(kind, masked, wanted, calendar, asked):
            if _free(masked, found) and (kind != "code" or weak is not found.strong):
                candidates.append(found)
                masked = _mask(masked, found)
    candidates = _settle_bare(candidates, clean(text), masked, slots, asked, known, calendar)
    return _assign(clean(text), candidates, slots, asked, known)


def _find(
    kind: str, text: str, slots: Sequence[Slot], calendar: Calendar, asked: Sequence[str]
) -> list[Found]:
    is_asked = any(slot.name in asked for slot in slots)
    found: Iterable[Found]
    if kind == "date":
        found = find_dates(text, calendar.today, calendar.since)
    elif kind == "time":
        found = find_times(text, slots[0].bare_hours)
    elif kind == "count":
        found = [f for slot in slots for f in find_counts(text, slot.units)]
    elif kind == "phone":
        found = find_phones(text)
    elif kind == "code":
        found = [f for slot in slots for f in find_codes(text, slot.prefix)]
    elif kind == "choice":
        found = [f for slot in slots for f in find_choices(text, slot.choices)]
    else:
        found = find_names(text, asked=is_asked)
    return [f for f in found if f.strong or (is_asked and kind in ("name", "code"))]


def _free(masked: str, found: Found) -> bool:
    return "\0" not in masked[found.start : found.end]


def _mask(text: str, found: Found) -> str:
    return text[: found.start] + "\0" * (found.end - found.start) + text[found.end :]


def _settle_bare(
    candidates: list[Found],
    text: str,
    masked: str,
    slots: Sequence[Slot],
    asked: Sequence[str],
    known: Mapping[str, Json],
    calendar: Calendar,
) -> list[Found]:
    """Give bare numbers the meaning the question, or the value they replace, gives them.

    ``for N`` is a count unless only the time was asked; ``make it N`` and a
    number alone follow the question, then the value denied beside them.
    """
    kinds = {slot.name: slot.type for slot in slots}
    asked_kinds = [kinds[name] for name in asked if name in kinds]
    hours = next((slot.bare_hours for slot in slots if slot.type == "time"), "evening")
    have = {c.kind for c in candidates}
    if "time" in asked_kinds and "count" not in asked_kinds and "time" not in have:
        candidates = [_as_time(c, text, hours) for c in candidates]
        have = {c.kind for c in candidates}
    low = masked.lower()
    repaired = bool(_REPAIRS.search(low))
    for found in list(find_numbers(masked)):
        kind = _bare_kind(found, low, asked_kinds, have, kinds, known, repaired)
        if kind is None:
            continue
        value = found.value
        if kind == "time":
            hour = next((f for f in find_times(f"at {value}", hours)), None)
            if hour is None:
                continue
            value = hour.value
        candidates.append(
            Found(kind=kind, value=value, start=found.start, end=found.end, strong=False)
        )
        have.add(kind)
    if "date" in asked_kinds and "date" not in have:
        candidates += _bare_day(masked, calendar)
    return candidates


def _as_time(found: Found, text: str, hours: str) -> Found:
    if found.kind != "count" or not isinstance(found.value, int):
        return found
    hour = next((f for f in find_times(f"at {found.value}", hours)), None)
    if hour is None or not re.fullmatch(r"for [a-z0-9]+", text[found.start : found.end].lower()):
        return found
    return Found(kind="time", value=hour.value, start=found.start, end=found.end, strong=False)


def _bare_kind(
    found: Found,
    low: str,
    asked_kinds: Sequence[str],
    have: set[str],
    kinds: Mapping[str, str],
    known: Mapping[str, Json],
    repaired: bool,
) -> str | None:
    for kind in ("time", "count"):
        if kind in asked_kinds and kind not in have:
            return kind
    if not repaired or low[max(0, found.start - 4) : found.start].endswith("the "):
        return None
    same = [k for name, k in kinds.items() if k == "count" and known.get(name) is not None]
    clock = [k for name, k in kinds.items() if k == "time" and known.get(name) is not None]
    options = [k for k in (clock + same) if k not in have]
    return options[0] if options else None


def _bare_day(masked: str, calendar: Calendar) -> list[Found]:
    """``the`` is often lost: ``seventh`` alone answers a question for the day."""
    match = re.search(
        r"\b(\d{1,2}(?:st|nd|rd|th)|[a-z]+(?:th|first|second|third))\b", masked.lower()
    )
    if match is None:
        return []
    found = list(find_dates(f"the {match[1]}", calendar.today, calendar.since))
    return [
        Found(kind="date", value=f.value, start=match.start(), end=match.end(), strong=False)
        for f in found[:1]
    ]


def _assign(
    text: str,
    candidates: Sequence[Found],
    slots: Sequence[Slot],
    asked: Sequence[str],
    known: Mapping[str, Json],
) -> Reading:
    low = text.lower()
    values: dict[str, Json] = {}
    denied: dict[str, Json] = {}
    ends: dict[str, int] = {}
    for found in sorted(candidates, key=lambda f: (not f.strong, f.start)):
        slot = _slot_for(found, low, slots, asked, known, values)
        if slot is None:
            continue
        if _DENIES.search(low[: found.start]):
            denied[slot.name] = found.value
            continue
        if slot.name not in values or (
            found.start >= ends[slot.name] and _REPAIRS.search(low[ends[slot.name] : found.start])
        ):
            values[slot.name], ends[slot.name] = found.value, found.end
    _read_replies(text, slots, asked, values, ends)
    doubted = frozenset(
        name
        for name, value in values.items()
        if denied.get(name) == value or (isinstance(value, str) and _denies_text(low, value))
    )
    return Reading(
        values={name: value for name, value in values.items() if name not in doubted},
        denied=denied,
        doubted=doubted,
    )


def _denies_text(low: str, value: str) -> bool:
    """Whether the words of a value are denied where nothing marks them as one."""
    denial = r"\b(?:not|instead of|rather than)(?: (?:under|the|a|for)){0,2} "
    return re.search(rf"{denial}{re.escape(value.lower())}\b", low) is not None


def _slot_for(
    found: Found,
    low: str,
    slots: Sequence[Slot],
    asked: Sequence[str],
    known: Mapping[str, Json],
    values: Mapping[str, Json],
) -> Slot | None:
    """Choose among slots of one type: a cue beside the value, the question, then order."""
    same = [s for s in slots if s.type == found.kind and _fits(s, found)]
    if len(same) < 2:
        return same[0] if same else None
    beside = low[max(0, found.start - 40) : found.start]
    cued = [(at, s) for s in same if (at := _last_cue(s, beside)) is not None]
    if cued:
        return max(cued, key=lambda pair: pair[0])[1]
    for pick in (
        [s for s in same if s.name in asked and s.name not in values],
        [s for s in same if s.name not in known and s.name not in values],
        [s for s in same if s.name not in values],
    ):
        if pick:
            return pick[0]
    return same[0]


def _fits(slot: Slot, found: Found) -> bool:
    if slot.type == "choice":
        return found.value in slot.choices
    if slot.type == "code" and slot.prefix:
        return str(found.value).startswith(slot.prefix.upper() + "-")
    return True


def _last_cue(slot: Slot, text: str) -> int | None:
    at = [text.rfind(cue.lower()) for cue in slot.cues]
    best = max(at, default=-1)
    return best if best >= 0 else None


_FILLERS = re.compile(
    r"^(?:(?:um|uh|er|ah|oh|well|so|yes|yeah|sure|okay|ok|right|of course|hi|hello|please|"
    r"it's|it is|that's|that is|that would be|i'd say|the (?:problem|issue|reason) is(?: that)?|"
    r"because)\b[,. ]*)+"
)


def _read_replies(
    text: str,
    slots: Sequence[Slot],
    asked: Sequence[str],
    values: dict[str, Json],
    ends: Mapping[str, int],
) -> None:
    """Fill asked yes/no and free-text slots from the reply as a whole."""
    for slot in slots:
        if slot.name in values:
            continue
        if slot.type == "yes_no" and slot.name in asked and (says_yes(text) or says_no(text)):
            values[slot.name] = says_yes(text)
        elif slot.type == "text":
            words = _free_text(slot, text, slot.name in asked and not ends)
            if words:
                values[slot.name] = words


def _free_text(slot: Slot, text: str, asked: bool) -> str:
    for cue in slot.cues:
        if " " in cue and (match := re.search(rf"(?i)\b{re.escape(cue)}\s+([^.?!]+)", text)):
            return match[1].strip()
    if not asked or text.rstrip().endswith("?"):
        return ""
    words = _FILLERS.sub("", text.lower())
    said = text[len(text) - len(words) :].strip(" .,!?")
    return said if len(said) > 1 else ""

"""Whether a line of speech asks for a field, states a value, or refuses.

Plain word matching over transcripts, good enough for diagnostics: it finds the
line a procedure step happened in. It never decides whether a task was done.
"""

from __future__ import annotations

import re

from duplex.grading.matching import normalised
from duplex.values import Json


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_ASKED_AS: dict[str, tuple[str, ...]] = {
    "name": ("name", "who", "whom", "under"),
    "time": ("time", "when", "hour", "o clock"),
    "date": ("date", "day", "when"),
    "size": ("many", "people", "guests", "party", "persons"),
    "id": ("reference", "number", "which", "id", "code"),
    "phone": ("phone", "number", "reach"),
    "email": ("email", "mail", "address"),
}
"""Words a question may use for a field, by the last word of the field's name."""

_QUESTION = re.compile(
    r"\s*((and|so|then|ok|okay|sure|great|sorry)\W+)*"
    r"(under what|at what|for how|on what|what|when|who|whom|which|how|where|could|can|may|would|"
    r"will|do|does|is|are)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(can ?t|can ?not|cannot|couldn t|won t|unable|not able|not allowed|not permitted|"
    r"not authori[sz]ed|aren t authori[sz]ed|permission|no exceptions?|only help|afraid not)\b"
)
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_MONTHS = _split(
    "january february march april may june july august september october november december"
)
_ONES = _split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = ("-", "-", "twenty", "thirty", "forty", "fifty")
_ORDINALS = _split(
    "- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TEN_ORDINALS = ("-", "-", "twentieth", "thirtieth")


def asks_for(text: str, field: str) -> bool:
    """Whether a line is a question that names ``field``."""
    if "?" not in text and not any(map(_QUESTION.match, re.split(r"[.!;,]", text))):
        return False
    words = normalised(text)
    spoken = field.replace("_", " ").casefold()
    terms = (spoken, *_ASKED_AS.get(spoken.split()[-1] if spoken else "", ()))
    return any(re.search(rf"\b{re.escape(term)}\b", words) for term in terms if term)


def refuses(text: str) -> bool:
    """Whether a line says that something cannot or may not be done."""
    return _REFUSAL.search(normalised(text)) is not None


def mentions(text: str, value: Json) -> bool:
    """Whether a line says ``value``, as written or as people speak it."""
    words = f" {normalised(text)} "
    said = any(f" {normalised(form)} " in words for form in _forms(value))
    return said and not (_is_time(value) and _other_half(words, str(value)))


def _forms(value: Json) -> list[str]:
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return []
    if isinstance(value, int):
        return [str(value), *([number_words(value)] if 0 <= value < 60 else [])]
    if isinstance(value, float):
        return [f"{value:g}"]
    if date := re.fullmatch(r"\d{4}-(\d\d)-(\d\d)", value):
        return [value, *_date_forms(int(date[1]), int(date[2]))]
    if clock := _CLOCK.fullmatch(value):
        return [value, *_time_forms(int(clock[1]), int(clock[2]))]
    return [value] if normalised(value) else []


def _is_time(value: Json) -> bool:
    return isinstance(value, str) and _CLOCK.fullmatch(value) is not None


def _other_half(words: str, clock: str) -> bool:
    """Whether a line speaks of the other half of the day only."""
    own, other = ("a", "p") if int(clock[:2]) < 12 else ("p", "a")
    spoken = re.findall(r"\b(?:\d+)?([ap]) ?m\b", words)
    return other in spoken and own not in spoken


def _date_forms(month: int, day: int) -> list[str]:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return []
    name = _MONTHS[month - 1]
    days = [str(day), *(f"{day}{end}" for end in ("st", "nd", "rd", "th"))]
    days += [number_words(day), _ordinal(day)]
    orders = ("{m} {d}", "{m} the {d}", "{d} {m}", "{d} of {m}", "the {d}")
    return [order.format(m=name, d=spoken) for order in orders for spoken in days]


def _time_forms(hour: int, minute: int) -> list[str]:
    shown = hour % 12 or 12
    half = "p m" if hour >= 12 else "a m"
    hours = (str(shown), number_words(shown))
    if minute:
        pairs = [f"{h} {m}" for h in hours for m in (f"{minute:02d}", number_words(minute))]
        pairs += [f"half past {h}" for h in hours if minute == 30]
        return pairs
    forms = [f"{h} {end}" for h in hours for end in (half, half.replace(" ", ""), "o clock")]
    return [*forms, f"{shown}{half[0]}m", *(f"at {h}" for h in hours)]


def number_words(value: int) -> str:
    """Spell a number from 0 to 59."""
    if value < 20:
        return _ONES[value]
    ones = value % 10
    return f"{_TENS[value // 10]} {_ONES[ones]}" if ones else _TENS[value // 10]


def _ordinal(value: int) -> str:
    if value < 20:
        return _ORDINALS[value]
    ones = value % 10
    return f"{_TENS[value // 10]} {_ORDINALS[ones]}" if ones else _TEN_ORDINALS[value // 10]

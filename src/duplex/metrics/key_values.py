"""Key values of a scenario in what was said and heard: dates, times, names, codes.

Works on normalised words, so a value is found in any spoken form of it. A form
is complete when it states the whole value (``7 pm``), bare when it leaves a part
to the context (``at 7``); what was said complete must be heard complete. It never
guesses from sound: a name that is merely like another is another. ``words.py``
drives it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from duplex.local.facts import Fact, facts_of
from duplex.metrics.figures import MONTHS
from duplex.metrics.numerals import with_suffix

Scalar = str | int | float | bool

_HALVES = frozenset({"am", "pm"})
_PEOPLE = frozenset(
    {
        "people", "persons", "person", "guests", "guest", "adults", "adult", "diners", "diner",
        "seats", "seat", "children", "kids", "of",
    }
)  # fmt: skip
_YEARS = frozenset(str(year) for year in range(1900, 2100))
_TIME_LEADS = ("at", "around", "about", "by", "until", "till", "before", "after")
_COUNT_LEADS = ("for", "of")
_DAY_PARTS = {
    "am": (("in", "the", "morning"), ("this", "morning"), ("tomorrow", "morning")),
    "pm": (
        ("in", "the", "afternoon"), ("in", "the", "evening"), ("this", "afternoon"),
        ("this", "evening"), ("at", "night"), ("tonight",),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to say a value, as normalised words, and what must not stand beside it."""

    words: tuple[str, ...]
    complete: bool = True
    not_before: frozenset[str] = frozenset()
    not_after: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """One value that the scenario's caller knows; ``names`` are the facts that hold it."""

    names: tuple[str, ...]
    kind: str
    value: Scalar
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A key value found at ``words[start:end]``."""

    key: KeyValue
    start: int
    end: int
    complete: bool


def key_values(
    known: Mapping[str, Scalar], normalise: Callable[[str], str]
) -> tuple[KeyValue, ...]:
    """The values of a scenario's facts that can be recognised in words, each once.

    Yes and no are none: nothing tells which question they answer.
    """
    found: dict[tuple[str, Scalar], KeyValue] = {}
    for fact in facts_of(known).values():
        if fact.value is None or isinstance(fact.value, bool):
            continue
        forms = _forms(fact, normalise)
        if not forms:
            continue
        same = found.get((fact.kind, fact.value))
        names = (fact.key,) if same is None else (*same.names, fact.key)
        found[fact.kind, fact.value] = KeyValue(
            names=names, kind=fact.kind, value=fact.value, forms=forms
        )
    return tuple(found.values())


def sayings(keys: Sequence[KeyValue], words: Sequence[str]) -> list[Saying]:
    """Find every saying of every key value in one utterance, in order.

    No word belongs to two sayings; longer forms go first. A bare number that
    two values share is neither's.
    """
    claims: dict[tuple[int, int], list[Saying]] = {}
    for key in keys:
        for form in key.forms:
            for start in _places(form, words):
                end = start + len(form.words)
                saying = Saying(key=key, start=start, end=end, complete=form.complete)
                claims.setdefault((start, end), []).append(saying)
    taken: set[int] = set()
    made: list[Saying] = []
    for start, end in sorted(claims, key=lambda span: (span[0] - span[1], span)):
        if taken.isdisjoint(range(start, end)):
            taken |= set(range(start, end))
            owners = {saying.key.names: saying for saying in claims[start, end]}
            if len(owners) == 1:
                made += owners.values()
    return sorted(made, key=lambda saying: saying.start)


def _places(form: Form, words: Sequence[str]) -> list[int]:
    size = len(form.words)
    return [
        start
        for start in range(len(words) - size + 1)
        if tuple(words[start : start + size]) == form.words
        and (start == 0 or words[start - 1] not in form.not_after)
        and (start + size == len(words) or words[start + size] not in form.not_before)
    ]


def _forms(fact: Fact, normalise: Callable[[str], str]) -> tuple[Form, ...]:
    match fact.kind:
        case "date":
            return _date_forms(dt.date.fromisoformat(str(fact.value)))
        case "time":
            return _time_forms(dt.time.fromisoformat(str(fact.value)))
        case "count":
            return _count_forms(normalise(str(fact.value)))
        case "phone":
            digits = "".join(char for char in str(fact.value) if char in "0123456789")
            national = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
            return (_form(national), _form(f"1{national}"))
        case _:
            words = normalise(str(fact.value))
            return (_form(words),) if words else ()


def _form(words: str, *, complete: bool = True) -> Form:
    return Form(words=tuple(words.split()), complete=complete)


def _date_forms(day: dt.date) -> tuple[Form, ...]:
    spoken = f"{MONTHS[day.month - 1]} {day.day}"
    return (
        _form(f"{spoken} {day.year}"),
        Form(words=tuple(spoken.split()), not_before=_YEARS),
        _form(with_suffix(day.day), complete=False),
    )


def _time_forms(at: dt.time) -> tuple[Form, ...]:
    half = "am" if at.hour < 12 else "pm"
    clock = f"{at.hour % 12 or 12}{f'{at.minute:02d}' if at.minute else ''}"
    forms = [_form(f"{clock} {half}")]
    forms += [_form(f"{clock} {' '.join(part)}") for part in _DAY_PARTS[half]]
    if not at.minute and at.hour in (0, 12):
        forms.append(_form("noon" if at.hour else "midnight"))
    if at.hour > 12 or at.hour == 0:
        forms.append(_form(f"{at.hour}{at.minute:02d}"))
    forms += [
        Form(
            words=(*lead, clock),
            complete=False,
            not_before=_HALVES | _PEOPLE,
            not_after=frozenset(MONTHS),
        )
        for lead in ((), *((lead,) for lead in _TIME_LEADS))
    ]
    return tuple(forms)


def _count_forms(figure: str) -> tuple[Form, ...]:
    months = frozenset(MONTHS)
    leads = ((), *((lead,) for lead in _COUNT_LEADS))
    forms = [Form(words=(*lead, figure), not_before=_HALVES, not_after=months) for lead in leads]
    forms += [Form(words=(figure, unit), not_after=months) for unit in sorted(_PEOPLE)]
    return tuple(forms)

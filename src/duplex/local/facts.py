"""What the caller knows, as things that can be asked for, said and recognised.

A fact's kind follows from its key and its value. Keys with a prefix such as
``original_``, ``alternative_`` or ``latest_`` are other values of the fact they
end in: what the caller said first, would take instead, or would go to.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from duplex.application.names import find_names, spelled_out
from duplex.application.prompts import Scalar
from duplex.application.reading import (
    Found,
    find_codes,
    find_counts,
    find_dates,
    find_phones,
    find_times,
)
from duplex.application.slots import spoken
from duplex.application.words import clean
from duplex.local.chance import Chance

FIRST = ("original", "initial", "incorrect", "wrong", "mistaken", "unauthorized", "previous", "old")
"""Prefixes of values the caller began with."""
SECOND = (
    "alternative", "alternate", "backup", "fallback", "second_choice", "other", "acceptable",
)  # fmt: skip
"""Prefixes of values the caller would take instead."""
LIMITS = ("earliest", "latest")
"""Prefixes of bounds within which the caller would take what is offered."""

_CUES: Mapping[str, tuple[str, ...]] = {
    "date": ("date", "day", "when"),
    "time": ("time", "when", "hour", "o'clock"),
    "count": ("how many", "number of", "how large"),
    "name": ("name", "who's calling", "who is calling", "who am i"),
    "phone": ("phone", "telephone", "contact number", "number to reach", "reach you"),
    "code": ("reference", "which one", "code", "number", "which reservation", "which booking"),
}
_PEOPLE = ("party", "guest", "people", "person", "diner", "seat", "group")
_SAME = {
    "type": ("kind", "sort", "type"),
    "kind": ("kind", "sort", "type"),
    "problem": ("problem", "issue", "wrong", "matter", "trouble"),
    "issue": ("problem", "issue", "wrong", "matter", "trouble"),
    "reason": ("reason", "why", "what for"),
    "address": ("address", "where"),
    "size": ("size", "how big", "how large"),
    "seating": ("seating", "sit", "inside or outside"),
    "service": ("service", "what would you like done", "what needs doing"),
    "title": ("title", "called", "which book"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing the caller knows."""

    key: str
    value: Scalar
    kind: str

    @property
    def people(self) -> bool:
        return self.kind == "count" and any(word in self.key for word in _PEOPLE)

    def asked_at(self, question: str) -> tuple[int, bool] | None:
        """Return where a lower-case question asks for this fact, and how surely."""
        sure = list(_CUES.get(self.kind, ()))
        words = [w for w in self.key.lower().split("_") if len(w) > 2]
        if self.people:
            sure += ["party", "guests", "people"]
        for word in words[-1:]:
            sure += _SAME.get(word, (word,) if self.kind in ("text", "count", "flag") else ())
        at = _first(question, sure)
        if at is not None:
            return at, True
        at = _first(question, words)
        return None if at is None else (at, False)

    def values_in(self, text: str) -> list[Scalar]:
        """Return every value of this fact's kind spoken in ``text``.

        Where a name should be and none is, it is whatever words stand there, in
        lower case: they were meant to be one.
        """
        text = clean(text)
        found = [_scalar(f) for f in self._found(text)]
        if not found and self.kind == "name" and (garbled := _GARBLED.search(text.lower())):
            return [garbled[1].strip()]
        return found

    def same(self, value: Scalar) -> bool:
        """Whether a value heard can be this one; names only need to sound alike."""
        if self.kind == "name":
            return _alike(str(self.value), str(value))
        if self.kind == "code":
            return _plain(str(self.value)) == _plain(str(value))
        if self.kind == "date":
            return str(self.value)[5:] == str(value)[5:]
        return self.value == value

    def spelled(self, misheard: Iterable[str] = ()) -> str:
        """Say the letters of a name: of its words that none of ``misheard`` holds, or of all."""
        heard = {_sound(word) for name in misheard for word in name.split()}
        every = str(self.value).split()
        words = [word for word in every if _sound(word) not in heard] if heard else every
        return " ".join(spelled_out(word) for word in words or every)

    def said(self, chance: Chance) -> str:
        """Say the fact as part of a sentence, one of several ways."""
        value = spoken(self.kind, self.value)
        if self.kind == "date":
            return f"on {value}"
        if self.kind == "time":
            return value if value in ("noon", "midnight") else f"at {value}"
        if self.kind == "count":
            return f"for {value}" if self.people else value
        if self.kind == "name":
            form = chance.pick(
                "naming", ("it's under {}", "the name is {}", "please put it under {}")
            )
            return form.format(value)
        if self.kind == "code":
            return f"it's {value}"
        if self.kind == "flag":
            return "yes, please" if self.value else "no, thank you"
        return value

    def corrected(self, wrong: Scalar) -> str:
        """Say that it is this and not ``wrong``."""
        value = spoken(self.kind, self.value)
        if self.kind == "name":
            # A name these ears may have made up is not put into the other side's.
            return f"the name is {value}"
        if self.kind == "code":
            return f"it should be {value}"
        lead = {"date": "on ", "time": "at ", "count": "for "}.get(self.kind, "")
        return f"it should be {lead}{value}, not {spoken(self.kind, wrong)}"

    def _found(self, text: str) -> list[Found]:
        if self.kind == "date":
            year = dt.date.fromisoformat(str(self.value)).year
            since = dt.date(year, 1, 1)
            found = find_dates(text, since, since)
            # Only a month and a day say the same on both sides; "tomorrow" does not.
            return [f for f in found if re.search(r"\d|[a-z]+th\b", text[f.start : f.end].lower())]
        if self.kind == "time":
            return [f for f in find_times(text) if f.strong]
        if self.kind == "count":
            return [] if not self.people else list(find_counts(text))
        if self.kind == "name":
            return list(find_names(text))
        if self.kind == "phone":
            return list(find_phones(text))
        if self.kind == "code":
            return [f for f in find_codes(text, str(self.value).split("-")[0]) if f.strong]
        return []


def facts_of(known: Mapping[str, Scalar]) -> dict[str, Fact]:
    """Return every fact by its key."""
    return {key: Fact(key=key, value=value, kind=_kind(key, value)) for key, value in known.items()}


def split_key(key: str) -> tuple[str, str]:
    """Split ``original_date`` into ``("original", "date")``; no prefix is ``""``."""
    for prefix in (*FIRST, *SECOND, *LIMITS):
        if key.startswith(prefix + "_"):
            return prefix, key[len(prefix) + 1 :]
    return "", key


def together(parts: Sequence[str]) -> str:
    """Make one sentence of several facts."""
    text = ", ".join(parts)
    text = f"{text[:1].upper()}{text[1:]}"
    return text if not text or text[-1] in ".?!" else f"{text}."


def _kind(key: str, value: Scalar) -> str:
    key = key.lower()
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "count"
    text = str(value)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text) and _is_date(text):
        return "date"
    if re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", text):
        return "time"
    if re.fullmatch(r"[A-Za-z]{1,3}-?\d{1,6}", text):
        return "code"
    if "phone" in key or (len(re.sub(r"\D", "", text)) >= 7 and not re.search(r"[a-z]", text)):
        return "phone"
    return "name" if key.split("_")[-1] == "name" or key in ("guest", "customer") else "text"


_GARBLED = re.compile(
    r"\b(?:under|name(?:'s| is| of))(?: the name(?: of)?)? "
    r"(?!(?:your|the|that|this|an?|my|our|it|his|her|their|which|what|whose|whom)\b)"
    r"([a-z][a-z' -]*)"
)


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _scalar(found: Found) -> Scalar:
    value = found.value
    return None if isinstance(value, list | dict) else value


def _first(text: str, words: Sequence[str]) -> int | None:
    at = [m.start() for w in words if (m := re.search(rf"(?<![\w']){re.escape(w)}", text))]
    return min(at) if at else None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


_SPELLINGS = (
    (r"ph|[vw]", "f"), (r"ch|ck|qu|[cq]", "k"), (r"x", "ks"), (r"z", "s"), (r"[yj]|ie|ee|ea", "i"),
    (r"h|[^a-z]", ""), (r"(.)\1+", r"\1"), (r"(?<=..)e$", ""),
)  # fmt: skip


def _sound(word: str) -> str:
    """Reduce a name to how it sounds, roughly: ``Sophia`` and ``Sofia`` are one."""
    plain = unicodedata.normalize("NFKD", word.lower())
    sound = "".join(c for c in plain if not unicodedata.combining(c))
    for pattern, letter in _SPELLINGS:
        sound = re.sub(pattern, letter, sound)
    return sound


def _alike(one: str, other: str) -> bool:
    """Whether two names sound the same: every word of ``one`` has its like in ``other``."""
    heard = [_sound(word) for word in other.split()]
    return bool(heard) and all(
        any(SequenceMatcher(None, _sound(word), part).ratio() >= 0.9 for part in heard)
        for word in one.split()
    )

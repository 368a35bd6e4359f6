"""Comparing JSON values and pairing expected tool calls with real ones.

One rule for every tool. Arguments are a subset: what is not expected may be
anything. A number equals a number (2 and 2.0 are one JSON number), a boolean is
never a number, text is never a number; text is compared without case,
punctuation and extra space. ``lenient`` lets text that spells a number pass for
it, and nothing else. State is compared exactly. Each real call is used once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from duplex.counting import counted
from duplex.values import Json

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Wanted(Protocol):
    """A tool call as a scenario expects or prohibits it."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Json]: ...
    @property
    def status(self) -> str: ...


class Made(Protocol):
    """A tool call as it was made."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Json]: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Which expected call met which real one, by index, and why the others did not."""

    pairs: tuple[tuple[int, int], ...]
    unmet: Mapping[int, str]
    extra: tuple[int, ...]

    @property
    def matched(self) -> int:
        return len(self.pairs)


def json_type(value: Json) -> str:
    """Name the JSON Schema type of a value; a whole number is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def mismatch(expected: Json, actual: Json, *, lenient: bool = False, at: str = "") -> str | None:
    """Say why ``actual`` does not satisfy the expected argument; None when it does.

    The reason reads ``party_size: type_mismatch(string,integer)``, got before wanted.
    """
    if isinstance(expected, dict):
        return _object_mismatch(expected, actual, lenient, at)
    if isinstance(expected, list):
        return _list_mismatch(expected, actual, lenient, at)
    if _is_number(expected) and isinstance(actual, str) and lenient:
        spelled = actual.strip()
        actual = float(spelled) if _NUMBER.fullmatch(spelled) else actual
    if _kind(expected) != _kind(actual):
        return f"{_label(at)}type_mismatch({json_type(actual)},{json_type(expected)})"
    if isinstance(expected, str) and isinstance(actual, str):
        same = normalised(expected) == normalised(actual)
    else:
        same = expected == actual
    return None if same else f"{_label(at)}value_mismatch"


def normalised(text: str) -> str:
    """Drop case, punctuation and extra space; text of nothing else stays as it is."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w]+", " ", folded).strip()
    return words or folded.strip()


def _object_mismatch(expected: dict[str, Json], actual: Json, lenient: bool, at: str) -> str | None:
    if not isinstance(actual, dict):
        return f"{_label(at)}type_mismatch({json_type(actual)},object)"
    for key, value in expected.items():
        place = f"{at}.{key}" if at else key
        if key not in actual:
            return f"{place}: missing"
        reason = mismatch(value, actual[key], lenient=lenient, at=place)
        if reason is not None:
            return reason
    return None


def _list_mismatch(expected: list[Json], actual: Json, lenient: bool, at: str) -> str | None:
    """The expected entries must lead the real list, in order."""
    if not isinstance(actual, list):
        return f"{_label(at)}type_mismatch({json_type(actual)},array)"
    if len(actual) < len(expected):
        found = counted(len(actual), "entry", "entries")
        return f"{_label(at)}has {found}, want {len(expected)} or more"
    for index, value in enumerate(expected):
        reason = mismatch(value, actual[index], lenient=lenient, at=f"{at}[{index}]")
        if reason is not None:
            return reason
    return None


def _label(at: str) -> str:
    return f"{at}: " if at else ""


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Json) -> str:
    return "number" if _is_number(value) else json_type(value)


def json_equal(left: Json, right: Json) -> bool:
    """Compare as JSON does: 2 equals 2.0, true equals no number, order of keys is nothing."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            json_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return _kind(left) == _kind(right) and left == right


def state_holds(expected: Json, actual: Json) -> bool:
    """Whether ``expected`` is a recursive subset of ``actual``; list order is nothing."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and state_holds(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return False
        fits = [[state_holds(want, have) for have in actual] for want in expected]
        return len(_assign(fits)) == len(expected)
    return json_equal(expected, actual)


def state_satisfied(expected: Mapping[str, Json], final: Json, initial: Json) -> bool:
    """Whether a final state is the expected one; ``{"unchanged": true}`` means as it began."""
    wanted = dict(expected)
    if wanted.get("unchanged") is True:
        del wanted["unchanged"]
        if not json_equal(final, initial):
            return False
    return state_holds(wanted, final)


def call_mismatch(wanted: Wanted, made: Made, *, lenient: bool = False) -> str | None:
    """Say why a real call is not the expected one; None when it is."""
    if wanted.name != made.name:
        return f"is {made.name}"
    if wanted.status == "completed" and made.status != "completed":
        return f"status {made.status}"
    return mismatch(dict(wanted.arguments), dict(made.arguments), lenient=lenient)


def pair_calls(wanted: Sequence[Wanted], made: Sequence[Made], *, lenient: bool = False) -> Pairing:
    """Pair as many expected calls with real ones as can be, in any order."""
    reasons = [[call_mismatch(one, call, lenient=lenient) for call in made] for one in wanted]
    pairs = _assign([[reason is None for reason in row] for row in reasons])
    used = set(pairs.values())
    unmet = {
        index: _nearest_reason(wanted[index], made, reasons[index])
        for index in range(len(wanted))
        if index not in pairs
    }
    extra = tuple(index for index in range(len(made)) if index not in used)
    return Pairing(pairs=tuple(sorted(pairs.items())), unmet=unmet, extra=extra)


def _nearest_reason(wanted: Wanted, made: Sequence[Made], reasons: Sequence[str | None]) -> str:
    named = [reason for call, reason in zip(made, reasons, strict=True) if call.name == wanted.name]
    if not named:
        return "never called"
    return next((reason for reason in named if reason is not None), "called too few times")


def matched(choices: Sequence[Collection[float]]) -> int:
    """How many of several can each have a choice of its own."""
    every = sorted({choice for some in choices for choice in some})
    return len(_assign([[choice in some for choice in every] for some in choices]))


def _assign(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return a largest one-to-one assignment of rows to columns that fit."""
    holder: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in holder or place(holder[column], tried):
                    holder[column] = row
                    return True
        return False

    for row in range(len(fits)):
        place(row, set())
    return {row: column for column, row in holder.items()}

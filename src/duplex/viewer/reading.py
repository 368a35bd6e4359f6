"""Careful reading of what may be anything: results, events, tool results.

Everything shown comes through here: a value of another type than wanted is not
known, and text loses what could steer a terminal or turn a line around. It
never raises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from duplex.metrics.transcript import one_line
from duplex.redact import Redactor
from duplex.values import Json

LONGEST_TEXT = 20_000
"""Characters of one JSON value that the page shows."""

_REDACTOR = Redactor()


def number(value: Json) -> float | None:
    """A finite number; None for anything else, booleans among them."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def text(value: Json) -> str | None:
    """A text as one harmless line; None for anything else."""
    return clean(value) if isinstance(value, str) else None


def clean(words: str) -> str:
    """One line without controls, bidi overrides, surrogates or secrets."""
    return one_line(_REDACTOR.text(words))


def members(value: Json) -> Mapping[str, Json]:
    """An object's members; empty for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def objects(value: Json) -> list[Mapping[str, Json]]:
    """The objects in a list; whatever else is in it is left out."""
    return [item for item in items(value) if isinstance(item, dict)]


def pretty(value: Json) -> str:
    """JSON for people: indented, secrets hidden, cut when it is very long."""
    written = json.dumps(_REDACTOR.json(value), ensure_ascii=False, indent=2)
    lines = [_indent(line) + one_line(line) for line in written[:LONGEST_TEXT].split("\n")]
    if len(written) > LONGEST_TEXT:
        lines.append(f"… cut here: {len(written)} characters in all")
    return "\n".join(lines)


def compact(value: Json) -> str:
    """JSON on one line."""
    return one_line(json.dumps(_REDACTOR.json(value), ensure_ascii=False))[:LONGEST_TEXT]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


class Reasons:
    """Why values are null: looked up by JSON pointer, the nearest above wins."""

    def __init__(self, unknown: Json, within: str = "") -> None:
        self._unknown = members(unknown)
        self._within = within

    def why(self, pointer: str, otherwise: str = "the results do not say why") -> str:
        """The reason for a pointer relative to ``within``."""
        at = self._within + pointer
        while at:
            reason = text(self._unknown.get(at))
            if reason:
                return reason
            at = at.rpartition("/")[0]
        return otherwise

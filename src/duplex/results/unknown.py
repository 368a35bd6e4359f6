"""Why values are null: a reason for every one of them, found by JSON pointer.

Reasons are given for a pointer and hold for everything below it; the longest
one wins. Nulls that are themselves an answer (no error, a null somebody passed
to a tool) are named as meant and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from duplex.values import Json

UNTOLD = "nothing told it"
"""The reason of last resort."""


def explain(
    value: Json, reasons: Mapping[str, str], meant: frozenset[str] = frozenset()
) -> dict[str, Json]:
    """Map the pointer of every null in ``value`` to its reason, but for those meant."""
    return {
        pointer: next((reasons[one] for one in _above(pointer) if one in reasons), UNTOLD)
        for pointer in nulls(value)
        if meant.isdisjoint(_above(pointer))
    }


def nulls(value: Json, at: str = "") -> Iterator[str]:
    """Yield the JSON pointer of every null."""
    if value is None:
        yield at
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from nulls(child, f"{at}/{escaped(key)}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from nulls(child, f"{at}/{index}")


def escaped(key: str) -> str:
    """Escape one reference token (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _above(pointer: str) -> Iterator[str]:
    """Yield ``pointer`` and every pointer above it, longest first."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]

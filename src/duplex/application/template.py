"""Sentences with fields, as applications write them.

``{name}`` is a slot or a field of a tool's result, already in spoken form. A
part in square brackets is said only when every field in it has words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIELD = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def fields_of(template: str) -> frozenset[str]:
    """Return the names a template uses."""
    return frozenset(_FIELD.findall(template))


def fill(template: str, said: Mapping[str, str]) -> str:
    """Fill a template; unknown or empty fields outside brackets become nothing."""

    def optional(match: re.Match[str]) -> str:
        part = match[1]
        return part if all(said.get(name) for name in fields_of(part)) else ""

    text = _FIELD.sub(lambda m: said.get(m[1], ""), _OPTIONAL.sub(optional, template))
    text = re.sub(r"\s+([,.?!])", r"\1", re.sub(r"\s+", " ", text)).strip()
    return re.sub(r"\.\.(?!\.)", ".", text)

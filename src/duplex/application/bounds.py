"""How much a tool may be handed: checked before its schema is, and before anything runs.

Models write arguments and may write anything. What is too large, too deep or no JSON is
told in one clause, like any other fault of arguments. It knows no schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from duplex.values import Json

CHARACTERS = 262_144
"""Of all texts and names together."""
VALUES = 10_000
DEPTH = 64


def unbearable(arguments: Mapping[str, Json]) -> str | None:
    """Say why arguments are not even looked at; None when they are."""
    characters = values = 0
    level: list[Json] = [dict(arguments)]
    for _ in range(DEPTH):
        below: list[Json] = []
        for value in level:
            values += 1
            if isinstance(value, str):
                characters += len(value)
            elif isinstance(value, dict):
                characters += sum(map(len, value))
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, float) and not math.isfinite(value):
                return "tool_args_error: a number is not finite"
            if values + len(below) > VALUES:
                return f"tool_args_error: more than {VALUES} values"
        if characters > CHARACTERS:
            return f"tool_args_error: more than {CHARACTERS} characters"
        if not below:
            return None
        level = below
    return f"tool_args_error: nested more than {DEPTH} deep"

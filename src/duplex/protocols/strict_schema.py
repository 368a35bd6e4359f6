"""Function schemas as strict servers take them, and arguments as functions take them.

Strict function calling wants every property required and nothing beside them, so an
optional property becomes a nullable one; on the way back those nulls are left out
again. Keywords that strict servers refuse are dropped here and checked by
``application/schema.py`` all the same, before anything runs. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.values import Json

_KEPT = frozenset(
    {"type", "enum", "const", "description", "minimum", "maximum", "pattern", "format"}
)


def strict_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return ``schema`` with all properties required, optional ones nullable."""
    out: dict[str, Json] = {name: schema[name] for name in schema if name in _KEPT}
    items = schema.get("items")
    if isinstance(items, dict):
        out["items"] = strict_schema(items)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        out["properties"] = {
            name: _property(sub, optional=name not in needed) for name, sub in properties.items()
        }
        out["required"] = list(properties)
        out["additionalProperties"] = False
    return out


def without_nulls(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Leave out nulls that only say that an optional property was not given."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    out: dict[str, Json] = {}
    for name, value in arguments.items():
        sub = known.get(name)
        if value is None and name not in needed and not _nullable(sub):
            continue
        nested = isinstance(sub, dict) and isinstance(value, dict)
        out[name] = without_nulls(sub, value) if nested else value  # type: ignore[arg-type]
    return out


def _property(sub: Json, *, optional: bool) -> Json:
    if not isinstance(sub, dict):
        return sub
    out = strict_schema(sub)
    if not optional or _nullable(sub):
        return out
    kind = out.get("type")
    if isinstance(kind, list):
        out["type"] = [*kind, "null"]
    elif isinstance(kind, str):
        out["type"] = [kind, "null"]
    choices = out.get("enum")
    if isinstance(choices, list):
        out["enum"] = [*choices, None]
    return out


def _nullable(sub: Json) -> bool:
    kind = sub.get("type") if isinstance(sub, dict) else None
    return kind == "null" or (isinstance(kind, list) and "null" in kind)

"""Strict checking of tool arguments, and of states, against a JSON schema.

One rule for every tool: types are exact as JSON has them. ``2.0`` is an
integer, ``"2"`` is not, ``true`` is never a number; properties that the schema
does not name are refused. Supported keywords are those tools use: ``type``,
``properties``, ``required``, ``enum``, ``const``, ``minimum``, ``maximum``,
``minLength``, ``maxLength``, ``pattern``, ``format`` (``date``), ``items``.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping

from duplex.errors import InputError
from duplex.values import Json

_WORDS = (
    "type properties required additionalProperties enum const minimum maximum minLength maxLength "
    "pattern format items description title default examples strict"
)
_KEYWORDS = frozenset(_WORDS.split())
_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: _is_number(v) and float(str(v)).is_integer(),
    "number": lambda v: _is_number(v),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(value: Json) -> str:
    return next(
        (name for name, is_type in _TYPES.items() if name != "number" and is_type(value)), "number"
    )


def check_schema(name: str, schema: Mapping[str, Json]) -> None:
    """Raise InputError when a schema is no object schema or uses unknown keywords.

    ``name`` says whose it is and how it is called: ``tool x: parameters``.
    """
    whose, _, root = name.rpartition(": ")
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise InputError(f"{name} is not an object schema with properties")
    stack: list[tuple[str, Json]] = [(root, dict(schema))]
    while stack:
        path, part = stack.pop()
        if not isinstance(part, dict):
            raise InputError(f"{whose}: {path} is {_name(part)}, wanted object")
        unknown = sorted(set(part) - _KEYWORDS)
        if unknown:
            raise InputError(f"{whose}: {path}.{unknown[0]} is not a supported keyword")
        properties = part.get("properties")
        if isinstance(properties, dict):
            stack += [(f"{path}.properties.{key}", sub) for key, sub in properties.items()]
        if "items" in part:
            stack.append((f"{path}.items", part["items"]))


def problems(schema: Mapping[str, Json], value: Json, path: str = "arguments") -> list[str]:
    """Return what is wrong with ``value``, empty when it fits; paths name the place."""
    wanted = schema.get("type")
    types = wanted if isinstance(wanted, list) else [wanted] if wanted else []
    if types and not any(_TYPES[str(name)](value) for name in types):
        return [f"{path}: type_mismatch({_name(value)},{'|'.join(str(t) for t in types)})"]
    found = _scalar_problems(schema, value, path)
    if isinstance(value, dict):
        found += _object_problems(schema, value, path)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        for index, item in enumerate(value):
            found += problems(items, item, f"{path}[{index}]")
    return found


def _object_problems(schema: Mapping[str, Json], value: dict[str, Json], path: str) -> list[str]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    found = [
        f"{path}.{name}: missing"
        for name in (required if isinstance(required, list) else [])
        if name not in value
    ]
    for name, item in value.items():
        sub = properties.get(name)
        if isinstance(sub, dict):
            found += problems(sub, item, f"{path}.{name}")
        elif schema.get("additionalProperties") is not True:
            found.append(f"{path}.{name}: not a parameter")
    return found


def _scalar_problems(schema: Mapping[str, Json], value: Json, path: str) -> list[str]:
    found = []
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_same(value, item) for item in allowed):
        found.append(f"{path}: {json.dumps(value)} is not one of {json.dumps(allowed)}")
    if "const" in schema and not _same(value, schema["const"]):
        found.append(f"{path}: {json.dumps(value)} is not {json.dumps(schema['const'])}")
    if isinstance(value, str):
        found += _string_problems(schema, value, path)
    if _is_number(value):
        low, high = schema.get("minimum"), schema.get("maximum")
        number = float(str(value))
        if isinstance(low, int | float) and number < low:
            found.append(f"{path}: {value} is below {low}")
        if isinstance(high, int | float) and number > high:
            found.append(f"{path}: {value} is above {high}")
    return found


def _string_problems(schema: Mapping[str, Json], value: str, path: str) -> list[str]:
    found = []
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(value.strip()) < least:
        found.append(f"{path}: {value!r} is shorter than {least}")
    if isinstance(most, int) and len(value) > most:
        found.append(f"{path}: longer than {most} characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not re.search(pattern, value):
        found.append(f"{path}: {value!r} does not match {pattern}")
    if schema.get("format") == "date":
        try:
            dt.date.fromisoformat(value)
        except ValueError:
            found.append(f"{path}: {value!r} is not a date as YYYY-MM-DD")
    return found


def _same(one: Json, other: Json) -> bool:
    return type(one) is type(other) and one == other

"""Validation errors of a scenario file, told in words people can act on.

Each line names the file, the JSON path, the value got and the value wanted; an
unknown field comes with the known one it resembles. Pure text: reads no file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from duplex.scenario.model import ScenarioFile, quoted
from duplex.scenario.text import json_path

_WANTED = {
    "string_type": "text",
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "too_short": "at least one entry",
    "string_too_short": "some text",
    "string_pattern_mismatch": "some text",
    "invalid_key": "text as a key",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}
_TYPES = {dict: "an object", list: "a list", type(None): "null"}


def complaints(error: ValidationError, name: str) -> list[str]:
    """Return one line for each thing wrong, in the order of the file."""
    told = (f"{name}: {_complaint(one)}" for one in error.errors() if not _is_echo(one))
    return list(dict.fromkeys(told))


def _is_echo(one: ErrorDetails) -> bool:
    """Whether a list is called too short only because an entry in it is wrong."""
    return one["type"] == "too_short" and bool(one["input"])


def _complaint(one: ErrorDetails) -> str:
    loc = one["loc"]
    path = json_path(loc)
    match one["type"]:
        case "missing":
            return f"{path} is missing"
        case "extra_forbidden":
            return f"{path} is no known field{_resembling(loc)}"
        case "duplex":
            ctx = one.get("ctx", {})
            at = str(ctx.get("at", ""))
            shown = f"{path}{at}" if path else at.removeprefix(".")
            got = "" if at or not isinstance(one["input"], str) else f" {quoted(one['input'])}"
            return f"{shown}{got} {one['msg']}"
        case "literal_error" | "enum":
            return f"{path} is {_got(one['input'])}, want {_options(one)}"
    wanted = _WANTED.get(one["type"])
    if wanted is None:
        return f"{path} is {_got(one['input'])}: {one['msg'][:1].lower()}{one['msg'][1:]}"
    return f"{path or 'the document'} is {_got(one['input'])}, want {_filled(wanted, one)}"


def _filled(wanted: str, one: ErrorDetails) -> str:
    ctx = one.get("ctx", {})
    return wanted.format(**{name: _plain(value) for name, value in ctx.items()})


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _options(one: ErrorDetails) -> str:
    """Write the allowed values as pydantic lists them, with the nearest one first."""
    listed = str(one.get("ctx", {}).get("expected", "another value")).replace("'", '"')
    got = one["input"]
    known = [word.strip('" ') for word in listed.replace(" or ", ",").split(",")]
    choice = isinstance(got, str) and len(known) > 1
    close = difflib.get_close_matches(str(got), known, n=1) if choice else []
    return f"{listed} (did you mean {quoted(close[0])}?)" if close else listed


def _got(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"text {quoted(value)}" if value else "empty"
    return _TYPES.get(type(value)) or f"the number {value}"


def _resembling(loc: tuple[int | str, ...]) -> str:
    fields = sorted(_fields_at(loc[:-1]))
    close = difflib.get_close_matches(str(loc[-1]), fields, n=1)
    if close:
        return f", did you mean {quoted(close[0])}?"
    return f", want one of {', '.join(fields)}" if fields else ""


def _fields_at(loc: tuple[int | str, ...]) -> Iterator[str]:
    """Yield the field names of the object at ``loc`` in a scenario file."""
    model: type[BaseModel] | None = ScenarioFile
    for part in loc:
        if isinstance(part, str) and model is not None:
            info = model.model_fields.get(part)
            model = _model_in(info.annotation) if info is not None else None
    yield from model.model_fields if model is not None else ()


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the one model an annotation such as ``tuple[Model, ...] | None`` mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inside = (_model_in(part) for part in get_args(annotation))
    return next((model for model in inside if model is not None), None)

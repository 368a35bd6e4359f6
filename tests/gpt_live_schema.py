"""Checks a GPT-Live server message strictly against the SDK's own event types.

The SDK builds any object from any JSON without a word, so the types are walked
here: what is required must be there, everything must have its type, and
nothing may be extra.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Literal, Union, get_args, get_origin

from openai.types.live import ServerEvent
from pydantic import BaseModel

from duplex.values import Json


@cache
def event_models() -> dict[str, type[BaseModel]]:
    """Return the SDK's server event models by their ``type``."""
    union = get_args(ServerEvent)[0]
    return {get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(union)}


def problems(event: Json) -> list[str]:
    """Return what is wrong with one server message; empty when nothing is."""
    if not isinstance(event, dict):
        return ["the message is not an object"]
    model = event_models().get(str(event.get("type")))
    if model is None:
        return [f"type {event.get('type')!r} is not in the sdk"]
    return _check(event, model, "event")


def _check(value: Json, wanted: object, path: str) -> list[str]:
    origin = get_origin(wanted)
    if origin is Annotated:
        return _check(value, get_args(wanted)[0], path)
    if origin is Literal:
        fits = any(value == choice and type(value) is type(choice) for choice in get_args(wanted))
        return [] if fits else [f"{path}: {value!r} is none of {get_args(wanted)}"]
    if origin in (Union, types.UnionType):
        attempts = [_check(value, choice, path) for choice in get_args(wanted)]
        return [] if [] in attempts else min(attempts, key=len)
    if origin is list:
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        (inner,) = get_args(wanted)
        return [p for n, item in enumerate(value) for p in _check(item, inner, f"{path}[{n}]")]
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{path}: not an object"]
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        return _check_model(value, wanted, path)
    return _check_plain(value, wanted, path)


def _check_model(value: Json, model: type[BaseModel], path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: not an object"]
    found = [f"{path}.{name}: extra" for name in value if name not in model.model_fields]
    for name, field in model.model_fields.items():
        if name in value:
            found += _check(value[name], field.annotation, f"{path}.{name}")
        elif field.is_required():
            found.append(f"{path}.{name}: missing")
    return found


def _check_plain(value: Json, wanted: object, path: str) -> list[str]:
    if wanted is type(None) or wanted is None:
        fits = value is None
    elif wanted is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif wanted is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif wanted in (str, bool):
        fits = type(value) is wanted
    else:
        raise AssertionError(f"{path}: the checker does not know {wanted}")
    return [] if fits else [f"{path}: {value!r} is not {wanted}"]

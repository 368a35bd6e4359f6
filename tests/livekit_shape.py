"""What LiveKit publishes, walked field by field: which there are, which a document fills,
and where a document differs. Strict where protobuf's own reader is lenient: no null, no
number as text, no number where a field wants another kind.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from livekit.protocol import agent_simulation

from duplex.values import Json

MESSAGES: dict[str, type[Message]] = {
    "run": agent_simulation.SimulationRun,
    "summary": agent_simulation.SimulationRunSummary,
}
_TIME = "google.protobuf.Timestamp"
_WHOLE = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
_NUMBERS = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


def published() -> set[str]:
    """Every field there is, as paths into a document."""
    return {
        path for name, message in MESSAGES.items() for path in _published(_described(message), name)
    }


def filled(document: Json) -> set[str]:
    """The fields that a document has."""
    assert isinstance(document, dict)
    return {
        path
        for name, message in MESSAGES.items()
        if name in document
        for path, _, _ in _walk(document[name], _described(message), name)
    }


def differences(document: Json) -> list[str]:
    """Where a document is not what is published."""
    assert isinstance(document, dict)
    found = [f"{name}: not published" for name in document.keys() - {"version", *MESSAGES}]
    if document.get("version") != 1:
        found.append("version: not 1")
    for name, message in MESSAGES.items():
        if name not in document:
            continue
        found += [
            f"{path}: {value!r} is no {kind}"
            for path, value, kind in _walk(document[name], _described(message), name)
            if kind
        ]
        try:
            body = document[name]
            assert isinstance(body, dict)
            ParseDict(body, message(), ignore_unknown_fields=False)
        except ParseError as error:
            found.append(f"{name}: {error}")
    return found


def without(document: Json, path: str) -> Json:
    """The document with a field gone wherever it is."""
    return _bent(document, path, drop=True)


def wrong(document: Json, path: str) -> Json:
    """The document with a field of another kind wherever it is."""
    return _bent(document, path, drop=False)


def _bent(document: Json, path: str, *, drop: bool) -> Json:
    changed = copy.deepcopy(document)
    *parents, last = path.split(".")
    for holder in _holders(changed, parents):
        name = last.removesuffix("[]")
        if name not in holder:
            continue
        if drop:
            del holder[name]
        else:
            holder[name] = 7 if isinstance(holder[name], str | list | dict) else "7"
    return changed


def _holders(value: Json, path: list[str]) -> Iterator[dict[str, Json]]:
    if not path:
        if isinstance(value, dict):
            yield value
        return
    head, *rest = path
    if not isinstance(value, dict):
        return
    if head == "*":
        for one in value.values():
            yield from _holders(one, rest)
        return
    found = value.get(head.removesuffix("[]"))
    for one in found if isinstance(found, list) else [found]:
        yield from _holders(one, rest)


def _described(message: type[Message]) -> Descriptor:
    found = message.DESCRIPTOR
    assert isinstance(found, Descriptor)
    return found


def _published(message: Descriptor, at: str) -> Iterator[str]:
    for field in message.fields:
        path = f"{at}.{field.json_name}"
        inner = field.message_type
        if inner is not None and _is_map(field):
            value = inner.fields_by_name["value"].message_type
            yield path
            if value is not None:
                yield from _published(value, f"{path}.*")
            continue
        path += "[]" if field.is_repeated else ""
        yield path
        if inner is not None and inner.full_name != _TIME:
            yield from _published(inner, path)


def _walk(value: Json, message: Descriptor, at: str) -> Iterator[tuple[str, Json, str]]:
    """Every field below a value: its path, what is there, and what it should have been."""
    if not isinstance(value, dict):
        yield at, value, "object"
        return
    known = {field.json_name: field for field in message.fields}
    for name, one in value.items():
        field = known.get(name)
        if field is None:
            yield f"{at}.{name}", one, "published field"
        elif _is_map(field):
            yield from _map(one, field, f"{at}.{name}")
        elif field.is_repeated:
            path = f"{at}.{name}[]"
            if one != []:
                yield path, one, "" if isinstance(one, list) else "list"
            for entry in one if isinstance(one, list) else ():
                yield from _value(entry, field, path)
        else:
            yield from _value(one, field, f"{at}.{name}")


def _map(value: Json, field: FieldDescriptor, at: str) -> Iterator[tuple[str, Json, str]]:
    yield at, value, "" if isinstance(value, dict) else "map"
    assert field.message_type is not None
    inner = field.message_type.fields_by_name["value"]
    for one in value.values() if isinstance(value, dict) else ():
        if inner.message_type is not None:
            yield from _walk(one, inner.message_type, f"{at}.*")
        elif not isinstance(one, str):
            yield at, one, "text"


def _value(value: Json, field: FieldDescriptor, at: str) -> Iterator[tuple[str, Json, str]]:
    inner = field.message_type
    if inner is not None and inner.full_name != _TIME:
        yield at, value, "" if isinstance(value, dict) and value else "object with members"
        if isinstance(value, dict):
            yield from _walk(value, inner, at)
        return
    yield at, value, "" if _fits(value, field) else f"value of type {field.type}"


def _fits(value: Json, field: FieldDescriptor) -> bool:
    if field.enum_type is not None:
        return value in field.enum_type.values_by_name
    if field.type in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if field.type in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return isinstance(value, bool)
    return isinstance(value, str)


def _is_map(field: FieldDescriptor) -> bool:
    inner = field.message_type
    return inner is not None and inner.GetOptions().map_entry

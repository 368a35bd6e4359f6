"""Strict JSON and YAML text to plain values, with the place of everything refused.

Both forms give the same values: YAML scalars follow JSON's grammar, so a date, a
time or ``no`` stays text. Never trusts its input: size, depth and aliases are
bounded, keys may not repeat, numbers are finite, text is encodable. It knows
nothing of scenarios.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from duplex.errors import InputError
from duplex.values import Json

MAX_JSON_BYTES = 8 << 20
MAX_YAML_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_ALIASES = 100
MAX_DIGITS = 40
MAX_NODES = 200_000
"""Values a document may hold, each alias counted as a copy of what it names."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_KEY_END = re.compile(r"\s*:")
_INT = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?(\.inf|infinity)|\.?nan", re.IGNORECASE)
_WORDS: dict[str, Json] = {"": None, "~": None, "null": None, "true": True, "false": False}
_WANTED_NUMBER = f"want a finite one of at most {MAX_DIGITS} digits"
_TAGS = {None, "!", "tag:yaml.org,2002:str"}


def read_json(text: str, name: str) -> Json:
    """Parse one strict JSON document; raise InputError with ``name:line:column``."""
    _bounded(text, MAX_JSON_BYTES, name)
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_Refused.number,
            parse_float=_finite,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name}:{error.lineno}:{error.colno}: not JSON: {_lower(error.msg)}"
        ) from None
    except _Refused:
        place, message = _find_refused(text)
        raise InputError(f"{name}:{place}: {message}") from None
    except RecursionError:
        raise InputError(f"{name}: nested deeper than {MAX_DEPTH} levels") from None
    _check_tree(value, name)
    return value


def read_yaml(text: str, name: str) -> Json:
    """Parse one YAML document under JSON's rules for values; raise InputError."""
    _bounded(text, MAX_YAML_BYTES, name)
    builder = _YamlBuilder(name)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = _lower(error.problem or error.context or "cannot be read")
        raise InputError(f"{name}:{_place(mark)}: not YAML: {problem}") from None
    except yaml.reader.ReaderError as error:
        place = _place_of(text, error.position)
        raise InputError(f"{name}:{place}: not YAML: {_lower(error.reason)}") from None
    _check_tree(builder.value, name)
    return builder.value


def _bounded(text: str, limit: int, name: str) -> None:
    if not text.strip():
        raise InputError(f"{name}: is empty")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise InputError(f"{name}: has {size} bytes, want at most {limit}")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


class _Refused(Exception):
    """Valid to the parser, refused by us; its place is found afterwards."""

    @classmethod
    def number(cls, _text: str) -> float:
        raise cls


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _Refused
    return int(text)


def _find_refused(text: str) -> tuple[str, str]:
    """Find the first repeated key or unusable number; return its place and what it is."""
    keys: list[dict[str, int] | None] = []
    for token in _TOKEN.finditer(text):
        word, start = token.group(), token.start()
        if word in "{[":
            keys.append({} if word == "{" else None)
        elif word in "}]":
            keys.pop()
        elif word[0] == '"':
            seen = keys[-1] if keys else None
            if seen is not None and _KEY_END.match(text, token.end()):
                key = json.loads(word)
                if key in seen:
                    first = _place_of(text, seen[key])
                    return _place_of(text, start), f"key {word[:60]} repeats the one at {first}"
                seen[key] = start
        elif _unusable(word):
            return _place_of(text, start), f"{word[:40]} is no usable number, {_WANTED_NUMBER}"
    raise AssertionError("the parser refused what the scan accepts")


def _place_of(text: str, at: int) -> str:
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def _unusable(word: str) -> bool:
    if word in (":", ",", "true", "false", "null"):
        return False
    if _INT.fullmatch(word):
        return len(word) > MAX_DIGITS
    return not _FLOAT.fullmatch(word) or not math.isfinite(float(word))


def _check_tree(value: Json, name: str) -> None:
    """Refuse what is nested too deep or cannot be written as UTF-8."""
    stack: list[tuple[Json, int]] = [(value, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise InputError(f"{name}: nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, dict):
            stack.extend((child, depth + 1) for child in (*node, *node.values()))
        elif isinstance(node, list):
            stack.extend((child, depth + 1) for child in node)
        elif isinstance(node, str) and not _encodable(node):
            raise InputError(f"{name}: text {json.dumps(node)[:60]} holds half a character")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class _Open:
    """A collection being filled; ``key`` is the mapping key that waits for a value."""

    value: list[Json] | dict[str, Json]
    anchor: str | None
    size: int = 1
    key: str | None = None
    places: dict[str, str] = field(default_factory=dict)


class _YamlBuilder:
    """Builds the value from parser events, so that nothing is built unbounded."""

    def __init__(self, name: str) -> None:
        self.value: Json = None
        self._name = name
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._documents = 0
        self._aliases = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._error(event, "a second document begins, want one")
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.SequenceStartEvent():
                self._begin(event, [])
            case yaml.MappingStartEvent():
                self._begin(event, {})
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                self._put(event, done.value, done.size, done.anchor)

    def _begin(self, event: yaml.CollectionStartEvent, empty: list[Json] | dict[str, Json]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
        if event.tag not in (None, "!"):
            raise self._error(event, f"tag {event.tag} is not allowed")
        if self._wants_key():
            raise self._error(event, "a key is not text")
        self._open.append(_Open(value=empty, anchor=event.anchor))

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise self._error(event, f"more than {MAX_ALIASES} aliases")
        if event.anchor not in self._anchors:
            raise self._error(event, f"alias *{event.anchor} names nothing complete above it")
        value, size = self._anchors[event.anchor]
        self._put(event, value, size, None)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.tag not in _TAGS:
            raise self._error(event, f"tag {event.tag} is not allowed")
        plain = event.style is None and event.tag is None
        if self._wants_key():
            self._key(event, plain)
            return
        value = self._plain(event) if plain else event.value
        self._put(event, value, 1, event.anchor)

    def _key(self, event: yaml.ScalarEvent, plain: bool) -> None:
        if plain and event.value == "<<":
            raise self._error(event, "merge keys are not allowed")
        top, key = self._open[-1], event.value
        if key in top.places:
            raise self._error(event, f"key {json.dumps(key)} repeats the one at {top.places[key]}")
        top.places[key] = _place(event.start_mark)
        top.key = key

    def _plain(self, event: yaml.ScalarEvent) -> Json:
        text = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and _unusable(text)):
            raise self._error(event, f"{text[:40]} is no usable number, {_WANTED_NUMBER}")
        if _INT.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _wants_key(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].value, dict)
            and (self._open[-1].key is None)
        )

    def _put(self, event: yaml.Event, value: Json, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self.value = value
            return
        top = self._open[-1]
        if isinstance(top.value, dict):
            if top.key is None:
                raise self._error(event, "a key is an alias, want text")
            top.value[top.key], top.key = value, None
        else:
            top.value.append(value)
        top.size += size
        if top.size > MAX_NODES:
            raise self._error(event, f"holds more than {MAX_NODES} values")

    def _error(self, event: yaml.Event, message: str) -> InputError:
        return InputError(f"{self._name}:{_place(event.start_mark)}: {message}")


class _Mark(Protocol):
    line: int
    column: int


def _place(mark: _Mark | None) -> str:
    return f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "1:1"


def json_path(parts: Iterable[str | int]) -> str:
    """Write a path as ``scenarios[2].input.text``."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part)}]"
    return path

"""Conditions as people write them: ``[uplink:|downlink:]NAME[,key=value…]``.

NAME is a preset's or an effect's, the preset where it is both. A key overrides
what stands; in a preset of several effects it must belong to one of them only, or
be written ``effect.key``. Several conditions compose; in one text they are joined
by `` + ``. A value with a comma or a quote in it is put in double quotes, a quote
inside them doubled. Options, scenarios and Python callers all end here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from decimal import Decimal

from pydantic import ValidationError

from duplex.conditions.condition import Condition
from duplex.conditions.effects import EFFECTS, Effect
from duplex.conditions.presets import PRESETS, Keys, Preset
from duplex.errors import InputError

_LEGS = ("uplink", "downlink")
_BY_TITLE = {kind.title: kind for kind in EFFECTS}
_ORDER = {kind.title: place for place, kind in enumerate(EFFECTS)}
_PRESETS = {preset.name: preset for preset in PRESETS}

Scalar = float | int | str | bool


def names() -> tuple[str, ...]:
    """Everything that can stand as NAME: presets, then effects that are no preset."""
    return (*_PRESETS, *(title for title in _BY_TITLE if title not in _PRESETS))


def parse(texts: str | Iterable[str]) -> Condition:
    """Read one or several conditions into one.

    Raises:
        InputError: a name, key or value that does not exist; the message lists
            what does.
    """
    given = [texts] if isinstance(texts, str) else list(texts)
    legs: dict[str, list[Effect]] = {leg: [] for leg in _LEGS}
    parts = []
    for text in given:
        for piece in _split(text, " + ", text):
            leg, effects, part = _read(piece.strip(), text)
            _add(legs[leg], effects, leg, text)
            if effects:
                parts.append(part)
    return Condition(
        uplink=_in_order(legs["uplink"]), downlink=_in_order(legs["downlink"]), parts=tuple(parts)
    )


def _read(piece: str, text: str) -> tuple[str, list[Effect], str]:
    """One condition: its leg, its effects, its canonical spelling."""
    head, *pairs = _split(piece, ",", text)
    leg, name = _leg_and_name(head, text)
    preset = _PRESETS.get(name) or Preset(name=name, says="", effects=((name, {}),))
    keys = [_pair(pair, text) for pair in pairs]
    repeated = [key for place, (key, _) in enumerate(keys) if key in dict(keys[:place])]
    if repeated:
        raise InputError(f'condition "{text}": key "{repeated[0]}" is given twice')
    stated = {title: dict(stands) for title, stands in preset.effects}
    for key, value in keys:
        _override(stated, key, value, name, text)
    effects = [_make(title, stated[title], text) for title, _ in preset.effects]
    if leg == "downlink":
        effects = [effect for effect in effects if not effect.uplink_only]
        if not effects and preset.effects:
            raise InputError(
                f'condition "{text}": {name} is a sound of the caller\'s side, '
                "wanted it on the uplink"
            )
    return leg, effects, _canonical(leg, preset, effects)


def _leg_and_name(head: str, text: str) -> tuple[str, str]:
    leg, colon, rest = head.partition(":")
    if not colon:
        leg, rest = "uplink", head
    leg, name = (_plain(word) for word in (leg, rest))
    if leg not in _LEGS:
        raise InputError(
            f'condition "{text}": leg "{leg}" does not exist, wanted one of: {", ".join(_LEGS)}'
        )
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f", did you mean {near[0]}" if near else ""
        raise InputError(
            f'condition "{text}": "{name}" does not exist{hint}; '
            f"presets: {', '.join(_PRESETS)}; effects: {', '.join(_BY_TITLE)}"
        )
    return leg, name


def _pair(pair: str, text: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise InputError(f'condition "{text}": got "{pair.strip()}", wanted key=value')
    return _plain(key), _unquoted(value.strip(), text)


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_")


def _override(
    stated: dict[str, dict[str, Scalar]], key: str, value: str, name: str, text: str
) -> None:
    """Put a key into the one effect it belongs to; alternatives to it fall away."""
    title, dot, rest = key.partition(".")
    owners = [one for one in stated if (rest if dot else key) in _BY_TITLE[one].model_fields]
    if dot:
        key, owners = rest, [one for one in owners if one == title]
    if not owners:
        raise InputError(
            f'condition "{text}": {name} has no key "{title}{dot}{rest}", '
            f"wanted one of: {', '.join(_keys_of(stated)) or 'none'}"
        )
    if len(owners) > 1:
        which = " or ".join(f"{owner}.{key}" for owner in owners)
        raise InputError(f'condition "{text}": key "{key}" of {name} is ambiguous, wanted {which}')
    alternatives = _BY_TITLE[owners[0]].alternatives
    keys = stated[owners[0]]
    if key in alternatives:
        for other in alternatives:
            if other != key and not isinstance(keys.get(other), str):
                keys.pop(other, None)
    keys[key] = value


def _keys_of(stated: Iterable[str]) -> list[str]:
    titles = list(stated)
    every = [(title, key) for title in titles for key in _BY_TITLE[title].model_fields]
    counts = [key for _, key in every]
    return [key if counts.count(key) == 1 else f"{title}.{key}" for title, key in every]


def _make(title: str, keys: Keys, text: str) -> Effect:
    try:
        return _BY_TITLE[title].model_validate(dict(keys))
    except ValidationError as error:
        raise InputError(f'condition "{text}": {_complaint(title, error)}') from None


def _complaint(title: str, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "duplex" or not first["loc"]:
        return f"{title} {first['msg']}"
    key = str(first["loc"][0])
    return f'{title}.{key}: got "{first["input"]}", wanted {bounds(_BY_TITLE[title], key)}'


def bounds(kind: type[Effect], key: str) -> str:
    """What a key takes, in words: a range, a choice or a kind of value."""
    schema = kind.model_json_schema()["properties"][key]
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    only = options[0]
    if "enum" in only:
        return "one of: " + ", ".join(only["enum"])
    if "const" in only:
        return str(only["const"])
    if only["type"] == "boolean":
        return "on or off"
    if only["type"] == "string":
        return "a name or a path"
    low = only.get("minimum", only.get("exclusiveMinimum"))
    span = f"{number(low)} to {number(only['maximum'])}"
    opening = "above" if "exclusiveMinimum" in only else "from"
    kind_of = "a whole number" if only["type"] == "integer" else "a number"
    return f"{kind_of} {opening} {span}"


def _add(standing: list[Effect], new: Sequence[Effect], leg: str, text: str) -> None:
    have = {effect.title for effect in standing}
    for effect in new:
        if effect.title in have:
            raise InputError(
                f'condition "{text}": {leg} has {effect.title} already, wanted each effect once; '
                f"override its keys in one condition instead"
            )
    standing.extend(new)


def _in_order(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    return tuple(sorted(effects, key=lambda effect: _ORDER[effect.title]))


# -- writing -------------------------------------------------------------------


def _canonical(leg: str, preset: Preset, effects: Sequence[Effect]) -> str:
    """The name and only those keys that differ from what it stands for anyway."""
    usual = {title: _BY_TITLE[title].model_validate(dict(keys)) for title, keys in preset.effects}
    alone = set(_keys_of(usual))
    words = []
    for effect in effects:
        stands = usual[effect.title].keys()
        for key, value in effect.keys().items():
            if stands.get(key) != value:
                spelled = key if key in alone else f"{effect.title}.{key}"
                words.append(f"{spelled}={_quoted(_spelled(value))}")
    head = preset.name if leg == "uplink" else f"{leg}:{preset.name}"
    return ",".join((head, *words))


def _spelled(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """A number as short as it can be said and read back, never with an exponent."""
    whole = f"{value:.0f}"
    if float(whole) == value:
        return "0" if whole == "-0" else whole
    return format(Decimal(repr(float(value))), "f")


def _quoted(value: str) -> str:
    plain = not any(mark in value for mark in ',"') and " + " not in value
    if plain and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'


def _unquoted(value: str, text: str) -> str:
    if not value.startswith('"'):
        return value
    inner = value[1:-1]
    if len(value) < 2 or not value.endswith('"') or '"' in inner.replace('""', ""):
        raise InputError(f'condition "{text}": {value} is not quoted to its end')
    return inner.replace('""', '"')


def _split(text: str, mark: str, whole: str) -> list[str]:
    """Cut at ``mark``, not inside double quotes."""
    pieces, start, at, inside = [], 0, 0, False
    while at < len(text):
        if text[at] == '"':
            inside = not inside
        if not inside and text.startswith(mark, at):
            pieces.append(text[start:at])
            at += len(mark)
            start = at
            continue
        at += 1
    if inside:
        raise InputError(f'condition "{whole}": a double quote is never closed')
    return [*pieces, text[start:]]

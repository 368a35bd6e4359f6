"""Options out of a TOML file: a table a verb, a name a flag; the command line wins.

The values become the verb's defaults before its own options are read, so that it cannot
tell where they came from. It opens one file and knows no option of any verb.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, TypeAlias, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from duplex.cli.shell import MAY_BE_EMPTY, stop
from duplex.errors import InputError
from duplex.inputs import read_text

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG_BYTES = 1 << 20
LEFT = "duplex.config"
"""Where a verb finds the values that it reads itself."""
HELP = "TOML file with a table named as this verb; flags win over it."
_KINDS: Mapping[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
_CALLED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def read_table(path: Path, verb: Sequence[str], verbs: Sequence[str]) -> dict[str, object]:
    """The table of one verb, names with underscores; empty when the file has none.

    Raises:
        InputError: the file cannot be read, or a table is of no verb.
    """
    try:
        document: dict[str, object] = tomllib.loads(
            read_text(path, f"config {path}", limit=CONFIG_BYTES)
        )
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"config {path}: {error}") from None
    except RecursionError:
        raise InputError(f"config {path}: it is nested too deeply") from None
    for name in document:
        if name not in verbs:
            near = difflib.get_close_matches(name, verbs, n=1)
            hint = f", did you mean [{near[0]}]" if near else f", wanted [{'], ['.join(verbs)}]"
            raise InputError(f"config {path}: unknown table [{name}]{hint}")
    table: object = document
    for name in verb:
        table = table.get(name, {}) if isinstance(table, dict) else table
        if not isinstance(table, dict):
            raise InputError(f"config {path}: {name} is {type(table).__name__}, wanted a table")
    assert isinstance(table, dict)
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def table_of(path: Path, verb: str, context: typer.Context) -> dict[str, object]:
    """The table of another verb, values as they stand. Raises InputError."""
    return read_table(path, (verb,), sorted(_verbs(context.find_root().command)))


def from_file(left: frozenset[str] = frozenset()) -> Callable[[typer.Context, Path | None], object]:
    """The callback of ``--config``; options named in ``left`` are for the verb to read itself."""

    def read(ctx: typer.Context, value: Path | None) -> Path | None:
        if value is None:
            return None
        root = ctx.find_root()
        verb = ctx.command_path.split()[len(root.command_path.split()) :]
        options = _options(ctx)
        try:
            table = read_table(value, verb, sorted(_verbs(root.command)))
            found, kept = {}, dict[str, object]()
            for name, given in table.items():
                where = f"config {value}: {'.'.join(verb)}.{name}"
                if name not in options:
                    near = difflib.get_close_matches(name, options, n=1)
                    hint = f", did you mean {near[0]}" if near else ""
                    raise InputError(f"{where} is unknown{hint}")
                if name in left:
                    kept[name] = given
                else:
                    found[options[name].name] = options[name].checked(given, where)
        except InputError as error:
            stop(str(error))
        ctx.default_map = {**(ctx.default_map or {}), **found}
        ctx.meta[LEFT] = kept
        return value

    return read


Config: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", help=HELP, is_eager=True, expose_value=False, callback=from_file()),
]
"""``--config`` of a verb that takes all its options from the command line's values."""


class _Option:
    """One option as a config names it: the flag's name, and the parameter behind it."""

    def __init__(self, name: str, hint: object, flags: Sequence[str]) -> None:
        self.name = name
        wanted = [one for one in (*_parts(hint),) if one is not type(None)]
        self._multiple = any(get_origin(one) is list for one in (hint, *wanted))
        kind = next((one for one in _KINDS if one in wanted), str)
        self._wanted = _KINDS.get(kind, (str,))
        self._called = _CALLED[kind]
        self._may_be_empty = any(flag in MAY_BE_EMPTY for flag in flags)

    def checked(self, value: object, where: str) -> object:
        """The value as it stands; raises InputError for one of another kind, or an empty one."""
        if self._multiple and not isinstance(value, list):
            raise InputError(f"{where} is {value!r}, wanted a list")
        for one in value if isinstance(value, list) and self._multiple else [value]:
            truth = isinstance(one, bool) and bool not in self._wanted
            if truth or not isinstance(one, self._wanted):
                raise InputError(f"{where} is {one!r}, wanted {self._called}")
            if one == "" and not self._may_be_empty:
                raise InputError(f"{where} is empty, want a value")
        return value


def _parts(hint: object) -> tuple[object, ...]:
    """``str`` and ``None`` of ``str | None``; the hint itself when it is of one part."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(one for part in parts for one in (part, *get_args(part)))


def _options(ctx: typer.Context) -> dict[str, _Option]:
    callback = ctx.command.callback
    assert callback is not None
    hints = get_type_hints(callback)
    found = {}
    for param in ctx.command.params:
        if param.param_type_name != "option" or param.name in (None, "help", "config"):
            continue
        assert param.name is not None
        flag = param.opts[-1].lstrip("-").replace("-", "_")
        found[flag] = _Option(param.name, hints[param.name], param.opts)
    return found


def _verbs(root: object) -> list[str]:
    assert isinstance(root, TyperGroup)
    return list(root.commands)

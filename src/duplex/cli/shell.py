"""What every verb of the command shares: the set they join, the console, the way out.

A verb reads its options, calls one function and ends with a code; nothing here
knows a verb. stdout is data, stderr is talk; a sentence and exit 2 for what could
not run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol, TypeVar

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from duplex.screen import plain

Do = TypeVar("Do", bound=Callable[..., None])
MAY_BE_EMPTY = ("--assistant-opening-prompt",)


class Formatter(Protocol):
    """What writes a page of help."""

    def section(self, name: str) -> AbstractContextManager[None]: ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class Verb(TyperCommand):
    """A command that takes no empty word: as a path it would be the present folder.

    Its help keeps an example on one line, to be copied, and is told whole in a list. One
    of many options has them under headings, each with the options' names.
    """

    headings: Mapping[str, Sequence[str]] = {}

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence, however long: a list of verbs cuts nothing off."""
        return " ".join((self.help or "").split("\n\n")[0].replace("\b", "").split()).rstrip(".")

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """The page of this verb; what follows a bare backspace is not filled anew."""
        whole, self.help = self.help, (self.help or "").replace("\n\nExample:", "\n\n\b\nExample:")
        try:
            return super().get_help(ctx)
        finally:
            self.help = whole

    def format_options(self, ctx: typer.Context, formatter: Formatter) -> None:  # type: ignore[override]
        """Arguments, then options under their headings; those under none come last."""
        found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        named: dict[str, tuple[str, str]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if any(param.name in names for names in self.headings.values()):
                named[param.name or ""] = record
            else:
                argument = param.param_type_name == "argument"
                found["Arguments" if argument else "Options"].append(record)
        under = {title: [named[name] for name in names] for title, names in self.headings.items()}
        for title, records in {"Arguments": found["Arguments"], **under, **found}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for before, word in zip(["", *args], args, strict=False):
            name = word[:-1] if word.startswith("--") and word.endswith("=") else before
            if (word == "" or name != before) and name not in MAY_BE_EMPTY:
                stop(f"{name if name.startswith('-') else 'an argument'} is empty, want a value")
        return super().parse_args(ctx, args)


class Verbs(typer.Typer):
    """A set of commands, each a :class:`Verb`."""

    def command(  # type: ignore[override]
        self, name: str | None = None, *, headings: Mapping[str, Sequence[str]] | None = None
    ) -> Callable[[Do], Do]:
        cls = Verb if headings is None else type("Verb", (Verb,), {"headings": headings})
        return super().command(name, cls=cls)


app = Verbs(
    name="duplex",
    help="Hold full-duplex voice-agent calls on one timeline, and measure them.",
    epilog="Example: duplex run --scenario restaurant_booking_complete --clock virtual",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
scenario_app = Verbs(
    help="Work on scenario files.",
    epilog="Example: duplex scenario validate scenarios/",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(scenario_app, name="scenario")


class Talk(Console):
    """The console for people; when nobody listens any more it falls silent.

    Whatever it is handed, no terminal obeys a sequence in it: a run's name, a path or a
    peer's words may hold one.
    """

    def print(self, *objects: object, **how: object) -> None:
        super().print(*map(_harmless, objects), **how)  # type: ignore[arg-type]

    def _check_buffer(self) -> None:
        # A terminal that was closed is an input/output error, a pipe a broken one.
        try:
            super()._check_buffer()
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


def _harmless(one: object) -> object:
    if isinstance(one, str):
        return _lines(one)
    if isinstance(one, Text) and one.plain != (clean := _lines(one.plain)):
        return Text(clean, style=one.style)
    return one


def _lines(text: str) -> str:
    return "\n".join(map(plain, text.split("\n")))


def talk() -> Console:
    """The console for people: stderr, no markup, no highlighting."""
    return Talk(stderr=True, highlight=False, markup=False, soft_wrap=True)


def paper() -> Console:
    """The console for text that was asked for, so that it can be piped: stdout, no markup."""
    return Talk(highlight=False, markup=False, soft_wrap=True)


def stop(message: str) -> NoReturn:
    """Say one sentence on stderr and exit 2."""
    print(f"duplex: {plain(message)}", file=sys.stderr)
    raise typer.Exit(2)

"""``duplex calibrate``: read what was asked, run the calibration, print and write its table.

stdout is the table or its JSON, stderr is talk. The exit code is 1 when a goal is missed; in
the short form, when one is missed by more than is known and agreed. It computes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.calibration.campaign import Campaign, Options, Say
from duplex.calibration.table import Table, as_markdown, as_text
from duplex.errors import InputError
from duplex.run_folder import RunFolder

PATHS = ("virtual", "live", "both")
MET, MISSED = 0, 1


def options(
    *,
    speech: Path | None = None,
    speakers: str | None = None,
    conditions: Sequence[str] = (),
    short: bool = False,
    path: str = "both",
    turns: int | None = None,
    live_calls: int = 8,
    seed: int = 7,
) -> Options:
    """Options as a person gives them.

    Raises:
        InputError: they cannot be used together.
    """
    if path not in PATHS:
        raise InputError(f'path "{path}" is not one of {", ".join(PATHS)}')
    names = tuple(name for name in (speakers or "").split(",") if name)
    if names and speech is None:
        raise InputError("speakers are those of a folder: name it with --speech DIR")
    if short and (speech is not None or conditions or path == "live"):
        raise InputError(
            "--short is synthetic and virtual: it takes no speech, no condition and no live path"
        )
    return Options(
        speech=speech,
        speakers=names,
        conditions=tuple(dict.fromkeys(conditions)),
        short=short,
        virtual=path != "live",
        live=path != "virtual" and not short,
        turns=turns,
        live_calls=live_calls,
        seed=seed,
    )


def calibrate(
    *,
    speech: str | Path | None = None,
    speakers: Sequence[str] = (),
    conditions: Sequence[str] = (),
    short: bool = False,
    path: str = "both",
    turns: int | None = None,
    live_calls: int = 8,
    seed: int = 7,
) -> Table:
    """Plant conversations, hold them, compare; return everything that was found.

    ``speech`` is a folder of clips (None: the embedded voices), ``path`` is ``virtual``,
    ``live`` or ``both``, ``turns`` how many answered caller turns a row has.

    Raises:
        InputError: the options or the speech cannot be used.
        MissingExtra: the embedded voices are wanted and not installed.
    """
    return performed(
        options(
            speech=None if speech is None else Path(speech),
            speakers=",".join(speakers),
            conditions=conditions,
            short=short,
            path=path,
            turns=turns,
            live_calls=live_calls,
            seed=seed,
        )
    )


def performed(wanted: Options, say: Say = lambda text: None) -> Table:
    """The same from options that were read already; ``say`` is told of progress."""
    return asyncio.run(Campaign(wanted, say).run())


def command(
    wanted: Options,
    *,
    as_json: bool = False,
    out: Path | None = None,
    markdown: Path | None = None,
    console: Console,
) -> int:
    """Calibrate, print, write; return the exit code. Raises DuplexError."""
    for path in (out, markdown):
        if path is not None and path.is_dir():
            raise InputError(f"{path} is a folder, wanted a file")
    with console.status("calibrating") as status:

        def say(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            else:
                console.print(Text(text))

        table = performed(wanted, say)
    text = json.dumps(table.as_json(), allow_nan=False, indent=1)
    print(text if as_json else as_text(table))
    _write(out, text + "\n")
    _write(markdown, as_markdown(table))
    failed = table.regressed if wanted.short else bool(table.missed) or not table.in_place
    return MISSED if failed else MET


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        RunFolder(path.parent).write_text(path, text)

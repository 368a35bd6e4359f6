"""The verbs that work on whole runs and tables of calls.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex.cli.shell import app, stop
from duplex.errors import DuplexError


@app.command()
def attribute(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.csv…", help="Columns call,value,outcome,check,passed."),
    ],
) -> None:
    """Say which values of a swept property the failures concentrate on.

    One row for each check of a call; the first value is the baseline. Prints one JSON object a
    file. Example: duplex attribute sweep.csv
    """
    from duplex import attributing

    try:
        attributing.command(paths)
    except DuplexError as error:
        stop(str(error))

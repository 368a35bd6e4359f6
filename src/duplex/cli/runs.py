"""The verbs that work on whole runs and tables of calls.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex.cli.shell import app, stop, talk
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


@app.command()
def compare(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The run before.")],
    current: Annotated[Path, typer.Argument(metavar="RUN", help="The run now.")],
    across_rulers: Annotated[
        bool,
        typer.Option(
            "--across-rulers", help="Compare all but timing if they were measured differently."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
) -> None:
    """Compare two runs, call by call where they had the same words and noise.

    Every difference has an interval and a corrected p-value; exit 1 when something is worse.
    Example: duplex compare runs/main runs/branch
    """
    from duplex import comparing

    try:
        code = comparing.command(
            baseline,
            current,
            as_json=as_json,
            markdown=markdown,
            across_rulers=across_rulers,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)

"""The verbs that work on whole runs and tables of calls.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex.cli.config import Config
from duplex.cli.shared import Json, Markdown, named
from duplex.cli.shell import app, paper, stop, talk
from duplex.errors import DuplexError
from duplex.run_filters import MEANS, Filters

_Runs = Annotated[Path, typer.Option("--runs", help="Folder that run folders are in.")]


@app.command("list")
def list_runs(
    runs: _Runs = Path("runs"),
    since: Annotated[str | None, typer.Option(help=MEANS["since"])] = None,
    until: Annotated[str | None, typer.Option(help=MEANS["until"])] = None,
    status: Annotated[str | None, typer.Option(help=MEANS["status"])] = None,
    agent: Annotated[str | None, typer.Option(help=MEANS["agent"])] = None,
    scenario: Annotated[str | None, typer.Option(help=MEANS["scenario"])] = None,
    failed: Annotated[bool, typer.Option("--failed", help=MEANS["failed"])] = False,
    limit: Annotated[int, typer.Option(help=MEANS["limit"], min=1)] = 50,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """List runs, newest first.

    Example: duplex list --failed --since 2026-08-01
    """
    from duplex import listing

    filters = Filters(
        since=since,
        until=until,
        status=status,
        agent=agent,
        scenario=scenario,
        failed=failed,
        limit=limit,
    )
    try:
        console = talk() if as_json else paper()
        listing.list_runs(runs, filters, as_json=as_json, console=console)
    except DuplexError as error:
        stop(str(error))


@app.command()
def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    runs: _Runs = Path("runs"),
    as_json: Json = False,
    markdown: Markdown = False,
    config: Config = None,
) -> None:
    """Show one run again: its verdict, its calls, what they rest on.

    Example: duplex show run_live_20260801_120000_3f2a1b --markdown
    """
    from duplex import listing

    try:
        console = talk() if as_json or markdown else paper()
        listing.show(run, runs, as_json=as_json, markdown=markdown, console=console)
    except DuplexError as error:
        stop(str(error))


@app.command()
def cancel(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    runs: _Runs = Path("runs"),
    config: Config = None,
) -> None:
    """Ask a run in progress to stop; its calls end and keep what there is.

    Example: duplex cancel run_live_20260801_120000_3f2a1b
    """
    from duplex import listing

    try:
        listing.cancel(run, runs, talk())
    except DuplexError as error:
        stop(str(error))


@app.command()
def attribute(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.csv…", help="Columns call,value,outcome,check,passed."),
    ],
    config: Config = None,
) -> None:
    """Say which values of a swept property the failures concentrate on.

    One row for each check of a call; the first value is the baseline. Prints one JSON object a
    file.

    Example: duplex attribute sweep.csv
    """
    from duplex import attributing

    try:
        attributing.command(paths)
    except DuplexError as error:
        stop(str(error))


@app.command()
def compare(
    baseline: Annotated[
        Path,
        typer.Argument(metavar="BASELINE", help="The run before: folder or id.", callback=named),
    ],
    current: Annotated[
        Path, typer.Argument(metavar="RUN", help="The run now: folder or id.", callback=named)
    ],
    across_rulers: Annotated[
        bool,
        typer.Option(
            "--across-rulers", help="Compare all but timing if they were measured differently."
        ),
    ] = False,
    as_json: Json = False,
    markdown: Markdown = False,
    config: Config = None,
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
            console=talk() if as_json or markdown else paper(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    shape: Annotated[
        str, typer.Option("--as", help="roark, livekit, junit, csv, markdown or inspect.")
    ],
    compare_to: Annotated[
        Path | None, typer.Option(help="Baseline run whose comparison is put in.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it here [stdout].")] = None,
    runs: _Runs = Path("runs"),
    config: Config = None,
) -> None:
    """Write a run in a shape that another tool reads.

    Example: duplex export run_live_20260801_120000_3f2a1b --as roark
    """
    from duplex import exporting

    try:
        exporting.command(run, shape, runs=runs, compare_to=compare_to, out=out)
    except DuplexError as error:
        stop(str(error))


@app.command()
def debrief(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    compare_to: Annotated[
        Path | None, typer.Option(help="Baseline run to hold it against.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model that may reword the texts, never the facts.")
    ] = None,
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server of that model.")
    ] = None,
    allow_plain_http: Annotated[
        bool, typer.Option(help="Let a model elsewhere be asked over plain http.")
    ] = False,
    runs: _Runs = Path("runs"),
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Say what a run means: what went well, themes with their calls and spans, what to do.

    Example: duplex debrief runs/branch --compare-to runs/main
    """
    from duplex import debriefing

    try:
        debriefing.command(
            run,
            runs=runs,
            compare_to=compare_to,
            model=model,
            model_url=model_url,
            allow_plain_http=allow_plain_http,
            as_json=as_json,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))

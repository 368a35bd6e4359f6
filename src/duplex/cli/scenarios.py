"""The verbs that make scenario files: from a run, from other formats, from answers.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from duplex.cli.config import Config
from duplex.cli.shell import scenario_app, stop, talk
from duplex.errors import DuplexError

_Out = Annotated[Path | None, typer.Option(help="A new file to write [stdout].")]


@scenario_app.command("from-run")
def from_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    call: Annotated[str | None, typer.Option(help="Which call of it [the only one].")] = None,
    incident: Annotated[
        str | None, typer.Option(help="Which incident of it (duplex show lists them).")
    ] = None,
    out: _Out = None,
    runs: Annotated[Path, typer.Option(help="Folder that run folders are in.")] = Path("runs"),
    config: Config = None,
) -> None:
    """Write a scenario that brings a recorded call back.

    With an incident it carries the check that fails today.

    Example: duplex scenario from-run runs/x --incident slow-reply-3fa9c1e2
    """
    from duplex import reliving

    try:
        told = reliving.command(run, runs=runs, call=call, incident=incident, out=out)
    except DuplexError as error:
        stop(str(error))
    if told:
        talk().print(told)


@scenario_app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="scenarios.yaml", help="LiveKit's file.")],
    out: _Out = None,
    config: Config = None,
) -> None:
    """Turn LiveKit's scenarios into ours; ids stay as they are.

    Example: duplex scenario import scenarios.yaml --out scenarios/hotel.json
    """
    from duplex import importing

    try:
        notes = importing.command(source, out)
    except DuplexError as error:
        stop(str(error))
    for note in notes:
        talk().print(f"note: {note}")


@scenario_app.command("new")
def new(
    title: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    opening: Annotated[str | None, typer.Option(help="What the caller says first.")] = None,
    goal: Annotated[str | None, typer.Option(help="What the caller wants to be settled.")] = None,
    answer: Annotated[
        str | None, typer.Option(help="What the assistant must have done by then.")
    ] = None,
    fact: Annotated[
        list[str] | None, typer.Option(help="What the caller knows, name=value; repeatable.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(help="What the application's state must hold, name=value; repeatable."),
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(help="A check on its calls; repeatable.")
    ] = None,
    out: _Out = None,
    config: Config = None,
) -> None:
    """Make a scenario from a few answers; what no option says is asked for.

    Example: duplex scenario new --out scenarios/table_for_two.json
    """
    from duplex import composing

    answers = composing.Answers(
        title=title,
        goal=goal,
        opening=opening,
        answer=answer,
        facts=fact or (),
        state=state or (),
        check=check or (),
    )
    ask = (
        (lambda question: str(typer.prompt(question, default="", err=True)))
        if (sys.stdin.isatty())
        else None
    )
    try:
        composing.command(answers, ask, out)
    except DuplexError as error:
        stop(str(error))
    if out is not None:
        talk().print(f"{out}: hold it with duplex run --data {out}")

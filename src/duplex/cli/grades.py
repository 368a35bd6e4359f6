"""The verb that grades what is there already: ``grade``.

It reads options and calls one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex.cli import shared
from duplex.cli.config import Config
from duplex.cli.shared import Json, named
from duplex.cli.shell import app, stop, talk
from duplex.errors import DuplexError, InputError


@app.command()
def grade(
    context: typer.Context,
    run_folder: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run's folder, or its id in ./runs.", callback=named),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Scenario file or folder [where the run had it].")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Folder in RUN/graded to write to [the time].")
    ] = None,
    agreement: Annotated[
        bool,
        typer.Option("--agreement", help="Grade no run: measure the judge on labelled calls."),
    ] = False,
    cases: Annotated[
        Path | None, typer.Option(help="Labelled transcripts for --agreement [48 of our own].")
    ] = None,
    judge: shared.Judge = None,
    judge_url: shared.JudgeUrl = None,
    judge_model: shared.JudgeModel = None,
    judge_reasoning_effort: shared.JudgeEffort = None,
    judge_repetitions: shared.JudgeRepetitions = 1,
    check_function: shared.CheckFunction = None,
    question: shared.AskedQuestion = None,
    allow_plain_http: shared.PlainHttp = False,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Grade a run again, with or without a judge; its files stay. Or measure a judge.

    Example: duplex grade runs/run_live_20260801_120000_1a2b3c --judge-model gpt-5

    Example: duplex grade --agreement --judge-url http://127.0.0.1:8000/v1 --judge-model qwen
    """
    from duplex import agreeing, regrading
    from duplex.judge_options import JudgeOptions, judge_options

    given = {
        option: value
        for option, value in context.params.items()
        if option in JudgeOptions.model_fields
        and (source := context.get_parameter_source(option)) is not None
        and source.name in ("COMMANDLINE", "DEFAULT_MAP")
    }
    try:
        options = judge_options(given)
        if agreement:
            if run_folder is not None or check_function or question:
                raise InputError(
                    "--agreement measures a judge; it takes no run, no check and no question"
                )
            code = agreeing.command(options, cases=cases, as_json=as_json, console=talk())
        elif run_folder is None:
            raise InputError("want a run's folder to grade, or --agreement")
        elif cases is not None:
            raise InputError("--cases is for --agreement")
        else:
            code = regrading.command(
                run_folder,
                options,
                data=data,
                name=name,
                as_json=as_json,
                console=talk(),
            )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)

"""The verbs that work on files and this machine: scenarios, conditions, what is installed.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from duplex import options as run_options
from duplex.cli.config import Config, table_of
from duplex.cli.shared import Json
from duplex.cli.shell import app, scenario_app, stop, talk
from duplex.counting import counted
from duplex.errors import DuplexError
from duplex.screen import plain


@scenario_app.command("validate")
def scenario_validate(
    paths: Annotated[list[Path], typer.Argument(help="Scenario files or folders.")],
    application: Annotated[
        str, typer.Option(help="The application they are meant for, module:object.")
    ] = run_options.DEFAULT_APPLICATION,
    config: Config = None,
) -> None:
    """Check scenario files with their application; every fault is named with its place.

    Example: duplex scenario validate scenarios/
    """
    from duplex import preflight

    console = talk()
    try:
        for path in paths:
            found = preflight.validate(path, application)
            for warning in found.warnings:
                console.print(f"warning: {plain(warning)}")
            if found.errors:
                stop("\n".join(found.errors))
            count = len(found.scenarios)
            console.print(f"{plain(str(path))}: {counted(count, 'scenario')}, all valid")
    except DuplexError as error:
        stop(str(error))


@app.command()
def degrade(
    source: Annotated[Path, typer.Argument(metavar="IN", help="One channel, or caller and agent.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new WAV file.")],
    condition: Annotated[
        list[str], typer.Option(help="[uplink:|downlink:]NAME[,key=value…]; repeatable.")
    ],
    tick_ms: Annotated[int, typer.Option(help="Piece handled at once; changes no sample.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of all that is random.")] = 7,
    stems: Annotated[
        Path | None, typer.Option(help="Also write sources, noise and loss mask here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was achieved.")] = False,
    config: Config = None,
) -> None:
    """Apply an audio condition to a file.

    Example: duplex degrade call.wav noisy.wav --condition coffee_shop,snr=10
    """
    from duplex import degrading

    try:
        code = degrading.command(
            source,
            out,
            condition=condition,
            tick_ms=tick_ms,
            seed=seed,
            stems=stems,
            as_json=as_json,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def noise(
    name: Annotated[
        str | None, typer.Argument(help="A sound of the list, or a sound file [list all].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it here, a new WAV file.")] = None,
    play: Annotated[bool, typer.Option("--play", help="Play it on this machine.")] = False,
    rate_hz: Annotated[int, typer.Option(min=8000, max=48000, help="Sample rate.")] = 24000,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """List the sounds conditions are made of; write or play one.

    Example: duplex noise cafe --out cafe.wav
    """
    from duplex import noises

    try:
        code = noises.command(
            name, out=out, play=play, rate_hz=rate_hz, as_json=as_json, console=talk()
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port [0: any free one].")] = 0,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that run folders are in.")] = Path(
        "runs"
    ),
    token_env: Annotated[
        str | None, typer.Option(help="Variable that holds the token [a new one is printed].")
    ] = None,
    max_runs: Annotated[int, typer.Option(min=1, max=64, help="Runs begun at once.")] = 4,
    run_config: Annotated[
        Path | None,
        typer.Option(help="TOML file whose table run says how runs created here are held."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="NAME=ASSISTANT: what a created run's agentName stands for; repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model that writes scenarios from an agent's source.")
    ] = None,
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server of that model.")
    ] = None,
    allow_plain_http: Annotated[
        bool, typer.Option(help="Let a model elsewhere be asked over plain http.")
    ] = False,
    config: Config = None,
) -> None:
    """Serve the runs over HTTP, also to Roark's and LiveKit's clients: read, begun, cancelled.

    Whoever has the token can run what duplex run can, as you. Needs the extra serve.

    Example: duplex serve --runs runs --port 8700
    """
    from duplex.serve import command as serving
    from duplex.serve.setting import Setting

    try:
        setting = Setting(
            run={} if run_config is None else table_of(run_config, "run", context),
            agents=tuple(agent or ()),
            model=model,
            model_url=model_url,
            allow_plain_http=allow_plain_http,
        )
        serving.command(
            host=host,
            port=port,
            runs=runs,
            token_env=token_env,
            max_runs=max_runs,
            setting=setting,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    config: Config = None,
) -> None:
    """Say what is installed, what is missing, and the command that mends it.

    Example: duplex doctor
    """
    from duplex import doctor as doctors

    findings = doctors.examine()
    if as_json:
        print(json.dumps([finding.as_json() for finding in findings]))
    else:
        for finding in findings:
            print(finding.as_text())
    raise typer.Exit(0 if all(finding.ok or finding.optional for finding in findings) else 2)

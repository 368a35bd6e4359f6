"""The verbs that measure and show: ``measure``, ``remeasure``, ``calibrate``, ``view``, ``plot``.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex.cli.config import Config
from duplex.cli.shared import DETECTORS, EarsModel, Json, Markdown, Run
from duplex.cli.shell import app, stop, talk
from duplex.errors import DuplexError


@app.command()
def measure(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Recordings, pairs of mono files, or call folders.")
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option(help="JSONL of labelled timelines; prints one object a line.")
    ] = None,
    channels: Annotated[
        str | None, typer.Option(help="caller,assistant or assistant,caller [guessed, and said].")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels of one recording: Audacity, RTTM or JSON.")
    ] = None,
    detector: Annotated[str | None, typer.Option(help=f"{DETECTORS} [edge].")] = None,
    witness: Annotated[
        bool, typer.Option(help="Let webrtc hear too, and say how far it agrees.")
    ] = True,
    words: Annotated[
        bool, typer.Option("--words", help="Let the embedded ears (extra local) hear the words.")
    ] = False,
    transcript: Annotated[
        Path | None, typer.Option(help="Words somebody wrote down, in the forms of --labels.")
    ] = None,
    ears_model: EarsModel = None,
    as_json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV on stdout.")] = False,
    markdown: Markdown = False,
    config: Config = None,
) -> None:
    """Measure recordings, calls, or labelled timelines.

    Example: duplex measure call.wav --channels caller,assistant
    """
    from duplex import measuring
    from duplex.wording import Wording

    try:
        code = measuring.command(
            paths or [],
            timeline=timeline,
            channels=channels,
            labels=labels,
            detector=detector or measuring.MAIN_DETECTOR,
            witness=witness,
            wording=Wording(ears=words, transcript=transcript, model=ears_model),
            as_json=as_json,
            csv=csv,
            markdown=markdown,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def remeasure(
    run_folder: Run,
    detector: Annotated[str | None, typer.Option(help=f"{DETECTORS} [the run's].")] = None,
    response_deadline_ms: Annotated[
        int | None, typer.Option(help="A reply later than this is missed [the run's].")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of the timing policy, such as awkward_silence_ms=2000."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Folder in RUN/remeasured to write to [the time].")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Let the embedded ears (extra local) hear both stems.")
    ] = False,
    ears_model: EarsModel = None,
    as_json: Json = False,
    markdown: Markdown = False,
    config: Config = None,
) -> None:
    """Measure a run again under another detector, policy or version; its files stay.

    Example: duplex remeasure runs/run_live_20260801_120000_1a2b3c --response-deadline-ms 3000
    """
    from duplex import remeasuring

    try:
        code = remeasuring.command(
            run_folder,
            detector=detector,
            response_deadline_ms=response_deadline_ms,
            policy=policy or [],
            name=name,
            words=words,
            ears_model=ears_model,
            as_json=as_json,
            markdown=markdown,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def calibrate(
    speech: Annotated[
        Path | None,
        typer.Option(help="Folder of clips, one sub-folder or name prefix a speaker [embedded]."),
    ] = None,
    speakers: Annotated[
        str | None, typer.Option(help="Only these speakers of the folder, with commas.")
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Also two rows under this audio condition; repeatable."),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="A few synthetic calls, the same every time; for CI.")
    ] = False,
    path: Annotated[str, typer.Option(help="virtual, live or both.")] = "both",
    turns: Annotated[
        int | None, typer.Option(min=1, help="Caller turns a row [500, short 8].")
    ] = None,
    calls: Annotated[int, typer.Option(min=1, max=32, help="Live calls held at once.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is planted.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table here.")] = None,
    config: Config = None,
) -> None:
    """Measure the ruler: planted calls with known truth, and how far off each figure is.

    Goes through whole calls and judges the goals; exit 1 when one is missed. Which ± an edge
    gets is fitted elsewhere, by bench/edge_study.py, never on what is printed here.

    Example: duplex calibrate --speech clips/ --markdown table.md
    """
    from duplex.calibration import command as calibration

    try:
        code = calibration.command(
            calibration.options(
                speech=speech,
                speakers=speakers,
                conditions=condition or (),
                short=short,
                path=path,
                turns=turns,
                live_calls=calls,
                seed=seed,
            ),
            as_json=as_json,
            out=out,
            markdown=markdown,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def view(
    run_folder: Run,
    output: Annotated[Path | None, typer.Option(help="Write the page here instead.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = False,
    config: Config = None,
) -> None:
    """Write the page that shows a run, and say where it is.

    Example: duplex view runs/run_live_20260801_120000_1a2b3c --browser
    """
    from duplex import viewer

    try:
        code = viewer.command(run_folder, output, browser)
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its id.")],
    what: Annotated[
        str | None, typer.Option(help="timeline, latency or sweep [sweep if it has one].")
    ] = None,
    call: Annotated[str | None, typer.Option(help="Only this call of the run, by its id.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .png, .svg or .pdf [WHAT.png].")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that run folders are in.")] = Path(
        "runs"
    ),
    config: Config = None,
) -> None:
    """Draw a call over time, the latencies of a call or a run, or a sweep (extra plot).

    Example: duplex plot run_live_20260801_120000_3f2a1b --what latency -o latency.svg
    """
    from duplex.notebook import plotting

    try:
        plotting.command(run, what, call=call, output=output, runs=runs)
    except DuplexError as error:
        stop(str(error))

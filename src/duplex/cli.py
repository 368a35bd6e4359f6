"""The ``duplex`` command: reads options, calls one function, prints what it returned.

stdout is data, stderr is talk. Exit 0: passed; 1: a check or a call failed;
2: could not run; 130: stopped twice. It computes nothing itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from rich.console import Console
from typer.core import TyperCommand

from duplex import options as run_options
from duplex.errors import DuplexError
from duplex.screen import plain

Do = TypeVar("Do", bound=Callable[..., None])
_MAY_BE_EMPTY = ("--assistant-opening-prompt",)


class Verb(TyperCommand):
    """A command that takes no empty word: as a path it would be the present folder."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for before, word in zip(["", *args], args, strict=False):
            name = word[:-1] if word.startswith("--") and word.endswith("=") else before
            if (word == "" or name != before) and name not in _MAY_BE_EMPTY:
                stop(f"{name if name.startswith('-') else 'an argument'} is empty, want a value")
        return super().parse_args(ctx, args)


class Verbs(typer.Typer):
    """A set of commands, each a :class:`Verb`."""

    def command(self, name: str | None = None) -> Callable[[Do], Do]:  # type: ignore[override]
        return super().command(name, cls=Verb)


app = Verbs(
    name="duplex",
    help="Hold full-duplex voice-agent calls on one timeline, and measure them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
scenario_app = Verbs(help="Work on scenario files.", no_args_is_help=True)
app.add_typer(scenario_app, name="scenario")


class Talk(Console):
    """The console for people; when nobody listens any more it falls silent."""

    def _check_buffer(self) -> None:
        # A terminal that was closed is an input/output error, a pipe a broken one.
        try:
            super()._check_buffer()
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


def talk() -> Console:
    """The console for people: stderr, no markup, no highlighting."""
    return Talk(stderr=True, highlight=False, markup=False, soft_wrap=True)


def stop(message: str) -> NoReturn:
    """Say one sentence on stderr and exit 2."""
    print(f"duplex: {plain(message)}", file=sys.stderr)
    raise typer.Exit(2)


@app.command()
def run(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="Scenario file or folder [./scenarios, else built in].")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Scenario id; repeatable [all].")
    ] = None,
    max_examples: Annotated[int | None, typer.Option(help="Hold at most this many calls.")] = None,
    application: Annotated[
        str, typer.Option(help="The application under test, module:object.")
    ] = run_options.DEFAULT_APPLICATION,
    assistant: Annotated[
        str,
        typer.Option(
            help="local, gpt-live, client (= gpt-live), realtime, twilio:ws://… (Media Streams), "
            "ws://… (raw PCM), both also wss, or module:factory (Python)."
        ),
    ] = "local",
    delegation: Annotated[
        str,
        typer.Option(help="Who does delegated work: client (we), or responses (its own backend)."),
    ] = "client",
    caller: Annotated[
        str, typer.Option(help="local, gpt-live, realtime, scripted, or a WAV file.")
    ] = "local",
    endpoint: Annotated[
        str | None,
        typer.Option(
            help="Where gpt-live and realtime sessions connect [OPENAI_BASE_URL]; local: the "
            "embedded voice, for realtime."
        ),
    ] = None,
    assistant_endpoint: Annotated[
        str | None,
        typer.Option(help="Service that owns the delegated work, https://… or wss://…."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Assistant model of a session [gpt-live-1, gpt-realtime-2].")
    ] = "gpt-live-1",
    voice: Annotated[str, typer.Option(help="Assistant voice.")] = "cedar",
    simulator_model: Annotated[
        str, typer.Option(help="Caller model of a session [gpt-live-1, gpt-realtime-2].")
    ] = "gpt-live-1",
    simulator_voice: Annotated[
        str | None, typer.Option(help="Caller voice [the scenario's persona].")
    ] = None,
    backend_url: Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible server of the backend's model, https://…/v1."),
    ] = None,
    backend_model: Annotated[
        str | None, typer.Option(help="Model that does the delegated work [rules, no model].")
    ] = None,
    backend_reasoning_effort: Annotated[
        str | None, typer.Option(help="Its reasoning effort: none, minimal, low … xhigh.")
    ] = None,
    simulator_backend_model: Annotated[
        str | None, typer.Option(help="Backend model of a gpt-live caller [its brief].")
    ] = None,
    simulator_backend_reasoning_effort: Annotated[
        str | None, typer.Option(help="Its reasoning effort.")
    ] = None,
    brain_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server of the local voices' models.")
    ] = None,
    brain_model: Annotated[
        str | None, typer.Option(help="Model that thinks for a local assistant [rules].")
    ] = None,
    simulator_brain_model: Annotated[
        str | None, typer.Option(help="Model that thinks for a local caller [rules].")
    ] = None,
    allow_plain_http: Annotated[
        bool, typer.Option(help="Let models elsewhere be asked over plain http.")
    ] = False,
    turn_detection: Annotated[
        str, typer.Option(help="Of realtime sessions: server_vad, semantic_vad or manual.")
    ] = "server_vad",
    audio_format: Annotated[
        str, typer.Option(help="Of realtime sessions: pcm (24 kHz), pcmu or pcma.")
    ] = "pcm",
    assistant_opening_prompt: Annotated[
        str | None, typer.Option(help="What the assistant is asked to open with.")
    ] = None,
    ears_model: Annotated[
        Path | None, typer.Option(help="Own speech-to-text model folder for local voices.")
    ] = None,
    mouth_model: Annotated[
        Path | None, typer.Option(help="Own text-to-speech voice file for local voices.")
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            help="Audio condition [uplink:|downlink:]NAME[,key=value…], repeatable: realistic, "
            "noisy,snr=10, telephony … (duplex noise and docs/conditions.md list all)."
        ),
    ] = None,
    clock: Annotated[str, typer.Option(help="wall, or virtual (faster than real time).")] = "wall",
    transport_ms: Annotated[int, typer.Option(help="Transport tick, 10 to 200 ms.")] = 20,
    tick_ms: Annotated[int, typer.Option(help="Reporting bin; no metric depends on it.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of wording, pace, pauses and jitter.")] = 7,
    first_speaker: Annotated[
        str | None, typer.Option(help="caller or assistant [the scenario's, else assistant].")
    ] = None,
    detector: Annotated[str, typer.Option(help="Floor detector: edge, rms or webrtc.")] = "edge",
    max_duration_seconds: Annotated[float, typer.Option(help="A call is cut off here.")] = 90,
    drain_ms: Annotated[int, typer.Option(help="Silence to record after the last word.")] = 1500,
    response_deadline_ms: Annotated[
        int, typer.Option(help="A reply later than this is missed.")
    ] = (5000),
    concurrency: Annotated[int, typer.Option(help="Calls held at once, 1 to 8.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder that run folders go into.")] = Path("runs"),
    run_name: Annotated[str | None, typer.Option(help="First part of the folder's name.")] = None,
    ticks: Annotated[
        bool, typer.Option(help="Also write audio/<id>/ticks.jsonl, a record per reporting tick.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with a [run] table; flags win over it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
    verbose: Annotated[bool, typer.Option(help="Print every event to stderr.")] = False,
) -> None:
    """Hold calls between a caller and the assistant under test.

    Example: duplex run --scenario restaurant_booking_complete --clock virtual
    """
    given = {
        name: value
        for name, value in context.params.items()
        if name in run_options.RunOptions.model_fields
        and context.get_parameter_source(name) is not None
        and context.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
    }
    from duplex import running

    try:
        values = run_options.read_config(config) if config is not None else {}
        code = running.command(
            run_options.make(values | given),
            console=talk(),
            as_json=as_json,
            verbose=verbose,
            markdown=markdown,
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def local(
    host: Annotated[str, typer.Option(help="Address to bind; loopback unless told.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 0,
    role: Annotated[str, typer.Option(help="Which brain answers: assistant or caller.")] = (
        "assistant"
    ),
    api_key_env: Annotated[
        str | None, typer.Option(help="Accept only the key in this variable.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option(help="Misbehave: NAME[,key=value…]; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of wording, pace, pauses and jitter.")] = 7,
    ears_model: Annotated[
        Path | None, typer.Option(help="Own speech-to-text model folder.")
    ] = None,
    mouth_model: Annotated[Path | None, typer.Option(help="Own text-to-speech voice file.")] = None,
    brain_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server of the model that thinks.")
    ] = None,
    brain_model: Annotated[
        str | None, typer.Option(help="Model that thinks for the voice [rules].")
    ] = None,
) -> None:
    """Serve the local voice over the GPT-Live, Realtime and Responses protocols until stopped.

    The first line on stdout is {"url": …}. Example: duplex local --port 8123
    """
    from duplex import serving

    try:
        serving.command(
            host=host,
            port=port,
            role=role,
            api_key_env=api_key_env,
            faults=tuple(fault or ()),
            seed=seed,
            ears_model=ears_model,
            mouth_model=mouth_model,
            brain_url=brain_url,
            brain_model=brain_model,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))


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
    detector: Annotated[
        str | None, typer.Option(help="What hears speech: edge, rms, webrtc or silero [edge].")
    ] = None,
    witness: Annotated[
        bool, typer.Option(help="Let webrtc hear too, and say how far it agrees.")
    ] = True,
    words: Annotated[
        bool, typer.Option("--words", help="Let the embedded ears (extra local) hear the words.")
    ] = False,
    transcript: Annotated[
        Path | None, typer.Option(help="Words somebody wrote down, in the forms of --labels.")
    ] = None,
    ears_model: Annotated[
        Path | None, typer.Option(help="Own speech-to-text model folder for --words.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
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
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    detector: Annotated[
        str | None, typer.Option(help="What hears speech: edge, rms, webrtc or silero [the run's].")
    ] = None,
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
    ears_model: Annotated[
        Path | None, typer.Option(help="Own speech-to-text model folder for --words.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
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
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    output: Annotated[Path | None, typer.Option(help="Write the page here instead.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = False,
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


@scenario_app.command("validate")
def scenario_validate(
    paths: Annotated[list[Path], typer.Argument(help="Scenario files or folders.")],
    application: Annotated[
        str, typer.Option(help="The application they are meant for, module:object.")
    ] = run_options.DEFAULT_APPLICATION,
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
            console.print(f"{plain(str(path))}: {count} scenario{'s' * (count != 1)}, all valid")
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
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
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
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


def main() -> None:
    """Entry point: no traceback for what a person can mend."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # stdout was closed by whoever read it; what could be said was said.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        print(f"duplex: {plain(str(error))}", file=sys.stderr)
        sys.exit(2)

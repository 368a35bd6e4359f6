"""The verbs that hold calls and that answer them: ``run`` and ``local``.

They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duplex import options as run_options
from duplex.cli import shared
from duplex.cli.config import LEFT, Config
from duplex.cli.headings import HEADINGS
from duplex.cli.shared import Run
from duplex.cli.shell import app, stop, talk
from duplex.errors import DuplexError


@app.command(headings=HEADINGS)
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
    completion_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server of the completion model.")
    ] = None,
    completion_model: Annotated[
        str | None,
        typer.Option(help="Text model that says when a call is over [state and closing words]."),
    ] = None,
    completion_reasoning_effort: Annotated[
        str | None, typer.Option(help="Its reasoning effort.")
    ] = None,
    completion_timeout_seconds: Annotated[
        float, typer.Option(help="Longest wait for one of its answers.")
    ] = 8.0,
    semantic_drain: Annotated[
        bool | None,
        typer.Option(
            "--semantic-drain/--no-semantic-drain",
            help="Let the completion model end calls [when one is named].",
        ),
    ] = None,
    judge: shared.Judge = None,
    judge_url: shared.JudgeUrl = None,
    judge_model: shared.JudgeModel = None,
    judge_reasoning_effort: shared.JudgeEffort = None,
    judge_repetitions: shared.JudgeRepetitions = 1,
    check_function: shared.CheckFunction = None,
    question: shared.AskedQuestion = None,
    allow_plain_http: shared.PlainHttp = False,
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
    workers: Annotated[
        int, typer.Option(help="Processes that hold calls, one each at a time.")
    ] = 1,
    samples: Annotated[int, typer.Option(help="Calls of each scenario, seeds counting up.")] = 1,
    pass_rate: Annotated[
        float, typer.Option(help="Share of a scenario's samples that must pass.")
    ] = 1.0,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="PROPERTY=VALUE,VALUE…, the first being the baseline: condition, noisy.snr, "
            "persona.interruptions, voice, model, assistant … (| parts values with commas)."
        ),
    ] = None,
    small_sweep: Annotated[
        bool, typer.Option("--small-sweep", help="Allow fewer than 5 calls a value.")
    ] = False,
    check: Annotated[
        list[str] | None,
        typer.Option(
            help="[NAME:] METRIC[.STAT] <= N[ms|s|%] [@ SHARE%], repeatable: "
            "'response_latency.p95 <= 1500ms'."
        ),
    ] = None,
    silent_retries: Annotated[
        int, typer.Option(help="Further attempts at a call on which the agent never spoke.")
    ] = 0,
    silent_retry_backoff_seconds: Annotated[
        float, typer.Option(help="Wait before the first of them, doubled each time.")
    ] = 5.0,
    early_stop: Annotated[
        bool,
        typer.Option(
            "--early-stop/--no-early-stop",
            help="Stop when the first 3 test cases never reach a speaking agent.",
        ),
    ] = True,
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="What a model costs: MODEL=USD/min, or MODEL=IN,OUT[,CACHED]/1M tokens; "
            "repeatable [the noted ones, docs/security.md]."
        ),
    ] = None,
    max_cost_usd: Annotated[
        float | None,
        typer.Option(help="Refuse a run that may cost more; begin no call once it has [no limit]."),
    ] = None,
    redact: Annotated[
        list[str] | None,
        typer.Option(
            help="Field of the application's data whose values are written nowhere, such as "
            "phone; repeatable (docs/security.md)."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder that run folders go into.")] = Path("runs"),
    run_name: Annotated[str | None, typer.Option(help="First part of the folder's name.")] = None,
    ticks: Annotated[
        bool, typer.Option(help="Also write audio/<id>/ticks.jsonl, a record per reporting tick.")
    ] = False,
    config: shared.RunConfig = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
    listen: Annotated[
        bool, typer.Option("--listen", help="Play the calls as they happen, one at a time.")
    ] = False,
    listen_device: Annotated[
        str | None, typer.Option(help="Loudspeaker for --listen: number or name [default].")
    ] = None,
    verbose: Annotated[
        bool, typer.Option(help="Print every event and every call to stderr.")
    ] = False,
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
    from duplex import listening, running

    try:
        values: dict[str, object] = context.meta.get(LEFT, {})
        options, console = run_options.make(values | given), talk()
        with listening.beside(options, console, listen=listen, device=listen_device) as company:
            code = running.command(
                options,
                console=console,
                as_json=as_json,
                verbose=verbose,
                markdown=markdown,
                company=company,
            )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


@app.command()
def resume(
    run: Run,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")] = False,
    verbose: Annotated[
        bool, typer.Option(help="Print every event and every call to stderr.")
    ] = False,
    config: Config = None,
) -> None:
    """Hold the calls that a run was stopped before, with its options, and judge the whole.

    Example: duplex resume runs/run_live_20260801_120000_3f2a1b
    """
    from duplex import running

    try:
        code = running.command(
            run, console=talk(), as_json=as_json, verbose=verbose, markdown=markdown
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
        list[str] | None,
        typer.Option(
            help="Misbehave: NAME[,key=number…]; repeatable. NAME is refuse, 429, delay, jitter, "
            "stall, drop, half_close, garbage, oversize, odd_bytes, duplicate, reorder, "
            "lose_tool_result, answer_after_cancel, never_close or expire."
        ),
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
    config: Config = None,
) -> None:
    """Serve the local voice over the GPT-Live, Realtime and Responses protocols until stopped.

    The first line on stdout is {"url": …}.

    Example: duplex local --port 8123
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

"""The verbs that need a sound card: ``talk`` and ``listen``.

``talk`` has the options of ``run`` that fit a call with a person, declared there and
borrowed here. They read options and call one function; nothing is computed here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, get_type_hints

import typer

from duplex import options as run_options
from duplex.cli import calls, shared
from duplex.cli.config import LEFT, Config
from duplex.cli.headings import HEADINGS
from duplex.cli.shared import Run
from duplex.cli.shell import app, stop, talk
from duplex.errors import DuplexError

BORROWED = (
    "data",
    "scenario",
    "application",
    "assistant",
    "delegation",
    "endpoint",
    "assistant_endpoint",
    "model",
    "voice",
    "backend_url",
    "backend_model",
    "backend_reasoning_effort",
    "brain_url",
    "brain_model",
    "judge",
    "judge_url",
    "judge_model",
    "judge_reasoning_effort",
    "judge_repetitions",
    "check_function",
    "allow_plain_http",
    "turn_detection",
    "audio_format",
    "assistant_opening_prompt",
    "ears_model",
    "mouth_model",
    "condition",
    "transport_ms",
    "tick_ms",
    "seed",
    "first_speaker",
    "detector",
    "max_duration_seconds",
    "drain_ms",
    "response_deadline_ms",
    "check",
    "price",
    "max_cost_usd",
    "redact",
    "out",
    "run_name",
    "ticks",
    "as_json",
    "markdown",
    "verbose",
)
"""Options of ``run`` that ``talk`` has too."""
CARD = (
    "list_devices",
    "input_device",
    "output_device",
    "card_rate_hz",
    "latency_ms",
    "calibrate",
    "push_to_interrupt",
)
UNDER = {"The sound card": CARD} | {
    title: tuple(name for name in names if name in BORROWED) for title, names in HEADINGS.items()
}
"""Under which headings ``talk --help`` lists its options: those of ``run``, behind its own."""
OWN_DEFAULTS: dict[str, object] = {"max_duration_seconds": 600.0}


def borrowing(verb: Callable[..., None]) -> Callable[..., None]:
    """``verb`` with the options of ``run`` that are named above, in the place of ``**given``."""
    theirs, hints = inspect.signature(calls.run), get_type_hints(calls.run, include_extras=True)
    mine = get_type_hints(verb, include_extras=True)
    own = [
        one.replace(annotation=mine[one.name])
        for one in inspect.signature(verb).parameters.values()
        if one.kind is not one.VAR_KEYWORD
    ]
    borrowed = [
        theirs.parameters[name].replace(
            annotation=hints[name], default=OWN_DEFAULTS.get(name, theirs.parameters[name].default)
        )
        for name in BORROWED
    ]
    parameters = [
        one.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for one in (*own, *borrowed)
    ]
    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {one.name: one.annotation for one in parameters}
    return verb


@app.command("talk", headings=UNDER)
@borrowing
def talk_to(
    context: typer.Context,
    list_devices: Annotated[
        bool, typer.Option("--list-devices", help="Print the sound devices and do no more.")
    ] = False,
    input_device: Annotated[
        str | None, typer.Option(help="Microphone: its number, name or a part of it [default].")
    ] = None,
    output_device: Annotated[
        str | None, typer.Option(help="Loudspeaker: the same [default].")
    ] = None,
    card_rate_hz: Annotated[
        int | None,
        typer.Option(help="Open the card at this rate [the call's, else its own]."),
    ] = None,
    latency_ms: Annotated[
        float, typer.Option(help="Latency asked of the card.", min=1, max=1000)
    ] = 60,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure the card's delay by clicks first: the microphone must hear the "
            "loudspeaker. It is kept for later calls.",
        ),
    ] = False,
    push_to_interrupt: Annotated[
        bool,
        typer.Option(
            "--push-to-interrupt",
            help="Shut the microphone while the assistant is heard, unless space is held: "
            "for loudspeakers.",
        ),
    ] = False,
    config: shared.RunConfig = None,
    **given: object,
) -> None:
    """Call the assistant yourself, by microphone and loudspeaker; it is measured like a run.

    Keys: m mutes, space interrupts, q hangs up; so does Ctrl-C.

    Example: duplex talk --assistant local --scenario restaurant_booking_complete
    """
    if list_devices:
        raise typer.Exit(_listed(as_json=bool(given["as_json"])))
    from duplex import talking

    asked = {
        name: value
        for name, value in given.items()
        if name in run_options.RunOptions.model_fields
        and context.get_parameter_source(name) is not None
        and context.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
    }
    values: dict[str, object] = context.meta.get(LEFT, {})
    card = talking.CardOptions(
        input_device=input_device,
        output_device=output_device,
        rate_hz=card_rate_hz,
        latency_ms=latency_ms,
        calibrate=calibrate,
        push_to_interrupt=push_to_interrupt,
    )
    try:
        code = talking.command(
            values | asked,
            card,
            console=talk(),
            as_json=bool(given["as_json"]),
            verbose=bool(given["verbose"]),
            markdown=bool(given["markdown"]),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)


def _listed(*, as_json: bool) -> int:
    from duplex import card_list
    from duplex.card.portaudio import PortAudio

    try:
        return card_list.show(PortAudio(), as_json=as_json)
    except DuplexError as error:
        stop(str(error))


@app.command()
def listen(
    run: Run,
    call: Annotated[
        str | None, typer.Argument(metavar="CALL", help="Id of the call [the newest, the first].")
    ] = None,
    side: Annotated[str, typer.Option(help="caller, assistant or both.")] = "both",
    from_seconds: Annotated[
        float, typer.Option("--from", help="Begin this many seconds into the call.", min=0)
    ] = 0,
    device: Annotated[
        str | None, typer.Option(help="Loudspeaker: its number, name or a part of it [default].")
    ] = None,
    config: Config = None,
) -> None:
    """Play a call, stored or in progress, as both sides heard it, or one side alone.

    Example: duplex listen runs/run_live_20260801_120000_3f2a1b --side assistant
    """
    from duplex import listening
    from duplex.card.portaudio import PortAudio

    try:
        code = listening.command(
            run,
            call,
            side=side,
            from_seconds=from_seconds,
            device=device,
            driver=PortAudio,
            console=talk(),
        )
    except DuplexError as error:
        stop(str(error))
    raise typer.Exit(code)

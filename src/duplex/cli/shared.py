"""Options that several verbs have, declared once: what prints, whose ears hear, who judges.

They name no verb and hold no value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from duplex.cli.config import HELP, from_file
from duplex.options import RunOptions

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Markdown: TypeAlias = Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")]
EarsModel: TypeAlias = Annotated[
    Path | None, typer.Option(help="Own speech-to-text model folder for --words.")
]
Judge: TypeAlias = Annotated[
    bool | None,
    typer.Option("--judge/--no-judge", help="Let the judge grade [when one is named]."),
]
JudgeUrl: TypeAlias = Annotated[
    str | None, typer.Option(help="OpenAI-compatible server of the judge's model.")
]
JudgeModel: TypeAlias = Annotated[
    str | None, typer.Option(help="Model that judges what was said [not judged].")
]
JudgeEffort: TypeAlias = Annotated[str | None, typer.Option(help="Its reasoning effort.")]
JudgeRepetitions: TypeAlias = Annotated[
    int, typer.Option(help="How often it is asked about a call; the majority counts.")
]
CheckFunction: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Your own check, module:function; it may fail a call. Repeatable."),
]
AskedQuestion: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Yes/no question put to the judge about every call, "
        "[ID:] TEXT? [= yes|no] [@ SHARE%]; a check of the run. Repeatable."
    ),
]
PlainHttp: TypeAlias = Annotated[
    bool, typer.Option(help="Let models elsewhere be asked over plain http.")
]
DETECTORS = "What hears speech: edge, rms, webrtc or silero"
"""Said of ``--detector``; what stands for none is each verb's own."""


def named(run: Path | None) -> Path | None:
    """The folder of a run told by its id, if it is one of ./runs; else the path as it is."""
    if run is None or run.name != str(run) or run.exists():
        return run
    found = Path("runs") / run
    return found if found.is_dir() else run


Run: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run's folder, or its id in ./runs.", callback=named),
]
RunConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help=HELP,
        is_eager=True,
        expose_value=False,
        callback=from_file(frozenset(RunOptions.model_fields)),
    ),
]
"""``--config`` of a verb whose table holds any option of a run, also those that are no flag."""

"""Options that several verbs have, declared once: what prints, and whose ears hear, which run.

They name no verb and hold no value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Markdown: TypeAlias = Annotated[bool, typer.Option("--markdown", help="Print Markdown on stdout.")]
EarsModel: TypeAlias = Annotated[
    Path | None, typer.Option(help="Own speech-to-text model folder for --words.")
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

"""Options that several verbs have, declared once: what prints, and whose ears hear.

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

"""``duplex plot``: one picture of a run, written to a file whose path is printed.

It loads and chooses; each drawing has a module of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from duplex.errors import InputError
from duplex.notebook.runs import Run, load
from duplex.screen import plain

if TYPE_CHECKING:
    from duplex.notebook.canvas import Plot

WHAT = ("timeline", "latency", "sweep")


def command(
    run: Path, what: str | None, *, call: str | None, output: Path | None, runs: Path
) -> Path:
    """Draw and write; return the path. Raises DuplexError."""
    found = load(run, runs)
    if what is None:
        what = "sweep" if found.swept and call is None else "timeline"
    if what not in WHAT:
        raise InputError(f'what "{what}" is none of: {", ".join(WHAT)}')
    if what == "sweep" and call is not None:
        raise InputError(f"a sweep is of a whole run, and --call {call} came with it")
    written = _drawn(found, what, call).save(output or Path(f"{what}.png"))
    print(plain(str(written)))
    return written


def _drawn(run: Run, what: str, call: str | None) -> Plot:
    if what == "sweep":
        return run.plot_sweep()
    if what == "timeline":
        return run.plot_timeline(call)
    return run.plot_latency() if call is None else run.call(call).plot_latency()

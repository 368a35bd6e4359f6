"""The ``duplex`` command: reads options, calls one function, prints what it returned.

stdout is data, stderr is talk. Exit 0: passed; 1: a check or a call failed;
2: could not run; 130: stopped twice. It computes nothing itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO

from duplex import outlets
from duplex.cli import calls, cards, grades, measures, runs, scenarios, tools
from duplex.cli.shell import app, stop, talk
from duplex.inputs import reason
from duplex.screen import plain

__all__ = [
    "app",
    "calls",
    "cards",
    "grades",
    "main",
    "measures",
    "runs",
    "scenarios",
    "stop",
    "talk",
    "tools",
]


def main() -> None:
    """Entry point: no traceback for what a person can mend, no secret in what is printed."""
    outlets.guard()
    stdout, stderr = sys.stdout, sys.stderr
    lost = None
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit:
        raise
    except OSError as error:
        lost = reason(error) if error.filename is None else f"{error.filename}: {reason(error)}"
        sys.exit(2)
    finally:
        # Typer ends a command whose reader left with code 1, and puts other streams here.
        left = sys.stdout is not stdout
        sys.stdout = stdout
        # What still waits is printed now, where it can be told that it could not be.
        unprinted = outlets.flushed() or ("nobody reads stdout any more" if left else None)
        if (told := unprinted or lost) is not None:
            talk_of(told, stderr)


def talk_of(told: str, stderr: TextIO | None) -> None:
    """Say on stderr, if anybody listens there, why data was not printed."""
    with suppress(OSError, ValueError):
        print(f"duplex: {plain(told)}", file=stderr)

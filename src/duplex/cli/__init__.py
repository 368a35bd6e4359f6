"""The ``duplex`` command: reads options, calls one function, prints what it returned.

stdout is data, stderr is talk. Exit 0: passed; 1: a check or a call failed;
2: could not run; 130: stopped twice. It computes nothing itself.
"""

from __future__ import annotations

import sys

from duplex.cli import calls, measures, runs, tools
from duplex.cli.shell import app, stop, talk
from duplex.screen import plain

__all__ = ["app", "calls", "main", "measures", "runs", "stop", "talk", "tools"]


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

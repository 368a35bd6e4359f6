"""stdout and stderr as the command uses them: nothing secret passes, and a reader may leave.

Known secrets are hidden in whatever is printed, tracebacks and logs too; on stderr also
what only looks like one. When nobody reads any more, or the disk behind a redirection is
full, that is one sentence and never a traceback. It prints nothing of its own accord.
The command line drives it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TextIO, cast

from duplex.inputs import reason
from duplex.redact import Redactor
from duplex.secret_values import environment_secrets

Hide = Callable[[str], str]


class Outlet:
    """A text stream whose every write goes through ``hide``; in all else it is the stream."""

    def __init__(self, stream: TextIO, hide: Hide) -> None:
        self._stream = stream
        self._hide = hide

    def write(self, text: str) -> int:
        self._stream.write(self._hide(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def guard() -> None:
    """Have both streams of this process hide what is secret."""
    redactor = Redactor(environment_secrets())
    # A stream that was closed before we began is None.
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, Outlet(sys.stdout, redactor.known))
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, Outlet(sys.stderr, redactor.text))


def put(text: str) -> str | None:
    """Print data on stdout now; return why that could not be done, None when it was."""
    if sys.stdout is None:
        return "stdout is closed" if text else None
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        return _lost(error)
    return None


def flushed() -> str | None:
    """Print what waits; return why that could not be done, and let nothing fail after it."""
    return put("")


def _lost(error: OSError) -> str:
    """Give up stdout, so that nothing fails on it again; say why."""
    void = os.open(os.devnull, os.O_WRONLY)
    os.dup2(void, 1)
    os.close(void)
    if isinstance(error, BrokenPipeError):
        return "nobody reads stdout any more"
    return f"stdout cannot be written: {reason(error)}"

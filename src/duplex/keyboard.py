"""Single keys from a terminal, without Enter, while something else has the screen.

A thread waits for them and calls back; the terminal is put as it was afterwards. Where
stdin is no terminal, or the system has no such mode, there are no keys and nothing fails.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_LOOK_SECONDS = 0.1


@contextmanager
def pressed(told: Callable[[str], None]) -> Iterator[bool]:
    """Call ``told`` with each key while the block lasts; yields whether there are keys."""
    terminal = _terminal()
    if terminal is None:
        yield False
        return
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    over = threading.Event()

    def wait() -> None:
        while not over.is_set():
            with suppress(OSError):
                if not select.select([terminal], [], [], _LOOK_SECONDS)[0]:
                    continue
                keys = os.read(terminal, 64).decode(errors="ignore")
                if not keys:
                    return  # the terminal is gone
                for key in keys:
                    told(key)

    thread = threading.Thread(target=wait, name="duplex-keys", daemon=True)
    # Ctrl-C stays a signal, and output is left as it is.
    tty.setcbreak(terminal)
    try:
        thread.start()
        yield True
    finally:
        over.set()
        thread.join(1.0)
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _terminal() -> int | None:
    """stdin, if keys can be read from it one by one."""
    if sys.platform == "win32" or sys.stdin is None:
        return None
    with suppress(OSError, ValueError):
        number = sys.stdin.fileno()
        if os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp():
            return number
    return None

"""``duplex`` and ``python -m duplex``: the command, from its first moment stopped quietly.

Loading takes a good part of a second, in which Ctrl-C would otherwise end in a
traceback from whatever was being imported.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

INTERRUPTED = 130


class _Interrupt:
    """Ctrl-C while nobody else handles it: leave, whatever was under way."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        raise SystemExit(INTERRUPTED)


def main() -> None:
    """Run the command; exit 130 without a word when it is interrupted."""
    interrupt = _Interrupt()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        from duplex import cli

        cli.main()
    except BaseException:
        # An import that was cut short may well call it something else.
        if interrupt.asked:
            sys.exit(INTERRUPTED)
        raise


if __name__ == "__main__":
    main()

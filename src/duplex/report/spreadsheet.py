"""Text for a cell of a CSV file: nothing a spreadsheet runs, nothing a terminal obeys.

A cell that begins like a formula gets an apostrophe, after which it is text; a number
stays a number. Control characters are dropped, because a CSV is also printed. Whoever
writes CSV drives it.
"""

from __future__ import annotations

import re

from duplex.screen import plain

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?%?")


def text_cell(text: str) -> str:
    """Return ``text`` as a cell that is only text, or only a number."""
    shown = plain(text)
    if _NUMBER.fullmatch(shown):
        return shown
    # What began with a tab or a return began so for a reason.
    risky = _FORMULA.match(shown) or text[:1] in ("\t", "\r", "\n")
    return f"'{shown}" if risky else shown

"""The lines of a script, spoken by a mouth before the call begins.

A whole line is made at once, with the pauses its punctuation asks for, so that
a call never waits for it. It knows nothing of when a line is said.
"""

from __future__ import annotations

import numpy as np

from duplex.errors import InputError
from duplex.local.seams import Mouth, Pcm, Style
from duplex.local.speech import split


async def speak_line(text: str, mouth: Mouth, style: Style) -> Pcm:
    """Return ``text`` as int16 mono at 24 kHz; raise InputError if nothing of it can be said."""
    parts: list[Pcm] = []
    for words, gap in split(text, style.pace):
        parts += [chunk async for chunk in mouth.speak(" ".join(words), style)]
        parts.append(np.zeros(gap, np.int16))
    pcm: Pcm = np.concatenate(parts[:-1]) if len(parts) > 1 else np.zeros(0, np.int16)
    if not pcm.any():
        raise InputError(f"script line {text!r}: there is nothing in it that can be spoken")
    return pcm

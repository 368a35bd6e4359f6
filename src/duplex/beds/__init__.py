"""The sounds of places and people that conditions put on a line, synthesised here.

Layer 2. ``bed`` gives a loop, ``bursts``, ``tics`` and ``side_speech`` single sounds,
all at the rate asked for and at one level; same kind, same samples on every machine.
"""

from duplex.beds.catalogue import BEDS, BURSTS, SIDE_SPEECH, TICS, BedEntry, ClipEntry
from duplex.beds.render import (
    LEVEL_DBOV,
    Bed,
    Clip,
    background_speech,
    bed,
    bursts,
    side_speech,
    tics,
)
from duplex.beds.tools import LOOP_S

__all__ = [
    "BEDS",
    "BURSTS",
    "LEVEL_DBOV",
    "LOOP_S",
    "SIDE_SPEECH",
    "TICS",
    "Bed",
    "BedEntry",
    "Clip",
    "ClipEntry",
    "background_speech",
    "bed",
    "bursts",
    "side_speech",
    "tics",
]

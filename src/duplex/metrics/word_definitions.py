"""What each name of the words block means, in which unit, and whence.

Reports and the viewer take their words from here. A test pins the digest per
version: neither a meaning nor the normalisation changes without a bump.
"""

from __future__ import annotations

from duplex.metrics.definitions import Definition

WORDS_VERSION = "1.0"

WORD_DEFINITIONS: dict[str, Definition] = {
    "wer": Definition(
        unit="rate",
        sentence="Fewest substituted, missing and added words between what one side said and what "
        "the other side heard at the same time, divided by the words said; both normalised.",
        source="NIST sclite, pooled as LiveKit does",
    ),
    "cer": Definition(
        unit="rate",
        sentence="The same over characters; the space between two words is one.",
        source="duplex",
    ),
    "raw": Definition(
        unit="rate",
        sentence="Both rates on the text as it came, parted at white space only.",
        source="duplex",
    ),
    "entity_recognition": Definition(
        unit="rate",
        sentence="Sayings of the scenario's key values that the other side heard right, divided "
        "by all sayings of them, in whatever form they were said.",
        source="LiveKit",
    ),
    "entity_recall": Definition(
        unit="rate",
        sentence="The same over the sayings of a value after the first one that was heard right.",
        source="LiveKit",
    ),
}

"""Words of several calls together: counts are summed, and only then divided.

``words.py`` drives it and has made sure that the calls may be pooled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duplex.metrics.hearing_words import HeardWords
from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import Errors
from duplex.metrics.words_json import errors_json
from duplex.values import Json


def pooled_ears(calls: Sequence[HeardWords]) -> Json:
    """Rates over the calls, ``calls`` of them; None when there is none."""
    if not calls:
        return None
    return {
        "calls": len(calls),
        "wer": errors_json(sum((one.words for one in calls), Errors())),
        "cer": errors_json(sum((one.characters for one in calls), Errors())),
        "raw": {
            "wer": errors_json(sum((one.raw_words for one in calls), Errors())),
            "cer": errors_json(sum((one.raw_characters for one in calls), Errors())),
        },
        "entity_recognition": _rate(one.recognition for one in calls),
        "entity_recall": _rate(one.recall for one in calls),
    }


def _rate(rates: Iterable[Rate]) -> Json:
    found = list(rates)
    return Rate(
        numerator=sum(rate.numerator for rate in found),
        denominator=sum(rate.denominator for rate in found),
    ).as_json()

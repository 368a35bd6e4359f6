"""The words block as strict JSON, every null with its reason.

``unknown`` maps the JSON pointer of a null to why it is one. It computes no
number: rates are rounded to six places here and nowhere else. ``words.py``
drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from duplex.metrics.hearing_words import HeardUtterance, HeardWords, Piece
from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import Errors
from duplex.values import Json

if TYPE_CHECKING:
    from duplex.metrics.words import Ears, WordsBlock

_SILENT = "no words were said"
_NO_KEYS = "no scenario says what the key values are"
_NO_VALUE = "no key value was said"
_NOT_AGAIN = "no key value was said again after it had been heard right"
_NOT_LISTENED = "nobody listened to the audio again"


def block_json(block: WordsBlock) -> dict[str, Json]:
    """The whole block; see ``word_definitions.py`` for what the names mean."""
    writer = _Writer(block.has_keys)
    sessions = {
        side.label: writer.ears(f"/heard_by/{side.label}", ears)
        for side, ears in block.sessions.items()
    }
    audio = {
        name: {
            side.label: writer.ears(f"/from_audio/{name}/{side.label}", ears)
            for side, ears in sides.items()
        }
        for name, sides in block.audio.items()
    }
    if not audio:
        writer.unknown["/from_audio"] = _NOT_LISTENED
    return {
        "words_version": block.version,
        "libraries": dict(block.libraries),
        "heard_by": dict(sessions),
        "from_audio": {name: dict(sides) for name, sides in audio.items()} or None,
        "unknown": writer.unknown,
    }


def errors_json(errors: Errors) -> dict[str, Json]:
    """A rate with its counts; ``n`` is the units said."""
    rate = errors.rate
    return {
        "rate": None if rate is None else round(rate, 6),
        "numerator": errors.count,
        "denominator": errors.said,
        "n": errors.said,
        "substitutions": errors.substitutions,
        "deletions": errors.deletions,
        "insertions": errors.insertions,
    }


class _Writer:
    """Writes the parts that can be null, and keeps the reasons."""

    def __init__(self, has_keys: bool) -> None:
        self._has_keys = has_keys
        self.unknown: dict[str, Json] = {}

    def ears(self, at: str, ears: Ears) -> Json:
        found = ears.found
        if found is None:
            if not ears.text:
                self.unknown[at] = ears.why
                return None
            self.unknown |= {f"{at}/wer": ears.why, f"{at}/said_from": ears.why}
            return _about(ears, wer=None)
        return {
            **_about(ears, wer=self._errors(f"{at}/wer", found.words)),
            "cer": self._errors(f"{at}/cer", found.characters),
            "raw": {
                "wer": self._errors(f"{at}/raw/wer", found.raw_words),
                "cer": self._errors(f"{at}/raw/cer", found.raw_characters),
            },
            "entity_recognition": self._rate(
                f"{at}/entity_recognition", found.recognition, _NO_VALUE
            ),
            "entity_recall": self._rate(f"{at}/entity_recall", found.recall, _NOT_AGAIN),
            "entities": list(_entities(found)),
            "utterances": [_utterance(item) for item in found.utterances],
        }

    def _errors(self, at: str, errors: Errors) -> dict[str, Json]:
        if errors.rate is None:
            self.unknown[f"{at}/rate"] = _SILENT
        return errors_json(errors)

    def _rate(self, at: str, rate: Rate, why: str) -> Json:
        if not self._has_keys:
            self.unknown[at] = _NO_KEYS
            return None
        if rate.value is None:
            self.unknown |= {f"{at}/rate": why, f"{at}/ci95": why}
        return rate.as_json()


def _about(ears: Ears, *, wer: Json) -> dict[str, Json]:
    return {
        "speaker": ears.speaker.label,
        "said_from": ears.said_from,
        "heard_from": ears.heard_from,
        "wer": wer,
        "text": [_piece(piece) for piece in ears.text],
    }


def _piece(piece: Piece) -> Json:
    return {**_place(piece), "text": piece.text}


def _place(piece: Piece) -> dict[str, Json]:
    return {"start_ms": round(piece.start_ms, 3), "end_ms": round(piece.end_ms, 3)}


def _utterance(item: HeardUtterance) -> Json:
    return {
        **_place(item.said),
        "said": item.said.text,
        "heard": item.heard,
        "said_words": " ".join(item.said_words),
        "heard_words": " ".join(item.heard_words),
        "errors": item.errors.count,
        "words": item.errors.said,
    }


def _entities(found: HeardWords) -> Iterator[Json]:
    for saying in found.sayings:
        place = found.utterances[saying.utterance].said
        yield {
            "names": list(saying.key.names),
            "kind": saying.key.kind,
            "value": saying.key.value,
            **_place(place),
            "said": saying.said,
            "right": saying.right,
            "again": saying.again,
        }

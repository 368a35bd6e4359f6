"""Words for people: who heard whom how well, and what was heard, line by line.

Pure: every figure stands in the words block. What nobody can tell is "not
measured" with its reason, and each line says whose ears heard it. The table,
Markdown and the run's end drive it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import Errors
from duplex.metrics.words import Ears, WordsBlock
from duplex.report.figures import percent

HEADINGS = ("words of", "heard by", "word errors", "character errors", "key values", "")
UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLine:
    """One line somebody heard, in milliseconds."""

    start_ms: float
    speaker: str
    heard_by: str
    text: str


def rows(block: WordsBlock) -> Iterator[tuple[str, ...]]:
    """How well each side was heard, a row per pair of ears that heard anything."""
    for ears in _heard(block):
        found = ears.found
        if found is None:
            yield ears.speaker.label, _by(ears), UNMEASURED, UNMEASURED, "", ears.why or ""
        else:
            yield (
                ears.speaker.label,
                _by(ears),
                _errors(found.words),
                _errors(found.characters),
                _keys(found.recognition) if block.has_keys else "",
                f"against {ears.said_from}",
            )


def lines(block: WordsBlock) -> list[WordLine]:
    """Everything that ears of ours, or a transcript, heard; in order of time."""
    found = [
        WordLine(
            start_ms=piece.start_ms,
            speaker=ears.speaker.label,
            heard_by=_by(ears),
            text=piece.text.strip(),
        )
        for sides in block.audio.values()
        for ears in sides.values()
        for piece in ears.text
    ]
    return sorted(found, key=lambda line: (line.start_ms, line.speaker))


def unheard(block: WordsBlock) -> Iterator[str]:
    """Why a side's words are not known at all."""
    if not block.libraries:
        yield next(iter(block.sessions.values())).why or ""


def _heard(block: WordsBlock) -> Iterator[Ears]:
    for ears in (*block.sessions.values(), *(e for s in block.audio.values() for e in s.values())):
        if ears.found is not None or ears.text:
            yield ears


def _by(ears: Ears) -> str:
    return ears.heard_from or "nobody"


def _errors(errors: Errors) -> str:
    if errors.rate is None:
        return f"{errors.count} added, none said"
    return f"{errors.count} of {errors.said} ({percent(errors.rate)})"


def _keys(rate: Rate) -> str:
    return "none said" if rate.value is None else f"{rate.numerator} of {rate.denominator} right"

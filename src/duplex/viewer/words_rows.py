"""Words for the page: how well each side was heard, and what was heard of each line.

Figures stand in the words block and meanings in its definitions. Whose ears
heard a line is always told: a session's own, or ours. None is made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duplex.metrics.word_definitions import WORD_DEFINITIONS
from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import Reasons, clean, compact, members, number, objects, text
from duplex.viewer.rows import Row, not_known

_FIGURES = {
    "wer": "word errors",
    "cer": "character errors",
    "entity_recognition": "key values heard right",
    "entity_recall": "said again, heard right",
}
_SAME_MS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """What somebody heard of a line, or of a stretch whose words nobody told."""

    start_ms: float
    end_ms: float
    side: str
    heard_by: str
    heard: str
    errors: int
    ours: bool


def word_rows(words: Mapping[str, Json]) -> list[Row]:
    """One row for each figure of each pair of ears."""
    reasons = Reasons(words.get("unknown"))
    return [row for at, ears in _everybody(words) for row in _rows(at, ears, reasons)]


def heard_lines(words: Mapping[str, Json]) -> tuple[list[Hearing], list[Hearing]]:
    """What was heard of lines that were told, and words of ears of ours that nobody told."""
    told: list[Hearing] = []
    untold: list[Hearing] = []
    for at, ears in _everybody(words):
        by, side, ours = _by(ears), text(ears.get("speaker")) or "", at.startswith("/from_audio")
        for item in objects(ears.get("utterances")):
            errors = number(item.get("errors"))
            told += _hearing(item, item.get("heard"), side, by, int(errors or 0), ours)
        if ours and not objects(ears.get("utterances")):
            for piece in objects(ears.get("text")):
                untold += _hearing(piece, piece.get("text"), side, by, 0, ours)
    return told, untold


def same_line(found: Hearing, side: str, start_ms: float) -> bool:
    """Whether it was heard of this line."""
    return found.side == side and abs(found.start_ms - start_ms) <= _SAME_MS


def _hearing(
    item: Mapping[str, Json], heard: Json, side: str, by: str, errors: int, ours: bool
) -> Iterator[Hearing]:
    start, end, words = number(item.get("start_ms")), number(item.get("end_ms")), text(heard)
    if start is not None and end is not None and words is not None:
        yield Hearing(
            start_ms=start,
            end_ms=end,
            side=side,
            heard_by=by,
            heard=words,
            errors=errors,
            ours=ours,
        )


def _everybody(words: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Everybody who heard anything: sessions first, then ears of ours, by pointer."""
    for listener, ears in members(words.get("heard_by")).items():
        if isinstance(ears, dict):
            yield f"/heard_by/{listener}", ears
    for name, sides in members(words.get("from_audio")).items():
        for side, ears in members(sides).items():
            if isinstance(ears, dict):
                yield f"/from_audio/{name}/{side}", ears


def _rows(at: str, ears: Mapping[str, Json], reasons: Reasons) -> Iterator[Row]:
    who = f"{_by(ears)} on the {text(ears.get('speaker')) or 'speaker'}"
    for name, title in _FIGURES.items():
        definition = WORD_DEFINITIONS[name]
        found = members(ears.get(name))
        told = say.rate(found)
        row_name = f"{who} · {title}"
        if told is None:
            if ears.get(name) is None and name not in ears:
                continue
            why = reasons.why(f"{at}/{name}/rate")
            yield not_known(row_name, why, definition.sentence, definition.source)
            continue
        value, details = told
        yield Row(
            name=row_name,
            value=value,
            details=tuple(details),
            exact=compact(found.get("rate")),
            meaning=definition.sentence,
            source=definition.source,
        )


def _by(ears: Mapping[str, Json]) -> str:
    return clean(text(ears.get("heard_from")) or "somebody")

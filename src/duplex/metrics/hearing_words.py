"""One side's words against what was heard of them: errors, utterances, key values.

Takes what was said by utterance and what was heard in pieces, both with their
place on one timeline. Pieces are put to utterances by time for reading only:
errors come from one alignment of all words, so a bad time stamp costs nothing.
Pure; ``words.py`` drives it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duplex.metrics.key_values import KeyValue, Saying, sayings
from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import (
    Errors,
    by_utterance,
    character_errors,
    word_errors,
)

_NEAR = 2
"""Utterances to either side of a piece that it may belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some words and where they lie, in milliseconds."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardUtterance:
    """One utterance: as said and as heard, verbatim and in normalised words."""

    said: Piece
    heard: str
    said_words: tuple[str, ...]
    heard_words: tuple[str, ...]
    errors: Errors


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardSaying:
    """One saying of a key value and whether it was heard right.

    ``again`` is true once an earlier saying of the value had been heard right.
    """

    key: KeyValue
    utterance: int
    said: str
    right: bool
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardWords:
    """All that one side said, and how well it was heard."""

    words: Errors
    characters: Errors
    raw_words: Errors
    raw_characters: Errors
    utterances: tuple[HeardUtterance, ...]
    sayings: tuple[HeardSaying, ...]

    @property
    def recognition(self) -> Rate:
        return _share(self.sayings)

    @property
    def recall(self) -> Rate:
        return _share([saying for saying in self.sayings if saying.again])


def heard_words(
    said: Sequence[Piece],
    heard: Sequence[Piece],
    keys: Sequence[KeyValue],
    normalise: Callable[[str], str],
) -> HeardWords:
    """Compare, ``said`` being one piece an utterance; words heard of nothing are added words."""
    said = sorted(said, key=lambda piece: (piece.start_ms, piece.end_ms))
    groups = _by_utterance(said, heard)
    said_words = [tuple(normalise(piece.text).split()) for piece in said]
    heard_text = [joined(group) for group in groups]
    every = [word for text in heard_text for word in normalise(text).split()]
    flat = " ".join(word for words in said_words for word in words)
    raw = " ".join(piece.text for piece in said), " ".join(heard_text)
    utterances = tuple(
        HeardUtterance(
            said=piece, heard=text, said_words=words, heard_words=part.heard, errors=part.errors
        )
        for piece, text, words, part in zip(
            said, heard_text, said_words, by_utterance(said_words, every), strict=False
        )
    )
    return HeardWords(
        words=word_errors(flat, " ".join(every)),
        characters=character_errors(flat, " ".join(every)),
        raw_words=word_errors(*raw),
        raw_characters=character_errors(*raw),
        utterances=utterances,
        sayings=tuple(_heard_sayings(utterances, keys)),
    )


def joined(pieces: Sequence[Piece]) -> str:
    """Join pieces verbatim; a space only where a sentence ended without one."""
    text = ""
    for piece in pieces:
        apart = bool(text) and text[-1] in ".,!?;:" and piece.text[:1].isalnum()
        text += f" {piece.text}" if apart else piece.text
    return " ".join(text.split())


def _by_utterance(said: Sequence[Piece], heard: Sequence[Piece]) -> list[list[Piece]]:
    """Put every piece to the utterance it overlaps most, else the nearest; at least one group."""
    groups: list[list[Piece]] = [[] for _ in said] or [[]]
    starts = [piece.start_ms for piece in said]
    for piece in sorted(heard, key=lambda piece: piece.start_ms):
        at = bisect_left(starts, piece.start_ms)
        near = range(max(0, at - _NEAR), min(len(said), at + _NEAR))
        groups[max(near, key=lambda i: _closeness(said[i], piece), default=0)].append(piece)
    return groups


def _closeness(one: Piece, other: Piece) -> float:
    """Common time in milliseconds; minus the gap where there is none."""
    return min(one.end_ms, other.end_ms) - max(one.start_ms, other.start_ms)


def _heard_sayings(
    utterances: Sequence[HeardUtterance], keys: Sequence[KeyValue]
) -> list[HeardSaying]:
    made: list[HeardSaying] = []
    known: set[tuple[str, ...]] = set()
    for index, utterance in enumerate(utterances):
        heard = sayings(keys, utterance.heard_words)
        for saying in sayings(keys, utterance.said_words):
            match = next((other for other in heard if _states(other, saying)), None)
            if match is not None:
                heard.remove(match)
            names = saying.key.names
            made.append(
                HeardSaying(
                    key=saying.key,
                    utterance=index,
                    said=" ".join(utterance.said_words[saying.start : saying.end]),
                    right=match is not None,
                    again=names in known,
                )
            )
            if match is not None:
                known.add(names)
    return made


def _states(heard: Saying, said: Saying) -> bool:
    """Whether what was heard states as much of the value as what was said."""
    return heard.key.names == said.key.names and (heard.complete or not said.complete)


def _share(found: Sequence[HeardSaying]) -> Rate:
    return Rate(numerator=sum(saying.right for saying in found), denominator=len(found))

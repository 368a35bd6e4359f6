"""Word and character errors of what was heard against what was said, as counts.

Alignment is jiwer's: the fewest substitutions, deletions and insertions. Counts
add up; a rate is always errors over the words said, never a mean of rates.
Importing this module needs the ``jiwer`` package; ``words.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jiwer


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Errors over the units (words or characters) of what was said; they add up."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def said(self) -> int:
        """Units of the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def count(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors per unit said; can exceed 1. None when nothing was said."""
        return self.count / self.said if self.said else None

    def __add__(self, other: Errors) -> Errors:
        return Errors(
            hits=self.hits + other.hits,
            substitutions=self.substitutions + other.substitutions,
            deletions=self.deletions + other.deletions,
            insertions=self.insertions + other.insertions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What of the alignment belongs to one utterance: its errors and the words heard."""

    errors: Errors
    heard: tuple[str, ...]


def word_errors(said: str, heard: str) -> Errors:
    """Count the word errors between two texts, words being parted by white space."""
    return _counted(_words(said.split(), heard.split()))


def character_errors(said: str, heard: str) -> Errors:
    """Count the character errors; the single space between words is a character."""
    said, heard = " ".join(said.split()), " ".join(heard.split())
    if not said or not heard:
        return Errors(deletions=len(said), insertions=len(heard))
    return _counted(jiwer.process_characters(said, heard))


def by_utterance(said: Sequence[Sequence[str]], heard: Sequence[str]) -> tuple[Part, ...]:
    """Align all words said with all words heard and part the result by utterance.

    ``said`` holds the words of each utterance. An insertion belongs to the
    utterance whose word stands before it, the first when there is none. The
    parts' errors sum to the errors of the whole; empty for no utterance.
    """
    owner = [index for index, words in enumerate(said) for _ in words]
    if not said:
        return ()
    flat = [word for words in said for word in words]
    counts = [Errors() for _ in said]
    words: list[list[str]] = [[] for _ in said]
    for kind, first, last, start, end in _chunks(flat, heard):
        if kind == "insert":
            at = owner[first - 1] if first else (owner[0] if owner else 0)
            counts[at] += Errors(insertions=end - start)
            words[at] += heard[start:end]
            continue
        for offset in range(last - first):
            at = owner[first + offset]
            counts[at] += _ONE[kind]
            if kind != "delete":
                words[at].append(heard[start + offset])
    return tuple(
        Part(errors=errors, heard=tuple(own)) for errors, own in zip(counts, words, strict=True)
    )


_ONE = {
    "equal": Errors(hits=1),
    "substitute": Errors(substitutions=1),
    "delete": Errors(deletions=1),
}


def _words(said: Sequence[str], heard: Sequence[str]) -> jiwer.WordOutput:
    return jiwer.process_words(" ".join(said), " ".join(heard))


def _chunks(said: Sequence[str], heard: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    return [
        (
            chunk.type,
            chunk.ref_start_idx,
            chunk.ref_end_idx,
            chunk.hyp_start_idx,
            chunk.hyp_end_idx,
        )
        for chunk in _words(said, heard).alignments[0]
    ]


def _counted(found: jiwer.WordOutput | jiwer.CharacterOutput) -> Errors:
    return Errors(
        hits=found.hits,
        substitutions=found.substitutions,
        deletions=found.deletions,
        insertions=found.insertions,
    )

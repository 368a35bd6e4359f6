"""A scenario's diagnostic terms, looked for in what the assistant said.

``a|b`` is a with b as alternative. A term is text, never a pattern: it is found where
its characters stand, whatever their case, spacing or width. Diagnosis only: no verdict
rests on words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from duplex.grading.evidence import Evidence
from duplex.values import Json, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class TermFound:
    """One term; ``found`` is the alternative that was said first, None if none was."""

    term: str
    found: str | None
    at_ms: int | None

    def as_json(self) -> dict[str, Json]:
        return {"term": self.term, "found": self.found, "at_ms": self.at_ms}


def find_terms(terms: Iterable[str], evidence: Evidence) -> tuple[TermFound, ...]:
    """Look for every term in the assistant's lines, by start."""
    lines = [(line.start_ms, _plain(line.text)) for line in evidence.lines(Side.ASSISTANT)]
    return tuple(_find(term, lines) for term in terms)


def _find(term: str, lines: list[tuple[int, str]]) -> TermFound:
    choices = [choice.strip() for choice in term.split("|") if choice.strip()]
    for at_ms, line in lines:
        for choice in choices:
            if _plain(choice) in line:
                return TermFound(term=term, found=choice, at_ms=at_ms)
    return TermFound(term=term, found=None, at_ms=None)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

"""From transcript pieces to utterances and to the lines of a conversation.

Pieces come on a session's own clock, cut on its frames and not at words or
turns, and the two directions interleave. Here they are joined, verbatim, into
runs without a long gap. Pure: a live session drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from duplex.application.base import Line

GAP_MS = 500
"""A pause this long ends an utterance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Pieces of one direction without a gap, joined."""

    text: str
    start_ms: int
    end_ms: int


class Grouper:
    """Joins one direction's pieces once nothing more can come between them."""

    def __init__(self, gap_ms: int = GAP_MS) -> None:
        self._gap_ms = gap_ms
        self._pieces: list[tuple[int, str]] = []
        self._end_ms = 0

    def add(self, text: str, start_ms: int, end_ms: int) -> list[Run]:
        """Take one piece; return the run it ended, if it did."""
        if self._pieces and start_ms - self._end_ms < self._gap_ms:
            self._pieces.append((start_ms, text))
            self._end_ms = max(self._end_ms, end_ms)
            return []
        ended = self.flush()
        self._pieces, self._end_ms = [(start_ms, text)], end_ms
        return ended

    def ended_by(self, now_ms: float) -> list[Run]:
        """Return the open run if nothing more can join it by ``now_ms``."""
        if not self._pieces or now_ms < self._end_ms + self._gap_ms:
            return []
        return self.flush()

    def flush(self) -> list[Run]:
        """End the open run and return it, if there are words in it."""
        # Pieces that came out of order are put in order; all others stay as they came.
        pieces, self._pieces = sorted(self._pieces, key=itemgetter(0)), []
        text = "".join(text for _, text in pieces).strip()
        if not text:
            return []
        return [Run(text=text, start_ms=pieces[0][0], end_ms=self._end_ms)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One transcript piece; ``said`` by this session's peer, or heard by it."""

    said: bool
    text: str
    start_ms: int
    end_ms: int


def conversation(pieces: Sequence[Piece]) -> list[Line]:
    """Return the conversation as lines in order of speech, whatever the order of arrival.

    What the session's model heard is the ``user``, what it said the ``assistant``;
    neighbouring lines of one role are joined.
    """
    runs: list[tuple[int, str, str]] = []
    for said, role in ((False, "user"), (True, "assistant")):
        grouper = Grouper()
        mine = sorted((p for p in pieces if p.said is said), key=lambda p: p.start_ms)
        ended = [run for p in mine for run in grouper.add(p.text, p.start_ms, p.end_ms)]
        runs += [(run.start_ms, role, run.text) for run in [*ended, *grouper.flush()]]
    lines: list[Line] = []
    for start_ms, role, text in sorted(runs, key=lambda run: run[0]):
        if lines and lines[-1].role == role:
            last = lines.pop()
            text, start_ms = f"{last.text} {text}", last.start_ms
        lines.append(Line(role=role, text=text, start_ms=start_ms))
    return lines

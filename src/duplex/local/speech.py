"""One ``Say`` on its way out: split into pieces, synthesised ahead, played, cut.

The text is spoken in pieces of a sentence or less; a task makes them in order
while earlier ones play. Words are placed by their share of their piece, so the
transcript is what was really spoken when it stops. Driven block by block by
the voice; it never waits itself.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

import numpy as np

from duplex.local.seams import VOICE_RATE_HZ, Mouth, Pcm, Say, Style, Words

SENTENCE_GAP = VOICE_RATE_HZ * 220 // 1000
CLAUSE_GAP = VOICE_RATE_HZ * 90 // 1000
LONG_SENTENCE = 70
"""Characters beyond which a sentence is split at its commas, to be heard sooner."""
LONG_CLAUSE = 140
"""Characters after which even a text without any marks is split."""
_SHORT_CLAUSE = 16

_SENTENCE_END = re.compile(r"[.!?…]+[\"')\]]*$")
_CLAUSE_END = re.compile(r"[,;:]$")
_ABBREVIATION = re.compile(r"(?:mr|mrs|ms|dr|st|no|vs|etc)\.$", re.IGNORECASE)
_HALF_DAY = re.compile(r"[ap]\.m\.$", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Piece:
    """A run of words spoken in one breath, and the pause after it."""

    words: tuple[str, ...]
    gap: int
    ready: asyncio.Future[Pcm]
    start: int | None = None
    """Where its first sample was played, once it was."""

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(slots=True, kw_only=True)
class _Placed:
    """One word with its place on the session timeline."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Speech:
    """A ``Say`` from the moment it is decided to the moment it has ended."""

    say: Say
    not_before: int
    """The earliest sample its audio may begin at, by declared thinking."""
    pause: int
    """Silence wanted between this side's previous words and these."""
    pieces: list[Piece]
    task: asyncio.Task[None]
    decided: int = 0
    """What was heard up to here is what it answers."""
    stale: bool = False
    """The other side spoke between the decision and its beginning."""
    start: int = 0
    end: int = 0
    wanted_at: int | None = None
    """When it was ready to begin but had no audio yet."""
    dry_at: int | None = None
    """When it ran dry in mid-speech."""
    ended: bool = False
    """It was said, cut or given up; nothing more will come of it."""
    exempt: bool = False
    """It began over the other side's speech on purpose; that speech does not stop it."""
    _spoken: list[str] = field(default_factory=list)
    _piece: int = 0
    _offset: int = 0
    _gap: int = 0
    _placed: list[_Placed] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return self._piece >= len(self.pieces) and self._gap == 0

    def needs(self, samples: int) -> asyncio.Future[Pcm] | None:
        """Return the audio that is missing to play the next ``samples``, if any."""
        left, place, offset = samples - self._gap, self._piece, self._offset
        while left > 0 and place < len(self.pieces):
            piece = self.pieces[place]
            if not piece.ready.done():
                return piece.ready
            left -= len(piece.ready.result()) - offset + piece.gap
            place, offset = place + 1, 0
        return None

    def play(self, out: Pcm, position: int) -> None:
        """Fill ``out`` (zeros) with what comes next; ``position`` is its first sample."""
        at = 0
        while at < len(out) and not self.finished:
            if self._gap:
                taken = min(self._gap, len(out) - at)
                self._gap -= taken
                at += taken
                continue
            piece = self.pieces[self._piece]
            if not piece.ready.done():
                return
            at += self._play_piece(piece, out[at:], position + at)

    def _play_piece(self, piece: Piece, out: Pcm, position: int) -> int:
        pcm = piece.ready.result()
        if piece.start is None:
            piece.start = position
            self._place(piece, position, len(pcm))
        part = pcm[self._offset : self._offset + len(out)]
        out[: len(part)] = part
        self._offset += len(part)
        if len(part):
            self.end = position + len(part)
        if self._offset == len(pcm):
            self._piece += 1
            self._offset = 0
            self._gap = piece.gap if self._piece < len(self.pieces) else 0
        return len(part)

    def _place(self, piece: Piece, start: int, length: int) -> None:
        """Give every word its share of the piece, by letters."""
        shares = np.cumsum([0] + [len(word) + 1 for word in piece.words])
        edges = (start + shares * length // int(shares[-1])).tolist()
        for word, begin, end in zip(piece.words, edges, edges[1:], strict=False):
            self._placed.append(_Placed(text=f" {word}", start=begin, end=end))

    def words(self, until: int) -> Words | None:
        """Take the words whose audio has ended by ``until`` (a sample), as one piece."""
        count = 0
        while count < len(self._placed) and self._placed[count].end <= until:
            count += 1
        taken, self._placed = self._placed[:count], self._placed[count:]
        if not taken:
            return None
        self._spoken += [word.text for word in taken]
        return Words(
            text="".join(word.text for word in taken),
            start_ms=to_ms(taken[0].start),
            end_ms=to_ms(taken[-1].end),
        )

    @property
    def text(self) -> str:
        """The words that have been spoken, or will have been when it is not cut."""
        return "".join([*self._spoken, *(word.text for word in self._placed)]).strip()

    def cut(self, at: int) -> None:
        """Stop at sample ``at``: words less than half spoken by then are gone."""
        self.task.cancel()
        self.end = min(self.end, at)
        kept = [word for word in self._placed if word.start + word.end <= 2 * at]
        for word in kept:
            word.end = min(word.end, at)
        self._placed = kept
        self._piece, self._gap = len(self.pieces), 0


def to_ms(samples: int) -> int:
    return samples * 1000 // VOICE_RATE_HZ


def split(text: str, pace: float = 1.0) -> list[tuple[tuple[str, ...], int]]:
    """Split ``text`` into (words, samples of pause after them), a sentence or less each."""
    pieces: list[tuple[tuple[str, ...], int]] = []
    for sentence in _sentences(text.split()):
        clauses = _clauses(sentence)
        for clause in clauses[:-1]:
            pieces.append((tuple(clause), round(CLAUSE_GAP * pace)))
        pieces.append((tuple(clauses[-1]), round(SENTENCE_GAP * pace)))
    return pieces


def _sentences(words: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        found[-1].append(word)
        ends = _SENTENCE_END.search(word) and not _ABBREVIATION.match(word)
        if ends and _HALF_DAY.search(word):
            ends = following[:1].isupper()
        if ends and following:
            found.append([])
    return [sentence for sentence in found if sentence]


def _clauses(sentence: list[str]) -> list[list[str]]:
    if len(" ".join(sentence)) <= LONG_SENTENCE:
        return [sentence]
    found: list[list[str]] = [[]]
    for place, word in enumerate(sentence):
        found[-1].append(word)
        left = " ".join(sentence[place + 1 :])
        so_far = " ".join(found[-1])
        comma = _CLAUSE_END.search(word) and min(len(so_far), len(left)) >= _SHORT_CLAUSE
        if comma or (left and len(so_far) >= LONG_CLAUSE):
            found.append([])
    return found


def begin_speech(say: Say, *, not_before: int, mouth: Mouth, style: Style) -> Speech:
    """Start making ``say``'s audio, sentence by sentence, and return it."""
    loop = asyncio.get_running_loop()
    pieces = [
        Piece(words=words, gap=gap, ready=loop.create_future())
        for words, gap in split(say.text, style.pace)
    ]
    task = loop.create_task(_make(pieces, mouth, style), name="speech")
    pause = say.pause_ms * VOICE_RATE_HZ // 1000
    return Speech(say, not_before, pause, pieces, task)


async def _make(pieces: list[Piece], mouth: Mouth, style: Style) -> None:
    """Make the pieces in order; a failure goes to whoever waits for the piece."""
    for place, piece in enumerate(pieces):
        try:
            chunks = [chunk async for chunk in mouth.speak(piece.text, style)]
        except asyncio.CancelledError:
            for left in pieces[place:]:
                left.ready.cancel()
            raise
        except Exception as problem:
            for left in pieces[place:]:
                left.ready.set_exception(problem)
                left.ready.exception()  # it may never be asked for
            return
        piece.ready.set_result(np.concatenate(chunks) if chunks else np.zeros(0, np.int16))

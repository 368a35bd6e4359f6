"""One side's words against what was heard of them: errors, utterances, key values.

Takes what was said by utterance and what was heard in pieces, both with their
place on one timeline, and compares what overlaps. Time stamps of a session may
be wrong: they never make errors that the order of the words does not. Pure;
``words.py`` drives it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from duplex.metrics.key_values import KeyValue, Saying, sayings
from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import (
    Errors,
    by_utterance,
    character_errors,
    word_errors,
)
from duplex.participants.live_words import GAP_MS

_MARKS = (".", ",", "!", "?", ";", ":")
NEAR_MS = 1_000
"""Words this far from an utterance at most may be words of it."""
_BESIDE = 2


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
    """Compare, ``said`` being one piece an utterance; words heard of nothing are added words.

    What overlaps in time is compared with each other. Where that has more errors
    than time alone can explain, the stamps are wrong and order decides instead.
    """
    in_time = _compared(_by_time(said, heard), normalise)
    if in_time.words.count > 2:
        in_order = _compared([_Passage.of(said, heard)], normalise)
        # Parting words can at most make a lost and an added word of a substituted one.
        if in_time.words.count > 2 * in_order.words.count + 2:
            in_time = in_order
    return replace(in_time, sayings=tuple(_heard_sayings(in_time.utterances, keys)))


def joined(pieces: Sequence[Piece]) -> str:
    """Join pieces verbatim; a space only after a pause, or where a sentence ended without one."""
    texts: list[str] = []
    end_ms, mark = math.inf, False
    for piece in pieces:
        paused = piece.start_ms - end_ms >= GAP_MS
        if paused or (mark and piece.text[:1].isalnum()):
            texts.append(" ")
        texts.append(piece.text)
        end_ms, mark = piece.end_ms, piece.text.endswith(_MARKS)
    return " ".join("".join(texts).split())


@dataclass(slots=True)
class _Passage:
    """Utterances and what was heard of them; either may be empty."""

    said: list[Piece] = field(default_factory=list)
    heard: list[Piece] = field(default_factory=list)

    @classmethod
    def of(cls, said: Iterable[Piece], heard: Iterable[Piece]) -> _Passage:
        return cls(sorted(said, key=_place), sorted(heard, key=_place))

    @property
    def start_ms(self) -> float:
        return min(piece.start_ms for piece in (*self.said, *self.heard))

    @property
    def end_ms(self) -> float:
        return max(piece.end_ms for piece in (*self.said, *self.heard))


def _by_time(said: Sequence[Piece], heard: Sequence[Piece]) -> list[_Passage]:
    """Part what was said and heard into passages that do not overlap in time.

    What was heard within a second of an utterance belongs to it, too.
    """
    passages: list[_Passage] = []
    end_ms = -math.inf
    everything = [(piece, True) for piece in said] + [(piece, False) for piece in heard]
    for piece, is_said in sorted(everything, key=lambda item: _place(item[0])):
        if piece.start_ms >= end_ms:
            passages.append(_Passage())
        (passages[-1].said if is_said else passages[-1].heard).append(piece)
        end_ms = max(end_ms, piece.end_ms)
    return _gathered(passages)


def _gathered(passages: Sequence[_Passage]) -> list[_Passage]:
    """Give what was heard of nothing to the nearer utterance beside it, if that is near."""
    made: list[_Passage] = []
    spare: list[Piece] = []
    for passage in passages:
        if not passage.said:
            spare += passage.heard
            continue
        before = made[-1] if made else None
        made.append(passage)
        for piece in spare:
            _give(piece, before, passage, made)
        spare = []
    for piece in spare:
        _give(piece, made[-1] if made else None, None, made)
    for passage in made:
        passage.heard.sort(key=_place)
    return sorted(made, key=lambda passage: passage.start_ms)


def _give(
    piece: Piece, before: _Passage | None, after: _Passage | None, made: list[_Passage]
) -> None:
    gaps = (
        math.inf if before is None else piece.start_ms - before.end_ms,
        math.inf if after is None else after.start_ms - piece.end_ms,
    )
    nearer = before if gaps[0] <= gaps[1] else after
    if nearer is not None and min(gaps) <= NEAR_MS:
        nearer.heard.append(piece)
    else:
        made.append(_Passage(heard=[piece]))


def _compared(passages: Sequence[_Passage], normalise: Callable[[str], str]) -> HeardWords:
    """Compare passage by passage and add up; without key values."""
    words = characters = raw_words = raw_characters = Errors()
    utterances: list[HeardUtterance] = []
    for passage in passages:
        said_words = [tuple(normalise(piece.text).split()) for piece in passage.said]
        said = " ".join(word for own in said_words for word in own)
        heard_words = normalise(joined(passage.heard)).split()
        raw = " ".join(piece.text for piece in passage.said), joined(passage.heard)
        words += word_errors(said, " ".join(heard_words))
        characters += character_errors(said, " ".join(heard_words))
        raw_words += word_errors(*raw)
        raw_characters += character_errors(*raw)
        parts = by_utterance(said_words, heard_words)
        texts = _shared_out(passage)
        utterances += [
            HeardUtterance(
                said=piece, heard=text, said_words=own, heard_words=part.heard, errors=part.errors
            )
            for piece, text, own, part in zip(passage.said, texts, said_words, parts, strict=True)
        ]
    return HeardWords(
        words=words,
        characters=characters,
        raw_words=raw_words,
        raw_characters=raw_characters,
        utterances=tuple(utterances),
        sayings=(),
    )


def _shared_out(passage: _Passage) -> list[str]:
    """What was heard, verbatim, by the utterance that each piece overlaps most."""
    said = passage.said
    groups: list[list[Piece]] = [[] for _ in said]
    starts = [piece.start_ms for piece in said]
    for piece in passage.heard:
        at = bisect_left(starts, piece.start_ms)
        near = range(max(0, at - _BESIDE), min(len(said), at + _BESIDE))
        best = max(near, key=lambda index: _common(said[index], piece), default=None)
        if best is not None:
            groups[best].append(piece)
    return [joined(group) for group in groups]


def _common(one: Piece, other: Piece) -> float:
    """Common time in milliseconds; minus the gap where there is none."""
    return min(one.end_ms, other.end_ms) - max(one.start_ms, other.start_ms)


def _place(piece: Piece) -> tuple[float, float]:
    return piece.start_ms, piece.end_ms


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

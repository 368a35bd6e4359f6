"""Fields whose values somebody asked to have hidden, and the marks that stand for them.

A value that stood under such a name becomes ``[redacted 1]``; the same value gets the
same mark in all of a run, another value another, so that what is graded compares as
before. Values that were seen are also found in running text, however they are spaced,
punctuated and cased. Names count inside what the application holds only, so nothing of
our own is ever taken for a private field. A run's redactor drives it; it keeps the
values in memory and writes them nowhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from duplex.values import Json

SHORTEST = 3
"""Letters and digits that a value must have to be found in running text."""
LONGEST = 200
"""Characters up to which it is found in any spelling; beyond, only as it stands."""
SEARCHED = 2_000
"""Values that are looked for in running text; a peer may show any number of them."""
_WHOLE = 4_000
_MARK = re.compile(r"\[redacted \d+\]'*")


class PrivateFields:
    """The private fields of one run; ``names`` are compared without case, ``-`` and ``_``."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._plain = frozenset(map(_plain, self.names))
        self._families: dict[tuple[str, str], int] = {}
        self._variants: dict[tuple[int, str], int] = {}
        self._counts: dict[int, int] = {}
        self._in_text: dict[str, str] = {}
        self._spellings: dict[str, None] = {}
        self._compiled: re.Pattern[str] | None = None

    @property
    def known(self) -> int:
        """How many values have been seen; it grows while calls run."""
        return len(self._variants)

    def covers(self, name: str) -> bool:
        """Whether a member of this name is private."""
        return _plain(name) in self._plain

    def marked(self, value: Json | object, depth: int) -> Json | object:
        """Return the mark of a value, or its shape with marks for its leaves.

        True, false and null stay: they could be told by the mark as well. ``depth`` bounds
        how far down is looked.
        """
        if value is None or isinstance(value, bool) or depth <= 0:
            return value if depth > 0 else None
        if isinstance(value, Mapping):
            return {key: self.marked(item, depth - 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.marked(item, depth - 1) for item in value]
        if isinstance(value, int | float):
            number = _as_float(value)
            return None if number is None else self._mark("number", number, number, str(value))
        text = str(value)
        if _MARK.fullmatch(text) or not text.strip():
            return text
        return self._mark("text", _folded(text), text, text)

    def hide(self, text: str) -> str:
        """Return a text with every value that has been seen replaced by its mark."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(self._replaced, text)

    def hide_across(self, pieces: Sequence[str]) -> list[str]:
        """Hide values in a text that came in pieces, also those that lie across two."""
        whole, pattern = "".join(pieces), self._pattern
        if pattern is None or not whole:
            return list(pieces)
        starts, at = [], 0
        for piece in pieces:
            starts.append(at)
            at += len(piece)
        out = [""] * len(pieces)
        index = done = 0
        for found in (*pattern.finditer(whole), None):
            stop = len(whole) if found is None else found.start()
            index = _copied(whole, starts, out, index, done, stop)
            if found is not None:
                out[index] += self._replaced(found)
                done = found.end()
        return out

    # -- values and their marks ---------------------------------------------

    def _mark(self, kind: str, folded: str, text: str, said: str) -> str:
        """``said``: how the value stands in running text."""
        family = self._families.setdefault((kind, folded), len(self._families) + 1)
        # What differs only in case or punctuation is told apart by punctuation again.
        variant = self._variants.setdefault((family, text), self._counts.get(family, 0))
        self._counts[family] = max(variant + 1, self._counts.get(family, 0))
        compact = _compact(said)
        searched = SHORTEST <= len(compact) <= _WHOLE and len(self._in_text) < SEARCHED
        if searched and compact not in self._in_text:
            self._in_text[compact] = f"[redacted {family}]"
            self._spellings[said] = None
            self._compiled = None
        return f"[redacted {family}]" + "'" * variant

    @property
    def _pattern(self) -> re.Pattern[str] | None:
        """What is looked for in running text, the longest first; None for nothing."""
        if self._compiled is None and self._spellings:
            longest_first = sorted(self._spellings, key=len, reverse=True)
            any_of = "|".join(map(_spaced, longest_first))
            self._compiled = re.compile(rf"(?<![^\W_])(?:{any_of})(?![^\W_])", re.IGNORECASE)
        return self._compiled

    def _replaced(self, found: re.Match[str]) -> str:
        text = found.group()
        return self._in_text.get(_compact(text), "[redacted]")


def _copied(
    whole: str, starts: Sequence[int], out: list[str], index: int, start: int, stop: int
) -> int:
    """Put ``whole[start:stop]`` into the pieces it lies in; return the piece at ``stop``."""
    while True:
        end = starts[index + 1] if index + 1 < len(starts) else len(whole) + 1
        if start < min(end, stop):
            out[index] += whole[start : min(end, stop)]
            start = min(end, stop)
        if stop < end:
            return index
        index += 1


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()


def _folded(text: str) -> str:
    """As graders compare text: without case, punctuation and extra space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[^\w]+", " ", folded).strip() or folded.strip()


def _compact(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _spaced(text: str) -> str:
    """A pattern for a value's words and digits, whatever stands between them."""
    if len(text) > LONGEST:
        return re.escape(text)
    pattern, before = "", ""
    for piece in re.findall(r"[^\W\d_]+|\d", text):
        if before:
            # Digits are grouped as anybody likes; a word is never taken apart.
            least = 0 if before[-1].isdigit() or piece[0].isdigit() else 1
            pattern += rf"[\W_]{{{least},3}}"
        pattern += re.escape(piece)
        before = piece
    return pattern


def _as_float(value: int | float) -> str | None:
    try:
        return repr(float(value))
    except OverflowError:
        return None

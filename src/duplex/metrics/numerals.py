"""Spoken and written numbers read as figures, the longest each time.

``three hundred and five`` is ``305``, ``twenty first`` ``21st``, ``double oh
seven`` three figures, ``thirty six`` ``36``. A word that only sometimes is a
number (``oh``, ``second``, ``a``) is one where its neighbours say so. It joins
nothing and knows no dates; ``figures.py`` drives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.application.words import ONES, ORDINALS, TENS

_ZEROS = ("oh", "o", "zero")
_SMALL = {word: value for word, value in ONES.items() if word not in _ZEROS}
_DIGITS = {word: str(value) for word, value in _SMALL.items() if value < 10}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MULTIPLIERS = ("hundred", *_LARGE)
_PLACES = ORDINALS | {word.removesuffix("y") + "ieth": value for word, value in TENS.items()}
_LARGE_PLACES = {f"{word}th": 100 if word == "hundred" else _LARGE[word] for word in _MULTIPLIERS}
_TIMES = {"double": 2, "triple": 3}
_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_MAX_DIGITS = 400
"""Longer figures are left as they are: nobody says them, and arithmetic would be slow."""


@dataclass(frozen=True, slots=True)
class Item:
    """A word or a figure; a ``loose`` figure may join its neighbours."""

    text: str
    loose: bool = False

    @property
    def whole(self) -> bool:
        """Whether this is a loose figure of digits alone."""
        return self.loose and self.text.isdigit()


def read_numbers(words: Sequence[str]) -> list[Item]:
    """Read every cardinal and ordinal in ``words`` (lower case, no punctuation)."""
    return _Reader(words).items()


class _Reader:
    """Reads from left to right, one item at a time."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._at = 0
        self._done: list[Item] = []

    def items(self) -> list[Item]:
        while self._at < len(self._words):
            self._done.append(self._next())
        return self._done

    def _next(self) -> Item:
        word = self._peek()
        if word in _ZEROS and self._is_zero(word):
            self._at += 1
            return self._decimals("0")
        if word in _TIMES and (digit := self._digit(1)) is not None:
            self._at += 2
            return Item(digit * _TIMES[word], loose=True)
        if word in _PLACES and not (word == "second" and self._after_one()):
            self._at += 1
            return Item(with_suffix(_PLACES[word]))
        if word in _LARGE_PLACES:
            return self._cardinal(1)
        if word == "a" and self._peek(1) in _MULTIPLIERS:
            self._at += 1
            return self._cardinal(1)
        if word in _MULTIPLIERS:
            return self._cardinal(1)
        if word in _SMALL or word in TENS:
            return self._cardinal(*self._small())
        if _FIGURE.fullmatch(word):
            self._at += 1
            return self._written(word)
        self._at += 1
        return Item(word)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else ""

    def _take(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def _digit(self, ahead: int) -> str | None:
        word = self._peek(ahead)
        if word in _ZEROS:
            return "0"
        return word if len(word) == 1 and _FIGURE.fullmatch(word) else _DIGITS.get(word)

    def _is_zero(self, word: str) -> bool:
        """``oh`` is a zero among digits, and an interjection elsewhere."""
        if word == "zero":
            return True
        last = [item.whole for item in self._done[-3:]]
        if last and last[-1]:
            return last == [True] * 3 or self._is_number(1)
        return self._digit(1) is not None and self._digit(2) is not None

    def _is_number(self, ahead: int) -> bool:
        word = self._peek(ahead)
        found = word in _SMALL or word in TENS or word in _ZEROS
        return found or _FIGURE.fullmatch(word) is not None

    def _after_one(self) -> bool:
        """``one second`` and ``30 second`` are spans of time."""
        return bool(self._done) and self._done[-1].loose

    def _small(self) -> tuple[int, bool]:
        """Take a number below a hundred; whether it was an ordinal."""
        word = self._take()
        if word in _SMALL:
            return _SMALL[word], False
        ones, place = _SMALL.get(self._peek(), 0), _PLACES.get(self._peek(), 0)
        if not (1 <= ones <= 9 or 1 <= place <= 9):
            return TENS[word], False
        self._take()
        return TENS[word] + (ones or place), bool(place)

    def _cardinal(self, first: int, ordinal: bool = False) -> Item:
        """Go on after ``first``: hundreds, thousands, a closing ordinal, decimals."""
        total, group, limit = 0, first, 10**15
        while not ordinal and (word := self._peek()) in _MULTIPLIERS:
            if word == "hundred" and 0 < group < 100:
                self._take()
                rest, ordinal = self._rest()
                group = group * 100 + rest
            elif word in _LARGE and group > 0 and _LARGE[word] < limit:
                self._take()
                limit = _LARGE[word]
                total += group * limit
                group, ordinal = self._rest()
            else:
                break
        if ordinal:
            return Item(with_suffix(total + group))
        if group and (place := _LARGE_PLACES.get(self._peek())) is not None:
            self._take()
            return Item(with_suffix(total + group * place))
        return self._decimals(str(total + group))

    def _rest(self) -> tuple[int, bool]:
        """Take what may follow ``hundred`` or ``thousand``; whether it was an ordinal."""
        ahead = 1 if self._peek() == "and" else 0
        word = self._peek(ahead)
        if word in _SMALL or word in TENS:
            self._at += ahead
            return self._small()
        if ahead and word in _PLACES and word != "second":
            self._at += 2
            return _PLACES[word], True
        return 0, False

    def _written(self, figure: str) -> Item:
        """A figure, times the ``million`` behind it."""
        word = self._peek()
        factor = 100 if word == "hundred" else _LARGE.get(word)
        if factor is None or len(figure) > _MAX_DIGITS:
            return self._decimals(figure)
        whole, _, decimals = figure.partition(".")
        scale = 10 ** len(decimals)
        value, rest = divmod(int(whole + decimals) * factor, scale)
        if rest:
            return Item(figure, loose=True)
        self._at += 1
        return Item(str(value), loose=True)

    def _decimals(self, figure: str) -> Item:
        """Take ``point`` and the digits said after it."""
        digits = ""
        if self._peek() == "point" and "." not in figure:
            ahead = 1
            while (digit := self._digit(ahead)) is not None:
                digits += digit
                ahead += 1
            if digits:
                self._at += ahead
        return Item(f"{figure}.{digits}" if digits else figure, loose=True)


def with_suffix(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return f"{value}th"
    return f"{value}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(value % 10, 'th') }"

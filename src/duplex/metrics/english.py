"""English text as the words that were spoken, in one spelling each.

Whisper's English normaliser does contractions, fillers, asides, spelling,
symbols and diacritics; figures are ours, because its own break clock times,
dates and digits said one by one. Text from a wire is hostile: every step takes
time linear in it. Importing this module needs the ``whisper-normalizer``
package; ``words.py`` drives it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from whisper_normalizer.basic import remove_symbols_and_diacritics
from whisper_normalizer.english import EnglishTextNormalizer

from duplex.metrics.figures import MONTHS, OCLOCK, in_figures

_ASIDE = re.compile(r"\[[^][<>()]*\]|<[^][<>()]*>|\((?![0-9]{1,5}\))[^][<>()]*\)")
_QUOTES = str.maketrans("‘’ʼ`´", "'''''")
_REWRITTEN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))"), ""),
    (
        re.compile(r"(?<![\w-])((?:19|20)[0-9]{2})-([0-9]{1,2})-([0-9]{1,2})\b(?!-[0-9])"),
        lambda m: _day(m, m[2], m[3], m[1]),
    ),
    (
        re.compile(r"\b([0-9]{1,2})/([0-9]{1,2})/((?:19|20)[0-9]{2})\b"),
        lambda m: _day(m, m[1], m[2], m[3]),
    ),
    (re.compile(r"\bo ?' ?clock\b"), OCLOCK),
    (re.compile(r"\b([ap])\. ?m\b\.?"), r" \1m "),
    (re.compile(r"(?<![0-9:.])([0-9]{1,2}):([0-5][0-9])(?![0-9:])"), lambda m: _clock(m)),
    (re.compile(r"(?<![0-9:.])([0-9]{1,2})\.([0-5][0-9])(?= *[ap]m\b)"), lambda m: _clock(m)),
    (re.compile(r"\bo\. ?k\b\.?|\bo k\b|\b(?:okay|okey)\b"), "ok"),
    (re.compile(r"\bper cent\b|(?<=[0-9]) ?%"), " percent "),
    (
        re.compile(
            r"([$£€]) ?([0-9]+)(?:\.([0-9]{2})(?![0-9]))?( (?:thousand|(?:m|b|tr)illion)\b)?"
        ),
        lambda m: _price(m),
    ),
    (re.compile(r"&"), " and "),
    (re.compile(r"(?<=[^\W0-9_])(?=[0-9])"), " "),
    (re.compile(r"(?<=[0-9])(?!(?:st|nd|rd|th|s)\b)(?=[^\W0-9_])"), " "),
)
_ONE_WORD = (("good bye", "goodbye"), ("alright", "all right"), ("every day", "everyday"))
_COINS = {"$": ("dollars", "cents"), "£": ("pounds", "pence"), "€": ("euros", "cents")}
_SPELLED = re.compile(r"(?<!\S)[^\W0-9_](?: [^\W0-9_]){2,}(?!\S)")


class EnglishNormaliser:
    """``normaliser(text)`` gives its words, separated by single spaces; "" for none."""

    def __init__(self) -> None:
        self._whisper = EnglishTextNormalizer()
        self._whisper.standardize_numbers = _as_they_are

    def __call__(self, text: str) -> str:
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES).lower()
        text = " ".join(_ASIDE.sub(" ", text).split())
        for pattern, replacement in _REWRITTEN:
            text = pattern.sub(replacement, text)
        words = remove_symbols_and_diacritics(text, keep="'.").split()
        figures = in_figures([bare for word in words for bare in _bare(word)])
        text = " ".join(str(self._whisper(" ".join(figures))).split())
        for apart, together in _ONE_WORD:
            text = re.sub(rf"\b{apart}\b", together, text)
        return _SPELLED.sub(lambda m: m[0].replace(" ", ""), text)


def _bare(word: str) -> list[str]:
    """A word without outer marks; a full stop stays inside a number only."""
    if re.fullmatch(r"[0-9]+\.[0-9]+", word):
        return [word]
    return [part.strip("'") for part in word.split(".") if part.strip("'")]


def _as_they_are(text: str) -> str:
    return text


def _day(match: re.Match[str], month: str, day: str, year: str) -> str:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return match[0]
    return f" {MONTHS[int(month) - 1]} {int(day)} {year} "


def _clock(match: re.Match[str]) -> str:
    """``10:00`` is said as ``ten``, ``19:00`` as ``nineteen hundred``."""
    hour = int(match[1])
    if match[2] == "00" and 1 <= hour <= 12:
        return f"{hour}"
    return f"{hour}{match[2]}"


def _price(match: re.Match[str]) -> str:
    """``$20.50`` is said as ``20 dollars 50 cents``."""
    whole, part = _COINS[match[1]]
    if match[4]:
        return f" {match[2]}{'.' + match[3] if match[3] else ''}{match[4]} {whole} "
    cents = int(match[3] or "0")
    return f" {match[2]} {whole} " + (f"{cents} {part} " if cents else "")

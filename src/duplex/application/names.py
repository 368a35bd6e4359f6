"""Finding a person's name in words as ears deliver them.

Ears capitalise names, so capitals count; a lower-case word is a name only after
an unmistakable cue (``my name is``) or as the bare answer to the question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import pairwise

from duplex.application.reading import Found
from duplex.application.words import NUMBER, ONES, ORDINAL, ORDINALS, TENS, is_backchannel

_WORDS = """
    a about absolutely actually again ah all alright also am an and another any anything are
    around as ask at available back be because been before book booked booking both but by bye
    call calling can cancel certainly change check clock confirm confirmed correct could couple
    course date day definitely did do does done eat evening everything exactly excellent excuse
    few fine first for forward friday from get give go going good goodbye got great group guest
    guests had happy has have having hello her here hey hi him his hold how hundred i i'd i'll
    i'm i've if in instead is it it's its just last later let let's like listen looking maam
    make many may maybe me mean meant mhm mine minute mm mm-hmm moment monday month more
    morning much my myself name need next nice night no noon nope not nothing now number
    o'clock of off oh ok okay on one only or our party patio people perfect person phone please
    pm problem put quite ready really reservation reserve right said sat saturday say see seven
    she should so some someone something sorry sounds speaking spell still sunday sure table
    take thank thanks that that's the their them then there these they they'd thing think this
    thursday time to today tomorrow tonight too tuesday two uh uh-huh um under us very wait
    want was we we'd we'll we're wednesday week well were what what's when where which who
    window with works would wrong yeah yep yes yet you your yours
"""
_NOT_NAMES = frozenset(_WORDS.split())
_PARTICLES = frozenset(("de", "da", "di", "del", "van", "von", "der", "den", "bin", "al", "la"))
_AROUND_A_NAME = frozenset(
    ("yes", "sure", "please", "it's", "um", "uh", "oh", "ok", "okay", "thanks", "so", "well")
)
_MONTHS = frozenset(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december")
)  # fmt: skip
_WORD = r"[^\W\d_]+(?:['-][^\W\d_]+)*"
_RUN = rf"(?P<name>{_WORD}(?:,? {_WORD}){{0,3}})"

_STRONG = (
    r"my name(?:'s| is|,)",
    r"the name(?:'s| is| would be| will be)",
    r"(?:(?<=^)|(?<=[,.?!;] ))name(?:'s| is)",
    r"(?:in|under|with) the name(?: of)?",
    r"name of",
    r"call me",
    r"booking for the name",
    r"name on (?:the \w+|it)(?: is| should be| would be)?",
)
_WEAK = (
    "under", "this is", "i'm", "i am", "it's", "it is", "it was", "that's", "for", "make it",
    "that would be", "that'll be", "it'd be", "it'll be", "should be", "i said", "i meant",
    "i mean", "put it under", "actually", "no",
)  # fmt: skip


def find_names(text: str, *, asked: bool = False) -> Iterator[Found]:
    """Yield names; weak ones only when ``asked``."""
    spelled = _spelled(text)
    if spelled is None:
        yield from _said_names(text, asked=asked)
        return
    # Letters and the name beside them are one name, heard twice.
    rest = text[: spelled.start] + "." * (spelled.end - spelled.start) + text[spelled.end :]
    named = [str(name.value) for name in _said_names(rest, asked=True) if name.end < spelled.end]
    value = with_letters(named[0] if named else "", str(spelled.value))
    yield replace(spelled, value=value)


def _said_names(text: str, *, asked: bool) -> Iterator[Found]:
    for cue in _STRONG:
        for match in re.finditer(rf"(?i)\b{cue}[:,]? {_RUN}", text):
            if found := _name(match, text, any_case=True):
                yield found
    for cue in _WEAK:
        for match in re.finditer(rf"(?i)\b{cue},? {_RUN}", text):
            if found := _name(match, text, any_case=cue == "under"):
                yield found
    for match in re.finditer(rf"{_RUN} (?:speaking|is (?:the|my) name)\b", text):
        if found := _name(match, text, any_case=False):
            yield found
    if asked:
        yield from _bare_names(text)


def _name(match: re.Match[str], text: str, *, any_case: bool) -> Found | None:
    start = match.start("name")
    words: list[str] = []
    end = start
    lower = any_case
    for word in re.finditer(_WORD, match["name"]):
        gap = match["name"][end - start if words else 0 : word.start()]
        particle = bool(words) and word[0].lower() in _PARTICLES
        if "," in gap or not (particle or _can_be_name(word[0], any_case=lower)):
            break
        words.append(word[0])
        # Ears that lost the first capital lost them all; otherwise capitals decide.
        lower = any_case and words[0][0].islower()
        end = start + word.end()
    while len(words) > 1 and words[-1].lower() in _PARTICLES:
        end -= len(words.pop()) + 1
    if not words or not _ends_well(text, end, words):
        return None
    return Found(kind="name", value=_cased(words), start=start, end=end)


def _can_be_name(word: str, *, any_case: bool) -> bool:
    low = word.lower()
    if low in ONES or low in TENS or low in ORDINALS or low in _NOT_NAMES:
        return False
    if is_backchannel(word):
        return False
    return any_case or word[0].isupper()


def _ends_well(text: str, end: int, words: list[str]) -> bool:
    """A month is no name when a day follows; ``i`` of one letter never is."""
    day = rf"\s*(?:the )?(?:\d|{ORDINAL}\b|{NUMBER}\b)"
    if words[-1].lower() in _MONTHS and re.match(day, text[end:].lower()):
        return False
    return not (len(words) == 1 and len(words[0]) < 2)


def _cased(words: list[str]) -> str:
    return " ".join(
        word if index and word in _PARTICLES else _capital(re.sub(r"'s$", "", word))
        for index, word in enumerate(words)
    )


def _capital(word: str) -> str:
    if word.isupper() and len(word) > 1:
        word = word.lower()
    word = word[:1].upper() + word[1:]
    return re.sub(r"^([OD]'|.+-)(\w)", lambda m: m[1] + m[2].upper(), word)


def spelled_out(word: str) -> str:
    """Say the letters of a word, so that ears may know them: ``I'll spell it: M. A. Y. A.``"""
    plain = unicodedata.normalize("NFKD", word).upper()
    return f"I'll spell it: {' '.join(f'{letter}.' for letter in plain if letter.isalpha())}"


_SOUND_ALIKE = ("BCDEGPTVZ", "AHJK", "FSX", "MN", "QUW", "IY", "LO")
"""Letters whose names ears take for each other."""
_LIKE = {ord(letter): group[0] for group in _SOUND_ALIKE for letter in group}


def with_letters(name: str, letters: str) -> str:
    """Put letters that were heard into the word of ``name`` they fit best.

    A letter that may be the word's own is the word's, and so is one that got lost: of
    letters alone, ears confuse many. Where no word is like them, they are the name.
    """
    words = name.split()
    # Each word, and all of them spelled in one go.
    fits = [_fit(word, letters) for word in (*words, "".join(words))]
    best = max(range(len(fits)), key=lambda index: fits[index].ratio())
    if not words or fits[best].ratio() < 0.5:
        return letters.title()
    if best < len(words):
        words[best] = _merged(words[best], letters, fits[best]).title()
        return " ".join(words)
    whole = _merged("".join(words), letters, fits[best])
    ends = [len("".join(words[: count + 1])) for count in range(len(words) - 1)]
    parts = [whole[start:end] for start, end in pairwise((0, *ends, len(whole)))]
    return " ".join(part.title() for part in parts if part)


def _merged(word: str, letters: str, fit: SequenceMatcher[str]) -> str:
    merged = ""
    for kind, i, j, k, n in fit.get_opcodes():
        merged += word[i:j] if kind in ("equal", "delete") else letters[k:n]
    return merged


def _fit(word: str, letters: str) -> SequenceMatcher[str]:
    like = (word.upper().translate(_LIKE), letters.upper().translate(_LIKE))
    return SequenceMatcher(None, *like, autojunk=False)


_SAID = re.compile(r"(?i)\bspell\w*(?: (?:it|that|this|is|then|out|with))*[ .,:;-]+")
_LETTERS = {
    "be": "B", "bee": "B", "see": "C", "sea": "C", "gee": "G", "eye": "I", "jay": "J", "kay": "K",
    "oh": "O", "pea": "P", "are": "R", "tea": "T", "tee": "T", "you": "U", "the": "V", "vee": "V",
    "why": "Y",
}  # fmt: skip
"""Words that ears make of the names of letters."""


def _spelled(text: str) -> Found | None:
    """``M-A-Y-A`` or ``M, A, Y, A``: three letters or more, one at a time.

    Small letters, and words that sound like one, count only after ``spell``.
    """
    said = _SAID.search(text)
    if said is not None and (found := _letters_from(text, said.end())) is not None:
        return found
    match = re.search(r"\b(?<!')([A-Za-z])(?:(?:[-,. ]{1,2})([A-Za-z])\b){2,}", text)
    if match is None or not re.search(r"[A-Z]", match[0]) or is_backchannel(match[0]):
        return None
    letters = "".join(re.findall(r"[A-Za-z]", match[0]))
    return Found(kind="name", value=letters.title(), start=match.start(), end=match.end())


def _letters_from(text: str, start: int) -> Found | None:
    heard, letters, end = "", "", start
    for word in re.finditer(r"[A-Za-z']+", text[start:]):
        letter = word[0] if len(word[0]) == 1 else _LETTERS.get(word[0].lower())
        if letter is None:
            break
        heard += letter
        if len(word[0]) == 1:
            # A word may stand for a letter before others, but not after the last.
            letters, end = heard, start + word.end()
    if len(letters) < 3:
        return None
    return Found(kind="name", value=letters.title(), start=start, end=end)


def _bare_names(text: str) -> Iterator[Found]:
    for match in re.finditer(_RUN, text):
        words = list(re.finditer(_WORD, match["name"]))
        run: list[re.Match[str]] = []
        for word in words:
            if _can_be_name(word[0], any_case=False):
                if run and "," in match["name"][run[-1].end() : word.start()]:
                    break
                run.append(word)
            elif run:
                break
        if run and _ends_well(text, match.start() + run[-1].end(), [w[0] for w in run]):
            yield Found(
                kind="name",
                value=_cased([w[0] for w in run]),
                start=match.start() + run[0].start(),
                end=match.start() + run[-1].end(),
                strong=False,
            )
    alone = [m for m in re.finditer(_WORD, text) if m[0].lower() not in _AROUND_A_NAME]
    if 1 <= len(alone) <= 2 and all(_can_be_name(m[0], any_case=True) for m in alone):
        start, end = alone[0].start(), alone[-1].end()
        if re.fullmatch(r"\S+(?: \S+)?", text[start:end]) and not re.search(r"\d", text):
            value = _cased([m[0] for m in alone])
            yield Found(kind="name", value=value, start=start, end=end, strong=False)

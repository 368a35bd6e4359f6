"""Words as ears deliver them: cleaning, numbers, and what a short reply means.

Pure functions over text. Nothing here knows an application or a scenario; slot
reading, the backend and both local brains build on it.
"""

from __future__ import annotations

import re
import unicodedata

ONES = {
    "zero": 0, "oh": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13,
    "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13,
    "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18,
    "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip

_ONE_TO_NINE = "|".join(word for word, value in ONES.items() if 1 <= value <= 9)
_TENS = "|".join(TENS)
_SIMPLE = "|".join(sorted((w for w in ONES if w != "oh"), key=len, reverse=True))
_ORDINAL = "|".join(sorted(ORDINALS, key=len, reverse=True))

NUMBER = rf"(?:\d{{1,3}}|(?:{_TENS})(?:[ -](?:{_ONE_TO_NINE}))?|(?:{_SIMPLE}))"
"""Pattern of a cardinal up to three digits, in figures or words, lower case."""
ORDINAL = rf"(?:\d{{1,2}}(?:st|nd|rd|th)|(?:twenty|thirty)[ -](?:{_ORDINAL})|(?:{_ORDINAL}))"
"""Pattern of an ordinal up to the thirty-first, lower case."""

_PHRASES_OF_LISTENING = (
    "mm-hmm", "mm-mm", "mm hmm", "mhm", "mm", "mmm", "hmm", "hm", "uh-huh", "uh huh", "yeah", "yep",
    "right", "ok", "okay", "sure", "i see", "got it", "all right", "alright", "go on", "yes",
    "oh", "ah", "aha",
)  # fmt: skip
_NOTHING = frozenset({"", "you", "thanks for watching", "blank_audio", "music", "bye-bye you"})


def clean(text: str) -> str:
    """Return ``text`` with plain quotes, ``am``/``pm`` unified and spaces single.

    Case is kept, and ``clean(text).lower()`` has the same length, so spans found
    in the lower-case form index the cased one.
    """
    text = unicodedata.normalize("NFKC", text)
    text = re.sub("[’‘]", "'", re.sub("[“”]", '"', text)).replace("—", ", ")
    # Ears write "eight p.m." as letters, and "8:30 p.m." as "830 PDM".
    text = re.sub(r"\bA ?\.?P\.?M\b\.?", "8 pm", text)
    text = re.sub(r"(?i)(?<=\d)\s*([ap])\.?d?\s?m\b\.?", r" \1m", text)
    text = re.sub(r"(?i)\b([ap])\.\s?m\b\.?", r"\1m", text)
    text = re.sub(r"\s+", " ", text).strip()
    return "".join(c if len(c.lower()) == 1 else "?" for c in text)


def bare(text: str) -> str:
    """Return the words of ``text`` alone: lower case, punctuation gone."""
    return re.sub(r"[^a-z0-9'&:/-]+", " ", clean(text).lower()).strip()


def sentences(text: str) -> list[str]:
    """Split cleaned text at sentence ends, keeping the mark."""
    return [part.strip() for part in re.findall(r"[^.?!]+[.?!]*", clean(text)) if part.strip()]


def number(word: str) -> int | None:
    """Read a cardinal matched by :data:`NUMBER`, or an ordinal by :data:`ORDINAL`."""
    word = word.lower().strip()
    if digits := re.fullmatch(r"(\d+)(?:st|nd|rd|th)?", word):
        return int(digits[1])
    total = 0
    for part in re.split(r"[ -]", word):
        value = ONES.get(part, TENS.get(part, ORDINALS.get(part)))
        if value is None:
            return None
        total += value
    return total


def spoken_number(value: int) -> str:
    """Say a whole number in words up to ninety-nine, in figures beyond."""
    if not 0 <= value < 100:
        return str(value)
    units = {v: w for w, v in ONES.items() if w != "oh"}
    if value < 20:
        return units[value]
    tens = {v: w for w, v in TENS.items()}[value // 10 * 10]
    return tens if value % 10 == 0 else f"{tens}-{units[value % 10]}"


def joined(parts: list[str], word: str = "or") -> str:
    """Join as in speech: ``a, b or c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def is_nothing(text: str) -> bool:
    """Whether ears came back without usable words (or with a known phantom)."""
    words = bare(re.sub(r"[\[(][^\])]*[\])]", "", text))
    return words in _NOTHING or not re.search(r"[a-z0-9]", words)


def is_backchannel(text: str) -> bool:
    """Whether ``text`` only shows that its speaker listens."""
    # Ears write hummed sounds as letters: "MMM", "NMM", "in mmm", "N-M-N-M".
    left = re.sub(r"\b(?:(?:in|and) )?[mnh](?:[- ]?[mnh])+\b", "mm", bare(text))
    while left:
        for phrase in sorted(_PHRASES_OF_LISTENING, key=len, reverse=True):
            if left == phrase or left.startswith(phrase + " "):
                left = left[len(phrase) :].strip()
                break
        else:
            return False
    return bool(bare(text))


_FAREWELL = re.compile(
    r"\b(?:good ?bye|bye|bye-bye|see you|have a (?:good|great|nice|lovely|wonderful) "
    r"(?:day|evening|night|one|time)|take care|talk to you|look forward to seeing)\b"
)
_THANKS = re.compile(r"\b(?:thanks|thank you|cheers|appreciate)\b")
_ALL = re.compile(
    r"\b(?:that's all|that is all|that's it|that will be all|that'll be all|nothing else|"
    r"no thanks|no thank you|all for now|i'm good)\b"
)
_REPEAT = re.compile(
    r"\b(?:repeat|say (?:that|it) (?:again|once more)|come again|one more time|pardon|"
    r"(?:didn't|did not|couldn't|could not) (?:quite )?(?:catch|hear|get|understand)|"
    r"what was that|what did you say|again please)\b|^(?:sorry|excuse me|what|huh|hm)$"
)
_YES = re.compile(
    r"^(?:oh |well |um |uh |ah |and )*(?:yes|yeah|yep|yup|sure|ok|okay|correct|right|exactly|"
    r"absolutely|definitely|certainly|perfect|great|fine|please do|go ahead|of course|"
    r"that's (?:right|correct|fine|great|perfect|good|ok|okay)|that is (?:right|correct|fine)|"
    r"that (?:works|would work|sounds|will do|would be)|sounds (?:good|great|fine)|"
    r"works for me|i'll take|let's (?:do|take|go)|we'll take|(?:i'd|i would) (?:like|love) that|"
    r"please|it is|it does|i do)\b"
)
_NO = re.compile(
    r"^(?:oh |well |um |uh |ah |sorry |actually )*(?:no|nope|nah|not (?:really|quite|exactly)|"
    r"that's (?:wrong|not|incorrect)|that is (?:wrong|not)|(?:i'm afraid|unfortunately) (?:no|not)|"
    r"that (?:doesn't|won't|does not|will not) work|neither|none of)\b"
)


def is_farewell(text: str) -> bool:
    """Whether the speaker takes leave."""
    return bool(_FAREWELL.search(bare(text)))


def is_thanks(text: str) -> bool:
    """Whether the speaker thanks or says nothing more is wanted."""
    return bool(_THANKS.search(bare(text)) or _ALL.search(bare(text)))


def says_all(text: str) -> bool:
    """Whether the speaker says that nothing more is wanted."""
    return bool(_ALL.search(bare(text)))


def asks_repeat(text: str) -> bool:
    """Whether the speaker wants the last words again."""
    return bool(_REPEAT.search(bare(text)))


def says_yes(text: str) -> bool:
    """Whether a reply opens with assent."""
    return bool(_YES.search(bare(text))) and not says_no(text)


def says_no(text: str) -> bool:
    """Whether a reply opens with dissent."""
    return bool(_NO.search(bare(text)))


_ASKING = re.compile(
    r"\b(?:what|which|when|who|whose|how many|how much|how long|where|could i|may i|"
    r"can i (?:get|have|take|ask|know)|can you|could you|would you|will you|do you|did you|"
    r"shall i|should i|i(?:'ll| will)? (?:just |still |also )*need|"
    r"is that|is there|are there|is it|are you|let me (?:have|know)|tell me|"
    r"give me|please (?:tell|give|say))\b"
)


def questions(text: str) -> list[str]:
    """Return the sentences of ``text`` that ask for something, lower case.

    Ears often lose the question mark, so asking words count as much as the mark.
    """
    found = []
    for sentence in sentences(text):
        low = sentence.lower()
        if _HOLD.search(low):
            # "Let me see" is no question, but one may run on from it.
            rest = after_hold(low)
            low = f"{rest}?" if rest and low.endswith("?") else rest
        if low.endswith("?") or _ASKING.search(low):
            found.append(low)
    return found


_HOLD = re.compile(
    r"\b(?:one (?:moment|second|minute)|just a (?:moment|second|minute|sec)|"
    r"let me (?:check|see|look|take a look|find|confirm|update|put|pull|do that|go ahead|just)|"
    r"bear with me|hold on|hang on|"
    r"i'll (?:check|look|see|take a look)|give me a (?:moment|second|minute)|a moment please|"
    r"still (?:checking|looking)|checking (?:that|now|on))\b"
)


def after_hold(text: str) -> str:
    """Return the words of ``text`` after its last request for a moment, all of them if none."""
    low = bare(text)
    end = max((match.end() for match in _HOLD.finditer(low)), default=0)
    return low[end:].strip()


def is_hold(text: str) -> bool:
    """Whether the speaker asks for a moment."""
    return bool(_HOLD.search(bare(text)))

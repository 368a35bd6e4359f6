"""What the caller takes an utterance of the other side to mean.

The same tests read an agenda item's ``trigger_condition``, so that a trigger
fires on what was heard and not on an order of turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from duplex.application.prompts import AgendaItem, Scalar
from duplex.application.words import (
    after_hold,
    asks_repeat,
    bare,
    is_farewell,
    is_hold,
    is_nothing,
    questions,
    sentences,
)
from duplex.local.facts import Fact

_REFUSED = re.compile(
    r"\b(?:not available|unavailable|isn't available|aren't available|"
    r"not (?:possible|allowed|able)|"
    r"no (?:tables?|availability|openings?|slots?|appointments?|room|space|copies)|"
    r"fully booked|booked up|sold out|(?:already|all) taken|can't|cannot|can not|couldn't|unable|"
    r"not (?:in|under) your name|not authori[sz]ed|isn't yours|not yours|afraid|unfortunately|"
    r"won't be able|do not have|don't have|refus\w+|declin\w+|reject\w*|denied|unsuccessful|"
    r"i'm sorry (?:but|we|that|reservation|the|a|there|it|this))\b"
)
_UNHEARD = re.compile(
    r"\b(?:can't|couldn't|cannot) (?:quite )?(?:hear|understand|make (?:that )?out)\b"
)
_DONE = re.compile(
    r"\b(?:booked|reserved|confirmed|all set|scheduled|(?:dis)?cancell?ed|completed?|arranged|"
    r"registered|ordered|placed|renewed|done|changed|updated|signed up|put you down|expect you|"
    r"see you (?:then|on)|on hold for you|taken care of|"
    # Ears drop the last sound of "booked".
    r"(?:is|are|been|it's) (?:now )?(?:book|reserve|confirm|schedule|cancel|arrange|register))\b"
)
_NOT_YET = re.compile(
    r"\b(?:not|never|no|n't|before|once|if|until|when|would you like|shall|should|want|"
    r"will be|i'll|let me|need|to be|get that|get you|to have)\b"
)
_AVAILABLE = re.compile(
    r"\b(?:available|is free|are free|we do have|we have a|there is a|there's a|possible)\b"
)
_CONFIRM = re.compile(
    r"\b(?:is that (?:right|correct|ok|okay|all right)|(?:right|correct)\s*\??$|shall i|should i|"
    r"would you like me to|do you want me to|may i (?:go ahead|book|cancel)|can i go ahead|"
    r"does that (?:sound|work|suit)|would (?:that|it|one of those|either) (?:work|suit|be)|"
    r"like to go ahead|is this correct|did i get that)"
)
_GREETS = re.compile(r"\b(?:how (?:can|may) i (?:help|assist)|what can i do for you|welcome to|"
                     r"thank you for calling|thanks for calling|^(?:hello|hi|good (?:morning|day|"
                     r"afternoon|evening)))\b")  # fmt: skip
_MORE = re.compile(r"\b(?:anything else|do anything more|something else|any other)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One utterance understood."""

    text: str
    nothing: bool = False
    farewell: bool = False
    repeat: bool = False
    hold: bool = False
    refused: bool = False
    done: bool = False
    available: bool = False
    confirm: bool = False
    greets: bool = False
    more: bool = False
    question: bool = False
    spell: bool = False
    asks: tuple[str, ...] = ()
    values: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)


def understand(text: str, facts: Iterable[Fact]) -> Meaning:
    """Take an utterance apart; ``facts`` are those that may be asked for, by their own key."""
    if is_nothing(text):
        return Meaning(text=text, nothing=True)
    low = bare(text)
    asking = questions(text)
    facts = tuple(facts)
    unheard = bool(_UNHEARD.search(low))
    refused = bool(_REFUSED.search(low)) and not unheard and not asks_repeat(text)
    values = {fact.key: tuple(fact.values_in(text)) for fact in facts}
    return Meaning(
        text=text,
        farewell=is_farewell(text),
        repeat=asks_repeat(text) or unheard,
        hold=is_hold(text) and not asking,
        refused=refused,
        done=not refused and any(_is_done(s) for s in sentences(text)),
        available=not refused and bool(_AVAILABLE.search(low)),
        confirm=any(_wants_yes(q) for q in asking),
        greets=bool(_GREETS.search(low)),
        more=bool(_MORE.search(low)),
        question=bool(asking),
        spell=any(re.search(r"\bspell", question) for question in asking),
        asks=_asked(asking, facts),
        values={key: found for key, found in values.items() if found},
    )


def _wants_yes(question: str) -> bool:
    low = bare(question)
    match = _CONFIRM.search(low)
    opens = r"\b(?:what|which|when|who|whose|how|where)\b"
    return match is not None and not re.search(opens, low[: match.start()])


def _is_done(sentence: str) -> bool:
    # Ears may run "one moment" and the result together.
    low = after_hold(sentence)
    match = _DONE.search(low)
    if match is None or sentence.rstrip().endswith("?"):
        return False
    return not _NOT_YET.search(low[: match.start()])


def _asked(asking: Sequence[str], facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the facts asked for in order; doubtful matches count only if no sure one does."""
    sure: list[tuple[int, str]] = []
    doubtful: list[tuple[int, str]] = []
    for place, question in enumerate(asking):
        if _MORE.search(question):
            continue
        for fact in facts:
            found = fact.asked_at(question)
            if found is not None:
                (sure if found[1] else doubtful).append((place * 1000 + found[0], fact.key))
    chosen = sure or ([] if any(_wants_yes(q) for q in asking) else doubtful)
    return tuple(dict.fromkeys(key for _, key in sorted(chosen)))


_WORDS = """
    the a an assistant caller that this it is are was be for of to in on at or and its has have asks
    ask explains explain says say communicates tells describes refers when whether if while would
    will with by as from their they them other after which what who how should about agent host
    clerk
"""
_COMMON = frozenset(_WORDS.split())


def trigger_score(item: AgendaItem, meaning: Meaning, wrong: Iterable[str]) -> int:
    """Return how well what was heard fits an item's trigger; 3 is sure, 2 is likely.

    ``wrong`` are the facts the other side just said wrongly. Alternatives
    joined by ``or`` in the trigger count each on its own.
    """
    clauses = re.split(r"\bor\b|;", item.trigger_condition)
    scores = [_clause_score(clause, item, meaning, frozenset(wrong)) for clause in clauses]
    return max(scores, default=0)


def _clause_score(clause: str, item: AgendaItem, meaning: Meaning, wrong: frozenset[str]) -> int:
    kind = trigger_kind(clause)
    if kind == "refused":
        return 3 if meaning.refused else 0
    if kind == "available":
        return 3 if meaning.available and not meaning.done else 0
    if kind == "done":
        return 3 if meaning.done else 0
    if kind == "confirm":
        return 3 if meaning.confirm else 0
    if wrong & set(item.facts) and re.search(r"refer|wrong|original|identif|read|mention", clause):
        return 3
    if kind == "asks":
        if set(meaning.asks) & set(item.facts):
            return 3
        open_question = meaning.question and not meaning.asks and not meaning.confirm
        return 2 if open_question and _shared(clause, meaning) >= 1 else 0
    return 2 if _shared(clause, meaning) >= 2 else 0


def trigger_kind(clause: str) -> str:
    """Sort a trigger: ``refused``, ``available``, ``done``, ``confirm``, ``asks`` or nothing."""
    low = bare(clause)
    if _REFUSED.search(low):
        return "refused"
    if re.search(r"\bask\w*\b", low):
        confirm = r"\b(?:whether|confirm\w*|go ahead|permission|if (?:it|that|the))\b"
        return "confirm" if re.search(confirm, low) else "asks"
    if re.search(r"\b(?:requests?|wants to know|needs|inquires?)\b", low):
        return "asks"
    if _DONE.search(low) or re.search(r"\bconfirm(?:s|ed|ation)?\b|\bcomplet|\bsuccess", low):
        return "done"
    return "available" if _AVAILABLE.search(low) else ""


def _shared(clause: str, meaning: Meaning) -> int:
    heard = {_stem(word) for word in bare(meaning.text).split()}
    return len({_stem(w) for w in bare(clause).split() if w not in _COMMON} & heard)


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|e)$", "", word) if len(word) > 4 else word

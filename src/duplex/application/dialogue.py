"""What a conversation has settled so far, from its words alone.

A :class:`Tracker` is fed the lines of a call in order, the assistant's and the
caller's, and holds the errand, the values given and what was just asked or
offered. The local assistant keeps one while it listens; the backend replays one
over the transcript it is handed, so it works for any assistant's wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from duplex.application.base import Line
from duplex.application.desk import Desk, Errand
from duplex.application.filling import read
from duplex.application.reading import find_choices, find_dates, find_times
from duplex.application.slots import Slot
from duplex.application.words import (
    clean,
    is_backchannel,
    is_farewell,
    is_nothing,
    questions,
    says_no,
    says_yes,
    sentences,
)
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one caller line did to the call.

    ``given`` are the slots spoken of, ``changed`` those that got a new value,
    ``doubted`` those whose value cannot be told any more, ``taken`` whether what is
    new was offered and only agreed to, ``cued`` whether an errand was named,
    ``yes``/``no`` how a question was answered.
    """

    given: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()
    taken: bool = False
    cued: bool = False
    yes: bool = False
    no: bool = False


_OFFERS = re.compile(
    r"\b(?:offer|instead|alternativ|how about|what about|available at|have (?:\w+ )?at|free at|"
    r"openings?|nearest|closest|could do|can do|would \w+ (?:work|suit)|next)"
)
_PICKS = (
    (re.compile(r"\b(?:first|earlier|earliest|sooner|former)\b"), 0),
    (re.compile(r"\b(?:second|later|latest|last|latter)\b"), -1),
)


class Tracker:
    """The state of one conversation; not shared between sessions."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.errand: Errand | None = None
        self.values: dict[str, Json] = {}
        self.asked: tuple[str, ...] = ()
        self.offers: dict[str, list[Json]] = {}
        self.confirmed = False
        self._leads_on = False
        self._confirming = False

    def replay(self, conversation: Iterable[Line]) -> None:
        """Take in the lines of a transcript; pieces of one speaker are joined."""
        pending: list[str] = []
        role = ""
        for line in sorted(conversation, key=lambda line: line.start_ms):
            if line.role != role and pending:
                self._take(role, " ".join(pending))
                pending = []
            role = line.role
            pending.append(line.text.strip())
        if pending:
            self._take(role, " ".join(pending))

    def _take(self, role: str, text: str) -> None:
        if role == "assistant":
            self.assistant(text)
        else:
            self.user(text)

    def assistant(self, text: str) -> None:
        """Note what the assistant asked, offered or wants confirmed."""
        asking = questions(text)
        asked: list[tuple[int, str]] = []
        for place, question in enumerate(asking):
            for slot in self._slots_in_play():
                at = slot.mentioned(question)
                if at is not None:
                    asked.append((place * 1000 + at, slot.name))
        offers = self._offers_in(text)
        if not asking and not offers:
            return
        self.offers = offers
        self.asked = tuple(dict.fromkeys(name for _, name in sorted(asked))) or tuple(offers)
        said = " ".join(asking)
        errand = self.errand
        if errand and asking and not self.asked and self.undecided and not self.missing():
            # Any word can be a name; that it is one has to be said.
            wanted = (name for name in errand.one_of if self.desk.slot(name).type != "name")
            self.asked = tuple(wanted)
        self._confirming = bool(
            errand and errand.confirm and _has_cue(errand, said) and not self.missing()
        )
        self._leads_on = bool(errand and errand.then) and _has_cue(
            self.desk.errand(errand.then) if errand and errand.then else None, said
        )

    def user(self, text: str) -> Turn:
        """Take in what the caller said and return what it changed."""
        if is_nothing(text):
            return Turn()
        no = says_no(text)
        yes = says_yes(text) and not is_farewell(text)
        # A murmur is never a name or a reason, though it may be a yes.
        asked = () if is_backchannel(text) and not (yes or no) else self.asked
        reading = read(
            text, self._slots_in_play(), self.desk.calendar, asked=asked, known=self.values
        )
        values = dict(reading.values)
        if not no:
            self._take_offer(text, values, yes)
        cued = self._choose_errand(text, yes)
        changed = frozenset(n for n, v in values.items() if self.values.get(n) != v)
        for name, value in reading.denied.items():
            if name not in values and self.values.get(name) == value:
                del self.values[name]
        for name in reading.doubted:
            self.values.pop(name, None)
        if self._confirming:
            self.confirmed = (yes or cued) and not no
        if changed and not (self._confirming and self.confirmed):
            self.confirmed = False
        self.values.update(values)
        if values or not is_backchannel(text):
            self.asked = tuple(name for name in self.asked if name not in values)
        if values or yes or no:
            self.offers, self._confirming, self._leads_on = {}, False, False
        return Turn(
            given=frozenset(values),
            changed=changed,
            doubted=reading.doubted,
            taken=bool(changed) and not reading.values,
            cued=cued,
            yes=yes,
            no=no,
        )

    def doubt_names(self, given: frozenset[str]) -> frozenset[str]:
        """Forget those of ``given`` that are names of the errand; return them."""
        errand = self.errand or self.desk.errands[0]
        names = frozenset(
            name for name in given if name in errand.slots and self.desk.slot(name).type == "name"
        )
        for name in names:
            self.values.pop(name, None)
        return names

    def doubt(self, text: str) -> frozenset[str]:
        """Forget the details that a correction speaks of without saying them; return them."""
        low = clean(text).lower()
        errand = self.errand or self.desk.errands[0]
        doubted = frozenset(
            name
            for name in errand.slots
            if name in self.values and _spoken_of(self.desk.slot(name), low)
        )
        for name in doubted:
            del self.values[name]
        return doubted

    def missing(self) -> tuple[str, ...]:
        """Return the slots the errand still needs, in the order to ask."""
        errand = self.errand or self.desk.errands[0]
        return tuple(name for name in errand.needs if name not in self.values)

    @property
    def undecided(self) -> bool:
        """Whether the errand wants one more of some details, and has none of them."""
        errand = self.errand or self.desk.errands[0]
        return bool(errand.one_of) and not any(name in self.values for name in errand.one_of)

    def not_allowed(self) -> Slot | None:
        """Return the slot whose value this caller may not have handled."""
        errand = self.errand or self.desk.errands[0]
        for name in errand.slots:
            slot = self.desk.slot(name)
            value = self.values.get(name)
            if slot.allowed is not None and value is not None and value not in slot.allowed:
                return slot
        return None

    def details(self) -> dict[str, Json]:
        """Return the values that belong to the errand."""
        errand = self.errand or self.desk.errands[0]
        return {name: self.values[name] for name in errand.slots if name in self.values}

    def signature(self) -> str:
        """Name the errand with its details: equal signatures are the same work."""
        errand = self.errand or self.desk.errands[0]
        details = self.details()
        return f"{errand.name}:" + "|".join(f"{k}={details[k]}" for k in sorted(details))

    def _slots_in_play(self) -> tuple[Slot, ...]:
        return self.desk.slots

    def _choose_errand(self, text: str, yes: bool) -> bool:
        low = clean(text).lower()
        found = [
            (at, -len(cue), errand)
            for errand in self.desk.errands
            for cue in errand.cues
            if (at := _cue_at(cue, low)) is not None
        ]
        beaten = {name for _, _, errand in found for name in errand.over}
        found = [item for item in found if item[2].name not in beaten]
        if found:
            best = min(found, key=lambda item: item[:2])[2]
            if self.errand is not None and self._stays_with(self.errand, best):
                best = self.errand
            if best is not self.errand:
                self.errand, self.confirmed = best, False
            return True
        if yes and self._leads_on and self.errand is not None:
            self.errand = self.desk.errand(self.errand.then)
            return True
        return False

    def _stays_with(self, errand: Errand, named: Errand) -> bool:
        """Whether words for another errand mean the one in hand.

        "Change my booking" after a booking is about that one, and "book that" in
        answer to an offer takes the offer.
        """
        if errand.name == named.again and not self.missing():
            return True
        return named.name in errand.over and bool(self.offers or self.asked)

    def _offers_in(self, text: str) -> dict[str, list[Json]]:
        offers: dict[str, list[Json]] = {}
        calendar = self.desk.calendar
        for sentence in sentences(text):
            if not _OFFERS.search(sentence.lower()):
                continue
            for slot in self._slots_in_play():
                if slot.type == "time":
                    found = list(find_times(sentence, slot.bare_hours))
                elif slot.type == "date":
                    found = list(find_dates(sentence, calendar.today, calendar.since))
                elif slot.type == "choice":
                    found = list(find_choices(sentence, slot.choices))
                else:
                    continue
                ordered = sorted((f for f in found if f.strong), key=lambda f: f.start)
                fresh = [f.value for f in ordered if f.value != self.values.get(slot.name)]
                if fresh:
                    offers.setdefault(slot.name, []).extend(fresh)
        return offers

    def _take_offer(self, text: str, values: dict[str, Json], yes: bool) -> None:
        low = clean(text).lower()
        picks = [index for pattern, index in _PICKS if pattern.search(low)]
        if not yes and not picks:
            return
        if any(name in values for name in self.offers):
            return
        for name, offered in self.offers.items():
            values[name] = offered[picks[0] if picks else 0]


def _spoken_of(slot: Slot, low: str) -> bool:
    under = slot.type == "name" and re.search(r"\bunder\b", low) is not None
    return under or slot.mentioned(low) is not None


def _cue_at(cue: str, low: str) -> int | None:
    words = re.escape(cue.lower()).replace(r"\ \.\.\.\ ", r"(?: [\w']+){0,3} ")
    match = re.search(rf"(?<![\w'-]){words}(?![\w'-])", low)
    return None if match is None else match.start()


def _has_cue(errand: Errand | None, low: str) -> bool:
    return errand is not None and any(_cue_at(cue, low) is not None for cue in errand.cues)

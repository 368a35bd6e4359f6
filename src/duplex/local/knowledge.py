"""What the caller holds true at this point of the call.

It begins with the brief's facts. A fact the caller began with differently
(``original_date``) keeps that value until the agenda item that changes it has
been said; an alternative, once asked for or taken, becomes the fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from duplex.application.prompts import Brief, Scalar
from duplex.application.words import says_yes
from duplex.local.facts import FIRST, SECOND, Fact, facts_of, split_key
from duplex.local.meaning import Meaning


class Knowledge:
    """The facts of one caller; ``said`` are the agenda items said so far."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._facts = facts_of(brief.known_facts)
        self._alternatives_tried: set[str] = set()

    def get(self, keys: Iterable[str]) -> list[Fact]:
        """Return the known ones of ``keys``."""
        return [self._facts[key] for key in keys if key in self._facts]

    def active(self, said: Set[str], *, final: bool = False) -> list[Fact]:
        """Return each fact as it stands, or as it will in the end if ``final``."""
        changed = {key for item in self._brief.agenda if item.id in said for key in item.facts}
        active = []
        for key, fact in self._facts.items():
            if split_key(key)[0]:
                continue
            first = next(
                (self._facts[f"{p}_{key}"] for p in FIRST if f"{p}_{key}" in self._facts), None
            )
            if first is not None and key not in changed and not final:
                fact = Fact(key=key, value=first.value, kind=fact.kind)
            active.append(fact)
        return active

    def out(self, said: Set[str]) -> list[Fact]:
        """Return the facts that the other side was told, as they stand."""
        told = {key for item in self._brief.agenda if item.id in said for key in item.facts}
        return [
            fact
            for fact in self.active(said)
            if fact.key in told or any(map(fact.same, fact.values_in(self._brief.opening)))
        ]

    def wrong(self, meaning: Meaning, said: Set[str], *, final: bool = False) -> list[str]:
        """Return the facts that were spoken of with another value than the caller's."""
        return [
            fact.key
            for fact in self.active(said, final=final)
            if (heard := meaning.values.get(fact.key))
            and not any(fact.same(value) for value in heard)
        ]

    def adopt(self, keys: Iterable[str]) -> None:
        """Alternatives among ``keys`` were asked for: they are the facts from now on."""
        for fact in self.get(keys):
            prefix, plain = split_key(fact.key)
            if prefix in SECOND:
                self._alternatives_tried.add(fact.key)
                self._facts[plain] = Fact(key=plain, value=fact.value, kind=fact.kind)

    def take_offer(self, meaning: Meaning, said: Set[str]) -> Fact | None:
        """Accept the first value offered that the caller would take; it becomes the fact."""
        for fact in self.active(said):
            for value in meaning.values.get(fact.key, ()):
                if not fact.same(value) and self._would_take(fact, value):
                    taken = Fact(key=fact.key, value=value, kind=fact.kind)
                    self._facts[fact.key] = taken
                    return taken
        return None

    def next_alternatives(self) -> list[Fact]:
        """Return alternatives not tried yet; they become the facts."""
        found = [
            fact
            for key, fact in self._facts.items()
            if split_key(key)[0] in SECOND
            and fact.kind != "flag"
            and key not in self._alternatives_tried
        ]
        self.adopt([fact.key for fact in found])
        return found

    def _would_take(self, fact: Fact, value: Scalar) -> bool:
        known = self._brief.known_facts
        if value in [known.get(f"{prefix}_{fact.key}") for prefix in SECOND]:
            return True
        low, high = known.get(f"earliest_{fact.key}"), known.get(f"latest_{fact.key}")
        if isinstance(value, str) and (isinstance(low, str) or isinstance(high, str)):
            return (not isinstance(low, str) or low <= value) and (
                not isinstance(high, str) or value <= high
            )
        flexible = known.get("accept_alternative", known.get("flexible", False))
        return flexible is True or (isinstance(flexible, str) and says_yes(flexible))

"""How far a caller's agenda came, as seen in the call: what was carried out, and in which turn.

A caller that follows its agenda itself reports an item once its words were heard out;
the words are looked up all the same. Of any other caller only what is in its own words
and in how they fell counts: facts it said, a short sound over the other side, an
interruption, a silence it was asked for, a goodbye. Nothing is taken from what was
meant to happen. Pure; ``observed.py`` puts it into a result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from duplex.application.words import bare, is_farewell, is_hold
from duplex.grading import Evidence
from duplex.grading.evidence import Spoken
from duplex.local.facts import Fact, facts_of
from duplex.local.meaning import trigger_kind, understand
from duplex.metrics.key_values import key_values, sayings
from duplex.metrics.words import missing_packages
from duplex.scenario import Scenario
from duplex.scenario.model import AgendaItem
from duplex.values import Action, Json, Side

Status = Literal["completed", "skipped", "bypassed", "pending"]
Basis = Literal["reported", "claimed", "facts", "words", "action", "nothing"]

SAYABLE = ("answer", "correct")
_REPORTS: Mapping[str, Status] = {
    "completed": "completed",
    "skipped": "skipped",
    "bypassed": "bypassed",
}
COVERED = 0.6
"""Share of the telling words of a hint, or of a long fact, that must have been said."""
_LITTLE = """
    a an and are as at be but by can could do for from give have hello hi i i'd i'm in is it it's
    know like me my of on or our please say so tell that the their them they this to us want was we
    will with would you your caller assistant host clerk agent answer
"""
_COMMON = frozenset(_LITTLE.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSeen:
    """One item of the agenda: what became of it, by what that was seen, and where.

    ``turn`` counts the caller's lines from 1 and is None where no line shows the item;
    ``said`` and ``missing`` are its facts by whether the caller had said them by then.
    ``in_order`` tells whether what it waits for was carried out no later.
    """

    item: AgendaItem
    status: Status
    basis: Basis
    turn: int | None = None
    at_ms: int | None = None
    said: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    in_order: bool = True

    def as_json(self) -> dict[str, Json]:
        known: dict[str, Json] = {"turn": self.turn, "at_ms": self.at_ms}
        return {
            "id": self.item.id,
            "action": self.item.action,
            "required": self.item.required,
            "status": self.status,
            "seen_by": self.basis,
            **{name: value for name, value in known.items() if value is not None},
            "facts_said": list(self.said),
            "facts_missing": list(self.missing),
            "in_order": self.in_order,
            "completion_condition": self.item.completion_condition,
        }


def agenda_seen(
    scenario: Scenario, evidence: Evidence, *, follows: bool
) -> tuple[ItemSeen, ...] | None:
    """What became of each item, in the agenda's order; None where no words show the caller.

    ``follows``: the caller keeps its agenda itself and reports on it.
    """
    agenda = scenario.simulation.agenda
    if not agenda:
        return ()
    if not evidence.lines(Side.CALLER) and not evidence.agenda:
        return None
    look = _Look(scenario, evidence)
    seen = [look.reported(item) if follows else look.found(item) for item in agenda]
    return tuple(_ordered(one, seen) for one in seen)


def _ordered(one: ItemSeen, seen: Sequence[ItemSeen]) -> ItemSeen:
    if one.turn is None:
        return one
    turns = {other.item.id: other.turn for other in seen if other.status == "completed"}
    before = [turns.get(name) for name in one.item.after]
    late = any(turn is None or turn > one.turn for turn in before)
    return one if not late else replace(one, in_order=False)


class _Look:
    """One call looked through for its agenda."""

    def __init__(self, scenario: Scenario, evidence: Evidence) -> None:
        self._evidence = evidence
        self._caller = evidence.lines(Side.CALLER)
        self._assistant = evidence.lines(Side.ASSISTANT)
        self._over = evidence.termination_reason == "response_completed"
        facts = facts_of(scenario.simulation.known_facts)
        self._said = _sayings(facts, [line.text for line in self._caller])
        self._words = [_telling(line.text) for line in self._caller]
        self._used: set[int] = set()

    # -- a caller that reports ------------------------------------------------

    def reported(self, item: AgendaItem) -> ItemSeen:
        """What the caller reported, with the line that was over when it did."""
        status = _REPORTS.get(self._evidence.agenda.get(item.id, ""))
        if status is None:
            return self._seen(item, "pending", "nothing", None)
        at_ms = self._evidence.agenda_at.get(item.id, 0)
        turn = None
        if status == "completed":
            begun = [n for n, line in enumerate(self._caller) if line.start_ms < at_ms]
            turn = begun[-1] if begun else None
        return self._seen(item, status, "reported", turn)

    # -- any other caller -----------------------------------------------------

    def found(self, item: AgendaItem) -> ItemSeen:
        ways: dict[str, Callable[[AgendaItem], tuple[int, Basis] | None]] = {
            "backchannel": lambda one: self._by_action(one, Action.BACKCHANNEL),
            "interrupt": lambda one: self._by_action(one, Action.INTERRUPT),
            "finish": self._goodbye,
            "wait": self._waited,
        }
        place = ways.get(item.action, self._told)(item)
        if place is not None:
            return self._seen(item, "completed", place[1], place[0])
        if self._evidence.agenda.get(item.id) == "completed" and not self._tellable(item):
            return self._seen(item, "completed", "claimed", None)
        if item.required or not self._over:
            return self._seen(item, "pending", "nothing", None)
        passed: Status = "bypassed" if item.action in SAYABLE else "skipped"
        return self._seen(item, passed, "nothing", None)

    def _tellable(self, item: AgendaItem) -> bool:
        """Whether the caller's words could have shown this item."""
        return bool(item.facts or item.response_hint) or item.action not in SAYABLE

    def _told(self, item: AgendaItem) -> tuple[int, Basis] | None:
        """The line with which all facts of an item were out, or its own words were."""
        facts = [name for name in item.facts if name in self._said]
        if facts:
            first = [min(self._said[name], default=None) for name in facts]
            lines = [place for place in first if place is not None]
            return (max(lines), "facts") if len(lines) == len(facts) else None
        wanted = _telling(item.response_hint or item.commitment)
        place = next((n for n, words in enumerate(self._words) if _covers(words, wanted)), None)
        return None if place is None else (place, "words")

    def _by_action(self, item: AgendaItem, action: Action) -> tuple[int, Basis] | None:
        """A line that did it; where the item has facts, one that also said one of them."""
        facts = [name for name in item.facts if name in self._said]
        for place, line in enumerate(self._caller):
            says = not facts or any(place in self._said[name] for name in facts)
            if line.action is action and says and place not in self._used:
                self._used.add(place)
                return place, "action"
        return None

    def _goodbye(self, item: AgendaItem) -> tuple[int, Basis] | None:
        """The caller's goodbye, after what it was to wait for had been heard."""
        for place in reversed(range(len(self._caller))):
            line = self._caller[place]
            if line.action is Action.STOP or is_farewell(line.text):
                met = trigger_kind(item.trigger_condition) != "done" or self._was_done(line)
                return (place, "action") if met else None
        return None

    def _was_done(self, before: Spoken) -> bool:
        said = (line for line in self._assistant if line.start_ms < before.end_ms)
        return any(understand(line.text, ()).done for line in said)

    def _waited(self, item: AgendaItem) -> tuple[int, Basis] | None:
        """The caller's last line before it was asked for a moment, and gave it."""
        for number, line in enumerate(self._assistant):
            if not is_hold(line.text):
                continue
            rest = self._assistant[number + 1 :]
            until = rest[0].start_ms if rest else self._evidence.duration_ms
            spoke = any(
                line.end_ms <= own.start_ms < until and own.action is not Action.BACKCHANNEL
                for own in self._caller
            )
            before = [n for n, own in enumerate(self._caller) if own.start_ms < line.start_ms]
            if not spoke and before:
                return before[-1], "action"
        return None

    def _seen(self, item: AgendaItem, status: Status, basis: Basis, turn: int | None) -> ItemSeen:
        until = len(self._caller) if turn is None else turn + 1
        said = [n for n in item.facts if any(place < until for place in self._said.get(n, ()))]
        return ItemSeen(
            item=item,
            status=status,
            basis=basis,
            turn=None if turn is None else turn + 1,
            at_ms=None if turn is None else self._caller[turn].end_ms,
            said=tuple(said),
            missing=tuple(name for name in item.facts if name not in said),
        )


# -- words -------------------------------------------------------------------------


def _sayings(facts: Mapping[str, Fact], lines: Sequence[str]) -> dict[str, list[int]]:
    """In which lines each fact that words can show was said, in any spoken form of it."""
    known = {name: fact for name, fact in facts.items() if fact.kind != "flag"}
    found: dict[str, list[int]] = {name: [] for name in known}
    normalise = _normaliser()
    values = {name: fact.value for name, fact in known.items() if fact.value is not None}
    keys = key_values(values, normalise)
    for place, line in enumerate(lines):
        named = {name for one in sayings(keys, normalise(line).split()) for name in one.key.names}
        for name, fact in known.items():
            if name in named or _means(fact, line):
                found[name].append(place)
    return found


def _means(fact: Fact, line: str) -> bool:
    if fact.kind == "text":
        return _covers(_telling(line), _telling(str(fact.value)))
    return any(fact.same(value) for value in fact.values_in(line))


def _normaliser() -> Callable[[str], str]:
    """The words of a text, figures in one spelling where the package for that is there."""
    if missing_packages():
        return bare
    from duplex.metrics.english import EnglishNormaliser

    return EnglishNormaliser()


def _telling(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z0-9']+", bare(text))
    return frozenset(_stem(word) for word in words if word not in _COMMON)


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|e)$", "", word) if len(word) > 4 else word


def _covers(said: frozenset[str], wanted: frozenset[str]) -> bool:
    return bool(wanted) and len(said & wanted) >= COVERED * len(wanted)

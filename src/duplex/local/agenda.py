"""How far a caller's agenda has come: what is said, what is due, what waits for what.

An item is *said* from the moment its words are decided and *done* once they
were heard out; what was cut off is due again. It decides nothing that is said.
The caller's brain drives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duplex.application.prompts import AgendaItem
from duplex.local.meaning import trigger_kind
from duplex.local.seams import Progress

SAYABLE = ("answer", "correct")
"""Actions that are words in an ordinary turn."""

_ANSWERS = {"answer": ("asks", ""), "correct": ("asks",)}
"""Kinds of trigger with which an item answers a question; a correction only if it says so."""


class Agenda:
    """The items of one brief, in their order."""

    def __init__(self, items: Sequence[AgendaItem]) -> None:
        self._items = tuple(items)
        self._done: set[str] = set()
        self._said: set[str] = set()

    @property
    def told(self) -> set[str]:
        """Items said, whether or not they have been heard out."""
        return self._done | self._said

    def say(self, items: Iterable[str]) -> None:
        self._said |= set(items)

    def cut(self, items: Iterable[str]) -> None:
        """Their words were not heard out: they are due again."""
        self._said -= set(items)

    def complete(self, items: Iterable[str]) -> list[Progress]:
        new = [item for item in items if item and item not in self._done]
        self._done |= set(new)
        return [Progress(item_id=item, status="completed") for item in new]

    def leave(self) -> list[Progress]:
        """Say of each item left whether it was passed by or no longer needed."""
        return [
            Progress(
                item_id=item.id,
                status="bypassed" if item.action in SAYABLE else "skipped",
            )
            for item in self._items
            if item.id not in self._done
        ]

    def pending(self) -> list[AgendaItem]:
        """Return items not done whose predecessors are told."""
        told = self.told
        return [i for i in self._items if i.id not in self._done and set(i.after) <= told]

    def unsaid(self) -> list[AgendaItem]:
        """Return pending items not said yet, whatever their action."""
        return [item for item in self.pending() if item.id not in self._said]

    def ready(self) -> list[AgendaItem]:
        """Return pending items that may be said in an ordinary turn."""
        return [item for item in self.unsaid() if item.action != "backchannel"]

    def owed(self) -> list[AgendaItem]:
        """Return required items to be said whose facts are not out yet."""
        return [
            item
            for item in self.ready()
            if item.required
            and item.action in SAYABLE
            and trigger_kind(item.trigger_condition) == "done"
        ]

    def answers_to(self, asks: Sequence[str]) -> list[AgendaItem]:
        """Return items that answer these questions; one may follow another in the same breath."""
        items: list[AgendaItem] = []
        for item in self._items:
            before = self.told | {chosen.id for chosen in items}
            if (
                item.id not in before
                and set(item.after) <= before
                and set(item.facts) & set(asks)
                and trigger_kind(item.trigger_condition) in _ANSWERS.get(item.action, ())
            ):
                items.append(item)
        return items

    def correction_of(self, facts: Iterable[str]) -> AgendaItem | None:
        """Return what the agenda says first about these facts being wrong.

        A correction that waits for other items is led up to by the first of them
        that can be said; if none can, nothing holds it back.
        """
        told, wrong = self.told, set(facts)
        for item in self._items:
            if item.action == "correct" and item.id not in told and set(item.facts) & wrong:
                return self._first_before(item)
        return None

    def _first_before(self, item: AgendaItem) -> AgendaItem:
        told = self.told
        for before in self._items:
            if before.id in item.after and before.id not in told and before.action in SAYABLE:
                return self._first_before(before)
        return item

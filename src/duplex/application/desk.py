"""The desk: what an assistant is told about its job, and nothing more.

An application builds it from its own description and the initial state; it
travels to the assistant inside the session's instructions. It holds no tools,
no expectations and nothing of the caller.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from duplex.application.filling import Calendar
from duplex.application.slots import Slot, slot_named, spoken
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One thing a caller may want done.

    ``cues`` are the words by which a caller asks for it; `` ... `` in one stands for
    up to three words. ``needs`` are the slots
    without which it is not delegated, in the order they are asked for; ``may``
    are taken when offered and never asked for; of those in ``one_of``, if there
    are any, at least one is needed, and ``ask`` is the question for them.
    ``confirm`` is a question put before the work is delegated, without a yes to
    which the backend does nothing; ``read_back`` is one that only the assistant
    puts, to hear of what it understood wrongly. ``then`` names the errand that a
    yes to the result's own question leads to. An errand that is about something
    made before goes ``over`` those that make it, wherever in a line their cues
    stand, and stands aside for ``again``: the errand that has been dealt with in
    this call, and whose details are what is to be changed then.
    """

    name: str
    cues: tuple[str, ...]
    needs: tuple[str, ...]
    may: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    ask: str = ""
    confirm: str = ""
    read_back: str = ""
    then: str = ""
    over: tuple[str, ...] = ()
    again: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        return self.needs + self.may


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Greeting, slots, errands and the calendar of one assistant."""

    greeting: str
    farewell: str
    today: str
    since: str
    slots: tuple[Slot, ...]
    errands: tuple[Errand, ...]

    @property
    def calendar(self) -> Calendar:
        return Calendar(
            today=dt.date.fromisoformat(self.today), since=dt.date.fromisoformat(self.since)
        )

    def slot(self, name: str) -> Slot:
        return slot_named(self.slots, name)

    def errand(self, name: str) -> Errand:
        return next(errand for errand in self.errands if errand.name == name)

    def said(self, values: Mapping[str, Json]) -> dict[str, str]:
        """Return the values as they are spoken; dates without their weekday."""
        kinds = {slot.name: slot.type for slot in self.slots}
        return {name: spoken(kinds.get(name, "text"), value) for name, value in values.items()}

"""Which channel is whom: as told, by file names, or assumed and said so.

The first channel is the caller's unless somebody says otherwise. Nothing is
concluded from what the channels sound like. Intake drives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.errors import InputError
from duplex.values import Side

_CALLER = ("caller", "customer", "user", "human", "client", "inbound", "incoming", "simulator")
_ASSISTANT = ("assistant", "agent", "bot", "ai", "model", "outbound", "outgoing")
_WORDS = {Side.CALLER: frozenset(_CALLER), Side.ASSISTANT: frozenset(_ASSISTANT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """``order`` names the side of the first and of the second channel.

    ``source`` is ``option``, ``name``, ``assumed``, or ``stems`` for a call of ours.
    """

    order: tuple[Side, Side]
    source: str

    def index(self, side: Side) -> int:
        """The channel, or the file, of a side: 0 or 1."""
        return self.order.index(side)

    def sentence(self) -> str:
        """Who is where and how we know."""
        if self.source == "stems":
            return "each side from its own source stem"
        first = self.order[0].label
        why = {
            "option": "as told",
            "name": "by the names of the files",
            "assumed": f"assumed; --channels {self.order[1].label},{first} if not",
        }[self.source]
        return f"the first channel is the {first} ({why})"


ASSUMED = Roles(order=(Side.CALLER, Side.ASSISTANT), source="assumed")


def told(text: str) -> Roles:
    """Roles from ``caller,assistant`` or ``assistant,caller``; raises InputError."""
    named = [_side_named(part.strip()) for part in text.split(",")]
    if len(named) == 2 and named[0] is not None and named[1] is not None and named[0] != named[1]:
        return Roles(order=(named[0], named[1]), source="option")
    raise InputError(f'channels "{text}", wanted "caller,assistant" or "assistant,caller"')


def by_name(names: Sequence[str]) -> Roles:
    """Roles of two files; one of them, or both and without contradiction, must say."""
    first, second = (side_in(name) for name in names)
    if first is None and second is not None:
        first = second.other
    if first is None or first == second:
        return ASSUMED
    return Roles(order=(first, first.other), source="name")


def _side_named(word: str) -> Side | None:
    return next((side for side in Side if side.label == word.lower()), None)


def side_in(name: str) -> Side | None:
    """The one side that a name speaks of; None when it speaks of neither or both."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    found = [side for side in Side if words & _WORDS[side]]
    return found[0] if len(found) == 1 else None

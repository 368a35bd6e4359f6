"""What a caller's own voice model gets when it asks for help: its brief, again.

The caller has no tools. A voice model may delegate all the same and would wait
for an answer, so it is given its own facts and told to go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.application.base import Line, Tell
from duplex.application.prompts import Brief
from duplex.clock import Clock


class BriefBackend:
    """Answers every delegation of a caller from its brief alone."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief

    def begin(self, tell: Tell) -> None:
        return

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        facts = "; ".join(
            f"{name.replace('_', ' ')}: {value}" for name, value in self._brief.known_facts.items()
        )
        known = f" What you know: {facts}." if facts else ""
        return [f"You have no tools. Answer from what you want: {self._brief.goal}{known}"]

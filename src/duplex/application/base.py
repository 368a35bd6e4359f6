"""The seam between a session that delegates and the application under test.

A backend gets the conversation as the assistant's own session transcribed it,
does the work on the application's state, and returns what the assistant should
be told. It never sees the caller's agenda, the expectations or any audio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from duplex.clock import Clock
from duplex.errors import DuplexError
from duplex.values import Happening


class BackendFailed(DuplexError):
    """A delegation could not be worked on.

    ``fatal``: through no fault of the agent's, so that the call cannot count.
    """

    def __init__(self, message: str, *, code: str, fatal: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.fatal = fatal


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    text: str
    start_ms: int


Tell = Callable[[Happening], None]
"""Reports ``tool.started``, ``tool.ended`` and ``state`` as they happen."""


class Backend(Protocol):
    """Owns the delegated work of one call."""

    def begin(self, tell: Tell) -> None:
        """The call starts: report the initial ``state``."""

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        """Do one delegation's work; return the commentary, a piece each.

        Waits for media time by ``clock.until`` only. Raising is allowed: the
        session reports the failure and tells the assistant something went wrong.
        """

"""Whoever sits beside a run while it is held: at its microphone, or only to hear it.

A company may look on, add a line to the screen, and take the first Ctrl-C for itself; it
changes nothing of the run. ``running.py`` drives it.
"""

from __future__ import annotations

from typing import Protocol

from rich.console import RenderableType

from duplex.card.seat import Seat
from duplex.runner import Audience


class Company(Protocol):
    """Everything a run asks of it returns at once."""

    @property
    def seat(self) -> Seat | None:
        """The open card of a person who calls; None of one who only listens."""

    def beside(self, screen: Audience) -> Audience:
        """Who follows the run: the screen, and whatever this company wants to hear of it."""

    def line(self) -> RenderableType | None:
        """What is shown below the calls on a terminal."""

    def interrupted(self) -> str | None:
        """Take the first signal: what is then said, or None to let the run be stopped."""

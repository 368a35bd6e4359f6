"""What a voice tells besides audio: words, notes, and decisions that wait for their time.

Values only; the voice fills them and hands them over frame by frame.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from duplex.local.seams import Delegate, Finish, Note, Progress, Words
from duplex.local.speech import Speech


@dataclass(slots=True)
class Told:
    """What one frame tells besides audio."""

    said: list[Words] = field(default_factory=list)
    heard: list[Words] = field(default_factory=list)
    delegations: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timed:
    """A decision that is no speech and takes effect at ``at``, after ``after`` was said."""

    at: int
    act: Delegate | Progress | Finish
    after: Speech | None


def as_note(act: Progress | Finish) -> Note:
    if isinstance(act, Finish):
        return Note(kind="finished", fields={"outcome": act.outcome})
    return Note(kind="agenda", fields={"item_id": act.item_id, "status": act.status})


def misbehaves(fault: str) -> Note:
    """The server's own word that it does something wrong on purpose now."""
    return Note(kind="misbehaves", fields={"fault": fault})


def as_info(note: Note) -> tuple[str, str]:
    """The code and the message of the notice in which a note travels."""
    return f"duplex.{note.kind}", json.dumps(note.fields)

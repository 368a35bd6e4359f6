"""The scenarios a stored run was held with, as far as their files still say the same.

A run keeps the hash of what each scenario said, not the words: one that was edited or
moved since is not known any more. Private fields carry the run's own marks. Reading only.
"""

from __future__ import annotations

from pathlib import Path

from duplex import journal
from duplex.discretion import hidden_again
from duplex.errors import DuplexError
from duplex.results import schema
from duplex.results.stored import scenarios_of
from duplex.scenario import Scenario
from duplex.taking_up import digest


def scenarios_held(run: schema.Run, folder: Path) -> dict[str, Scenario]:
    """By id; a run without a journal is taken at its files' word."""
    found = scenarios_of(run)
    hidden = hidden_again(run, found)
    try:
        said = journal.read(folder).opening.scenarios
    except DuplexError:
        return hidden
    return {id: one for id, one in hidden.items() if said.get(id) == digest(found[id])}

"""Full-duplex voice calls on one timeline: hold them, measure them, grade them.

Names are imported on first use, so ``import duplex`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duplex.api import run
    from duplex.calibration.command import calibrate
    from duplex.engine import Engine
    from duplex.errors import DuplexError, InputError, MissingExtra
    from duplex.grading.own_checks import CheckedCall
    from duplex.measuring import measure
    from duplex.options import RunOptions
    from duplex.participants.base import Participant
    from duplex.recording import Recording
    from duplex.regrading import grade
    from duplex.remeasuring import remeasure
    from duplex.runner import Finished, Runner
    from duplex.scenario import Dataset, Scenario
    from duplex.values import Side

__version__ = "0.1.0"

_HOMES = {
    "CheckedCall": "duplex.grading.own_checks",
    "Dataset": "duplex.scenario",
    "DuplexError": "duplex.errors",
    "Engine": "duplex.engine",
    "Finished": "duplex.runner",
    "InputError": "duplex.errors",
    "MissingExtra": "duplex.errors",
    "Participant": "duplex.participants.base",
    "Recording": "duplex.recording",
    "RunOptions": "duplex.options",
    "Runner": "duplex.runner",
    "Scenario": "duplex.scenario",
    "Side": "duplex.values",
    "calibrate": "duplex.calibration.command",
    "grade": "duplex.regrading",
    "measure": "duplex.measuring",
    "remeasure": "duplex.remeasuring",
    "run": "duplex.api",
}

__all__ = [
    "CheckedCall",
    "Dataset",
    "DuplexError",
    "Engine",
    "Finished",
    "InputError",
    "MissingExtra",
    "Participant",
    "Recording",
    "RunOptions",
    "Runner",
    "Scenario",
    "Side",
    "calibrate",
    "grade",
    "measure",
    "remeasure",
    "run",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module duplex has no attribute {name!r}")
    value: object = vars(import_module(home))[name]
    globals()[name] = value
    return value

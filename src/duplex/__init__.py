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
    from duplex.notebook.metrics import Measured, Metrics
    from duplex.notebook.runs import Call, Run, load
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
    "Call": "duplex.notebook.runs",
    "CheckedCall": "duplex.grading.own_checks",
    "Dataset": "duplex.scenario",
    "DuplexError": "duplex.errors",
    "Engine": "duplex.engine",
    "Finished": "duplex.runner",
    "InputError": "duplex.errors",
    "Measured": "duplex.notebook.metrics",
    "Metrics": "duplex.notebook.metrics",
    "MissingExtra": "duplex.errors",
    "Participant": "duplex.participants.base",
    "Recording": "duplex.recording",
    "Run": "duplex.notebook.runs",
    "RunOptions": "duplex.options",
    "Runner": "duplex.runner",
    "Scenario": "duplex.scenario",
    "Side": "duplex.values",
    "calibrate": "duplex.calibration.command",
    "grade": "duplex.regrading",
    "load": "duplex.notebook.runs",
    "measure": "duplex.measuring",
    "remeasure": "duplex.remeasuring",
    "run": "duplex.api",
}

__all__ = [
    "Call",
    "CheckedCall",
    "Dataset",
    "DuplexError",
    "Engine",
    "Finished",
    "InputError",
    "Measured",
    "Metrics",
    "MissingExtra",
    "Participant",
    "Recording",
    "Run",
    "RunOptions",
    "Runner",
    "Scenario",
    "Side",
    "calibrate",
    "grade",
    "load",
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

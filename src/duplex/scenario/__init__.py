"""Scenario files: what a call is about, read strictly, before anything else happens."""

from duplex.scenario.load import Dataset, Findings, inspect, load, validate
from duplex.scenario.model import (
    AgendaItem,
    Context,
    Expected,
    ExpectedTool,
    GoldenPath,
    Input,
    Persona,
    PriorLine,
    Procedure,
    Recorded,
    Scenario,
    ScenarioFile,
    Simulation,
    Step,
)
from duplex.scenario.options import DuplexOptions, PersonaLevels, Question, ScriptLine

__all__ = [
    "AgendaItem",
    "Context",
    "Dataset",
    "DuplexOptions",
    "Expected",
    "ExpectedTool",
    "Findings",
    "GoldenPath",
    "Input",
    "Persona",
    "PersonaLevels",
    "PriorLine",
    "Procedure",
    "Question",
    "Recorded",
    "Scenario",
    "ScenarioFile",
    "ScriptLine",
    "Simulation",
    "Step",
    "inspect",
    "load",
    "validate",
]

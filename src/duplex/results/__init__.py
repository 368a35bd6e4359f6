"""The shapes results take outside: schema 2.0 and, later, its two other views."""

from duplex.results.build import CallFigures, build_result
from duplex.results.observed import Basis
from duplex.results.run import COLUMNS, Row, build_run, exit_code, headline, rows
from duplex.results.schema import Configuration, Result, Run, read_run, to_json

__all__ = [
    "COLUMNS",
    "Basis",
    "CallFigures",
    "Configuration",
    "Result",
    "Row",
    "Run",
    "build_result",
    "build_run",
    "exit_code",
    "headline",
    "read_run",
    "rows",
    "to_json",
]

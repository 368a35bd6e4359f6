"""Scenarios written as files of schema 1.0: whole, new, and valid by our own reader.

What stands at its default is left out. Whoever makes scenarios drives it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from duplex.errors import InputError
from duplex.inputs import reason
from duplex.scenario import Scenario, ScenarioFile


def written(scenarios: Sequence[Scenario]) -> str:
    """Scenarios as the text of a file."""
    file = ScenarioFile(scenarios=tuple(scenarios))
    document = file.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    return json.dumps({"schema_version": "1.0"} | document, indent=2, ensure_ascii=False) + "\n"


def put(scenarios: Sequence[Scenario], out: Path | None) -> None:
    """Print the file, or write it to ``out``, which must be new. Raises InputError."""
    text = written(scenarios)
    if out is None:
        print(text, end="")
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{out} exists already, want a new file") from None
    except OSError as error:
        raise InputError(f"{out} cannot be written: {reason(error)}") from None

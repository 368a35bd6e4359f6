"""Small scenario files for tests to bend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def single(name: str = "one", **more: object) -> dict[str, object]:
    """The least a single-turn scenario needs."""
    return {
        "id": name,
        "title": "A title",
        "interaction": "single_turn",
        "input": {"text": "A request."},
        "expected": {"answer": "An answer."},
    } | more


def multi(name: str = "one", **simulation: object) -> dict[str, object]:
    """A multi-turn scenario with a small agenda."""
    return single(
        name,
        interaction="multi_turn",
        simulation_parameters={"goal": "A goal.", "known_facts": {"name": "Ann"}} | simulation,
    )


def item(name: str, **more: object) -> dict[str, object]:
    """An agenda item."""
    return {
        "id": name,
        "commitment": "Say it.",
        "trigger_condition": "When asked.",
        "completion_condition": "It was said.",
        "action": "answer",
    } | more


def write(path: Path, *scenarios: Mapping[str, object], **more: object) -> Path:
    """Write scenarios as one JSON file."""
    path.write_text(json.dumps({"schema_version": "1.0", "scenarios": scenarios} | more))
    return path

"""Writes the tables of docs/metrics.md from the one place each meaning has in the code.

    python docs/metrics_tables.py

A test fails when a table is not what this script would write.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from duplex.metrics import timing_policy
from duplex.metrics.contract import METRICS_VERSION, Settings
from duplex.metrics.contract_definitions import AUDIO_DEFINITIONS, TASK_DEFINITIONS
from duplex.metrics.definitions import DEFINITIONS, Definition
from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy
from duplex.metrics.word_definitions import WORD_DEFINITIONS, WORDS_VERSION

PAGE = Path(__file__).parent / "metrics.md"


def timing() -> str:
    return f"Version {TIMING_VERSION}.\n\n" + _table(DEFINITIONS)


def policy() -> str:
    """Every constant with its value, and the sentence that stands below it in the code."""
    told = _sentences(inspect.getsource(timing_policy))
    lines = ["| constant | is | means |", "|---|--:|---|"]
    for name, value in TimingPolicy().as_json().items():
        lines.append(f"| `{name}` | {value} | {told[name]} |")
    return "\n".join(lines)


def contract() -> str:
    settings = ", ".join(f"`{f.name}` {f.default}" for f in fields(Settings))
    return f"Version {METRICS_VERSION}; {settings}.\n\n" + _table(AUDIO_DEFINITIONS)


def task() -> str:
    return _table(TASK_DEFINITIONS)


def words() -> str:
    return f"Version {WORDS_VERSION}.\n\n" + _table(WORD_DEFINITIONS)


def _table(definitions: Mapping[str, Definition]) -> str:
    sourced = any(entry.source not in ("duplex", "contract 2.0") for entry in definitions.values())
    lines = ["| name | unit | is |" + (" after |" if sourced else "")]
    lines.append("|---|---|---|" + ("---|" if sourced else ""))
    for name, entry in definitions.items():
        source = "" if entry.source == "duplex" else entry.source
        row = f"| `{name}` | {entry.unit} | {entry.sentence} |"
        lines.append(row + (f" {source} |" if sourced else ""))
    return "\n".join(lines)


def _sentences(source: str) -> dict[str, str]:
    """The text below each field of the policy."""
    (policy,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == TimingPolicy.__name__
    )
    found = {}
    for node, after in zip(policy.body, policy.body[1:], strict=False):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[node.target.id] = str(after.value.value)
    return found


def filled(page: str) -> str:
    """The page with each block between its marks written anew."""
    for made in (timing, policy, contract, task, words):
        name = made.__name__
        block = f"<!-- {name} -->\n\n{made()}\n\n<!-- end of {name} -->"
        pattern = re.compile(f"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
        assert pattern.search(page), name
        page = pattern.sub(lambda _, text=block: text, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

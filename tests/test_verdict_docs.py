"""The page on verdicts names every metric a check may use, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from duplex.verdict.attribution import FALSE_DISCOVERY_RATE, FOUND_UNATTRIBUTED, MIN_ARM_CALLS
from duplex.verdict.criteria import DEFAULT_MIN_PASS_RATE, read_check
from duplex.verdict.incidents import SLOW_MS
from duplex.verdict.readings import METRICS

PAGE = (Path(__file__).parents[1] / "docs" / "verdict.md").read_text()


def test_the_table_of_metrics_is_the_table_of_the_code() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| (\w+) \| ([^|]*)\|$", PAGE, re.MULTILINE)
    assert {name: goal for name, _, goal, _ in rows} == {
        name: metric.goal for name, metric in METRICS.items()
    }
    for name, _, _, members in rows:
        assert re.findall(r"`\.(\w+)`", members) == list(METRICS[name].stats)


def test_its_examples_can_be_read() -> None:
    examples = re.findall(r"--check '([^']+)'", PAGE)
    assert len(examples) == 4
    for example in examples:
        read_check(example)


def test_its_figures_are_those_of_the_code() -> None:
    assert f"at most {FALSE_DISCOVERY_RATE}" in PAGE
    assert f"{FOUND_UNATTRIBUTED:.0f} %" in PAGE
    assert f"Fewer than {MIN_ARM_CALLS} calls a value" in PAGE
    assert f"{DEFAULT_MIN_PASS_RATE:.0f} % (`inherited`)" in PAGE
    assert f"slower than {SLOW_MS / 1000} s" in PAGE

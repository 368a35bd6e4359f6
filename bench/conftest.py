"""What the benches share: paired measurement, one table at the end, figures in the JSON.

Two things are measured turn by turn in one process, in CPU time, and compared
by the median of the ratios of each pair, so a busy machine slows both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

ROWS: list[Row] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: what was measured, the figure, whether a goal is met; "" is none."""

    name: str
    figure: str
    goal: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Median CPU seconds of two works done in turn, and the median of ``two / one``."""

    one: float
    two: float
    ratio: float


def cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def paired(one: Callable[[], None], two: Callable[[], None], rounds: int) -> Pair:
    """Time two works in turn ``rounds`` times, after one round that warms both up."""
    one()
    two()
    times = [(cpu_seconds(one), cpu_seconds(two)) for _ in range(rounds)]
    return Pair(
        one=statistics.median(a for a, _ in times),
        two=statistics.median(b for _, b in times),
        ratio=statistics.median(b / a for a, b in times),
    )


def paired_until(
    floor: float, one: Callable[[], None], two: Callable[[], None], rounds: int
) -> Pair:
    """Measure again, twice at most, while the ratio is below ``floor``.

    Load that comes and goes within a pair bends one measurement in either direction; what
    is too slow is so every time.
    """
    pair = paired(one, two, rounds)
    for _ in range(2):
        if pair.ratio >= floor or rounds == 1:
            break
        pair = paired(one, two, 2 * rounds)
    return pair


class Bench:
    """Reports figures to the table and to pytest-benchmark's JSON."""

    def __init__(self, fixture: BenchmarkFixture) -> None:
        self.fixture = fixture
        self.rounds = 9 if fixture.enabled else 1

    def time(self, work: Callable[[], None]) -> None:
        """Let pytest-benchmark time the work too, for its own statistics."""
        self.fixture.pedantic(work, rounds=self.rounds, warmup_rounds=0)

    def report(self, name: str, figure: str, goal: str, met: bool, **numbers: float) -> None:
        ROWS.append(Row(name=name, figure=figure, goal=goal, met=met))
        self.fixture.extra_info.update(numbers)


@pytest.fixture
def bench(benchmark: BenchmarkFixture) -> Bench:
    return Bench(benchmark)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not ROWS:
        return
    width = max(len(row.name) for row in ROWS)
    middle = max(len(row.figure) for row in ROWS)
    terminalreporter.section("measured against peers and limits in this run")
    for row in ROWS:
        mark = f"  goal {row.goal}  {'met' if row.met else 'NOT MET'}" if row.goal else ""
        terminalreporter.line(f"{row.name:<{width}}  {row.figure:>{middle}}{mark}")

"""Every metric over the calls of a run, and the run apart by agent and by persona.

Checks first, then every metric that any call has. Per-turn metrics pool the turns
of all counted calls; percentiles are linear (type 7). Shares of passed calls in
per cent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duplex.metrics.stats import percentile
from duplex.verdict.case import Case, Reading, graded
from duplex.verdict.criteria import Criterion
from duplex.verdict.readings import METRICS, Metric, find, read, turn_readings
from duplex.verdict.verdict import percent, score


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    average: float
    median: float
    p95: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One metric or check over the counted calls.

    ``calls`` have at least one value, ``values`` counts them all. ``passed`` and
    ``graded`` are a check's tally, else None.
    """

    id: str
    name: str
    output: str
    unit: str
    calls: int
    values: int
    passed: int | None = None
    graded: int | None = None
    numbers: Numbers | None = None
    readings: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The counted calls that share an agent or a persona."""

    key: str
    calls: int
    evaluated: int
    passed: int
    score: float | None

    @property
    def pass_rate(self) -> float | None:
        return percent(self.passed, self.evaluated)


def aggregates(cases: Sequence[Case], criteria: Sequence[Criterion]) -> tuple[Aggregate, ...]:
    """Checks, then the metrics that some counted call has."""
    counted = [case for case in cases if case.counted]
    checks = [_check(one, counted) for one in criteria]
    ours = {
        one.expression.only.metric.name
        for one in criteria
        if one.op is None and one.expression.only
    }
    metrics = [_metric(metric, counted) for name, metric in METRICS.items() if name not in ours]
    return (*checks, *(metric for metric in metrics if metric.calls))


def groups(
    cases: Sequence[Case], criteria: Sequence[Criterion], key: Callable[[Case], str]
) -> tuple[Group, ...]:
    """The run apart by ``key``, in the order of the calls."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.counted:
            found[key(case)].append(case)
    return tuple(
        Group(
            key=name,
            calls=len(group),
            evaluated=sum(case.evaluated for case in group),
            passed=sum(case.passed is True for case in group),
            score=score(group, criteria),
        )
        for name, group in found.items()
    )


def call_values(case: Case) -> list[tuple[Metric, Reading]]:
    """A call's own value of every metric it has."""
    found = [(metric, read(find(name), case.result)) for name, metric in METRICS.items()]
    return [(metric, value) for metric, value in found if value is not None]


def _check(one: Criterion, counted: Sequence[Case]) -> Aggregate:
    passed, total = graded(counted, one.id)
    said = Counter({"true": passed, "false": total - passed})
    return Aggregate(
        id=one.id,
        name=one.name,
        output="BOOLEAN",
        unit="",
        calls=total,
        values=total,
        passed=passed,
        graded=total,
        readings=tuple(said.items()) if total else (),
    )


def _metric(metric: Metric, counted: Sequence[Case]) -> Aggregate:
    values: list[float] = []
    calls = 0
    if metric.output == "BOOLEAN":
        said = [read(find(metric.name), case.result) for case in counted]
        known = [value for value in said if isinstance(value, bool)]
        tally = Counter(str(value).lower() for value in known)
        return Aggregate(
            id=metric.name,
            name=metric.name,
            output=metric.output,
            unit="",
            calls=len(known),
            values=len(known),
            readings=tuple(sorted(tally.items(), reverse=True)),
        )
    for case in counted:
        own = [value for value in turn_readings(metric.name, case.result) if math.isfinite(value)]
        values += own
        calls += bool(own)
    return Aggregate(
        id=metric.name,
        name=metric.name,
        output=metric.output,
        unit=metric.unit,
        calls=calls,
        values=len(values),
        numbers=_numbers(values),
    )


def _numbers(values: Sequence[float]) -> Numbers | None:
    if not values:
        return None
    ordered = sorted(values)
    return Numbers(
        average=math.fsum(ordered) / len(ordered),
        median=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        min=ordered[0],
        max=ordered[-1],
    )

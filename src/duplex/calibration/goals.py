"""The goals of a calibration, as data, and whether one was met.

A goal names a metric, a figure of it and the most (or least) it may be. What a row has no
goal for is reported all the same. Figures come from ``matching``; nothing is computed here.
``rows`` attaches goals to rows and ``table`` prints their verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.calibration.matching import Figures, Metric
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """``figure`` of ``metric`` is at most (or, with ``least``, at least) ``limit``.

    ``known`` is how far a goal that is missed today may be missed before that counts as a
    regression; None where it must be met.
    """

    metric: Metric
    figure: str
    limit: float
    least: bool = False
    known: float | None = None

    def __str__(self) -> str:
        name = {"bias_ms": "|bias|", "covered": "covered %"}.get(
            self.figure, self.figure.removesuffix("_ms")
        )
        limit = self.limit * 100 if self.figure == "covered" else self.limit
        return f"{name} {'≥' if self.least else '≤'} {limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A goal with what was found; ``met`` is None when there was nothing to judge by."""

    goal: Goal
    value: float | None

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        goal = self.goal
        return self.value >= goal.limit if goal.least else abs(self.value) <= goal.limit

    @property
    def regressed(self) -> bool:
        """Whether the goal is missed by more than is known and agreed."""
        known = self.goal.known
        if self.met is not False or self.value is None:
            return False
        if known is None:
            return True
        return self.value < known if self.goal.least else abs(self.value) > known

    def as_json(self) -> dict[str, Json]:
        goal = self.goal
        return {
            "metric": goal.metric.value,
            "figure": goal.figure,
            "at_least" if goal.least else "at_most": goal.limit,
            "value": None if self.value is None else round(self.value, 4),
            "met": self.met,
        }


def judged(goals: tuple[Goal, ...], figures: dict[Metric, Figures]) -> tuple[Verdict, ...]:
    """Every goal with its figure."""
    return tuple(
        Verdict(goal=goal, value=_figure(figures[goal.metric], goal.figure)) for goal in goals
    )


COVERED = Goal(metric=Metric.LATENCY, figure="covered", limit=0.90, least=True)
NOT_WIDER = Goal(metric=Metric.LATENCY, figure="covered", limit=0.99)
"""Pooled over the noisy rows: a ± that always holds is wider than it need be."""
NO_MISS = Goal(metric=Metric.CALLER_TURN, figure="missed", limit=0)


def latency(bias_ms: float | None, p50_ms: float | None, p95_ms: float) -> tuple[Goal, ...]:
    """Goals of a row's response latency."""
    limits = {"bias_ms": bias_ms, "p50_ms": p50_ms, "p95_ms": p95_ms}
    return tuple(
        Goal(metric=Metric.LATENCY, figure=figure, limit=limit)
        for figure, limit in limits.items()
        if limit is not None
    )


def _figure(figures: Figures, name: str) -> float | None:
    values: dict[str, float | None] = {
        "bias_ms": figures.bias_ms,
        "p50_ms": figures.p50_ms,
        "p95_ms": figures.p95_ms,
        "missed": float(figures.missed) if figures.n else None,
        "false_alarms": float(figures.false_alarms),
        "covered": figures.covered,
    }
    return values[name]

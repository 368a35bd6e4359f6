"""Drawings of numbers as SVG, made on the server: shares with intervals, a trend, a spread.

Every drawing has a title and says its numbers in words where a pointer or a reader comes
to them. It turns values into places and draws no conclusion; intervals are Wilson's, as
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duplex.metrics.stats import wilson
from duplex.serve.pages.markup import Child, Markup, joined, tag
from duplex.viewer import say

_WIDTH = 360
_LEFT = 44
_RIGHT = 14
_TALL = 172
_BOTTOM = 146
_NAMES = 40
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Calls that passed out of those graded, under a name."""

    name: str
    passed: int
    graded: int

    @property
    def percent(self) -> float | None:
        return 100 * self.passed / self.graded if self.graded else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, per cent."""
        if not self.graded:
            return None
        low, high = wilson(self.passed, self.graded)
        return 100 * low, 100 * high

    @property
    def words(self) -> str:
        if self.percent is None or self.interval is None:
            return f"{self.name}: no call was graded"
        low, high = self.interval
        told = f"{self.name}: {self.passed} of {self.graded} passed, {self.percent:.0f} %"
        return f"{told} (95 % interval {low:.0f} to {high:.0f} %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run in a trend; a value is None where the run has none."""

    href: str
    share: Share
    median_ms: float | None
    p95_ms: float | None
    verdict: bool | None


def shares(title: str, rows: Sequence[Share], *, wanted: float | None = None) -> Markup:
    """A line for every share: a dot, its interval, its counts; ``wanted`` in per cent."""
    step, top = 38, 6
    bottom = top + step * len(rows)
    across = _scale(0, 100, 8, _WIDTH - 16)
    parts: list[Child] = []
    for at in (0, 50, 100):
        x = across(at)
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        anchor = {0: "start", 50: "middle", 100: "end"}[at]
        parts.append(tag("text", f"{at} %", x=x, y=bottom + 15, text_anchor=anchor))
    if wanted is not None:
        x = across(wanted)
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="wanted"))
    parts += [_share_row(row, across, top + step * at, wanted) for at, row in enumerate(rows)]
    return _svg(title, bottom + 20, parts)


def _share_row(row: Share, across: Scale, y: int, wanted: float | None) -> Child:
    middle = y + 26
    label = [
        tag("text", _cut(row.name), x=8, y=y + 14, class_="label"),
        tag("text", f"{row.passed}/{row.graded}", x=_WIDTH - 16, y=y + 14, text_anchor="end"),
    ]
    if row.percent is None or row.interval is None:
        return tag("g", tag("title", row.words), label)
    low, high = row.interval
    missed = wanted is not None and row.percent < wanted - 1e-9
    drawn = [
        tag("line", x1=across(low), x2=across(high), y1=middle, y2=middle, class_="whisker"),
        tag("circle", cx=across(row.percent), cy=middle, r=5),
    ]
    return tag("g", tag("title", row.words), label, drawn, class_="bad" if missed else "good")


def trend(title: str, points: Sequence[Point]) -> Markup:
    """Shares of passed calls, oldest run first, with intervals; a dot leads to its run."""
    across, up = _along(points), _scale(0, 100, _BOTTOM, 14)
    parts: list[Child] = [_rule(up(at), f"{at} %") for at in (0, 50, 100)]
    known = [(at, p) for at, p in enumerate(points) if p.share.percent is not None]
    parts.append(_line([(across(at), up(p.share.percent or 0)) for at, p in known], "share"))
    for at, point in known:
        x, (low, high) = across(at), point.share.interval or (0, 0)
        mark = {True: "good", False: "bad", None: "open"}[point.verdict]
        drawn = (
            tag("title", point.share.words),
            tag("line", x1=x, x2=x, y1=up(low), y2=up(high), class_="whisker"),
            tag("circle", cx=x, cy=up(point.share.percent or 0), r=6),
        )
        words = point.share.words
        parts.append(tag("a", drawn, href=point.href, aria_label=words, class_=mark))
    return _svg(title, _TALL, [*parts, _older(), _newer()])


def latency_trend(title: str, points: Sequence[Point]) -> Markup:
    """Median and 95th percentile of each run's replies, oldest run first."""
    values = [v for p in points for v in (p.median_ms, p.p95_ms) if v is not None]
    most = ceiling(max(values, default=1.0))
    across, up = _along(points), _scale(0, most, _BOTTOM, 14)
    parts: list[Child] = [_rule(up(at), _short(at)) for at in (0, most / 2, most)]
    for kind in ("p95", "median"):
        places = []
        for at, point in enumerate(points):
            value = point.p95_ms if kind == "p95" else point.median_ms
            if value is None:
                continue
            x, y = across(at), up(value)
            places.append((x, y))
            words = f"{point.share.name}: {kind} {say.ms(value)}"
            dot = (tag("title", words), tag("circle", cx=x, cy=y, r=5))
            parts.append(tag("a", dot, href=point.href, aria_label=words, class_=kind))
        parts.insert(3, _line(places, kind))
    return _svg(title, _TALL, [*parts, _older(), _newer()])


def spread(
    title: str, values: Sequence[float], marks: Sequence[tuple[str, float]], limit: float | None
) -> Markup:
    """How often which milliseconds came, with ``marks`` by name and a ``limit`` of a check."""
    low = min(0.0, *values)
    most = ceiling(max(*values, *(at for _, at in marks), limit or 0.0, 1.0))
    bins = 24
    width = (most - low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int((value - low) / width)))] += 1
    across = _scale(low, most, 10, _WIDTH - 10)
    up = _scale(0, max(counts), 92, 26)
    bars = [
        tag(
            "rect",
            x=across(low + at * width),
            y=up(count),
            width=round(across(width) - across(0) - 1, 2),
            height=round(92 - up(count), 2),
        )
        for at, count in enumerate(counts)
        if count
    ]
    parts: list[Child] = [tag("g", bars, class_="bars")]
    parts.append(tag("line", x1=10, x2=_WIDTH - 10, y1=92, y2=92, class_="grid"))
    for at, anchor in ((low, "start"), (most, "end")):
        parts.append(tag("text", _short(at), x=across(at), y=108, text_anchor=anchor))
    for at, (name, value) in enumerate(marks):
        x = across(value)
        parts.append(tag("line", x1=x, x2=x, y1=22, y2=92, class_=f"mark {name}"))
        end = "end" if x > _WIDTH * 0.7 else "start"
        words = f"{name} {say.ms(value)}"
        parts.append(tag("text", words, x=x, y=9 + 11 * (at % 2), text_anchor=end, class_=name))
    if limit is not None:
        x = across(limit)
        drawn = tag("line", x1=x, x2=x, y1=22, y2=92, class_="wanted")
        parts.append(tag("g", tag("title", f"limit of a check: {say.ms(limit)}"), drawn))
    return _svg(title, 114, parts)


def ceiling(value: float) -> float:
    """The next 1, 2 or 5 of a power of ten at or above a positive value."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value - 1e-9))


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    span = (high - low) or 1.0
    return lambda value: round(start + (value - low) / span * (end - start), 2)


def _along(points: Sequence[Point]) -> Scale:
    if len(points) == 1:
        return lambda _: round((_LEFT + _WIDTH - _RIGHT) / 2, 2)
    return _scale(0, len(points) - 1, _LEFT + 10, _WIDTH - _RIGHT - 4)


def _rule(y: float, words: str) -> Child:
    return [
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT + 6, y1=y, y2=y, class_="grid"),
        tag("text", words, x=_LEFT - 6, y=y + 4, text_anchor="end"),
    ]


def _line(places: Sequence[tuple[float, float]], kind: str) -> Child:
    points = " ".join(f"{x},{y}" for x, y in places)
    return tag("polyline", points=points, class_=f"line {kind}") if len(places) > 1 else None


def _older() -> Markup:
    return tag("text", "older", x=_LEFT, y=_TALL - 8)


def _newer() -> Markup:
    return tag("text", "newer", x=_WIDTH - _RIGHT + 6, y=_TALL - 8, text_anchor="end")


def _short(value: float) -> str:
    """Milliseconds for an axis."""
    return f"{value / 1000:g} s" if abs(value) >= 1000 else f"{value:.0f} ms"


def _cut(name: str) -> str:
    return name if len(name) <= _NAMES else f"{name[: _NAMES - 1]}…"


def _svg(title: str, height: int, parts: Sequence[Child]) -> Markup:
    box = f"0 0 {_WIDTH} {height}"
    drawing = tag("svg", tag("title", title), *parts, viewBox=box, role="group", class_="chart")
    return tag("figure", tag("figcaption", title), joined(drawing))

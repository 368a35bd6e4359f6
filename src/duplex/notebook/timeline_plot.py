"""A call over time: each side's voice, overlaps, replies with latencies, work, faults.

Draws the tracks that the viewer draws, and takes no figure from the drawing. A long
call is broken into lines like text. Needs matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from duplex.counting import counted
from duplex.notebook.canvas import (
    ASSISTANT,
    BAD,
    BOTH,
    CALLER,
    INK,
    MUTED,
    Plot,
    looks,
    sheet,
    short,
)
from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import number, objects, text

Item = Mapping[str, Json]
_WIDTH = 11.0
_LINE_MS, _MOST_LINES = 30_000.0, 8
_LANES = {"caller": (2.3, 0.6), "assistant": (0.75, 0.6)}
_BRACKETS, _YIELDS = 1.57, 3.05
_WORK, _TOOL = (0.15, 0.34), (0.23, 0.18)
_TOP = 3.55
_COLOURS = {"caller": CALLER, "assistant": ASSISTANT}
_KINDS = {"latency": INK, "early": INK, "yield": BOTH, "missed": BAD}
_LETTER_INCHES = 0.062
"""About how wide a letter of a label is."""


def draw(title: str, tracks: Item, duration_ms: float) -> Plot:
    """Draw one call's tracks, as :func:`duplex.viewer.timeline.tracks` gives them."""
    end = max([duration_ms, *_ends(tracks), 1.0])
    count = min(max(math.ceil(end / _LINE_MS), 1), _MOST_LINES)
    length = max(end / count, _LINE_MS if count > 1 else 0.0, 1.0)
    with looks():
        figure = sheet(_WIDTH, 1.05 + 1.5 * count)
        places = figure.subplots(count, 1, squeeze=False)[:, 0]
        left_out = 0
        for at, axes in enumerate(places):
            left_out += _Line(axes, at * length, (at + 1) * length, end).draw(tracks)
        places[-1].set_xlabel(_axis(tracks, left_out))
        figure.suptitle(short(title), x=0.01, ha="left", fontweight="bold", fontsize=10)
        handles = _legend(tracks)
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), fontsize=8)
    return figure


class _Line:
    """One line of the drawing: what lies between ``start`` and ``stop``."""

    def __init__(self, axes: Axes, start: float, stop: float, end: float) -> None:
        self._axes, self._start, self._stop, self._end = axes, start, stop, end

    def draw(self, tracks: Item) -> int:
        """Draw everything; return how many labels had no room."""
        self._frame()
        for item in objects(tracks.get("overlaps")):
            self._band(item, BOTH, 0.18)
        for item in objects(tracks.get("marks")):
            self._mark(item)
        for item in objects(tracks.get("segments")):
            side = text(item.get("side")) or "caller"
            self._bars([item], *_LANES[side], _COLOURS[side])
        for item in objects(tracks.get("work")):
            self._work(item)
        for item in objects(tracks.get("faults")):
            at = number(item.get("at"))
            if at is not None and self._start <= at <= self._stop:
                self._axes.axvline(at / 1000, color=BAD, linewidth=1, linestyle=":")
        return self._brackets(objects(tracks.get("brackets")))

    def _frame(self) -> None:
        axes = self._axes
        axes.set_xlim(self._start / 1000, self._stop / 1000)
        axes.set_ylim(0, _TOP)
        axes.set_yticks([low + high / 2 for low, high in _LANES.values()], list(_LANES))
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=8)
        axes.spines["left"].set_visible(False)
        if self._stop > self._end:
            axes.axvline(self._end / 1000, color=MUTED, linewidth=0.8)

    def _bars(self, items: Sequence[Item], low: float, high: float, colour: str) -> None:
        spans = [(a / 1000, (b - a) / 1000) for item in items for a, b in self._within(item)]
        self._axes.broken_barh(spans, (low, high), facecolor=colour, linewidth=0)

    def _band(self, item: Item, colour: str, alpha: float) -> None:
        for a, b in self._within(item):
            self._axes.axvspan(a / 1000, b / 1000, facecolor=colour, alpha=alpha, linewidth=0)

    def _mark(self, item: Item) -> None:
        if item.get("kind") == "silence":
            self._band(item, MUTED, 0.18)
            return
        side = "assistant" if item.get("side") == "assistant" else "caller"
        low, high = _LANES[side]
        for a, _ in self._within(item):
            self._axes.plot(
                a / 1000, low + high + 0.12, marker="v", markersize=4, color=_COLOURS[side]
            )

    def _work(self, item: Item) -> None:
        tool = item.get("kind") == "tool"
        low, high = _TOOL if tool else _WORK
        ok = item.get("ok") is True
        spans = [(a / 1000, (b - a) / 1000) for a, b in self._within(item)]
        self._axes.broken_barh(
            spans,
            (low, high),
            facecolor=MUTED if tool else "white",
            edgecolor=MUTED if ok else BAD,
            linewidth=0.8,
        )

    def _brackets(self, items: Sequence[Item]) -> int:
        """Draw what each number measures; a label that would lie on another is left out."""
        taken = {_BRACKETS: -math.inf, _YIELDS: -math.inf}
        left_out = 0
        seconds_an_inch = (self._stop - self._start) / 1000 / (_WIDTH - 1)
        for item in items:
            height = _YIELDS if item.get("kind") == "yield" else _BRACKETS
            for a, b in self._within(item):
                self._bracket(item, a, b, height)
                if self._start > (number(item.get("start")) or 0.0):
                    continue
                label = _label(item)
                centre = (a + b) / 2000
                half = len(label) * _LETTER_INCHES * seconds_an_inch / 2
                if centre - half < taken[height]:
                    left_out += 1
                    continue
                taken[height] = centre + half
                self._label(label, centre, height, _colour(item))
        return left_out

    def _bracket(self, item: Item, start: float, stop: float, height: float) -> None:
        (line,) = self._axes.plot(
            [start / 1000, stop / 1000],
            [height, height],
            color=_colour(item),
            linewidth=1.4,
            marker="|",
            markersize=6,
        )
        line.set_linestyle("--" if item.get("kind") == "missed" else "-")

    def _label(self, words: str, centre: float, height: float, colour: str) -> None:
        self._axes.text(
            centre, height + 0.1, words, ha="center", va="bottom", fontsize=7.5, color=colour
        )

    def _within(self, item: Item) -> Iterator[tuple[float, float]]:
        """The part of a span that lies on this line, in ms."""
        a, b = number(item.get("start")), number(item.get("end"))
        if a is None or b is None:
            return
        low, high = max(min(a, b), self._start), min(max(a, b), self._stop)
        if low < high or (a == b and self._start <= a < self._stop):
            yield low, high


def _colour(item: Item) -> str:
    return _KINDS.get(text(item.get("kind")) or "", INK)


def _label(item: Item) -> str:
    """``1 475 ±3 ms`` of a reply; words of a yield or a missed turn."""
    told = (text(item.get("label")) or "").replace(", unreliable edge", " ?")
    return told.replace(f"{say.THIN}ms ±", " ±").replace("± not known", "").strip()


def _legend(tracks: Item) -> list[Patch | Line2D]:
    """What is in the drawing, and nothing else."""
    found: list[Patch | Line2D] = [
        Patch(facecolor=colour, label=f"{side} speaks") for side, colour in _COLOURS.items()
    ]
    if objects(tracks.get("overlaps")):
        found.append(Patch(facecolor=BOTH, alpha=0.25, label="both"))
    kinds = {text(item.get("kind")) for item in objects(tracks.get("brackets"))}
    named = {
        "latency": "reply after",
        "early": "early start",
        "yield": "yield",
        "missed": "no reply",
    }
    for kind, name in named.items():
        if kind in kinds:
            line = Line2D([], [], color=_KINDS[kind], marker="|", label=name)
            line.set_linestyle("--" if kind == "missed" else "-")
            found.append(line)
    marks = {text(item.get("kind")) for item in objects(tracks.get("marks"))}
    if "silence" in marks:
        found.append(Patch(facecolor=MUTED, alpha=0.3, label="awkward silence"))
    if marks & {"backchannel", "sound"}:
        name = "backchannel, sound"
        found.append(Line2D([], [], color=CALLER, marker="v", linestyle="", label=name))
    work = {text(item.get("kind")) for item in objects(tracks.get("work"))}
    if "delegation" in work:
        found.append(Patch(facecolor="white", edgecolor=MUTED, label="delegated"))
    if "tool" in work:
        found.append(Patch(facecolor=MUTED, label="tool"))
    if objects(tracks.get("faults")):
        found.append(Line2D([], [], color=BAD, linestyle=":", label="fault"))
    return found


def _axis(tracks: Item, left_out: int) -> str:
    found_by = short(str(tracks.get("found_by") or ""))
    beside = f"; {counted(left_out, 'label')} had no room" if left_out else ""
    return f"seconds of the call; voice by the {found_by}{beside}"


def _ends(tracks: Item) -> Iterator[float]:
    for name in ("segments", "work", "brackets"):
        for item in objects(tracks.get(name)):
            end = number(item.get("end"))
            if end is not None:
                yield end

"""Reply latencies of a call or a run: how many replies came within how long.

The steps are the replies themselves; median, p95 and their 95 % intervals are those
of the timing block, never taken from the drawing. Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from duplex.counting import counted
from duplex.errors import InputError
from duplex.notebook.canvas import ASSISTANT, CALLER, INK, MUTED, RULE, Plot, looks, sheet, short
from duplex.notebook.metrics import Metrics
from duplex.viewer import say
from duplex.viewer.reading import items, members, number, text

_FARTHEST_MS = 1e9
_STATS = (("p50", "median", CALLER, "-"), ("p95", "p95", ASSISTANT, "--"))


def draw(metrics: Metrics) -> Plot:
    """Draw the latencies of one call, or of all calls of a run.

    Raises:
        InputError: one of them is none that a call can have.
    """
    values = sorted(one for found in metrics.latencies.values() for one in found)
    if values and max(abs(values[0]), abs(values[-1])) > _FARTHEST_MS:
        far = max(values[0], values[-1], key=abs)
        raise InputError(f"{short(metrics.of)}: a latency of {far:g} ms cannot be drawn")
    with looks():
        figure = sheet(8.0, 4.2)
        axes = figure.subplots()
        axes.set_title(short(f"Reply latency, {metrics.of}"))
        axes.set_xlabel("ms from the end of the caller's voice to the reply, as heard")
        axes.set_ylabel("share of replies")
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share * 100:.0f} %")
        if values:
            _steps(axes, values)
            _statistics(axes, metrics)
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
            figure.supxlabel(_note(metrics), fontsize=7.5, color=MUTED, x=0.01, ha="left")
        else:
            _nothing(axes, metrics)
    return figure


def _steps(axes: Axes, values: Sequence[float]) -> None:
    """The share of replies within each latency, and a tick for every reply."""
    shares = [(at + 1) / len(values) for at in range(len(values))]
    room = max((values[-1] - values[0]) * 0.08, 20.0)
    name = counted(len(values), "reply", "replies")
    axes.step(
        [values[0] - room, *values, values[-1] + room],
        [0.0, *shares, 1.0],
        where="post",
        color=INK,
        linewidth=1.4,
        label=name,
    )
    axes.plot(values, [0.015] * len(values), "|", color=INK, markersize=7, alpha=0.6)
    axes.set_xlim(values[0] - room, values[-1] + room)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)


def _statistics(axes: Axes, metrics: Metrics) -> None:
    """Median and p95 as lines, their intervals as bands."""
    spread = members(metrics.timing.get("response_latency"))
    for name, words, colour, style in _STATS:
        value = number(spread.get(name))
        if value is None:
            continue
        bounds = [number(one) for one in items(spread.get(f"ci95_{name}"))]
        interval = say.interval(spread.get(f"ci95_{name}"), "ms")
        told = f"{words} {say.ms(value)}" + (f"\n95 %: {interval}" if interval else "")
        axes.axvline(value, color=colour, linestyle=style, linewidth=1.4, label=told)
        if len(bounds) == 2 and bounds[0] is not None and bounds[1] is not None:
            axes.axvspan(bounds[0], bounds[1], color=colour, alpha=0.12, linewidth=0)


def _note(metrics: Metrics) -> str:
    """What the figures rest on, in one line."""
    spread = members(metrics.timing.get("response_latency"))
    width = number(spread.get("plus_minus_ms"))
    told = [metrics.basis, f"one value {say.plus_minus(width)}"]
    if number(spread.get("n")) is not None and spread.get("ci95_p50") is not None:
        told.append(f"intervals from {text(spread.get('resampled')) or 'values'} drawn again")
    told += [flag for one in items(spread.get("flags")) if (flag := text(one))]
    return short("; ".join(told), 130)


def _nothing(axes: Axes, metrics: Metrics) -> None:
    why = metrics.unknown.get("/timing/response_latency") or metrics.unknown.get("/timing")
    told = short(f"no reply was measured: {text(why) or 'nothing was heard'}", 90)
    axes.text(0.5, 0.5, told, ha="center", va="center", transform=axes.transAxes, color=MUTED)
    axes.set_xticks([])

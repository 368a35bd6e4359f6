"""A swept property, value by value: how often each check passed, how fast replies were.

Rates have Wilson intervals, latencies those of the pooled timing block; which value is
to blame is the verdict's word and not the drawing's. Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from duplex.errors import InputError
from duplex.metrics.stats import Measured, pooled, wilson
from duplex.notebook.canvas import BAD, INK, MUTED, RULE, SERIES, Plot, looks, sheet, short
from duplex.notebook.metrics import latencies
from duplex.results import schema
from duplex.verdict.attribution import Sweep
from duplex.verdict.block import judged
from duplex.verdict.case import Arm, Case, RunCases, graded
from duplex.verdict.criteria import Criterion
from duplex.verdict.sweeps import sweep_of
from duplex.viewer.reading import members

_MARKS = "os^Dv*XP"
_MOST = len(_MARKS)


def draw(run: schema.Run) -> Plot:
    """Draw a run's sweep. Raises InputError for a run without one."""
    cases, criteria, _ = judged(run)
    if cases.swept is None or not cases.arms:
        raise InputError(
            f"run {short(run.run.id)} swept nothing; duplex run --sweep PROPERTY=VALUE,VALUE"
        )
    sweep = sweep_of(cases, criteria)
    with looks():
        width = max(7.0, 1.3 * len(cases.arms) + 3.5)
        figure = sheet(min(width, 16.0), 6.2)
        rates, times = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        rates.set_title(short(f"{cases.swept}, {run.run.id}"))
        _rates(rates, cases, criteria, sweep)
        _times(times, cases)
        times.set_xticks(range(len(cases.arms)), [_name(arm, cases) for arm in cases.arms])
        times.set_xlim(-0.5, len(cases.arms) - 0.5)
        if max(len(short(arm.value, 24)) for arm in cases.arms) > 12:
            times.tick_params(axis="x", rotation=20)
        note = _verdict(sweep, criteria)
        figure.supxlabel(note, fontsize=8, color=MUTED, x=0.01, ha="left")
    return figure


def _rates(axes: Axes, cases: RunCases, criteria: Sequence[Criterion], sweep: Sweep | None) -> None:
    """Share of calls that passed, a mark a check, side by side at each value."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("calls that passed")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share * 100:.0f} %")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    shown = list(criteria[:_MOST])
    for place, check in enumerate(shown):
        beside = (place - (len(shown) - 1) / 2) * min(0.16, 0.7 / len(shown))
        colour, mark = SERIES[place % len(SERIES)], _MARKS[place]
        label: str | None = short(check.name, 60)
        for at, arm in enumerate(cases.arms):
            passed, over = graded(_of(cases, arm), check.id)
            if not over:
                continue
            low, high = wilson(passed, over)
            share = passed / over
            axes.errorbar(
                [at + beside],
                [share],
                yerr=[[max(share - low, 0.0)], [max(high - share, 0.0)]],
                color=colour,
                marker=mark,
                markersize=6,
                capsize=3,
                linestyle="none",
                label=label,
            )
            label = None
            if _worse(sweep, check, arm):
                axes.plot([at + beside], [share], "o", color=BAD, markersize=13, fillstyle="none")
    if len(criteria) > len(shown):
        axes.plot([], [], " ", label=f"and {len(criteria) - len(shown)} checks more")
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    legend.set_alignment("left")
    legend.set_title("check, 95 % interval", prop=FontProperties(size=8))


def _times(axes: Axes, cases: RunCases) -> None:
    """Median reply latency at each value, with the interval of calls drawn again."""
    axes.set_ylabel("median reply, ms")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    for at, arm in enumerate(cases.arms):
        replies = [
            [
                Measured(value=value)
                for value in latencies(members(case.result.duplex.get("timing")))
            ]
            for case in _of(cases, arm)
            if case.counted
        ]
        spread = pooled(replies, seed=f"{cases.run_id} {arm.key}", reason="no reply")
        median, n = spread.p50, spread.n
        if median is None:
            axes.text(at, 0.5, "no reply", ha="center", transform=axes.get_xaxis_transform())
            continue
        low, high = spread.ci95_p50 or (median, median)
        width = [[max(median - low, 0.0)], [max(high - median, 0.0)]]
        axes.errorbar([at], [median], yerr=width, color=INK, marker="o", markersize=5, capsize=3)
        axes.annotate(
            f"n {n}",
            (at, median),
            xytext=(8, -3),
            textcoords="offset points",
            fontsize=7.5,
            color=MUTED,
        )


def _of(cases: RunCases, arm: Arm) -> list[Case]:
    return [case for case in cases.final if case.arm is not None and case.arm.key == arm.key]


def _name(arm: Arm, cases: RunCases) -> str:
    """A value under the axis: its name, whether it is the baseline, and its calls."""
    counted = sum(case.counted for case in _of(cases, arm))
    base = ", baseline" if arm.baseline else ""
    return f"{short(arm.value, 24)}\n{counted} calls{base}"


def _worse(sweep: Sweep | None, check: Criterion, arm: Arm) -> bool:
    found = [] if sweep is None else [one for one in sweep.checks if one.check == check.id]
    return any(worse.of.key == arm.key for one in found for worse in one.worse)


def _verdict(sweep: Sweep | None, criteria: Sequence[Criterion]) -> str:
    """Which values are to blame as the verdict has it, or what could not be seen."""
    if sweep is None:
        return "the run goes on; nothing is compared yet"
    names = {check.id: check.name for check in criteria}
    blamed = [
        f"{worse.of.label}: {names.get(one.check, one.check)} (p {worse.adjusted_p:.3g})"
        for one in sweep.checks
        for worse in one.worse
    ]
    if blamed:
        return short("worse than the rest: " + "; ".join(blamed), 120)
    if not sweep.tested:
        return "nothing could be compared: too few calls a value"
    gap = sweep.minimum_detectable_gap
    unseen = "" if gap is None else f"; a gap below {gap:.0f} points could not have been seen"
    return f"no value is worse than the rest{unseen}"

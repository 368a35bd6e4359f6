"""``duplex compare BASELINE RUN``: two runs read, compared and printed.

It decides nothing about numbers: what is printed is what the comparison says.
Exit 1 when something is significantly worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.counting import counted
from duplex.report.markdown import cell, table
from duplex.results.stored import load_results
from duplex.screen import plain
from duplex.verdict.block import judged
from duplex.verdict.comparison import CheckDelta, Comparison, TimingDelta, compare
from duplex.verdict.comparison_json import comparison_json
from duplex.verdict.readings import METRICS

HEADINGS = ("what", "baseline", "now", "change", "95 %", "p", "")


def command(
    baseline: Path,
    current: Path,
    *,
    as_json: bool,
    markdown: bool,
    across_rulers: bool,
    console: Console,
) -> int:
    """Print the comparison; return the exit code. Raises InputError."""
    found = compared(baseline, current, across_rulers=across_rulers)
    if as_json:
        print(json.dumps(comparison_json(found), indent=2, allow_nan=False, ensure_ascii=False))
    elif markdown:
        print(as_markdown(found), end="")
    else:
        console.print(Text(plain(headline(found)), style="bold"))
        for line in _lines(found):
            console.print(Text(plain(line)))
    return 1 if found.worse else 0


def compared(baseline: Path, current: Path, *, across_rulers: bool = False) -> Comparison:
    """Read both runs' results and compare them."""
    now, checks, _ = judged(load_results(current / "results.json"))
    then, other_checks, _ = judged(load_results(baseline / "results.json"))
    return compare(now, then, checks, other_checks, across_rulers=across_rulers)


def headline(found: Comparison) -> str:
    """What changed, in one sentence."""
    told = [
        f"{direction}: {', '.join(dict.fromkeys(names))}"
        for direction in ("worse", "better")
        if (names := [_name(one) for one in found.deltas if one.direction == direction])
    ]
    return "; ".join(told) + "." if told else found.nothing_seen


def rows(found: Comparison) -> Iterator[tuple[str, ...]]:
    """A row for every check and every statistic that was compared."""
    for check in found.checks:
        yield _check_row(check)
    for timing in found.timings:
        yield _timing_row(timing)


def as_markdown(found: Comparison) -> str:
    title = f"# {cell(found.current.run_id)} against {cell(found.baseline.run_id)}"
    lines = [title, "", cell(headline(found)), ""]
    lines += [*table(HEADINGS, list(rows(found))), ""]
    lines += [f"- {cell(caveat)}" for caveat in caveats(found)]
    return "\n".join(lines) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    lines = [HEADINGS, *rows(found)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADINGS))]
    for line in lines:
        yield "  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip()
    yield from caveats(found)


def caveats(found: Comparison) -> tuple[str, ...]:
    """What the comparison was made of, and what it could not see."""
    return (_pairs(found), *found.caveats)


def _pairs(found: Comparison) -> str:
    return (
        f"{counted(found.pairs, 'pair')} of calls with the same words and noise; without a pair: "
        f"{found.unpaired} of this run, {found.unpaired_baseline} of the baseline."
    )


def _name(one: CheckDelta | TimingDelta) -> str:
    return one.name if isinstance(one, CheckDelta) else one.metric


def _check_row(check: CheckDelta) -> tuple[str, ...]:
    tested = check.tested
    interval = None if tested is None else tested.ci95
    return (
        check.name,
        _per_cent(check.baseline_rate),
        _per_cent(check.current_rate),
        _per_cent(check.delta, sign=True),
        "" if interval is None else f"{100 * interval[0]:+.0f} … {100 * interval[1]:+.0f} %",
        _p(check.adjusted_p),
        check.why or check.direction,
    )


def _timing_row(timing: TimingDelta) -> tuple[str, ...]:
    found, unit = timing.difference, METRICS[timing.metric].unit
    interval = found.ci95
    shown = "" if interval is None else " … ".join(_value(bound, unit, "+") for bound in interval)
    return (
        f"{timing.metric}.{found.stat}",
        _value(found.baseline, unit),
        _value(found.current, unit),
        _value(found.delta, unit, "+"),
        shown,
        _p(timing.adjusted_p),
        timing.direction,
    )


def _per_cent(share: float | None, *, sign: bool = False) -> str:
    return "–" if share is None else f"{100 * share:{'+' if sign else ''}.0f} %"


def _value(value: float | None, unit: str, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.0f} ms" if unit == "ms" else f"{value:{sign}.3f}"


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"

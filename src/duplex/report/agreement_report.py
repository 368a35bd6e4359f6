"""A judge's agreement with people as a table: shares, kappas, and what went wrong.

Formats only; every number is the report's, with its count and interval.
"""

from __future__ import annotations

from collections.abc import Iterator

from duplex.grading.judging.agreement import Agreement, Report
from duplex.metrics.stats import Interval, Rate
from duplex.screen import plain

NONE = "–"
_COLUMNS = ("figure", "decided", "agrees", "95 %", "within ¼", "kappa", "95 %")


def as_text(report: Report) -> str:
    """The whole report."""
    return "\n".join(plain(line).rstrip() for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.transcripts} transcripts; not assessed {_share(report.not_assessed)}"
    yield (
        f"failed calls it passed: {_share(report.wrong_passes)}; "
        f"passed calls it failed: {_share(report.wrong_fails)}"
    )
    yield ""
    rows = [_COLUMNS, *map(_row, report.parts)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    yield ""
    yield "confusion (label: decisions)"
    for part in report.parts:
        told = "; ".join(
            f"{label}: {', '.join(f'{said} {count}' for said, count in row.items())}"
            for label, row in part.confusion.items()
        )
        yield f"{part.name}: {told or NONE}"
    if report.problems:
        yield ""
        for name, why in report.problems:
            yield f"not assessed: {name}: {why}"


def _row(part: Agreement) -> tuple[str, ...]:
    return (
        part.name,
        f"{part.decided}/{part.labels}",
        _percent(part.equal.value),
        _interval(part.equal.ci95, percent=True),
        NONE if part.near is None else _percent(part.near.value),
        NONE if part.kappa is None else f"{part.kappa:.2f}{'w' if part.weighted else ''}",
        _interval(part.kappa_ci95, percent=False),
    )


def _share(rate: Rate) -> str:
    told = f"{rate.numerator} of {rate.denominator}"
    return told if rate.ci95 is None else f"{told} ({_interval(rate.ci95, percent=True)})"


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f} %"


def _interval(interval: Interval | None, *, percent: bool) -> str:
    if interval is None:
        return NONE
    low, high = interval
    return f"{100 * low:.0f}–{100 * high:.0f} %" if percent else f"{low:.2f} to {high:.2f}"

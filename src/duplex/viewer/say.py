"""Numbers as people read them: units, signs, error widths, counts.

A number is printed as it was measured, rounded for the eye; the exact value
stands beside it. Nothing is added, divided or averaged here.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.values import Json
from duplex.viewer.reading import clean, items, number

THIN = "\u202f"
"""Narrow no-break space: between a number and its unit, and between thousands."""


def ms(value: float) -> str:
    """``643 ms``; a decimal below ten."""
    return f"{plain(value, 1 if 0 < abs(value) < 10 else 0)}{THIN}ms"


def share(value: float) -> str:
    """A part of one as a percentage."""
    return f"{plain(value * 100, 1)}{THIN}%"


def plain(value: float, digits: int = 3) -> str:
    """A number with at most ``digits`` decimals and a true minus."""
    written = f"{value:,.{digits}f}".replace(",", THIN)
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written.replace("-", "" if written.strip("-0.") == "" else "−")


def whole(value: Json) -> str:
    """A count, or a dash where there is none."""
    found = number(value)
    return "–" if found is None else plain(found)


def clock(at_ms: float) -> str:
    """A moment of the call: ``0:07.30``."""
    hundredths = int(at_ms // 10)
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02d}.{hundredths % 100:02d}"


def in_unit(value: float, unit: str) -> str:
    if unit == "ms":
        return ms(value)
    if unit == "share":
        return share(value)
    if unit in ("ppm", "samples", "s"):
        return f"{plain(value)}{THIN}{unit}"
    return plain(value)


def plus_minus(value: float | None) -> str:
    """`` ±8 ms``, or words where the width is not known."""
    return "± not known" if value is None else f"±{ms(value)}"


def interval(value: Json, unit: str) -> str | None:
    """``601 ms to 688 ms``; None when there is none."""
    bounds = [number(item) for item in items(value)]
    if len(bounds) != 2 or bounds[0] is None or bounds[1] is None:
        return None
    return f"{in_unit(bounds[0], unit)} to {in_unit(bounds[1], unit)}"


def distribution(spread: Mapping[str, Json], unit: str = "ms") -> tuple[str, list[str]] | None:
    """The median with its width, and everything else; None when nothing was measured."""
    median = number(spread.get("p50"))
    if median is None:
        return None
    width = number(spread.get("plus_minus_ms"))
    shown = ((name, number(spread.get(name))) for name in ("p95", "p99", "mean", "min", "max"))
    details = [
        " · ".join(f"{name} {in_unit(value, unit)}" for name, value in shown if value is not None)
    ]
    intervals = []
    for name, of in (("ci95_p50", "median"), ("ci95_p95", "p95"), ("ci95", "mean")):
        found = interval(spread.get(name), unit)
        if found is not None:
            intervals.append(f"95{THIN}% interval of the {of}: {found}")
    if intervals:
        drawn = clean(str(spread.get("resampled") or "values"))
        details += [*intervals, f"intervals from {drawn} drawn again"]
    details += [clean(str(flag)) for flag in items(spread.get("flags"))]
    for name in ("unreliable", "invalid"):
        count = number(spread.get(name))
        if count:
            details.append(f"{plain(count)} {name}")
    error = f"{plus_minus(width)}, " if unit == "ms" else ""
    return f"{in_unit(median, unit)} median, {error}n {whole(spread.get('n'))}", details


def rate(found: Mapping[str, Json]) -> tuple[str, list[str]] | None:
    """A share with its counts; None when there was no opportunity."""
    value, over = number(found.get("rate")), number(found.get("denominator"))
    part = number(found.get("numerator"))
    if value is None:
        return None
    counts = "" if part is None or over is None else f" ({plain(part)} of {plain(over)})"
    bounds = interval(found.get("ci95"), "share")
    details = [] if bounds is None else [f"95{THIN}% interval: {bounds}"]
    labelled = number(found.get("labelled"))
    if labelled is not None:
        details.append(f"{plain(labelled)} labelled by the caller")
    return f"{share(value)}{counts}", details

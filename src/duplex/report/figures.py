"""Figures as people read them: milliseconds, shares, counts. Reports drive it."""

from __future__ import annotations


def duration(ms: float) -> str:
    """Milliseconds below 10 s, seconds above; policy figures of whole seconds as such."""
    if ms and ms % 1000 == 0:
        return f"{ms / 1000:.0f} s"
    return f"{ms:.0f} ms" if abs(ms) < 10_000 else f"{ms / 1000:.1f} s"


def spread(ms: float | None) -> str:
    """A half width; empty when it is not known."""
    return "" if ms is None else f"± {ms:.0f} ms" if ms >= 1 else "± < 1 ms"


def percent(share: float) -> str:
    """A share, never rounded up to all of it."""
    return "100 %" if share >= 1 else f"{int(share * 1000) / 10:.1f} %"


def moment(ms: float) -> str:
    """A place on the timeline: ``0:05.64``."""
    hundredths = int(ms // 10)
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02d}.{hundredths % 100:02d}"

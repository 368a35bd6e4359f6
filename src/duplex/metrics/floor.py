"""Who had the floor for how long: caller only, assistant only, both, nobody.

The four spans partition the call exactly, in samples, and their milliseconds
are rounded so that they still sum to the call's. Pure arithmetic on runs; the
timing block drives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.metrics.intervals import Runs, clip, intersect, total
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Lengths in samples; ``caller`` and ``assistant`` are exclusive of ``overlap``."""

    caller: int
    assistant: int
    overlap: int
    silence: int

    @property
    def duration(self) -> int:
        return self.caller + self.assistant + self.overlap + self.silence

    @property
    def speech(self) -> int:
        """Length of the union of both voices."""
        return self.caller + self.assistant + self.overlap


def floor_of(caller: Runs, assistant: Runs, duration: int) -> Floor:
    """Partition ``[0, duration)`` by who speaks."""
    caller, assistant = clip(caller, 0, duration), clip(assistant, 0, duration)
    overlap = total(intersect(caller, assistant))
    caller_only = total(caller) - overlap
    assistant_only = total(assistant) - overlap
    return Floor(
        caller=caller_only,
        assistant=assistant_only,
        overlap=overlap,
        silence=duration - caller_only - assistant_only - overlap,
    )


def floor_json(floor: Floor, rate_hz: int) -> dict[str, Json]:
    """``{caller_ms, assistant_ms, overlap_ms, silence_ms}``, summing to the call's length.

    Each is the exact value rounded down to the microsecond; the microseconds
    lost go to the largest remainders.
    """
    parts = {
        "caller_ms": floor.caller,
        "assistant_ms": floor.assistant,
        "overlap_ms": floor.overlap,
        "silence_ms": floor.silence,
    }
    scaled = {name: divmod(part * 1_000_000, rate_hz) for name, part in parts.items()}
    micros = {name: whole for name, (whole, _) in scaled.items()}
    lost = round(floor.duration * 1_000_000 / rate_hz) - sum(micros.values())
    for name in sorted(parts, key=lambda name: -scaled[name][1])[:lost]:
        micros[name] += 1
    return {name: value / 1000 for name, value in micros.items()}


def share_json(floor: Floor) -> Json:
    """The four as shares of the call; None for a call without length."""
    if not floor.duration:
        return None
    return {
        "caller": round(floor.caller / floor.duration, 6),
        "assistant": round(floor.assistant / floor.duration, 6),
        "overlap": round(floor.overlap / floor.duration, 6),
        "silence": round(floor.silence / floor.duration, 6),
    }

"""The timing block of a call held here, from its folder alone.

Hears the two source stems, takes labels, work and the instrument's own account
from the events. A run, ``measure`` and ``remeasure`` all come through here, so
they cannot differ. What no event says stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from duplex.intake.listen import MAIN_DETECTOR, Listening, listen
from duplex.intake.roles import Roles
from duplex.intake.two_sides import open_sides
from duplex.metrics.heard import speech_of_call
from duplex.metrics.live_facts import ClockFacts, LiveFacts
from duplex.metrics.timing import TimingBlock, timing
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.recording import Recording
from duplex.recording.recorder import ASSISTANT_SOURCE, CALLER_SOURCE
from duplex.values import Json, Side

_STEMS = Roles(order=(Side.CALLER, Side.ASSISTANT), source="stems")


def hear_call(
    recording: Recording, detector: str = MAIN_DETECTOR, also: Sequence[str] = ()
) -> Listening:
    """Hear both stems of a call, as far as all its files reach.

    Raises:
        InputError: a stem is missing or cannot be decoded.
    """
    folder = recording.audio_folder
    with ExitStack() as stack:
        sides = open_sides((folder / CALLER_SOURCE, folder / ASSISTANT_SOURCE), _STEMS, stack)
        limit = recording.duration * sides.rate_hz // recording.rate_hz
        heard = listen(replace(sides, limit=limit), detector, also)
    warnings = tuple(dict.fromkeys((*recording.damage, *heard.warnings)))
    # The stems are each side's own signal: what is alike in them is no echo.
    return replace(heard, echoes=(), warnings=warnings)


def timing_of_call(
    recording: Recording, detector: str = MAIN_DETECTOR, policy: TimingPolicy | None = None
) -> TimingBlock:
    """Measure a call's timing; raises InputError as :func:`hear_call` does."""
    return timing_of_heard(recording, hear_call(recording, detector), policy)


def timing_of_heard(
    recording: Recording, heard: Listening, policy: TimingPolicy | None = None
) -> TimingBlock:
    """The same, for whoever has heard the stems already."""
    return timing(speech_of_call(recording, heard), policy, facts_of(recording, heard.rate_hz))


def facts_of(recording: Recording, rate_hz: int) -> LiveFacts | None:
    """What the events say of the instrument; None where the call kept no such account."""
    if recording.transport_ms is None:
        return None
    late, counts = recording.lateness, recording.counts
    clock = None
    if late is not None or counts is not None:
        clock = ClockFacts(
            late_ticks=None if late is None else _whole(late.get("ticks")),
            late_p99_ms=None if late is None else _number(late.get("p99_ms")),
            late_max_ms=None if late is None else _number(late.get("max_ms")),
            underrun_samples=_both(counts, "underrun"),
            idle_samples=_both(counts, "idle"),
            discarded_samples=_both(counts, "discarded"),
        )
    return LiveFacts(tick=max(1, samples(recording.transport_ms, rate_hz)), clock=clock)


def _both(counts: Mapping[str, Json] | None, name: str) -> int | None:
    """A count of both sides together; None where one of them did not say."""
    if counts is None:
        return None
    found = []
    for side in Side:
        own = counts.get(side.label)
        found.append(_whole(own.get(name)) if isinstance(own, dict) else None)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Json) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None

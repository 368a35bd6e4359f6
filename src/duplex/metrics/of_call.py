"""The timing block of a call held here, from its folder alone.

Hears the two source stems, takes labels, work and the instrument's own account
from the events. A run, ``measure`` and ``remeasure`` all come through here, so
they cannot differ. What no event says stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from duplex.intake.listen import MAIN_DETECTOR, Listening, listen
from duplex.intake.roles import Roles
from duplex.intake.two_sides import TwoSides, open_sides
from duplex.metrics.drift import drift_of
from duplex.metrics.heard import at_rate, speech_of_call
from duplex.metrics.live_facts import (
    ClockFacts,
    InterruptedReply,
    LiveFacts,
    ReplyArrival,
    SentAudio,
)
from duplex.metrics.timing import TimingBlock, timing
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.recording import Recording
from duplex.recording.recorder import ASSISTANT_SOURCE, CALLER_SOURCE
from duplex.values import Json, Side

BELIEVED_MS = 5_000
"""Audio that came further than this from the tick it was played in did not: a clock jumped."""
PROVIDER = "provider"
"""Stage of a fault that was the provider's alone: a response that it could not give."""
TELLS_REPLIES = frozenset({"realtime", "twilio", "pcm", "python"})
"""Providers whose sessions tell of every reply that is cut."""
_STEMS = Roles(order=(Side.CALLER, Side.ASSISTANT), source="stems")


def hear_call(
    recording: Recording, detector: str = MAIN_DETECTOR, also: Sequence[str] = ()
) -> Listening:
    """Hear both stems of a call, as far as all its files reach.

    Raises:
        InputError: a stem is missing or cannot be decoded.
    """
    with stems(recording) as sides:
        heard = listen(sides, detector, also)
    warnings = tuple(dict.fromkeys((*recording.damage, *heard.warnings)))
    # The stems are each side's own signal: what is alike in them is no echo.
    return replace(heard, echoes=(), leaks=(), warnings=warnings)


@contextmanager
def stems(recording: Recording) -> Iterator[TwoSides]:
    """Both source stems of a call, as far as all its files reach; raises as :func:`hear_call`."""
    folder = recording.audio_folder
    with ExitStack() as stack:
        sides = open_sides((folder / CALLER_SOURCE, folder / ASSISTANT_SOURCE), _STEMS, stack)
        limit = recording.duration * sides.rate_hz // recording.rate_hz
        yield replace(sides, limit=limit)


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
    return LiveFacts(
        tick=max(1, samples(recording.transport_ms, rate_hz)),
        replies=_replies(recording, rate_hz),
        sent=_sent(recording, rate_hz),
        clock=_clock(recording),
        line=tuple(
            (at_rate(item.at, recording, rate_hz), item.samples * 1000 / recording.rate_hz)
            for item in recording.delays
            if item.side is Side.CALLER
        ),
        failures=tuple(
            (at_rate(fault.at, recording, rate_hz), fault.code)
            for fault in recording.faults
            if fault.stage == PROVIDER and fault.side is Side.ASSISTANT
        ),
    )


def _replies(recording: Recording, rate_hz: int) -> tuple[ReplyArrival, ...]:
    """The assistant's arrivals; one whose times cannot be true (a clock jumped) is left out."""
    ms = 1000 / recording.rate_hz
    believed = samples(BELIEVED_MS, recording.rate_hz)
    found = []
    for item in recording.arrivals:
        hold = item.played_at - (item.sample - item.head) - item.taken_at
        late = (item.head_at - item.taken_at, item.arrived_at - item.head_at)
        if item.side is not Side.ASSISTANT or hold < 0 or max(map(abs, late)) > believed:
            continue
        found.append(
            ReplyArrival(
                heard_at=at_rate(item.played_at, recording, rate_hz),
                first_byte_ms=item.head_at * ms if item.first_byte else None,
                first_audio_ms=item.arrived_at * ms,
                hold_ms=round(hold * ms, 3),
                wait_ms=(item.taken_at - item.head_at) * ms,
            )
        )
    return tuple(found)


def _sent(recording: Recording, rate_hz: int) -> tuple[SentAudio, ...]:
    """What had been sent to the assistant when; an empty message or an early one is no fact."""
    return tuple(
        SentAudio(
            start=at_rate(item.span.start, recording, rate_hz),
            end=at_rate(item.span.end, recording, rate_hz),
            late_ms=(item.sent_at - item.span.end) * 1000 / recording.rate_hz,
        )
        for item in recording.sendings
        if item.side is Side.ASSISTANT and item.span.length > 0 and item.sent_at >= item.span.end
    )


def _clock(recording: Recording) -> ClockFacts | None:
    late, counts = recording.lateness, recording.counts
    if late is None and counts is None:
        return None
    (caller_ppm, caller_why), (assistant_ppm, assistant_why) = (
        drift_of(
            [point for point in recording.paces if point.side is side],
            recording.rate_hz,
            recording.clock,
        )
        for side in Side
    )
    return ClockFacts(
        caller_drift_ppm=caller_ppm,
        assistant_drift_ppm=assistant_ppm,
        drift_why=(caller_why, assistant_why),
        late_ticks=None if late is None else _whole(late.get("ticks")),
        late_p99_ms=None if late is None else _number(late.get("p99_ms")),
        late_max_ms=None if late is None else _number(late.get("max_ms")),
        underrun_samples=_both(counts, "underrun"),
        idle_samples=_both(counts, "idle"),
        discarded_samples=_both(counts, "discarded"),
        interrupted=interrupted_of(recording),
    )


def interrupted_of(recording: Recording) -> tuple[InterruptedReply, ...] | None:
    """The assistant's replies that were cut; None where its protocol tells of none."""
    found = tuple(
        InterruptedReply(heard_ms=item.heard_ms, received_ms=item.received_ms)
        for item in recording.interrupted
    )
    tells = recording.session(Side.ASSISTANT).provider in TELLS_REPLIES
    return found if found or tells else None


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

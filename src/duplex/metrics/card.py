"""What a sound card did to a call with a person: its delay, its echo, what it lost.

Latencies of the timing block are taken where the assistant's side begins, so the card is
in none of them. Here is the rest: the round trip from the assistant's sound, through the
room, back to where the caller's begins; what the person waited, which is the latency and
that; how fast the person answered, which is the recorded gap without it. Each has a ±.
Pure; from the events and stems of a recording.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev

import numpy as np

from duplex.card.device import Pcm
from duplex.card.echo_return import Returned, measure
from duplex.metrics.stats import Distribution, Measured, distribution
from duplex.recording import Recording
from duplex.values import Event, Json, Side

ECHO_S = 60
"""The echo is measured on this much of a call."""
COUNTS = (
    "overruns",
    "underruns",
    "recoveries",
    "gaps",
    "gap_ms",
    "input_dropped_ms",
    "output_dropped_ms",
    "left_out_ms",
    "added_ms",
    "shut_ms",
)
_CUT = "the call ended before the card's account of it"
_SHORT = "a drift needs 10 s of a stream without a break"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """From the assistant's sample to the caller's that answers it, in ms."""

    ms: float
    plus_minus_ms: float


def card_of(recording: Recording, timing: Mapping[str, Json] | None) -> dict[str, Json] | None:
    """``duplex.card`` of a call; None for one whose caller was no person at a card."""
    opened = _last(recording.events, "card.opened")
    if opened is None:
        return None
    closed = _last(recording.events, "card.closed") or {}
    delay = opened.get("delay")
    delay = delay if isinstance(delay, dict) else {}
    trip = _trip(recording, closed, delay)
    turns = _turns(timing)
    echo = _echo(recording)
    waited, reaction = _waited(turns, trip), _reaction(turns, trip)
    interruptions = [e for e in recording.events if e.type == "card.interrupt"]
    unknown = {
        **_unless(trip, "/round_trip_ms", _CUT),
        **_unless(echo, "/echo", "nothing of the assistant stood out in what the microphone gave"),
        **waited.unknown("/heard_latency"),
        **reaction.unknown("/reaction"),
    }
    for name in COUNTS:
        unknown |= _unless(closed.get(name), f"/{name}", _CUT)
    drift, width = _pair(closed, "drift_ppm"), _pair(closed, "drift_plus_minus_ppm")
    for name in ("input", "output"):
        unknown |= _unless(drift[name], f"/drift_ppm/{name}", _SHORT)
        unknown |= _unless(width[name], f"/drift_plus_minus_ppm/{name}", _SHORT)
    calibrated = delay.get("at")
    unknown |= _unless(calibrated, "/delay/calibrated_at", "never: it is what the drivers report")
    return {
        **{
            name: opened.get(name)
            for name in ("input", "output", "input_rate_hz", "output_rate_hz", "push_to_interrupt")
        },
        "delay": {
            "ms": delay.get("delay_ms"),
            "plus_minus_ms": delay.get("plus_minus_ms"),
            "source": delay.get("source"),
            "calibrated_at": calibrated,
        },
        "round_trip_ms": None if trip is None else asdict(trip),
        "heard_latency": waited.as_json(),
        "reaction": reaction.as_json(),
        "echo": echo,
        **{name: closed.get(name) for name in COUNTS},
        "drift_ppm": drift,
        "drift_plus_minus_ppm": width,
        "interruptions": sum(event.fields.get("held") is True for event in interruptions),
        "unknown": dict(unknown),
    }


def _trip(
    recording: Recording, closed: Mapping[str, Json], delay: Mapping[str, Json]
) -> Trip | None:
    """Out to the card, through it and the room, and in again up to the engine."""
    out, spread = _number(closed.get("output_ms")), _number(closed.get("output_sd_ms"))
    zero = _number(closed.get("input_zero_ms"))
    through, width = _number(delay.get("delay_ms")), _number(delay.get("plus_minus_ms"))
    if out is None or zero is None or through is None or width is None:
        return None
    ms = 1000 / recording.rate_hz
    waits = [
        one.played_at * ms - zero - one.sample * ms
        for one in recording.arrivals
        if one.side is Side.CALLER
    ]
    if not waits:
        return None
    own = stdev(waits) if len(waits) > 1 else 0.0
    return Trip(
        ms=round(out + through + mean(waits), 2),
        plus_minus_ms=round(math.hypot(width, 2 * (spread or 0.0), 2 * own), 2),
    )


def _echo(recording: Recording) -> dict[str, Json] | None:
    """The echo in what reached the call, else the one that the microphone alone heard."""
    found = _returned(recording)
    if found is not None:
        return {**asdict(found), "reached_call": True}
    told = _last(recording.events, "card.echo")
    return None if told is None else {**told, "reached_call": False}


def _returned(recording: Recording) -> Returned | None:
    """The echo in what reached the call, its moves of the hold undone and their mean put back."""
    if not recording.duration:
        return None
    rate_hz, most = recording.rate_hz, ECHO_S * recording.rate_hz
    came, moved = _unmoved(recording.source(Side.CALLER), _moves(recording.events))
    found = measure(recording.source(Side.ASSISTANT)[:most], came[:most], rate_hz)
    if found is None:
        return None
    return replace(found, delay_ms=round(found.delay_ms + moved * 1000 / rate_hz, 1))


def _moves(events: Sequence[Event]) -> list[tuple[int, int]]:
    """(position, samples) of silence that playout of the caller put in, or left out (negative)."""
    found = []
    for event in events:
        start, samples = event.fields.get("start"), event.fields.get("samples")
        kept = event.type == "playout" and event.side is Side.CALLER
        if kept and isinstance(start, int) and isinstance(samples, int):
            found.append((start, samples))
    return sorted(found)


def _unmoved(pcm: Pcm, moves: Sequence[tuple[int, int]]) -> tuple[Pcm, float]:
    """The sound as if playout had never moved, and by how many samples it did on average."""
    parts, at, shift, total = [], 0, 0, 0
    for start, samples in moves:
        if start < at or start >= len(pcm):
            continue
        parts += [pcm[at:start], np.zeros(max(0, -samples), np.int16)]
        total += shift * (start - at)
        at, shift = start + max(0, samples), shift + samples
    parts.append(pcm[at:])
    total += shift * max(0, len(pcm) - at)
    return np.concatenate(parts), total / max(len(pcm), 1)


def _waited(turns: Sequence[Mapping[str, Json]], trip: Trip | None) -> Distribution:
    """What the person waited for an answer: its latency, and the round trip."""
    found = []
    for turn in turns:
        latency = _number(turn.get("response_latency_ms"))
        if latency is not None and trip is not None:
            width = math.hypot(_number(turn.get("plus_minus_ms")) or 0.0, trip.plus_minus_ms)
            found.append(Measured(value=latency + trip.ms, plus_minus=width))
    return distribution(found, seed="heard latency", reason="no latency, or no round trip is known")


def _reaction(turns: Sequence[Mapping[str, Json]], trip: Trip | None) -> Distribution:
    """How soon the person answered what was heard: the recorded gap without the round trip."""
    found, ended = [], None
    for turn in turns:
        start, end = _number(turn.get("start_ms")), _number(turn.get("end_ms"))
        if start is None or end is None:
            continue
        if turn.get("side") == Side.ASSISTANT.label:
            ended = end
        elif ended is not None and trip is not None:
            if start >= ended:
                value = start - ended - trip.ms
                found.append(Measured(value=value, plus_minus=trip.plus_minus_ms))
            ended = None
    return distribution(found, seed="reaction", reason="the person answered no turn of it")


def _turns(timing: Mapping[str, Json] | None) -> list[Mapping[str, Json]]:
    turns = None if timing is None else timing.get("turns")
    return [one for one in turns if isinstance(one, dict)] if isinstance(turns, list) else []


def _last(events: Sequence[Event], kind: str) -> Mapping[str, Json] | None:
    return next((e.fields for e in reversed(events) if e.type == kind), None)


def _pair(closed: Mapping[str, Json], name: str) -> dict[str, Json]:
    found = closed.get(name)
    found = found if isinstance(found, dict) else {}
    return {side: found.get(side) for side in ("input", "output")}


def _unless(value: object, pointer: str, why: str) -> dict[str, Json]:
    return {pointer: why} if value is None else {}


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

"""What only the live call knows, per reply: first byte, first audio, how much is ours.

Heard latency = our relay (hold, tick, transport) + the assistant's own; the
assistant's own is the arrival of its first audible sample, counted from the
moment the caller's last sample was delivered. Arrivals without a turn, and
turns without an arrival, stay unknown.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.metrics.live_facts import ClockFacts, InterruptedReply, LiveFacts, ReplyArrival
from duplex.metrics.responses import Reply
from duplex.metrics.stats import Distribution, Measured, distribution
from duplex.metrics.timing_policy import milliseconds
from duplex.metrics.turns import Talk, Turn
from duplex.values import Json, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTiming:
    """One assistant turn as it came in; None where the call did not say."""

    first_byte_ms: float | None = None
    first_audio_ms: float | None = None
    relay_ms: float | None = None
    hold_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """Per assistant turn, and over the call."""

    replies: tuple[ReplyTiming, ...]
    first_byte: Distribution
    first_audio: Distribution
    total: Distribution
    hold: Distribution
    tick_wait: Distribution
    transport: Distribution


def relay_of(talk: Talk, replies: Sequence[Reply], facts: LiveFacts | None) -> Relay:
    """Match arrivals with assistant turns and split what was heard."""
    turns = talk.turns[Side.ASSISTANT]
    arrivals = _matched(turns, facts.replies if facts is not None else ())
    found = tuple(
        _timing(talk, turn, reply, arrival, facts)
        for turn, reply, arrival in zip(turns, replies, arrivals, strict=True)
    )
    missing = "no live call was observed" if facts is None else "the call recorded none"

    def spread(name: str, values: Sequence[float | None]) -> Distribution:
        known = [Measured(value=value) for value in values if value is not None]
        return distribution(known, seed=f"relay {name}", reason=missing)

    holds = [a.hold_ms for a in facts.replies] if facts is not None else []
    return Relay(
        replies=found,
        first_byte=spread("first byte", [t.first_byte_ms for t in found]),
        first_audio=spread("first audio", [t.first_audio_ms for t in found]),
        total=spread("total", [t.relay_ms for t in found]),
        hold=spread("hold", holds),
        tick_wait=spread("tick wait", facts.tick_waits_ms if facts is not None else ()),
        transport=spread("transport", facts.transports_ms if facts is not None else ()),
    )


def clock_json(facts: ClockFacts) -> dict[str, Json]:
    """The instrument's account of itself."""
    return {
        "drift_ppm": {
            "caller": _finite(facts.caller_drift_ppm),
            "assistant": _finite(facts.assistant_drift_ppm),
        },
        "late_ticks": {
            "count": facts.late_ticks,
            "p99_ms": _finite(facts.late_p99_ms),
            "max_ms": _finite(facts.late_max_ms),
        },
        "underrun_samples": facts.underrun_samples,
        "idle_samples": facts.idle_samples,
        "discarded_samples": facts.discarded_samples,
        "interrupted_replies": [_interrupted(reply) for reply in facts.interrupted],
    }


def _interrupted(reply: InterruptedReply) -> Json:
    return {"heard_ms": _finite(reply.heard_ms), "received_ms": _finite(reply.received_ms)}


def _finite(value: float | None) -> float | None:
    """The value, or None for what no JSON can say."""
    return value if value is not None and math.isfinite(value) else None


def _matched(turns: Sequence[Turn], arrivals: Sequence[ReplyArrival]) -> list[ReplyArrival | None]:
    """Per turn the arrival played closest to its start, since the turn before ended."""
    ordered = sorted(arrivals, key=lambda arrival: arrival.heard_at)
    places = [arrival.heard_at for arrival in ordered]
    matched: list[ReplyArrival | None] = []
    before = 0
    for turn in turns:
        first, last = bisect_left(places, before), bisect_left(places, turn.end)
        mine = ordered[first:last]
        matched.append(min(mine, key=lambda a: abs(a.heard_at - turn.start), default=None))
        before = turn.end
    return matched


def _timing(
    talk: Talk,
    turn: Turn,
    reply: Reply,
    arrival: ReplyArrival | None,
    facts: LiveFacts | None,
) -> ReplyTiming:
    if arrival is None or facts is None:
        return ReplyTiming()
    if reply.anchor is None or reply.latency is None:
        return ReplyTiming(hold_ms=arrival.hold_ms)
    delivered = milliseconds(-(-reply.anchor // facts.tick) * facts.tick, talk.rate_hz)
    heard = reply.latency * 1000 / talk.rate_hz
    audio = _since(arrival.first_audio_ms, delivered)
    return ReplyTiming(
        first_byte_ms=_since(arrival.first_byte_ms, delivered),
        first_audio_ms=audio,
        relay_ms=None if audio is None else round(heard - audio, 3),
        hold_ms=arrival.hold_ms,
    )


def _since(at_ms: float | None, delivered_ms: float) -> float | None:
    return None if at_ms is None else round(at_ms - delivered_ms, 3)

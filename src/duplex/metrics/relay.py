"""What only the live call knows, per reply: first byte, first audio, how much is ours.

Heard latency = our relay (hold + tick wait + transport + line) + the assistant's own:
what a listener without any delay would have waited since the caller's last
sample was delivered, silence that the assistant itself sent first included. The
tick wait is signed: audio is sent when its tick ends, and played in the tick in
which it came. Arrivals without a turn, and turns without an arrival, stay unknown.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.metrics.live_facts import (
    ClockFacts,
    InterruptedReply,
    LiveFacts,
    ReplyArrival,
    SentAudio,
)
from duplex.metrics.responses import Reply
from duplex.metrics.stats import Distribution, Measured, distribution
from duplex.metrics.timing_policy import samples
from duplex.metrics.turns import Talk
from duplex.values import Json, Side

NEAR_MS = 1_000
"""An arrival or a sending further than this from an edge says nothing about it."""
_NOT_LIVE = "no live call was observed"
_NONE_RECORDED = "the call recorded none"
_NO_REPLY = "no reply with a latency was matched with an arrival"
_NO_FIRST_BYTE = "the assistant's stream never stopped, so no reply has a first byte of its own"
_NOT_TOLD = "the session did not say when its messages had left"
NEVER_CUT = "no reply was told to be cut; only a protocol with replies can tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTiming:
    """One assistant turn as it came in; None where the call did not say."""

    first_byte_ms: float | None = None
    first_audio_ms: float | None = None
    relay_ms: float | None = None
    own_ms: float | None = None
    hold_ms: float | None = None
    tick_wait_ms: float | None = None
    transport_ms: float | None = None
    line_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """Per assistant turn, and over the call; ``own`` is the assistant's share."""

    replies: tuple[ReplyTiming, ...]
    first_byte: Distribution
    first_audio: Distribution
    total: Distribution
    own: Distribution
    hold: Distribution
    tick_wait: Distribution
    transport: Distribution
    line: Distribution


def relay_of(talk: Talk, replies: Sequence[Reply], facts: LiveFacts | None) -> Relay:
    """Match arrivals with assistant turns and split what was heard."""
    arrivals = _matched(talk, facts.replies if facts is not None else ())
    found = tuple(
        _timing(talk, reply, arrival, facts)
        for reply, arrival in zip(replies, arrivals, strict=True)
    )
    missing = _NOT_LIVE if facts is None else _NO_REPLY if facts.replies else _NONE_RECORDED

    def spread(name: str, values: Sequence[float | None], why: str = missing) -> Distribution:
        known = [Measured(value=value) for value in values if value is not None]
        return distribution(known, seed=f"relay {name}", reason=why)

    audio = [t.first_audio_ms for t in found]
    heard_of = any(value is not None for value in audio)
    return Relay(
        replies=found,
        first_byte=spread(
            "first byte", [t.first_byte_ms for t in found], _NO_FIRST_BYTE if heard_of else missing
        ),
        first_audio=spread("first audio", audio),
        total=spread("total", [t.relay_ms for t in found]),
        own=spread("own", [t.own_ms for t in found]),
        hold=spread("hold", [t.hold_ms for t in found]),
        tick_wait=spread("tick wait", [t.tick_wait_ms for t in found]),
        transport=spread(
            "transport", [t.transport_ms for t in found], _NOT_TOLD if heard_of else missing
        ),
        line=spread("line", [t.line_ms for t in found]),
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
        "interrupted_replies": (
            None if facts.interrupted is None else [_interrupted(r) for r in facts.interrupted]
        ),
    }


def clock_unknown(facts: ClockFacts) -> dict[str, str]:
    """Why which of its members are null, by JSON pointer, where that is known."""
    caller, assistant = facts.drift_why
    reasons = {
        "/drift_ppm/caller": caller,
        "/drift_ppm/assistant": assistant,
        "/interrupted_replies": NEVER_CUT,
    }
    return {pointer: why for pointer, why in reasons.items() if why is not None}


def _interrupted(reply: InterruptedReply) -> Json:
    return {"heard_ms": _finite(reply.heard_ms), "received_ms": _finite(reply.received_ms)}


def _finite(value: float | None) -> float | None:
    """The value, or None for what no JSON can say."""
    return value if value is not None and math.isfinite(value) else None


def _matched(talk: Talk, arrivals: Sequence[ReplyArrival]) -> list[ReplyArrival | None]:
    """Per turn the arrival played closest to its start, since the turn before ended."""
    ordered = sorted(arrivals, key=lambda arrival: arrival.heard_at)
    places = [arrival.heard_at for arrival in ordered]
    near = samples(NEAR_MS, talk.rate_hz)
    matched: list[ReplyArrival | None] = []
    before = 0
    for turn in talk.turns[Side.ASSISTANT]:
        first = bisect_left(places, max(before, turn.start - near))
        last = bisect_right(places, min(turn.end - 1, turn.start + near))
        mine = ordered[first:last]
        matched.append(min(mine, key=lambda a: abs(a.heard_at - turn.start), default=None))
        before = turn.end
    return matched


def _timing(
    talk: Talk, reply: Reply, arrival: ReplyArrival | None, facts: LiveFacts | None
) -> ReplyTiming:
    if arrival is None or facts is None:
        return ReplyTiming()
    if reply.anchor is None or reply.latency is None:
        return ReplyTiming(hold_ms=arrival.hold_ms)
    ms = 1000 / talk.rate_hz
    sent = _sent(facts.sent, reply.anchor, samples(NEAR_MS, talk.rate_hz))
    grid = facts.tick if sent is None else sent.end - sent.start
    due = -(-reply.anchor // grid) * grid
    transport = None if sent is None else sent.late_ms
    delivered = due * ms + (transport or 0.0)
    waited = None if arrival.wait_ms is None else (due - reply.anchor) * ms + arrival.wait_ms
    line = facts.line_ms(reply.anchor)
    relay = None
    if waited is not None and arrival.hold_ms is not None:
        relay = arrival.hold_ms + waited + (transport or 0.0) + line
    return ReplyTiming(
        first_byte_ms=_since(arrival.first_byte_ms, delivered + line),
        first_audio_ms=_since(arrival.first_audio_ms, delivered + line),
        relay_ms=_rounded(relay),
        own_ms=None if relay is None else _rounded(reply.latency * ms - relay),
        hold_ms=arrival.hold_ms,
        tick_wait_ms=_rounded(waited),
        transport_ms=_rounded(transport),
        line_ms=_rounded(line),
    )


def _sent(sent: Sequence[SentAudio], anchor: int, near: int) -> SentAudio | None:
    """The message told of that ended closest to ``anchor``, if one is near."""
    at = bisect_left(sent, anchor, key=lambda message: message.end)
    close = min(sent[max(0, at - 1) : at + 1], key=lambda m: abs(m.end - anchor), default=None)
    return close if close is not None and abs(close.end - anchor) <= near else None


def _since(at_ms: float | None, delivered_ms: float) -> float | None:
    return None if at_ms is None else round(at_ms - delivered_ms, 3)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

"""The timing block of one call: what we think is right, with its uncertainty.

A pure function of the call's speech and, where there was a live call, of its
own account of itself. Every value that is not known is null, and ``unknown``
says why. Runs, ``measure`` and ``remeasure`` drive it; ``timing_json.py``
writes it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from duplex.metrics.floor import Floor, floor_of
from duplex.metrics.live_facts import ClockFacts, LiveFacts
from duplex.metrics.own_echo import EchoHeard, echoes_of
from duplex.metrics.relay import Relay, relay_of
from duplex.metrics.responses import Outcome, ReplyKind, Responses, responses_of
from duplex.metrics.scores import TurnTaking, turn_taking
from duplex.metrics.speech import Speech
from duplex.metrics.stats import Distribution, Measured, Rate, distribution
from duplex.metrics.tick_panel import TickPanel, panel_of, ticks_of
from duplex.metrics.timing_json import block_json
from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy
from duplex.metrics.turns import Talk, talk_of
from duplex.metrics.yielding import SELECTIVE, Yielding, yielding_of
from duplex.values import Json, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Caller turns by what became of them; the last five sum to the first."""

    attempted: int
    answered: int
    late: int
    unanswered: int
    censored: int
    excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingBlock:
    """Everything the timing block says about one call; lengths are in samples.

    ``echoes`` is None where the line is not known to echo.

    The latencies, stops and intervals kept beside the distributions are what
    pooling over calls needs.
    """

    version: str
    policy: TimingPolicy
    detector: str
    talk: Talk
    floor: Floor
    responses: Responses
    yielding: Yielding
    echoes: tuple[EchoHeard, ...] | None
    taking: TurnTaking
    panel: TickPanel
    relay: Relay
    ledger: Ledger
    latencies: tuple[Measured, ...]
    stops: tuple[Measured, ...]
    response_latency: Distribution
    time_to_yield: Distribution
    greeting_latency: int | None
    clock: ClockFacts | None

    @property
    def rate_hz(self) -> int:
        return self.talk.rate_hz

    @property
    def response_rate(self) -> Rate:
        ledger = self.ledger
        return Rate(
            numerator=ledger.answered,
            denominator=ledger.answered + ledger.late + ledger.unanswered,
        )

    @property
    def yield_rate(self) -> Rate:
        known = [b.yielded for b in self.yielding.barge_ins if b.yielded is not None]
        return Rate(numerator=sum(known), denominator=len(known))

    @property
    def false_yield(self) -> Rate:
        known = [event.error for event in self.yielding.events if event.speaking]
        return _errors([*known, *(echo.error for echo in self.echoes or ())])

    @property
    def false_yield_causes(self) -> dict[str, Rate | None]:
        """The same by what the assistant stopped for; None where the line has no known echo."""
        spoken = [event for event in self.yielding.events if event.speaking]
        causes: dict[str, Rate | None] = {
            name: _errors(event.error for event in spoken if event.kind is kind)
            for name, kind in SELECTIVE.items()
        }
        echo = None if self.echoes is None else _errors(echo.error for echo in self.echoes)
        return {**causes, "echo": echo}

    @property
    def agent_interruption(self) -> Rate:
        return Rate(
            numerator=self.responses.mispredictions,
            denominator=len(self.talk.turns[Side.CALLER]),
        )

    def selectivity(self, name: str) -> Rate:
        """Share of right reactions to one kind of sound; ``name`` is one of SELECTIVE."""
        kind = SELECTIVE[name]
        errors = _errors(event.error for event in self.yielding.events if event.kind is kind)
        right = errors.denominator - errors.numerator
        return Rate(numerator=right, denominator=errors.denominator)

    def as_json(self) -> dict[str, Json]:
        """The block under the names of the interface, strict JSON."""
        return block_json(self)


def timing(
    speech: Speech, policy: TimingPolicy | None = None, facts: LiveFacts | None = None
) -> TimingBlock:
    """Compute the timing block of one call.

    ``facts`` is what a live call knows beyond its audio; without it relay,
    first byte, first audio and clock are null.
    """
    policy = policy or TimingPolicy()
    talk = talk_of(speech, policy)
    failures = facts.failures if facts is not None else ()
    responses = responses_of(talk, policy, speech.tick_ms, failures)
    yielding = yielding_of(talk, speech, responses, policy)
    latencies = _latencies(talk, responses)
    stops = _stops(talk, yielding)
    return TimingBlock(
        version=TIMING_VERSION,
        policy=policy,
        detector=speech.detector,
        talk=talk,
        floor=floor_of(talk.runs(Side.CALLER), talk.runs(Side.ASSISTANT), talk.duration),
        responses=responses,
        yielding=yielding,
        echoes=None if speech.echo_delay is None else echoes_of(talk, speech, policy),
        taking=turn_taking(talk, responses, yielding, speech.tools),
        panel=panel_of(ticks_of(talk, speech, policy)),
        relay=relay_of(talk, responses.replies, facts),
        ledger=_ledger(responses),
        latencies=latencies,
        stops=stops,
        response_latency=distribution(latencies, seed="response latency", reason=_no_latency(talk)),
        time_to_yield=distribution(
            stops,
            seed="time to yield",
            reason="no barge-in was yielded to" if yielding.barge_ins else "no barge-in",
        ),
        greeting_latency=_greeting(talk, responses),
        clock=facts.clock if facts is not None else None,
    )


def _latencies(talk: Talk, responses: Responses) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            value=reply.latency * 1000 / talk.rate_hz,
            plus_minus=reply.plus_minus_ms,
            unreliable=reply.unreliable,
        )
        for reply in responses.replies
        if reply.latency is not None
    )


def _stops(talk: Talk, yielding: Yielding) -> tuple[Measured, ...]:
    """Times to yield of the barge-ins that were yielded to, in milliseconds."""
    return tuple(
        Measured(
            value=barge_in.stop_after * 1000 / talk.rate_hz,
            plus_minus=barge_in.plus_minus_ms,
            unreliable=barge_in.unreliable,
        )
        for barge_in in yielding.barge_ins
        if barge_in.yielded
    )


def _ledger(responses: Responses) -> Ledger:
    found = [fate.outcome for fate in responses.fates]
    return Ledger(
        attempted=len(found),
        answered=found.count(Outcome.ANSWERED),
        late=found.count(Outcome.LATE),
        unanswered=found.count(Outcome.UNANSWERED),
        censored=found.count(Outcome.CENSORED),
        excluded=found.count(Outcome.EXCLUDED),
    )


def _greeting(talk: Talk, responses: Responses) -> int | None:
    replies = responses.replies
    if not replies or replies[0].kind is not ReplyKind.GREETING:
        return None
    return talk.turns[Side.ASSISTANT][0].start


def _no_latency(talk: Talk) -> str:
    for side in (Side.CALLER, Side.ASSISTANT):
        if not talk.turns[side]:
            return f"no {side.label} turn was found"
    return "no caller turn was answered with a latency"


def _errors(errors: Iterable[bool | None]) -> Rate:
    known = [error for error in errors if error is not None]
    return Rate(numerator=sum(known), denominator=len(known))

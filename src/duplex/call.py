"""The one loop: two participants, an engine and a clock make a recording.

Each tick it waits for media time, takes in what both sides said (caller first),
advances the engine, records, and plays each side what it hears. It decides
when the call is over and nothing else: it never measures and never grades.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np

from duplex.arrivals import Arrivals
from duplex.clock import Clock
from duplex.engine import Engine, FloorEvent, Playout, PlayoutEvent, SegmentEvent
from duplex.errors import SessionError
from duplex.hangup import HangUp, Policy, Situation, Standing, Verified
from duplex.legs import Legs, LinePlan
from duplex.participants.base import Discarded, Participant, Pcm, Spoken
from duplex.placement import Placement
from duplex.recording import CallRecorder
from duplex.values import Event, Happening, Json, RemoteFault, Side

LATE_TICK_MS = 200.0
"""Ticks later than this make the call the platform's fault, not the agent's."""
LATE_SPEECH_MS = {"decode": 1500, "first_audio": 1500, "speech": 200, "brain": 20_000}
"""So does speech this much later than declared; ``speech`` is running dry in mid-utterance.

A ``brain`` that is somebody's model may take its time: that is told, and seldom ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """What one call is held with; times in ms, positions derive from ``rate_hz``."""

    call_id: str
    scenario_id: str
    rate_hz: int = 24_000
    transport_ms: int = 20
    tick_ms: int = 200
    seed: int = 7
    first_speaker: str = "assistant"
    line: LinePlan = field(default_factory=LinePlan)
    detector: str = "edge"
    hold_ms: tuple[int, int] = (0, 0)
    adaptive: tuple[bool, bool] = (False, False)
    policy: Policy = field(default_factory=Policy)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """How a call ended: why, where, and the fault that ended it, if one did."""

    reason: str
    position: int
    fault: RemoteFault | None = None


class Watcher(Protocol):
    """Whoever looks on while a call runs; it must return at once."""

    def on_event(self, event: Event) -> None: ...

    def on_tick(self, position: int, heard: tuple[Pcm, Pcm]) -> None: ...


class Observer(Protocol):
    """Who says when a conversation is over; it must return at once and label nothing."""

    @property
    def standing(self) -> Standing: ...

    def begin(self, clock: Clock) -> None: ...

    def on_event(self, event: Event) -> None: ...

    def look(self, now: Situation) -> Sequence[Happening]: ...

    async def close(self) -> None: ...


class Call:
    """One call, held once by :meth:`hold`."""

    def __init__(
        self,
        plan: CallPlan,
        *,
        caller: Participant,
        assistant: Participant,
        clock: Clock,
        recorder: CallRecorder,
        verified: Verified | None = None,
        observer: Observer | None = None,
        watcher: Watcher | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.plan = plan
        self._parts: tuple[Participant, Participant] = (caller, assistant)
        self._clock = clock
        self._recorder = recorder
        self._watcher = watcher
        self._observer = observer
        self._stop = stop
        self._seq = 0
        self._fatal: RemoteFault | None = None
        self._discarded = [0, 0]
        self._legs = Legs(plan.line, plan.rate_hz)
        self._engine = Engine(
            rate_hz=plan.rate_hz,
            tick_ms=plan.transport_ms,
            detector=plan.detector,
            hold_ms=plan.hold_ms,
            adaptive=plan.adaptive,
            lines=self._legs.lines,
        )
        self._places = (Placement(plan.rate_hz), Placement(plan.rate_hz))
        self._arrivals = tuple(Arrivals(plan.rate_hz, place) for place in self._places)
        self._hangup = HangUp(plan.policy, plan.rate_hz, plan.first_speaker, verified)

    async def hold(self) -> CallEnd:
        """Hold the call to its end; never raises for what a peer did."""
        self._emit(None, "call.started", self._header())
        fault = await self._open()
        reason = "error" if fault is not None else await self._converse()
        await self._close()
        self._emit(None, "late", self._lateness())
        fields: dict[str, Json] = {
            "termination_reason": reason,
            "decided_by": self._hangup.decided_by,
            "policy": self._completion_policy(),
            "position": self._engine.position,
            "counts": self._counts(),
        }
        self._emit(None, "call.ended", fields)
        self._recorder.close()
        return CallEnd(reason=reason, position=self._engine.position, fault=self._fatal)

    # -- opening and closing ------------------------------------------------

    async def _open(self) -> RemoteFault | None:
        """Start both sessions; a side that cannot start ends the call."""
        starts = [asyncio.ensure_future(part.start(self._clock)) for part in self._parts]
        results = await asyncio.gather(*starts, return_exceptions=True)
        for side, outcome in zip(Side, results, strict=True):
            if isinstance(outcome, SessionError):
                self._fault(side, outcome.stage, outcome.code, str(outcome), fatal=True)
            elif isinstance(outcome, BaseException):
                raise outcome
        return self._fatal

    async def _close(self) -> None:
        if self._observer is not None:
            await self._observer.close()
        await asyncio.gather(*(part.finish() for part in self._parts))
        await asyncio.gather(*(part.abort() for part in self._parts))
        self._engine.finish()
        self._take_in(feed=False)
        self._record_engine_events()
        for side in Side:
            for happening in self._places[side].flush():
                self._emit_happening(side, happening)

    # -- the loop -----------------------------------------------------------

    async def _converse(self) -> str:
        """Tick until somebody has a reason to stop; return it."""
        self._clock.begin()
        if self._observer is not None:
            self._observer.begin(self._clock)
        engine = self._engine
        try:
            while True:
                await self._clock.advance(engine.position + engine.tick)
                self._take_in(feed=True)
                self._judge_lateness()
                self._tick()
                reason = self._hangup.reason(engine.position)
                if self._fatal is not None:
                    return "error"
                if self._stop():
                    return "user_stopped"
                if reason is not None and reason.endswith("_opening"):
                    self._never_spoke(reason)
                    return "error"
                if reason is not None:
                    return reason
        except asyncio.CancelledError:
            return "user_stopped"

    def _never_spoke(self, stage: str) -> None:
        side = Side.CALLER if stage.startswith("caller") else Side.ASSISTANT
        message = f"{side.label} was not heard within {self.plan.policy.opening_ms} ms"
        self._fault(side, stage, "never_spoke", message, fatal=True)

    def _take_in(self, *, feed: bool) -> None:
        """Drain both inboxes in (side, sequence) order."""
        for side, part in zip(Side, self._parts, strict=True):
            for item in part.collect():
                if isinstance(item, Spoken):
                    if feed:
                        self._feed(side, item)
                elif isinstance(item, Discarded):
                    self._discard(side, item.samples)
                elif isinstance(item, RemoteFault):
                    self._take_fault(item)
                else:
                    self._take_happening(side, item)

    def _feed(self, side: Side, item: Spoken) -> None:
        self._arrivals[side].fed(item, self._engine.position, self._clock.position)
        accepted = self._engine.feed(side, item.pcm)
        self._places[side].fed(len(item.pcm), accepted)
        if accepted < len(item.pcm):
            message = f"{len(item.pcm) - accepted} samples came faster than they can be played"
            self._fault(side, "transport", "audio_queue_overflow", message)

    def _discard(self, side: Side, samples: int) -> None:
        """Note what a participant threw away before it could be played."""
        self._discarded[side] += samples
        start = self._engine.position
        fields: dict[str, Json] = {"kind": Playout.DISCARD, "samples": samples, "start": start}
        self._emit(side, "playout", fields)

    def _counts(self) -> dict[str, Json]:
        """The engine's totals, with what participants discarded themselves among them."""
        counts = self._engine.counts()
        sides = [asdict(counts.of(side)) for side in Side]
        for side, of_side in zip(Side, sides, strict=True):
            of_side["accepted"] += self._discarded[side]
            of_side["discarded"] += self._discarded[side]
        return {**asdict(counts), **{side.label: sides[side] for side in Side}}

    def _tick(self) -> None:
        engine = self._engine
        start = engine.position
        engine.advance(1)
        self._record_engine_events()
        counts = engine.counts()
        heard = (engine.heard(Side.CALLER), engine.heard(Side.ASSISTANT))
        self._recorder.append(
            heard[Side.ASSISTANT],
            heard[Side.CALLER],
            engine.spoken(Side.CALLER),
            engine.spoken(Side.ASSISTANT),
        )
        if not self._legs.clean:
            self._recorder.append_legs(self._legs.tick())
        for side, part in zip(Side, self._parts, strict=True):
            gone = counts.of(side).played + counts.of(side).discarded
            labels = self._places[side].note(engine.position, gone)
            told = (*labels, *self._arrivals[side].ready(), *self._legs.happened(side))
            for happening in told:
                self._emit_happening(side, happening)
            part.hear(start, np.array(heard[side]))
        self._observe()
        self._recorder.tick_flush()
        if self._watcher is not None:
            self._watcher.on_tick(engine.position, heard)

    def _observe(self) -> None:
        if self._observer is not None:
            for told in self._observer.look(self._hangup.situation(self._engine.position)):
                self._emit_happening(None, told)
            self._hangup.ruled(self._observer.standing)

    def _completion_policy(self) -> str:
        """The rule by which the call could have ended last, in the contract's words."""
        by_words = self._hangup.by_words
        return "verified_state_and_closing" if by_words else "semantic_conversation_observer"

    def _record_engine_events(self) -> None:
        self._hangup.speaking(self._engine.position, self._engine.speaking)
        for event in self._engine.drain():
            match event:
                case SegmentEvent():
                    self._hangup.segment(event.side, event.start, event.end)
                    fields: dict[str, Json] = {
                        "start": event.start,
                        "end": event.end,
                        "detector": self.plan.detector,
                    }
                    self._emit(event.side, "segment", fields)
                case FloorEvent():
                    self._hangup.floor(event.at, event.holder)
                    self._emit(None, "floor", {"holder": event.holder, "from": event.at})
                case PlayoutEvent():
                    self._place_playout(event)
                    fields = {"kind": event.kind, "samples": event.samples, "start": event.start}
                    self._emit(event.side, "playout", fields)

    def _place_playout(self, event: PlayoutEvent) -> None:
        if event.kind is Playout.DISCARD:
            self._places[event.side].discarded(event.samples)
        else:
            self._places[event.side].moved(event.start, event.samples)

    # -- what participants tell ---------------------------------------------

    def _take_happening(self, side: Side, happening: Happening) -> None:
        self._hangup.happening(side, happening)
        for ready in self._places[side].place(happening):
            self._emit_happening(side, ready)
        if happening.type == "voice.late":
            self._judge_voice(side, happening)

    def _judge_voice(self, side: Side, happening: Happening) -> None:
        """Speech that came too late, or ran dry in mid-utterance, is our own fault."""
        late, what = happening.fields.get("late_ms"), str(happening.fields.get("what"))
        if isinstance(late, (int, float)) and late > LATE_SPEECH_MS.get(what, 1500):
            message = f"the {side.label}'s {what} was {late:.0f} ms behind its declared time"
            self._fault(side, "platform_late", what, message, fatal=True)

    def _judge_lateness(self) -> None:
        late = self._clock.lateness_ms[-1] if self._clock.lateness_ms else 0.0
        if late > LATE_TICK_MS:
            message = f"this machine was {late:.0f} ms late for a tick, allowed {LATE_TICK_MS:.0f}"
            self._fault(Side.CALLER, "platform_late", "late_tick", message, fatal=True)

    def _fault(
        self, side: Side, stage: str, code: str, message: str, *, fatal: bool = False
    ) -> None:
        self._take_fault(
            RemoteFault(side=side, stage=stage, code=code, message=message, fatal=fatal)
        )

    def _take_fault(self, fault: RemoteFault) -> None:
        if fault.fatal and self._fatal is None:
            self._fatal = fault
        fields: dict[str, Json] = {
            "stage": fault.stage,
            "code": fault.code,
            "message": fault.message,
            "fatal": fault.fatal,
        }
        self._emit(fault.side, "fault", fields)

    def _emit_happening(self, side: Side | None, happening: Happening) -> None:
        self._emit(side, happening.type, happening.fields, happening.received_at)

    def _emit(
        self,
        side: Side | None,
        kind: str,
        fields: Mapping[str, Json],
        received_at: float | None = None,
    ) -> None:
        event = Event(
            seq=self._seq,
            at=self._engine.position,
            side=side,
            type=kind,
            fields=fields,
            received_at=received_at if received_at is not None else self._clock.elapsed(),
        )
        self._seq += 1
        self._recorder.event(event)
        if self._observer is not None:
            self._observer.on_event(event)
        if self._watcher is not None:
            self._watcher.on_event(event)

    # -- first and last lines -----------------------------------------------

    def _header(self) -> dict[str, Json]:
        plan = self.plan
        return {
            "rate_hz": plan.rate_hz,
            "transport_ms": plan.transport_ms,
            "tick_ms": plan.tick_ms,
            "seed": plan.seed,
            "clock": "virtual" if self._clock.virtual else "wall",
            "first_speaker": plan.first_speaker,
            "scenario_id": plan.scenario_id,
            "condition": str(plan.line.condition),
            "realism": plan.line.condition.as_json(plan.line.seed),
            "versions": dict(plan.versions),
        }

    def _lateness(self) -> dict[str, Json]:
        """Summarise how late ticks were; a tick counts as late above 1 ms."""
        late = [ms for ms in self._clock.lateness_ms if ms > 1.0]
        if not late:
            return {"ticks": 0, "p99_ms": 0.0, "max_ms": 0.0}
        return {
            "ticks": len(late),
            "p99_ms": round(float(np.percentile(self._clock.lateness_ms, 99)), 3),
            "max_ms": round(max(late), 3),
        }

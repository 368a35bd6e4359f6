"""A booking call as events, made by hand: the base that grading and results tests bend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from duplex.scenario import Scenario, load
from duplex.values import Event, Json, Side

RATE_HZ = 24_000
SCENARIOS = Path(__file__).parent.parent / "scenarios"
BOOKED: dict[str, Json] = {
    "reservation_created": True,
    "guest_name": "Maya",
    "date": "2026-08-07",
    "time": "19:00",
    "party_size": 2,
}
SLOT: dict[str, Json] = {"date": "2026-08-07", "time": "19:00", "party_size": 2}


def booking() -> Scenario:
    return load(SCENARIOS / "restaurant_booking_complete.json").scenarios[0]


class Log:
    """Writes events by millisecond; :meth:`events` gives them as the loop would."""

    def __init__(self, **header: Json) -> None:
        self._events: list[Event] = []
        fields: dict[str, Json] = {
            "rate_hz": RATE_HZ,
            "transport_ms": 20,
            "tick_ms": 200,
            "seed": 7,
            "clock": "virtual",
            "first_speaker": "assistant",
            "scenario_id": "restaurant_booking_complete",
        }
        self.add(0, None, "call.started", **fields | header)

    def add(self, at_ms: int, side: Side | None, kind: str, **fields: Json) -> Log:
        at = at_ms * RATE_HZ // 1000
        event = Event(seq=len(self._events), at=at, side=side, type=kind, fields=fields)
        self._events.append(event)
        return self

    def say(
        self, side: Side, start_ms: int, end_ms: int, text: str, action: str | None = None
    ) -> Log:
        """One line, spoken aloud."""
        span: dict[str, Json] = {"start": start_ms * 24, "end": end_ms * 24}
        self.add(end_ms, side, "segment", detector="rms", **span)
        return self.add(end_ms, side, "utterance", text=text, action=action, **span)

    def tool(
        self,
        start_ms: int,
        call_id: str,
        name: str,
        arguments: dict[str, Json],
        status: str = "completed",
    ) -> Log:
        """One tool call that takes 200 ms."""
        self.add(
            start_ms, Side.ASSISTANT, "tool.started",
            call_id=call_id, name=name, arguments=arguments, delegation_id="d1",
        )  # fmt: skip
        return self.add(
            start_ms + 200, Side.ASSISTANT, "tool.ended",
            call_id=call_id, status=status, result=None, error=None,
        )  # fmt: skip

    def state(self, at_ms: int, state: Json) -> Log:
        return self.add(at_ms, Side.ASSISTANT, "state", state=state)

    def end(self, at_ms: int, reason: str = "response_completed") -> Log:
        return self.add(
            at_ms, None, "call.ended", termination_reason=reason, position=at_ms * 24, counts={}
        )

    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def without(self, drop: Callable[[Event], bool]) -> tuple[Event, ...]:
        return tuple(event for event in self._events if not drop(event))


def booking_call() -> Log:
    """The booking of the seed, gone well: seven lines, one delegation, two tools."""
    caller, assistant = Side.CALLER, Side.ASSISTANT
    log = Log().state(0, {})
    log.say(assistant, 500, 2000, "Good day, this is the restaurant. How can I help?")
    log.say(caller, 2600, 5000, "A table for August seventh, please.", "OPENING")
    log.say(assistant, 6000, 8000, "Under what name, and for how many people?")
    log.say(caller, 8600, 10000, "For two, under Maya.", "SPEAK")
    log.add(10000, caller, "agenda", item_id="name_and_party", status="completed")
    log.say(assistant, 11000, 12000, "And at what time?")
    log.say(caller, 12500, 13500, "At seven p.m.", "SPEAK")
    log.add(13500, caller, "agenda", item_id="time", status="completed")
    log.add(14000, assistant, "delegation.created", delegation_id="d1", target="client")
    log.tool(14200, "c1", "check_availability", {**SLOT})
    log.tool(14600, "c2", "create_reservation", {**SLOT, "guest_name": "Maya"})
    log.state(14800, BOOKED)
    log.add(15000, assistant, "delegation.closed", delegation_id="d1", ok=True)
    log.say(assistant, 15500, 18000, "Your table is booked for Maya, two people, at seven.")
    log.say(caller, 18600, 20000, "Thank you, goodbye.", "STOP")
    log.add(20000, caller, "agenda", item_id="goodbye", status="completed")
    log.add(20000, caller, "caller.finished", outcome="completed")
    log.add(22000, assistant, "session.usage", seconds=22.0, final=True)
    return log.end(22000)

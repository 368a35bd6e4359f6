"""The timing block as strict JSON, every null with its reason.

Names and shapes are those of the interface; milliseconds are rounded to the
microsecond, and only here. It computes no number: what is not in the block is
null. ``unknown`` maps the JSON pointer of a null, or of the object that holds
nothing but nulls, to why it is one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from duplex.metrics.floor import floor_json, share_json
from duplex.metrics.intervals import Runs, clip, intersect, longest, total
from duplex.metrics.relay import clock_json, clock_unknown
from duplex.metrics.responses import NO_LATENCY
from duplex.metrics.speech import EdgeError
from duplex.metrics.stats import Distribution, Rate
from duplex.metrics.timing_policy import milliseconds
from duplex.metrics.turns import Turn
from duplex.metrics.voices import Voice, VoiceKind
from duplex.metrics.yielding import SELECTIVE, BargeIn, Event
from duplex.values import Json, Side

if TYPE_CHECKING:
    from duplex.metrics.timing import TimingBlock

_NO_FACTS = "only a live call's own log knows it"
_UNTOLD = "the call ended before it could be told"


def block_json(block: TimingBlock) -> dict[str, Json]:
    """The whole block; see ``definitions.py`` for what the names mean."""
    writer = _Writer(block)
    document: dict[str, Json] = {
        "timing_version": block.version,
        "detector": block.detector,
        "policy": block.policy.as_json(),
        "floor": floor_json(block.floor, block.rate_hz),
        "floor_share": writer.known("/floor_share", share_json(block.floor), "an empty call"),
        **writer.distributions(),
        **writer.rates(),
        **writer.ratios(),
        "ledger": dict(dataclasses.asdict(block.ledger)),
        "awkward_silence": _awkward(block),
        "unanswered_turns": _unanswered(block),
        "turn_taking_score": writer.known(
            "/turn_taking_score", _round(block.taking.value, 6), block.taking.why
        ),
        "turn_taking": {"n": block.taking.n, **_some(why=block.taking.why)},
        "tick_panel": writer.panel(),
        "clock": writer.clock(),
        "turns": writer.turns(),
        "backchannels": writer.backchannels(),
        "sounds": writer.sounds(),
        "segments": writer.segments(),
    }
    document["unknown"] = writer.unknown
    return document


class _Writer:
    """Writes the parts that can be null, and keeps the reasons."""

    def __init__(self, block: TimingBlock) -> None:
        self._block = block
        self._talk = block.talk
        self._both = intersect(block.talk.runs(Side.CALLER), block.talk.runs(Side.ASSISTANT))
        self._barge_ins = {found.turn: found for found in block.yielding.barge_ins}
        self.unknown: dict[str, Json] = {}

    def known(self, pointer: str, value: Json, why: str | None) -> Json:
        """The value; a null is entered with its reason."""
        if value is None:
            self.unknown[pointer] = why or "not measured"
        return value

    def distributions(self) -> dict[str, Json]:
        block, relay = self._block, self._block.relay
        greeting = block.greeting_latency
        return {
            "response_latency": self._spread("/response_latency", block.response_latency),
            "first_byte_latency": self._spread("/first_byte_latency", relay.first_byte),
            "first_audio_latency": self._spread("/first_audio_latency", relay.first_audio),
            "relay": {
                "total_ms": self._spread("/relay/total_ms", relay.total),
                "assistant_own_ms": self._spread("/relay/assistant_own_ms", relay.own),
                "hold_ms": self._spread("/relay/hold_ms", relay.hold),
                "tick_wait_ms": self._spread("/relay/tick_wait_ms", relay.tick_wait),
                "transport_ms": self._spread("/relay/transport_ms", relay.transport),
                "line_ms": self._spread("/relay/line_ms", relay.line),
            },
            "greeting_latency": self.known(
                "/greeting_latency",
                None if greeting is None else self._ms(greeting),
                "the assistant did not speak first",
            ),
            "time_to_yield": self._spread("/time_to_yield", block.time_to_yield),
        }

    def rates(self) -> dict[str, Json]:
        block = self._block
        false_yield = block.false_yield
        return {
            "response_rate": self._rate("/response_rate", block.response_rate, "no caller turn"),
            "yield_rate": self._rate("/yield_rate", block.yield_rate, "no barge-in"),
            "false_yield": {
                "count": false_yield.numerator,
                **self._rate("/false_yield", false_yield, "nothing to yield to falsely"),
                "causes": self._causes(),
            },
            "selectivity": {
                name: self._selectivity(name, kind) for name, kind in SELECTIVE.items()
            },
            "eot_misprediction": block.responses.mispredictions,
            "agent_interruption": self._rate(
                "/agent_interruption", block.agent_interruption, "no caller turn"
            ),
        }

    def ratios(self) -> dict[str, Json]:
        floor, nobody = self._block.floor, "nobody spoke"
        caller, assistant = floor.caller + floor.overlap, floor.assistant + floor.overlap
        shares: Json = None
        if floor.duration:
            shares = {
                "caller": round(caller / floor.duration, 6),
                "assistant": round(assistant / floor.duration, 6),
            }
        union = _ratio(floor.overlap, floor.speech)
        summed = _ratio(floor.overlap, caller + assistant)
        talked = _ratio(assistant, caller)
        return {
            "overlap_ratio": self.known("/overlap_ratio", union, nobody),
            "overlap_ratio_sum": self.known("/overlap_ratio_sum", summed, nobody),
            "talk_ratio": self.known("/talk_ratio", talked, "the caller did not speak"),
            "talk_share": self.known("/talk_share", shares, "an empty call"),
        }

    def panel(self) -> Json:
        panel = self._block.panel.as_json()
        for name, value in panel.items():
            self.known(f"/tick_panel/{name}", value, "no such event in the call")
        return panel

    def clock(self) -> Json:
        if self._block.clock is None:
            return self.known("/clock", None, _NO_FACTS)
        document = clock_json(self._block.clock)
        why = clock_unknown(self._block.clock)
        for pointer in _nulls(document):
            self.unknown[f"/clock{pointer}"] = why.get(pointer, "the call did not record it")
        return document

    def turns(self) -> Json:
        order = sorted(
            (turn.start, side, index)
            for side in Side
            for index, turn in enumerate(self._talk.turns[side])
        )
        place = {(side, index): at for at, (_, side, index) in enumerate(order)}
        return [self._turn(at, side, index, place) for at, (_, side, index) in enumerate(order)]

    def backchannels(self) -> Json:
        kind = VoiceKind.BACKCHANNEL
        events = {e.start: e for e in self._block.yielding.events if e.kind is kind}
        found: list[Json] = []
        for voice in self._both_sides():
            event = events.get(voice.start) if voice.side is Side.CALLER else None
            if voice.kind is kind or event is not None:
                found.append(
                    {
                        **self._span(voice),
                        "labelled": voice.label is not None,
                        "inferred": voice.inferred is kind,
                        **self._reaction(f"/backchannels/{len(found)}", event),
                    }
                )
        return found

    def sounds(self) -> Json:
        events = [e for e in self._block.yielding.events if e.kind is not VoiceKind.BACKCHANNEL]
        return [
            {
                "kind": event.kind.value,
                "start_ms": self._ms(event.start),
                "end_ms": self._ms(event.end),
                **self._reaction(f"/sounds/{index}", event),
            }
            for index, event in enumerate(events)
        ]

    def segments(self) -> Json:
        return [
            {
                **self._span(voice),
                "kind": voice.kind.value,
                "inferred": voice.inferred.value,
                **({} if voice.label is None else {"label": voice.label.value}),
                "onset": _edge(voice.onset),
                "offset": _edge(voice.offset),
            }
            for voice in self._both_sides()
        ]

    def _turn(
        self, at: int, side: Side, index: int, place: dict[tuple[Side, int], int]
    ) -> dict[str, Json]:
        turn = self._talk.turns[side][index]
        document: dict[str, Json] = {
            "side": side.label,
            "start_ms": self._ms(turn.start),
            "end_ms": self._ms(turn.end),
            "voice_ms": self._ms(total(_runs(turn))),
            "overlap_ms": self._ms(total(clip(self._both, turn.start, turn.end))),
        }
        if side is Side.CALLER:
            return {**document, **self._caller_turn(at, index, place)}
        return {**document, **self._assistant_turn(at, index, place)}

    def _caller_turn(
        self, at: int, index: int, place: dict[tuple[Side, int], int]
    ) -> dict[str, Json]:
        fate = self._block.responses.fates[index]
        turn = self._talk.turns[Side.CALLER][index]
        score = self._block.taking.scores[index]
        pointer = f"/turns/{at}"
        self.known(f"{pointer}/response_latency_ms", None, "it stands with the assistant's turn")
        reply = None if fate.reply is None else place[Side.ASSISTANT, fate.reply]
        return {
            "response_latency_ms": None,
            "outcome": fate.outcome.value,
            "answered_by": self.known(f"{pointer}/answered_by", reply, fate.why),
            **_some(why=fate.why, waited_ms=self._ms_of(fate.waited)),
            "actions": [action.value for action in turn.actions],
            "cut_ins": len(fate.cut_ins),
            **self._yielded(pointer, self._barge_ins.get(index)),
            "turn_taking_score": self.known(
                f"{pointer}/turn_taking_score", _round(score, 6), fate.why or _UNTOLD
            ),
        }

    def _yielded(self, pointer: str, barge_in: BargeIn | None) -> dict[str, Json]:
        if barge_in is None:
            self.known(f"{pointer}/yielded", None, "no barge-in")
            return {"barge_in": False, "yielded": None}
        return {
            "barge_in": True,
            "yielded": self.known(f"{pointer}/yielded", barge_in.yielded, _UNTOLD),
            "stop_after_ms": self._ms(barge_in.stop_after),
            **_some(stop_plus_minus_ms=_round(barge_in.plus_minus_ms)),
        }

    def _assistant_turn(
        self, at: int, index: int, place: dict[tuple[Side, int], int]
    ) -> dict[str, Json]:
        reply = self._block.responses.replies[index]
        live = self._block.relay.replies[index]
        pointer = f"/turns/{at}"
        why = NO_LATENCY.get(reply.kind)
        answers = None if reply.answers is None else place[Side.CALLER, reply.answers]
        return {
            "response_latency_ms": self.known(
                f"{pointer}/response_latency_ms", self._ms_of(reply.latency), why
            ),
            "yielded": self.known(f"{pointer}/yielded", None, "only a caller can barge in"),
            "kind": reply.kind.value,
            "unreliable": reply.unreliable,
            **_some(
                plus_minus_ms=_round(reply.plus_minus_ms),
                answers=answers,
                first_byte_latency_ms=_round(live.first_byte_ms),
                first_audio_latency_ms=_round(live.first_audio_ms),
                relay_ms=_round(live.relay_ms),
                assistant_own_ms=_round(live.own_ms),
                hold_ms=_round(live.hold_ms),
            ),
        }

    def _selectivity(self, name: str, kind: VoiceKind) -> dict[str, Json]:
        events = [event for event in self._block.yielding.events if event.kind is kind]
        rate = self._rate(
            f"/selectivity/{name}", self._block.selectivity(name), "no such event to react to"
        )
        return {**rate, "labelled": sum(event.labelled for event in events)}

    def _causes(self) -> Json:
        causes: dict[str, Json] = {}
        for name, rate in self._block.false_yield_causes.items():
            pointer = f"/false_yield/causes/{name}"
            counts: Json = None
            if rate is not None:
                counts = {"count": rate.numerator, "n": rate.denominator}
            causes[name] = self.known(pointer, counts, "no echo of the assistant is known")
        return causes

    def _spread(self, pointer: str, found: Distribution) -> Json:
        self.unknown |= found.unknown(pointer)
        return found.as_json()

    def _rate(self, pointer: str, rate: Rate, why: str) -> dict[str, Json]:
        self.unknown |= rate.unknown(pointer, why)
        return rate.as_json()

    def _reaction(self, pointer: str, event: Event | None) -> dict[str, Json]:
        """How the assistant took it; nothing for what was not the caller's."""
        if event is None:
            return {}
        why = "there was nothing to be seen"
        return {
            "assistant_speaking": event.speaking,
            "error": self.known(f"{pointer}/error", event.error, why),
        }

    def _span(self, voice: Voice) -> dict[str, Json]:
        return {
            "side": voice.side.label,
            "start_ms": self._ms(voice.start),
            "end_ms": self._ms(voice.end),
        }

    def _both_sides(self) -> list[Voice]:
        everything = [voice for side in Side for voice in self._talk.voices[side]]
        return sorted(everything, key=lambda voice: (voice.start, voice.side))

    def _ms(self, count: int) -> float:
        return milliseconds(count, self._block.rate_hz)

    def _ms_of(self, count: int | None) -> float | None:
        return None if count is None else self._ms(count)


def _awkward(block: TimingBlock) -> Json:
    found = block.responses.awkward
    return {
        "count": len(found),
        "ms": milliseconds(total(found), block.rate_hz),
        "longest_ms": milliseconds(longest(found), block.rate_hz),
        "spans": [
            {
                "start_ms": milliseconds(start, block.rate_hz),
                "end_ms": milliseconds(end, block.rate_hz),
            }
            for start, end in found
        ],
    }


def _unanswered(block: TimingBlock) -> Json:
    ledger = block.ledger
    return {
        "count": ledger.unanswered + ledger.late,
        "never": ledger.unanswered,
        "late": ledger.late,
        "censored": ledger.censored,
    }


def _runs(turn: Turn) -> Runs:
    return tuple((voice.start, voice.end) for voice in turn.voices)


def _edge(edge: EdgeError) -> Json:
    width = _some(plus_minus_ms=_round(edge.plus_minus_ms))
    return {**width, "masked": edge.masked, "unreliable": edge.unreliable}


def _some(**values: Json) -> dict[str, Json]:
    """What is not None: in lists of turns and segments the inapplicable is left out."""
    return {name: value for name, value in values.items() if value is not None}


def _nulls(value: Json, pointer: str = "") -> Iterator[str]:
    """Pointers of the nulls inside a document."""
    if value is None:
        yield pointer
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _nulls(item, f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nulls(item, f"{pointer}/{index}")


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _round(value: float | None, digits: int = 3) -> float | None:
    """Rounded; None also for what no JSON can say."""
    return None if value is None or not math.isfinite(value) else round(value, digits)

"""What an observer of a call is shown: the task, the last turns, the work, the state.

It gathers the events of one call as they are written and gives them out as one JSON
object of bounded size. Its ``revision`` moves with everything that may change a mind.
It decides nothing and asks nobody. ``observer.py`` drives it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duplex.recording import extract
from duplex.values import Event, Json, Side, Span, ToolCall, Utterance

TURNS = 12
"""Turns that are shown, the latest."""
TOOLS = 20
GAP_MS = 500
"""Words of one side this close together are one turn."""
_WORDS = 1_000
"""Characters of a turn, or of a tool's result, that are shown."""
_STATE = 20_000
_EVIDENCE = frozenset(
    {
        "utterance", "transcript", "tool.started", "tool.ended", "state", "commentary", "agenda",
        "delegation.created", "delegation.closed", "run.started", "run.ended", "caller.finished",
    }
)  # fmt: skip
_OWN_ACCOUNT = frozenset({"agenda", "caller.finished"})
"""A caller's account of itself: it makes one look again, but is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a call is about: its goal, what has to be brought about, the state wanted."""

    goal: str
    objectives: tuple[Mapping[str, Json], ...] = ()
    expected_state: Mapping[str, Json] = field(default_factory=dict)


class Seen:
    """The events of one call as evidence of how far it has come."""

    def __init__(self, task: Task, rate_hz: int) -> None:
        self._task = task
        self._rate = rate_hz
        self._events: list[Event] = []
        self._assistant_tells = False
        self._counted = (-1, 0)
        self.revision = 0

    def take(self, event: Event) -> None:
        """Take the next event; what is no evidence is passed over."""
        if event.type not in _EVIDENCE or not self._counts(event):
            return
        self.revision += 1
        if event.type not in _OWN_ACCOUNT:
            self._events.append(event)

    def _counts(self, event: Event) -> bool:
        words = event.type in ("utterance", "transcript")
        said = event.fields.get("direction", "said") == "said"
        if words and said and event.side is Side.ASSISTANT:
            self._assistant_tells = True
        # What the caller heard stands in for an assistant that tells none of its words.
        return not words or said or (event.side is Side.CALLER and not self._assistant_tells)

    @property
    def caller_lines(self) -> int:
        """How often the caller has said something in words."""
        if self._counted[0] != self.revision:
            lines = sum(turn.side is Side.CALLER for turn in self.turns())
            self._counted = (self.revision, lines)
        return self._counted[1]

    def turns(self) -> list[Utterance]:
        """Every turn so far by its start, of the side that said it."""
        gap = GAP_MS * self._rate // 1000
        labelled = list(extract.utterances(self._events))
        sides = {one.side for one in labelled}
        told = [
            Utterance(side=one.side, text=one.text, span=one.span)
            for one in extract.transcripts(self._events)
            if one.direction == "said" and one.side not in sides
        ]
        heard = extract.heard_of_assistant(self._events, gap)
        lines = [one for one in (*labelled, *heard) if one.text.strip()]
        lines += [line for side in Side for line in _runs(told, side, gap) if line.text.strip()]
        return sorted(lines, key=lambda line: (line.span, line.side))

    def data(self, *, verified: bool | None, quiet_ms: int) -> dict[str, Json]:
        """What a model is shown; ``verified`` is None where no state can tell."""
        states = extract.states(self._events)
        return {
            "goal": self._task.goal,
            "objectives": [dict(one) for one in self._task.objectives],
            "expected_state": dict(self._task.expected_state),
            "observed_state": _bounded(states[-1][1] if states else None, _STATE),
            "state_verified": verified,
            "tools": [_tool(call) for call in extract.tool_calls(self._events)[-TOOLS:]],
            "turns": [self._turn(turn) for turn in self.turns()[-TURNS:]],
            "silent_for_ms": quiet_ms,
        }

    def _turn(self, turn: Utterance) -> dict[str, Json]:
        return {
            "speaker": turn.side.label,
            "start_ms": turn.span.start * 1000 // self._rate,
            "end_ms": turn.span.end * 1000 // self._rate,
            "text": turn.text.strip()[:_WORDS],
        }


def _runs(pieces: Sequence[Utterance], side: Side, gap: int) -> list[Utterance]:
    """Join the pieces of one side that follow each other closely."""
    joined: list[Utterance] = []
    for piece in sorted((one for one in pieces if one.side is side), key=lambda one: one.span):
        last = joined[-1] if joined else None
        if last is None or piece.span.start - last.span.end >= gap:
            joined.append(piece)
            continue
        span = Span(start=last.span.start, end=max(last.span.end, piece.span.end))
        joined[-1] = Utterance(side=side, text=last.text + piece.text, span=span)
    return joined


def _tool(call: ToolCall) -> dict[str, Json]:
    return {
        "name": call.name,
        "arguments": _bounded(dict(call.arguments), _WORDS),
        "status": call.status if call.ended_at is not None else "running",
        "result": _bounded(call.result if call.error is None else call.error, _WORDS),
    }


def _bounded(value: Json, limit: int) -> Json:
    """Return the value, or the beginning of its text where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= limit else f"{text[:limit]}…"

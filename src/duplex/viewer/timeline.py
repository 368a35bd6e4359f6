"""What is drawn on a call's timeline: spans in milliseconds and the words beside them.

Spans come from the timing block, or from the segments the live detector found
where there is none. Overlaps and the floor bar are those segments laid over one
another; no figure is taken from the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from duplex.grading import Evidence
from duplex.metrics.intervals import Runs, intersect, merge, subtract
from duplex.recording import Recording
from duplex.values import Json, Side
from duplex.viewer import say
from duplex.viewer.reading import clean, members, number, objects, text

_PER_MS = 1000
"""Spans are laid over one another in whole microseconds, as the block is rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """Voice of both sides in milliseconds, and who found it."""

    caller: tuple[tuple[float, float], ...] = ()
    assistant: tuple[tuple[float, float], ...] = ()
    found_by: str = ""

    def of(self, side: Side) -> tuple[tuple[float, float], ...]:
        return self.caller if side is Side.CALLER else self.assistant

    def runs(self, side: Side) -> Runs:
        return merge((round(a * _PER_MS), round(b * _PER_MS)) for a, b in self.of(side))


def voices(timing: Mapping[str, Json], recording: Recording | None) -> Voices:
    """Segments of the timing block; without them, those of the live detector."""
    found: dict[str, list[tuple[float, float]]] = {side.label: [] for side in Side}
    for segment in objects(timing.get("segments")):
        span, side = _span(segment), text(segment.get("side"))
        if span is not None and side in found:
            found[side].append(span)
    by = f"{text(timing.get('detector')) or 'unnamed'} detector"
    if "segments" not in timing and recording is not None:
        by = "live detector, not measured again"
        for live in recording.segments:
            start, end = recording.ms(live.span.start), recording.ms(live.span.end)
            found[live.side.label].append((start, end))
    return Voices(caller=tuple(found["caller"]), assistant=tuple(found["assistant"]), found_by=by)


def tracks(
    timing: Mapping[str, Json], spoken: Voices, evidence: Evidence, duration_ms: float
) -> dict[str, Json]:
    """Everything the timeline draws besides the waveforms."""
    turns = objects(timing.get("turns"))
    both = intersect(spoken.runs(Side.CALLER), spoken.runs(Side.ASSISTANT))
    return {
        "found_by": spoken.found_by,
        "segments": [
            {"side": side.label, "start": start, "end": end}
            for side in Side
            for start, end in spoken.of(side)
        ],
        "overlaps": _runs_json(both),
        "floor": [
            *_held("caller", subtract(spoken.runs(Side.CALLER), both)),
            *_held("assistant", subtract(spoken.runs(Side.ASSISTANT), both)),
            *_held("both", both),
        ],
        "turns": [_turn(index, turn) for index, turn in enumerate(turns) if _span(turn)],
        "brackets": [bracket for turn in turns if (bracket := _bracket(turn)) is not None],
        "marks": [*_marks(timing), *_silences(timing)],
        "work": _work(evidence, duration_ms),
        "faults": [
            {"at": fault.at_ms, "tip": f"fault, {clean(fault.stage)}: {clean(fault.message)}"}
            for fault in evidence.faults
        ],
    }


def turn_rows(timing: Mapping[str, Json]) -> list[Json]:
    """The table of turns, each row with the span it jumps to."""
    rows: list[Json] = []
    for index, turn in enumerate(objects(timing.get("turns"))):
        span = _span(turn)
        if span is None:
            continue
        overlap = number(turn.get("overlap_ms"))
        rows.append(
            {
                "index": index,
                "side": _side(turn),
                "start": span[0],
                "end": span[1],
                "cells": [
                    f"{say.clock(span[0])}–{say.clock(span[1])}",
                    latency_words(turn) or "",
                    "" if not overlap else say.ms(overlap),
                    _outcome(turn),
                ],
            }
        )
    return rows


def latency_words(turn: Mapping[str, Json]) -> str | None:
    """``643 ms ±8 ms``, with a warning where the edge is hard to tell; None without one."""
    latency = number(turn.get("response_latency_ms"))
    if latency is None:
        return None
    doubt = ", unreliable edge" if turn.get("unreliable") is True else ""
    return f"{say.ms(latency)} {say.plus_minus(number(turn.get('plus_minus_ms')))}{doubt}"


def _turn(index: int, turn: Mapping[str, Json]) -> Json:
    start, end = _span(turn) or (0.0, 0.0)
    side = _side(turn)
    told = [f"{side} turn, {say.clock(start)} to {say.clock(end)}", _outcome(turn)]
    latency = latency_words(turn)
    if latency is not None:
        told.append(f"heard {latency} after the caller")
    for key, name in (
        ("first_audio_latency_ms", "first audio after"),
        ("relay_ms", "of which relay"),
        ("overlap_ms", "overlap"),
    ):
        value = number(turn.get(key))
        if value:
            told.append(f"{name} {say.ms(value)}")
    outcome = text(turn.get("outcome")) or text(turn.get("kind")) or ""
    return {
        "index": index,
        "side": side,
        "start": start,
        "end": end,
        "outcome": outcome,
        "tip": "\n".join(line for line in told if line),
    }


def _outcome(turn: Mapping[str, Json]) -> str:
    """What became of a turn, in words."""
    told = [(text(turn.get("outcome")) or text(turn.get("kind")) or "").replace("_", " ")]
    told += [action.lower() for item in _list(turn.get("actions")) if (action := text(item))]
    why = text(turn.get("why"))
    if why:
        told.append(why)
    if turn.get("barge_in") is True:
        told.append(_yield_words(turn))
    return ", ".join(word for word in told if word)


def _yield_words(turn: Mapping[str, Json]) -> str:
    after, yielded = number(turn.get("stop_after_ms")), turn.get("yielded")
    if yielded is True and after is not None:
        return f"yielded after {say.ms(after)}"
    return "not yielded to" if yielded is False else "yield not known"


def _bracket(turn: Mapping[str, Json]) -> dict[str, Json] | None:
    """The interval that a turn's number measures, and the number."""
    span = _span(turn)
    if span is None:
        return None
    latency, wait = number(turn.get("response_latency_ms")), number(turn.get("waited_ms"))
    after = number(turn.get("stop_after_ms"))
    if latency is not None:
        words = latency_words(turn) or ""
        width = number(turn.get("plus_minus_ms"))
        kind = "early" if latency < 0 else "latency"
        return _interval(kind, span[0] - latency, span[0], words, plus_minus=width)
    if turn.get("barge_in") is True and after is not None:
        return _interval("yield", span[0], span[0] + after, _yield_words(turn))
    if text(turn.get("outcome")) in ("unanswered", "late") and wait is not None:
        outcome = text(turn.get("outcome")) or ""
        return _interval("missed", span[1], span[1] + wait, f"{outcome} after {say.ms(wait)}")
    return None


def _interval(
    kind: str, start: float, end: float, words: str, plus_minus: float | None = None
) -> dict[str, Json]:
    return {"kind": kind, "start": start, "end": end, "label": words, "plus_minus": plus_minus}


def _marks(timing: Mapping[str, Json]) -> Iterable[Json]:
    """Backchannels, tics and side speech, and how the assistant took them."""
    for key, kind in (("backchannels", "backchannel"), ("sounds", "sound")):
        for item in objects(timing.get(key)):
            span = _span(item)
            if span is None:
                continue
            name = (text(item.get("kind")) or kind).replace("_", " ")
            labelled = item.get("labelled")
            source = "" if labelled is not False else ", inferred"
            taken = {True: "\nthe assistant reacted wrongly", False: "\ntaken rightly"}
            error = item.get("error")
            told = taken[error] if isinstance(error, bool) else ""
            yield {
                "kind": kind,
                "side": _side(item) if "side" in item else "caller",
                "start": span[0],
                "end": span[1],
                "tip": f"{name}{source}, {say.clock(span[0])}{told}",
            }


def _silences(timing: Mapping[str, Json]) -> Iterable[Json]:
    for item in objects(members(timing.get("awkward_silence")).get("spans")):
        span = _span(item)
        if span is not None:
            yield {
                "kind": "silence",
                "side": None,
                "start": span[0],
                "end": span[1],
                "tip": f"awkward silence, {say.clock(span[0])} to {say.clock(span[1])}",
            }


def _work(evidence: Evidence, duration_ms: float) -> list[Json]:
    """Delegations and tool calls as bars; one that never ended runs to the end."""
    bars: list[Json] = []
    for one in evidence.delegations(Side.ASSISTANT):
        state = {True: "done", False: "failed", None: "never closed"}[one.ok]
        bars.append(
            {
                "kind": "delegation",
                "name": f"delegation to {clean(one.target)}",
                "start": one.opened_ms,
                "end": duration_ms if one.closed_ms is None else one.closed_ms,
                "ok": one.ok is True,
                "tip": f"delegation to {clean(one.target)}, {state}\nat {say.clock(one.opened_ms)}",
            }
        )
    for call in evidence.tools:
        bars.append(
            {
                "kind": "tool",
                "name": clean(call.name),
                "start": call.started_ms,
                "end": duration_ms if call.ended_ms is None else call.ended_ms,
                "ok": call.completed,
                "tip": f"tool {clean(call.name)}, {clean(call.status)}\n"
                f"at {say.clock(call.started_ms)}",
            }
        )
    return bars


def _held(holder: str, runs: Runs) -> list[Json]:
    return [{"holder": holder, "start": a / _PER_MS, "end": b / _PER_MS} for a, b in runs]


def _runs_json(runs: Runs) -> list[Json]:
    return [{"start": a / _PER_MS, "end": b / _PER_MS} for a, b in runs]


def _span(item: Mapping[str, Json]) -> tuple[float, float] | None:
    start, end = number(item.get("start_ms")), number(item.get("end_ms"))
    return None if start is None or end is None or end < start else (start, end)


def _side(item: Mapping[str, Json]) -> str:
    return "assistant" if item.get("side") == "assistant" else "caller"


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []

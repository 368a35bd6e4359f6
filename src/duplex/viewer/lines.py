"""The transcript of a call: what was said, and the work between the lines.

Every line has the span it jumps to. Words placed from a transcript after the
fact are marked as inferred. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from duplex.grading import Evidence
from duplex.metrics.intervals import Runs, clip
from duplex.recording import Recording
from duplex.values import Action, Json, Side
from duplex.viewer import say
from duplex.viewer.reading import clean, number, objects, pretty
from duplex.viewer.timeline import Voices, latency_words
from duplex.viewer.words_rows import Hearing, heard_lines, same_line

_US = 1000


def lines(
    evidence: Evidence,
    recording: Recording | None,
    timing: Mapping[str, Json],
    spoken: Voices,
    duration_ms: float,
    words: Mapping[str, Json],
) -> list[Json]:
    """All lines by their start."""
    told, untold = heard_lines(words)
    found = [
        *_heard(_said(evidence, timing, spoken), told),
        *_untold(untold),
        *_tools(evidence, duration_ms),
        *_handovers(evidence, duration_ms),
        *_faults(evidence),
        *(() if recording is None else _notes(recording)),
    ]
    return [line for _, line in sorted(found, key=lambda item: item[0])]


_Placed = tuple[float, dict[str, Json]]


def _line(
    kind: str, start: float, end: float, words: str, *, side: str = "", tags: Iterable[str] = ()
) -> _Placed:
    line: dict[str, Json] = {
        "kind": kind,
        "side": side,
        "start": start,
        "end": end,
        "at": say.clock(start),
        "text": words,
        "tags": list(tags),
        "latency": "",
        "details": [],
    }
    return start, line


def _said(evidence: Evidence, timing: Mapping[str, Json], spoken: Voices) -> Iterable[_Placed]:
    waiting = [
        (start, end, words)
        for turn in objects(timing.get("turns"))
        if turn.get("side") == "assistant"
        and (words := latency_words(turn)) is not None
        and (start := number(turn.get("start_ms"))) is not None
        and (end := number(turn.get("end_ms"))) is not None
    ]
    for one in evidence.spoken:
        plain = one.action in (None, Action.SPEAK)
        tags = [] if one.action is None or plain else [one.action.value.lower()]
        if _overlaps(one.start_ms, one.end_ms, spoken.runs(one.side.other)):
            tags.append("overlap")
        if one.source == "heard":
            tags.append("as the caller heard it")
        if one.source == "transcript":
            tags.append("inferred")
        start, line = _line(
            "said", one.start_ms, one.end_ms, clean(one.text), side=one.side.label, tags=tags
        )
        if one.side is Side.ASSISTANT:
            answers = next((w for w in waiting if w[0] < one.end_ms and w[1] > one.start_ms), None)
            if answers is not None:
                # A turn's latency stands with the first line of it.
                waiting.remove(answers)
                line["latency"] = answers[2]
        yield start, line


def _heard(said: Iterable[_Placed], told: list[Hearing]) -> Iterable[_Placed]:
    """Lines with what ears of ours made of them, and the other side where it erred."""
    for start, line in said:
        details: list[Json] = []
        for one in told:
            worth = one.errors or one.ours
            if worth and same_line(one, str(line["side"]), start):
                errors = f" ({one.errors} wrong)" if one.errors else ""
                details.append(
                    {"name": f"heard by {one.heard_by}{errors}", "text": one.heard or "nothing"}
                )
        line["details"] = details
        yield start, line


def _untold(untold: list[Hearing]) -> Iterable[_Placed]:
    """Words that only ears of ours know of."""
    for one in untold:
        tags = [f"heard by {one.heard_by}"]
        yield _line("said", one.start_ms, one.end_ms, one.heard, side=one.side, tags=tags)


def _overlaps(start_ms: float, end_ms: float, runs: Runs) -> bool:
    return bool(clip(runs, round(start_ms * _US), round(end_ms * _US)))


def _tools(evidence: Evidence, duration_ms: float) -> Iterable[_Placed]:
    for call in evidence.tools:
        end = duration_ms if call.ended_ms is None else call.ended_ms
        tags = [clean(call.status)]
        start, line = _line("tool", call.started_ms, end, clean(call.name), tags=tags)
        details: list[Json] = [{"name": "arguments", "text": pretty(dict(call.arguments))}]
        if call.result is not None:
            details.append({"name": "result", "text": pretty(call.result)})
        if call.error is not None:
            details.append({"name": "error", "text": clean(call.error)})
        line["details"] = details
        yield start, line


def _handovers(evidence: Evidence, duration_ms: float) -> Iterable[_Placed]:
    for one in evidence.handoffs:
        end = duration_ms if one.closed_ms is None else one.closed_ms
        state = {True: "done", False: "failed", None: "never closed"}[one.ok]
        words = f"{one.side.label} delegates to {clean(one.target)}"
        yield _line("delegation", one.opened_ms, end, words, tags=[state])


def _faults(evidence: Evidence) -> Iterable[_Placed]:
    for fault in evidence.faults:
        tags = [clean(fault.stage), "ended the call" if fault.fatal else "survived"]
        words = clean(fault.message) or clean(fault.code)
        yield _line("fault", fault.at_ms, fault.at_ms, words, tags=tags)


def _notes(recording: Recording) -> Iterable[_Placed]:
    """Words the application gave the assistant to pass on, and agenda items."""
    for event in recording.events:
        at = recording.ms(event.at)
        words = event.fields.get("text")
        if event.type == "commentary" and isinstance(words, str):
            yield _line("note", at, at, clean(words), tags=["to the assistant"])
        item, status = event.fields.get("item_id"), event.fields.get("status")
        if event.type == "agenda" and isinstance(item, str):
            yield _line("note", at, at, clean(item), tags=["agenda", clean(str(status))])

"""A call in words: the text a person reads, and the same as records.

Lines are ordered by the start of what they tell. Words come from the other end
of a wire, so nothing in them may end a line, move a cursor or turn text
around. Results and the viewer drive it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

from duplex.metrics.intervals import Runs, clip, intersect, merge
from duplex.recording import Recording
from duplex.values import Json, Side, Utterance

_ROLES = {Side.CALLER: "user", Side.ASSISTANT: "assistant"}


def transcript_text(recording: Recording) -> str:
    """The call as lines: speech, delegations, tools and what the backend gave.

    ``USER 120..980ms [OVERLAP]: text``, ``DELEGATION 5120ms: target=client``,
    ``TOOL 5300ms: name=… status=… arguments=… result=…``; empty without any.
    """
    lines = [*_speech_lines(recording), *_work_lines(recording)]
    ordered = sorted(lines, key=lambda line: line[0])
    return "".join(f"{text}\n" for _, text in ordered)


def transcripts(recording: Recording) -> list[dict[str, Json]]:
    """The utterances of both sides as records, by start."""
    voices = _voices(recording)
    return [
        {
            "role": _ROLES[item.side],
            "text": one_line(item.text),
            "start_ms": recording.ms(item.span.start),
            "end_ms": recording.ms(item.span.end),
            "action": item.action.value if item.action is not None else None,
            "source": item.source,
            "overlap": _overlaps(item, voices),
        }
        for item in recording.lines
    ]


def one_line(text: str) -> str:
    """Text without anything that ends a line or steers a terminal."""
    return " ".join("".join(" " if _steers(char) else char for char in text).split())


def _steers(char: str) -> bool:
    # Controls, format characters (bidi overrides), surrogates, line separators.
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _speech_lines(recording: Recording) -> Iterator[tuple[int, str]]:
    voices = _voices(recording)
    for item in recording.lines:
        start, end = recording.ms(item.span.start), recording.ms(item.span.end)
        overlap = " [OVERLAP]" if _overlaps(item, voices) else ""
        role = _ROLES[item.side].upper()
        yield item.span.start, f"{role} {start}..{end}ms{overlap}: {one_line(item.text)}"


def _work_lines(recording: Recording) -> Iterator[tuple[int, str]]:
    for delegation in recording.delegations:
        if delegation.side is Side.CALLER:
            continue
        at = recording.ms(delegation.created_at)
        yield delegation.created_at, f"DELEGATION {at}ms: target={one_line(delegation.target)}"
    for call in recording.tool_calls:
        came = call.error if call.status == "failed" and call.result is None else call.result
        yield (
            call.started_at,
            f"TOOL {recording.ms(call.started_at)}ms: name={one_line(call.name)}"
            f" status={call.status} arguments={_compact(dict(call.arguments))}"
            f" result={_compact(came)}",
        )
    for event in recording.events:
        words = event.fields.get("text")
        if event.type == "commentary" and isinstance(words, str):
            yield event.at, f"BACKEND {recording.ms(event.at)}ms: {one_line(words)}"


def _compact(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return one_line(text)


def _voices(recording: Recording) -> dict[Side, Runs]:
    """When each side was heard: the engine's segments, else what was labelled."""
    found = {}
    for side in Side:
        spans = [item.span for item in recording.segments if item.side is side]
        spans = spans or [item.span for item in recording.spoken_by(side)]
        found[side] = merge((span.start, span.end) for span in spans)
    return found


def _overlaps(item: Utterance, voices: dict[Side, Runs]) -> bool:
    """Whether both were heard at once inside the utterance."""
    own = clip(voices[item.side], item.span.start, item.span.end)
    return bool(intersect(own, voices[item.side.other]))

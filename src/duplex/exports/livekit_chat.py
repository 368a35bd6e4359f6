"""One call as LiveKit's chat history: what was said and which tools ran, in order of time.

Lines come from the call's transcript file, tool calls from its events; a call that left
neither has an empty history. Times are those of the audio, counted from when the call
was begun. A message tells of its turn what the agent told of it, in seconds. Reading only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex.errors import DuplexError
from duplex.exports.livekit_ids import item_id, moment, number, some
from duplex.exports.livekit_turns import claims_by_turn, line_turns, stored_turns
from duplex.exports.said import SaidLine
from duplex.inputs import exists
from duplex.recording import extract
from duplex.run_folder import RunFolder
from duplex.values import SESSION_RATE_HZ, Json, ToolCall
from duplex.verdict.case import Case

_ROLES = {"assistant": "ASSISTANT", "user": "USER"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A line of the history, as evidence can name it."""

    id: str
    assistant: bool
    text: str
    start_ms: float | None
    end_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool call; times in ms of the call."""

    call: ToolCall
    start_ms: float
    end_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A call's history, and its messages apart."""

    items: tuple[Json, ...]
    messages: tuple[Message, ...]


def tools_in(folder: Path, call_id: str) -> list[Tool]:
    """The tool calls in a call's events; none where those cannot be read."""
    path = RunFolder(folder).events(call_id)
    if not exists(path):
        return []
    try:
        events, _ = extract.read_events(path)
    except DuplexError:
        return []
    started = next((event for event in events if event.type == "call.started"), None)
    rate = (extract.whole(started.fields, "rate_hz") if started else None) or SESSION_RATE_HZ
    return [
        Tool(
            call=call,
            start_ms=call.started_at * 1000 / rate,
            end_ms=None if call.ended_at is None else call.ended_at * 1000 / rate,
        )
        for call in extract.tool_calls(events)
    ]


def chat_of(case: Case, job: str, lines: Sequence[SaidLine], tools: Sequence[Tool]) -> Chat:
    """The whole history of a job."""
    spoken = [line for line in lines if line.text.strip()]
    messages = tuple(
        Message(
            id=item_id(job, "message", at),
            assistant=line.role == "assistant",
            text=line.text.strip(),
            start_ms=line.start_ms,
            end_ms=line.end_ms,
        )
        for at, line in enumerate(spoken)
    )
    told = _told(case, spoken)
    timed: list[tuple[float, Json]] = [
        (line.start_ms or 0.0, {"message": _message(case, line, message, told[at])})
        for at, (line, message) in enumerate(zip(spoken, messages, strict=True))
    ]
    for at, tool in enumerate(tools):
        timed += _tool(case, job, at, tool)
    timed.sort(key=lambda item: item[0])
    return Chat(items=tuple(item for _, item in timed), messages=messages)


def _message(
    case: Case, line: SaidLine, message: Message, told: Mapping[str, Json]
) -> dict[str, Json]:
    found = some(
        id=message.id,
        role=_ROLES.get(line.role),
        content=[{"text": message.text}],
        extra=some(action=line.action),
        metrics=some(
            startedSpeakingAt=moment(case.started_at, line.start_ms),
            stoppedSpeakingAt=moment(case.started_at, line.end_ms),
            **told,
        ),
        createdAt=moment(case.started_at, line.start_ms),
    )
    if message.assistant:
        found["interrupted"] = _interrupted(case, line)
    return found


def _interrupted(case: Case, line: SaidLine) -> bool:
    """Whether the caller cut in while this was said, and the assistant stopped."""
    if line.start_ms is None or line.end_ms is None:
        return False
    onsets = [
        number(turn.get("start_ms"))
        for turn in stored_turns(case)
        if turn.get("barge_in") is True and turn.get("yielded") is True
    ]
    return any(at is not None and line.start_ms < at <= line.end_ms for at in onsets)


def _told(case: Case, lines: Sequence[SaidLine]) -> list[dict[str, Json]]:
    """For each line what the agent told of its turn; only the first line of a turn has it."""
    turns, claims = stored_turns(case), claims_by_turn(case)
    delays = {
        answers: number(claim.get("asr_final_ms"))
        for at, claim in claims.items()
        if at < len(turns) and isinstance(answers := turns[at].get("answers"), int)
    }
    found: list[dict[str, Json]] = []
    seen: set[int] = set()
    for line, at in zip(lines, line_turns(turns, lines), strict=True):
        if at is None or at in seen:
            found.append({})
            continue
        seen.add(at)
        own = _claimed(claims.get(at, {})) if line.role == "assistant" else {}
        found.append(own | some(transcriptionDelay=_seconds(delays.get(at))))
    return found


def _claimed(claim: Mapping[str, Json]) -> dict[str, Json]:
    """The stages of a reply, each counted from the one before it."""
    ears, token, sentence, byte = (
        number(claim.get(f"{name}_ms"))
        for name in ("asr_final", "first_token", "first_sentence", "first_byte")
    )
    return some(
        llmNodeTtft=_between(ears, token),
        llmNodeTtfs=_between(ears, sentence),
        ttsNodeTtfb=_between(sentence if sentence is not None else token, byte),
        e2eLatency=_seconds(number(claim.get("claimed_latency_ms"))),
    )


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else _seconds(end - start)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else round(ms / 1000, 6)


def _tool(case: Case, job: str, at: int, tool: Tool) -> list[tuple[float, Json]]:
    call = tool.call
    names = {"name": call.name, "callId": call.call_id}
    began: Json = {
        "functionCall": some(
            id=item_id(job, "call", at),
            **names,
            arguments=_text(dict(call.arguments)),
            createdAt=moment(case.started_at, tool.start_ms),
            extra=some(delegation_id=call.delegation_id),
        )
    }
    if tool.end_ms is None:
        return [(tool.start_ms, began)]
    failed = call.status != "completed"
    ended: Json = {
        "functionCallOutput": some(
            id=item_id(job, "output", at),
            **names,
            output=call.error if failed and call.error else _text(call.result),
            isError=failed,
            createdAt=moment(case.started_at, tool.end_ms),
        )
    }
    return [(tool.start_ms, began), (tool.end_ms, ended)]


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)

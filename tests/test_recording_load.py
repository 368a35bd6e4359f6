"""A recording read back: what happened, from lines that may be damaged."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from duplex.errors import InputError
from duplex.recording import CallRecorder, Recording
from duplex.values import Action, Event, Json, Segment, Side, Span

RATE = 24_000
CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT

STORY: list[tuple[int, Side | None, str, dict[str, Json]]] = [
    (0, None, "call.started", {"rate_hz": RATE, "transport_ms": 20, "tick_ms": 200, "seed": 7}),
    (
        0,
        CALLER,
        "session.started",
        {"session_id": "s1", "model": "m", "voice": "v", "provider": "p"},
    ),
    (0, ASSISTANT, "state", {"state": {"bookings": []}}),
    (4800, CALLER, "segment", {"start": 480, "end": 4800, "detector": "rms"}),
    (5000, CALLER, "transcript", {"direction": "said", "text": "Hi", "start": 480, "end": 4800}),
    (
        5000,
        ASSISTANT,
        "transcript",
        {"direction": "heard", "text": "hi", "start": 480, "end": 4800},
    ),
    (
        5000,
        CALLER,
        "utterance",
        {"text": "Hi", "start": 480, "end": 4800, "action": "OPENING", "source": "caller_intent"},
    ),
    (
        5000,
        ASSISTANT,
        "utterance",
        {"text": "Hello", "start": 100, "end": 400, "action": None, "source": "x"},
    ),
    (6000, ASSISTANT, "delegation.created", {"delegation_id": "d1", "target": "client"}),
    (
        6100,
        ASSISTANT,
        "tool.started",
        {"call_id": "c1", "name": "book", "arguments": {"n": 2}, "delegation_id": "d1"},
    ),
    (
        6200,
        ASSISTANT,
        "tool.ended",
        {"call_id": "c1", "status": "completed", "result": {"ok": True}, "error": None},
    ),
    (6200, ASSISTANT, "state", {"state": {"bookings": [1]}}),
    (
        6300,
        ASSISTANT,
        "tool.started",
        {"call_id": "c2", "name": "book", "arguments": {}, "delegation_id": "d1"},
    ),
    (6400, ASSISTANT, "delegation.closed", {"delegation_id": "d1", "ok": True}),
    (6500, ASSISTANT, "delegation.created", {"delegation_id": "d2", "target": "responses"}),
    (6600, CALLER, "agenda", {"item_id": "name", "status": "completed"}),
    (6600, CALLER, "agenda", {"item_id": "time", "status": "skipped"}),
    (6700, CALLER, "caller.finished", {"outcome": "completed"}),
    (6800, ASSISTANT, "session.usage", {"seconds": 1.5, "final": False}),
    (6800, ASSISTANT, "session.usage", {"seconds": 2.5, "final": True}),
    (6800, ASSISTANT, "backend.usage", {"response_id": "r1", "input_tokens": 5, "total_tokens": 9}),
    (6800, ASSISTANT, "backend.usage", {"response_id": "r1", "input_tokens": 5, "total_tokens": 9}),
    (6900, CALLER, "fault", {"stage": "session", "code": "odd", "message": "m", "fatal": False}),
    (7000, ASSISTANT, "session.closed", {"reason": "done"}),
    (7200, None, "late", {"ticks": 1, "p99_ms": 2.5, "max_ms": 3.5}),
    (
        7200,
        None,
        "call.ended",
        {"termination_reason": "response_completed", "position": 7200, "counts": {"played": 1}},
    ),
]


def record(path: Path, frames: int = 7200) -> Recording:
    with CallRecorder(path, "call", rate_hz=RATE) as recorder:
        for seq, (at, side, kind, fields) in enumerate(STORY):
            recorder.event(Event(seq=seq, at=at, side=side, type=kind, fields=fields))
        audio = np.arange(frames, dtype=np.int16)
        recorder.append(audio, audio, audio, -audio)
    return Recording.load(path, "call")


def test_everything_told_is_in_the_recording(tmp_path: Path) -> None:
    call = record(tmp_path)
    assert (call.rate_hz, call.duration, call.duration_ms) == (RATE, 7200, 300)
    assert (call.transport_ms, call.tick_ms, call.seed) == (20, 200, 7)
    assert (call.ended, call.termination_reason) == (True, "response_completed")
    assert call.counts == {"played": 1}
    assert call.lateness == {"ticks": 1, "p99_ms": 2.5, "max_ms": 3.5}
    assert call.caller_outcome == "completed"
    assert call.agenda == {"name": "completed", "time": "skipped"}
    assert call.segments == (Segment(side=CALLER, span=Span(start=480, end=4800)),)
    assert (call.initial_state, call.final_state) == ({"bookings": []}, {"bookings": [1]})
    assert call.damage == ()


def test_words_are_kept_by_side_and_direction(tmp_path: Path) -> None:
    call = record(tmp_path)
    assert [piece.text for piece in call.words(CALLER, "said")] == ["Hi"]
    assert [piece.text for piece in call.words(ASSISTANT, "heard")] == ["hi"]
    assert call.words(ASSISTANT, "said") == ()
    (label,) = call.spoken_by(CALLER)
    assert (label.action, label.source) == (Action.OPENING, "caller_intent")
    assert [item.text for item in call.utterances] == ["Hello", "Hi"]
    assert call.spoken_by(ASSISTANT)[0].action is None


def test_tool_calls_are_matched_by_id(tmp_path: Path) -> None:
    first, second = record(tmp_path).tool_calls
    assert (first.name, first.arguments, first.status) == ("book", {"n": 2}, "completed")
    assert (first.result, first.started_at, first.ended_at) == ({"ok": True}, 6100, 6200)
    assert (second.status, second.ended_at) == ("failed", None)
    assert second.error == "the call ended before the tool did"


def test_delegations_know_whether_they_closed(tmp_path: Path) -> None:
    closed, left_open = record(tmp_path).delegations
    assert (closed.delegation_id, closed.closed_at, closed.ok) == ("d1", 6400, True)
    assert (left_open.target, left_open.closed_at, left_open.ok) == ("responses", None, None)


def test_sessions_usage_and_faults_are_read(tmp_path: Path) -> None:
    call = record(tmp_path)
    assert (call.caller.session_id, call.caller.seconds) == ("s1", None)
    assert (call.assistant.seconds, call.assistant.final) == (2.5, True)
    assert call.session(ASSISTANT).closed_reason == "done"
    (usage,) = call.backend_usage
    assert (usage.input_tokens, usage.total_tokens, usage.output_tokens) == (5, 9, None)
    assert [fault.code for fault in call.faults] == ["odd"]
    assert call.fatal_fault is None


def test_audio_comes_back_as_it_was_appended(tmp_path: Path) -> None:
    call = record(tmp_path)
    audio = np.arange(7200, dtype=np.int16)
    assert np.array_equal(call.source(CALLER), audio)
    assert np.array_equal(call.source(ASSISTANT), -audio)
    assert np.array_equal(call.conversation(), np.stack([audio, audio], axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_doubled_and_shuffled_lines_change_nothing(tmp_path: Path, seed: int) -> None:
    whole = record(tmp_path)
    path = tmp_path / "events" / "call.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    messy = lines + random.Random(seed).sample(lines, 10)
    random.Random(seed).shuffle(messy)
    path.write_bytes(b"".join(messy))
    assert Recording.load(tmp_path, "call") == whole


def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    whole = record(tmp_path)
    path = tmp_path / "events" / "call.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    call = Recording.load(tmp_path, "call")
    assert call.events == whole.events[:-1]
    assert not call.ended
    assert call.counts is None
    assert call.damage == (f"call.jsonl:{len(STORY)}: the last line is cut and was left out",)


@pytest.mark.parametrize(
    "junk",
    [b"nonsense", b"[1]", b"{}", b'{"seq": "1", "at": 0, "type": "x"}', b"\xff\xfe", b"[" * 9999],
)
def test_lines_that_are_no_events_are_left_out_and_said(tmp_path: Path, junk: bytes) -> None:
    whole = record(tmp_path)
    path = tmp_path / "events" / "call.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], junk + b"\n", *lines[3:]]))
    call = Recording.load(tmp_path, "call")
    assert call.events == whole.events
    assert call.damage == ("call.jsonl:4: is no event and was left out",)


@pytest.mark.parametrize("kind", sorted({kind for _, _, kind, _ in STORY}))
@pytest.mark.parametrize("wrong", [None, -1, "x", [], {"a": []}, 1e300, True])
def test_fields_of_a_wrong_type_are_not_known_and_no_error(
    tmp_path: Path, kind: str, wrong: Json
) -> None:
    (tmp_path / "events").mkdir()
    lines = []
    for seq, (at, side, name, fields) in enumerate(STORY):
        broken = dict.fromkeys(fields, wrong) if name == kind else fields
        label = None if side is None else side.label
        lines.append(json.dumps({"seq": seq, "at": at, "side": label, "type": name, **broken}))
    (tmp_path / "events" / "call.jsonl").write_text("\n".join(lines))
    assert len(Recording.load(tmp_path, "call").events) == len(STORY)


def test_audio_files_of_different_length_are_read_to_the_shortest(tmp_path: Path) -> None:
    record(tmp_path)
    path = tmp_path / "audio" / "call" / "caller_source.wav"
    path.write_bytes(path.read_bytes()[: 44 + 2 * 4800])
    call = Recording.load(tmp_path, "call")
    assert call.duration == len(call.conversation()) == len(call.source(ASSISTANT)) == 4800
    assert any("differ in length" in text for text in call.damage)


def test_a_call_without_audio_still_loads(tmp_path: Path) -> None:
    record(tmp_path)
    for file in (tmp_path / "audio" / "call").iterdir():
        file.unlink()
    call = Recording.load(tmp_path, "call")
    assert call.duration == 7200
    assert "conversation.wav is missing" in call.damage


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        Recording.load(tmp_path / "none", "call")
    with pytest.raises(InputError, match="cannot be read"):
        Recording.load(tmp_path, "call")
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "call.jsonl").write_text("\n")
    with pytest.raises(InputError, match="hold no event"):
        Recording.load(tmp_path, "call")

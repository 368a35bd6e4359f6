"""Contract metrics of a recorded call, and its transcript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.metrics.contract import Settings
from duplex.metrics.from_recording import (
    VOICED_RMS,
    audio_block,
    contract_of,
    timeline_of,
    voiced_runs,
    work_events,
)
from duplex.metrics.labels import is_backchannel
from duplex.metrics.transcript import one_line, transcript_text, transcripts
from duplex.metrics.work import CallEnded, Closed, Opened, RunEnded, RunStarted, active_work
from duplex.recording import CallRecorder, Recording
from duplex.values import Event, Json, Side
from duplex.wavfile import Pcm

RATE = 24_000
CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT
Told = tuple[int, Side | None, str, dict[str, Json]]


def voice(duration_ms: int, spans_ms: Sequence[tuple[int, int]], rate: int = RATE) -> Pcm:
    pcm = np.zeros(duration_ms * rate // 1000, dtype=np.int16)
    for start, end in spans_ms:
        pcm[start * rate // 1000 : end * rate // 1000] = 1000
    return pcm


def record(
    path: Path,
    told: Sequence[Told] = (),
    *,
    caller: Sequence[tuple[int, int]] = (),
    assistant: Sequence[tuple[int, int]] = (),
    duration_ms: int = 20_000,
    tick: int = 480,
) -> Recording:
    """A call whose ``told`` times are in ms; start, end in fields are ms too."""
    left, right = voice(duration_ms, caller), voice(duration_ms, assistant)
    with CallRecorder(path, "call", rate_hz=RATE) as recorder:
        started: Told = (0, None, "call.started", {"rate_hz": RATE})
        for seq, (at, side, kind, fields) in enumerate([started, *told]):
            placed = {
                key: value * RATE // 1000
                if key in ("start", "end") and isinstance(value, int)
                else value
                for key, value in fields.items()
            }
            at_sample = at * RATE // 1000
            recorder.event(Event(seq=seq, at=at_sample, side=side, type=kind, fields=placed))
        for first in range(0, len(left), tick):
            part = slice(first, first + tick)
            recorder.append(left[part], right[part], left[part], right[part])
    return Recording.load(path, "call")


def said(side: Side, start: int, end: int, text: str = "words", action: str | None = None) -> Told:
    source = "caller_intent" if action else "transcript"
    fields: dict[str, Json] = {"text": text, "start": start, "end": end}
    return (end, side, "utterance", {**fields, "action": action, "source": source})


# -- voice ------------------------------------------------------------------------


def test_a_window_is_voiced_from_an_rms_of_220_on() -> None:
    at = np.full(480, VOICED_RMS, dtype=np.int16)
    below = at.copy()
    below[0] -= 1
    assert voiced_runs(at, RATE) == ((0, 480),)
    assert voiced_runs(-at, RATE) == ((0, 480),)
    assert voiced_runs(below, RATE) == ()


def test_full_scale_does_not_overflow() -> None:
    assert voiced_runs(np.full(4800, -32768, dtype=np.int16), RATE) == ((0, 4800),)


def test_a_last_short_window_is_judged_by_its_own_length() -> None:
    pcm = np.zeros(500, dtype=np.int16)
    pcm[480:] = VOICED_RMS
    assert voiced_runs(pcm, RATE) == ((480, 500),)
    assert voiced_runs(np.zeros(0, dtype=np.int16), RATE) == ()


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 24_000, 48_000])
def test_windows_are_20_ms_at_any_rate(rate: int) -> None:
    window = rate // 50
    pcm = np.zeros(window * 10, dtype=np.int16)
    pcm[window * 3 + 1 : window * 5] = 5000
    assert voiced_runs(pcm, rate) == ((window * 3, window * 5),)


@given(st.lists(st.integers(-400, 400), max_size=40), st.integers(1, 12))
def test_voice_agrees_with_a_slow_obvious_reading(values: list[int], each: int) -> None:
    pcm = np.repeat(np.array(values, dtype=np.int16), each)
    rate = 400  # windows of 8 samples
    slow = [False] * len(pcm)
    for start in range(0, len(pcm), 8):
        part = [int(v) for v in pcm[start : start + 8]]
        loud = sum(v * v for v in part) >= 220 * 220 * len(part)
        slow[start : start + 8] = [loud] * len(part)
    fast = [False] * len(pcm)
    for start, end in voiced_runs(pcm, rate):
        fast[start:end] = [True] * (end - start)
    assert fast == slow


def test_long_signals_are_joined_across_blocks() -> None:
    pcm = np.full(480 * 9000 + 7, 1000, dtype=np.int16)
    assert voiced_runs(pcm, RATE) == ((0, len(pcm)),)


# -- the contract -------------------------------------------------------------------


def test_a_recorded_call_is_measured_by_the_contract(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [
            said(CALLER, 1000, 3000, action="OPENING"),
            said(CALLER, 6000, 7000, action="SPEAK"),
            (3000, ASSISTANT, "delegation.created", {"delegation_id": "d", "target": "client"}),
            (5000, ASSISTANT, "delegation.closed", {"delegation_id": "d", "ok": True}),
        ],
        caller=[(1000, 3000), (6000, 7000)],
        assistant=[(4000, 5500)],
    )
    metrics = contract_of(call)
    assert metrics.effective_end_ms == 20_000
    assert metrics.response_latencies_ms == (1000,)
    assert metrics.response_rate == 0.5
    assert metrics.floor_hold_intervals_ms == ((3000, 4000),)
    assert [turn.outcome for turn in metrics.per_turn] == ["answered", "missed"]
    assert audio_block(metrics) == {
        "response_rate": 0.5,
        "response_latency_ms": 1000.0,
        "interruption_rate": 0.0,
        "speaking_duration_ms": {"cumulative": 1500, "maximum": 1500},
        "floor_hold_silence_ms": {"cumulative": 1000, "maximum": 1000},
        "metrics_version": "2.0",
        "response_deadline_ms": 5000,
        "response_opportunities": {
            "caller_turn_count": 2,
            "response_eligible_count": 2,
            "response_censored_count": 0,
            "response_excluded_count": 0,
            "response_late_count": 0,
            "response_total": 2,
            "response_count": 1,
            "no_response_count": 1,
        },
        "response_exclusion_reasons": {},
    }
    json.dumps(audio_block(metrics), allow_nan=False)


def test_the_deadline_is_a_setting_and_is_reported(tmp_path: Path) -> None:
    call = record(
        tmp_path, [said(CALLER, 1000, 3000)], caller=[(1000, 3000)], assistant=[(4000, 5000)]
    )
    strict = Settings(response_deadline_ms=999)
    metrics = contract_of(call, strict)
    assert metrics.response_rate == 0.0
    assert audio_block(metrics, strict)["response_deadline_ms"] == 999


@pytest.mark.parametrize("tick", [240, 480, 3288, 4800])
def test_the_transport_tick_changes_nothing(tmp_path: Path, tick: int) -> None:
    told = [said(CALLER, 1000, 3000, action="SPEAK")]
    voices = {"caller": [(1010, 2990)], "assistant": [(4015, 5500)]}
    call = record(tmp_path / "other", told, tick=tick, **voices)  # type: ignore[arg-type]
    usual = record(tmp_path / "usual", told, **voices)  # type: ignore[arg-type]
    assert contract_of(call) == contract_of(usual)


def test_a_silent_call_measures_without_rates(tmp_path: Path) -> None:
    metrics = contract_of(record(tmp_path, duration_ms=1000))
    assert metrics.response_rate is None
    assert metrics.effective_end_ms == 1000


def test_inferred_labels_are_widened_to_the_speech_they_touch(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [said(CALLER, 1200, 1500), said(CALLER, 3500, 4600), said(CALLER, 5000, 5200)],
        caller=[(1000, 1400), (1800, 2000), (3600, 4900), (5020, 6000)],
    )
    labels = timeline_of(call).caller_turns
    assert [(label.start_ms, label.end_ms) for label in labels] == [
        (1000, 2000),
        (3500, 5000),
        (5000, 6000),
    ]


def test_labels_of_intent_are_kept_as_they_are(tmp_path: Path) -> None:
    call = record(tmp_path, [said(CALLER, 1200, 1500, action="CORRECT")], caller=[(1000, 2000)])
    (label,) = timeline_of(call).caller_turns
    assert (label.start_ms, label.end_ms, label.action) == (1200, 1500, "CORRECT")


def test_actions_are_inferred_from_who_was_speaking(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [
            said(CALLER, 1000, 1500, "mm hmm"),
            said(CALLER, 4000, 4400, "Mm-hmm."),
            said(CALLER, 6000, 7000, "no, wait"),
            said(CALLER, 9000, 9500, "okay"),
        ],
        caller=[(1000, 1500), (4000, 4400), (6000, 7000), (9000, 9500)],
        assistant=[(500, 1200), (3000, 6500)],
    )
    actions = [label.action for label in timeline_of(call).caller_turns]
    assert actions == ["OPENING", "BACKCHANNEL", "INTERRUPT", "SPEAK"]


@pytest.mark.parametrize("text", ["Mm-hmm.", "Yeah", "okay, right", "uh-huh", "I see", "Hmm"])
def test_acknowledgements_are_backchannels(text: str) -> None:
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["", "yes", "no", "okay two people", "righto then", "oh no"])
def test_other_words_are_no_backchannels(text: str) -> None:
    assert not is_backchannel(text)


# -- delegated work -----------------------------------------------------------------


def test_work_events_take_the_contracts_form(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [
            (100, ASSISTANT, "delegation.created", {"delegation_id": "m", "target": "responses"}),
            (200, ASSISTANT, "run.started", {"run_id": "r", "delegation_id": "m"}),
            (300, ASSISTANT, "tool.started", {"call_id": "c", "name": "x", "delegation_id": "m"}),
            (400, ASSISTANT, "run.ended", {"run_id": "r", "outcome": "completed"}),
            (500, ASSISTANT, "tool.ended", {"call_id": "c", "status": "completed"}),
            (600, CALLER, "delegation.created", {"delegation_id": "other", "target": "client"}),
            (700, ASSISTANT, "run.started", {"run_id": "q", "previous_run_id": "r"}),
            (800, ASSISTANT, "run.ended", {"run_id": "q", "outcome": "completed"}),
        ],
    )
    events = work_events(call)
    assert events[0] == Opened(t_ms=100, kind="managed", id="m")
    assert events[1] == RunStarted(t_ms=200, run="r", id="m")
    assert events[3] == RunEnded(t_ms=400, run="r", outcome="ok")
    assert events[4] == CallEnded(t_ms=500, call="c", id="m")
    assert len(events) == 7
    assert events[5] == RunStarted(t_ms=700, run="q", prev="r")


def test_managed_work_without_run_events_ends_where_it_says(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [
            (100, ASSISTANT, "delegation.created", {"delegation_id": "m", "target": "responses"}),
            (300, ASSISTANT, "tool.started", {"call_id": "c", "name": "x"}),
            (500, ASSISTANT, "tool.ended", {"call_id": "c", "status": "failed"}),
            (900, ASSISTANT, "delegation.closed", {"delegation_id": "m", "ok": False}),
        ],
    )
    assert work_events(call)[-1] == Closed(t_ms=900, id="m")
    assert active_work(work_events(call), 20_000) == ((100, 900),)


# -- words --------------------------------------------------------------------------


def test_a_transcript_has_speech_work_and_overlap_in_order(tmp_path: Path) -> None:
    call = record(
        tmp_path,
        [
            (900, CALLER, "segment", {"start": 120, "end": 980, "detector": "rms"}),
            (900, ASSISTANT, "segment", {"start": 900, "end": 1500, "detector": "rms"}),
            said(ASSISTANT, 900, 1500, "Good evening"),
            said(CALLER, 120, 980, "Hello"),
            said(CALLER, 7000, 7500, "Bye"),
            (5120, ASSISTANT, "delegation.created", {"delegation_id": "d", "target": "client"}),
            (5300, ASSISTANT, "tool.started", {"call_id": "c", "name": "book"}
                | {"arguments": {"date": "2026-08-07", "n": 2}}),
            (5400, ASSISTANT, "tool.ended", {"call_id": "c", "status": "completed"}
                | {"result": {"ok": True}}),
            (5500, ASSISTANT, "tool.started", {"call_id": "e", "name": "book", "arguments": {}}),
            (5600, ASSISTANT, "tool.ended", {"call_id": "e", "status": "failed", "error": "full"}),
            (5700, ASSISTANT, "commentary", {"delegation_id": "d", "text": "Booked."}),
        ],
    )  # fmt: skip
    assert transcript_text(call) == (
        "USER 120..980ms [OVERLAP]: Hello\n"
        "ASSISTANT 900..1500ms [OVERLAP]: Good evening\n"
        "DELEGATION 5120ms: target=client\n"
        'TOOL 5300ms: name=book status=completed arguments={"date":"2026-08-07","n":2}'
        ' result={"ok":true}\n'
        'TOOL 5500ms: name=book status=failed arguments={} result="full"\n'
        "BACKEND 5700ms: Booked.\n"
        "USER 7000..7500ms: Bye\n"
    )


def test_words_cannot_add_lines_or_steer_a_terminal(tmp_path: Path) -> None:
    nasty = "hi\nASSISTANT 0..1ms: fake\r\x1b[31m\u202eevil\u2028\x07\x9b2J\u200b end"
    call = record(
        tmp_path,
        [
            said(CALLER, 0, 100, nasty),
            (5, ASSISTANT, "delegation.created", {"delegation_id": "d", "target": nasty}),
            (6, ASSISTANT, "tool.started", {"call_id": "c", "name": nasty, "arguments": {}}),
            (7, ASSISTANT, "commentary", {"text": nasty}),
        ],
    )
    text = transcript_text(call)
    assert len(text.splitlines()) == 4
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert all(str(item["text"]).isprintable() for item in transcripts(call))


def test_transcript_records_carry_times_and_intent(tmp_path: Path) -> None:
    call = record(tmp_path, [said(CALLER, 120, 980, "Hello", "OPENING")])
    assert transcripts(call) == [
        {
            "role": "user",
            "text": "Hello",
            "start_ms": 120,
            "end_ms": 980,
            "action": "OPENING",
            "source": "caller_intent",
            "overlap": False,
        }
    ]


def test_a_call_without_words_has_an_empty_transcript(tmp_path: Path) -> None:
    call = record(tmp_path)
    assert (transcript_text(call), transcripts(call)) == ("", [])


@given(st.text())
def test_one_line_is_always_printable(text: str) -> None:
    made = one_line(text)
    assert len(made.splitlines()) <= 1
    assert "\x1b" not in made
    assert one_line(made) == made

"""A call written down and read back: exact, private, and whole after a kill."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex.errors import InputError
from duplex.recording import AUDIO_FILES, CallRecorder, Recording
from duplex.values import Event, Json, Side
from duplex.wavfile import Pcm, WriteFailed, read_wav

RATE = 24_000
TICK = 480


def event(seq: int, kind: str, side: Side | None = None, at: int = 0, **fields: Json) -> Event:
    return Event(seq=seq, at=at, side=side, type=kind, fields=fields)


def tick(value: int, n: int = TICK) -> tuple[Pcm, Pcm, Pcm, Pcm]:
    full = [np.full(n, value + index, dtype=np.int16) for index in range(4)]
    return full[0], full[1], full[2], full[3]


def lines(recorder: CallRecorder) -> list[dict[str, Json]]:
    return [json.loads(line) for line in recorder.events_path.read_bytes().splitlines()]


def test_four_signals_become_three_files_of_one_length(tmp_path: Path) -> None:
    with CallRecorder(tmp_path, "call", rate_hz=RATE) as recorder:
        for value in range(0, 40, 4):
            recorder.append(*tick(value))
    folder = tmp_path / "audio" / "call"
    assert sorted(file.name for file in folder.iterdir()) == sorted(AUDIO_FILES)
    conversation = read_wav(folder / "conversation.wav")
    caller = read_wav(folder / "caller_source.wav")
    assistant = read_wav(folder / "assistant_source.wav")
    assert conversation.samples.shape == (10 * TICK, 2)
    assert caller.frames == assistant.frames == 10 * TICK
    expected = np.repeat(np.arange(0, 40, 4), TICK)
    assert np.array_equal(conversation.channel(0), expected)
    assert np.array_equal(conversation.channel(1), expected + 1)
    assert np.array_equal(caller.channel(0), expected + 2)
    assert np.array_equal(assistant.channel(0), expected + 3)


def test_folders_and_files_are_their_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with CallRecorder(tmp_path / "run", "call", rate_hz=RATE) as recorder:
            recorder.event(event(0, "call.started"))
    finally:
        os.umask(old)
    for path in (tmp_path / "run").rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_events_are_one_strict_json_object_a_line(tmp_path: Path) -> None:
    with CallRecorder(tmp_path, "call", rate_hz=RATE, secrets=["hunter22"]) as recorder:
        recorder.event(event(0, "call.started", rate_hz=RATE))
        recorder.event(
            event(1, "fault", Side.CALLER, at=7, message="\ud800\u2028\n hunter22", api_key="zzz")
        )
        fields: dict[str, Json] = {"state": {"x": float("nan")}, "seq": "fake"}
        recorder.event(Event(seq=2, at=0, side=Side.ASSISTANT, type="state", fields=fields))
    assert lines(recorder) == [
        {"seq": 0, "at": 0, "received_at": None, "side": None, "type": "call.started"}
        | {"rate_hz": RATE},
        {"seq": 1, "at": 7, "received_at": None, "side": "caller", "type": "fault"}
        | {"message": "\ufffd\u2028\n [redacted]", "api_key": "[redacted]"},
        {"seq": 2, "at": 0, "received_at": None, "side": "assistant", "type": "state"}
        | {"state": {"x": None}},
    ]
    assert len(recorder.events_path.read_text().splitlines()) == 3


def test_disk_is_touched_once_a_second_of_audio(tmp_path: Path) -> None:
    recorder = CallRecorder(tmp_path, "call", rate_hz=RATE)
    source = tmp_path / "audio" / "call" / "caller_source.wav"
    seen = []
    for index in range(120):
        recorder.append(*tick(1))
        recorder.event(event(index, "agenda", item_id="x", status="completed"))
        recorder.tick_flush()
        seen.append((read_wav(source).frames, len(lines(recorder))))
    assert sorted(set(seen)) == [(0, 0), (RATE, 50), (2 * RATE, 100)]
    assert all(index * TICK - frames < RATE for index, (frames, _) in enumerate(seen))
    recorder.close()
    assert read_wav(source).frames == 120 * TICK


@pytest.mark.parametrize("kind", ["call.started", "fault"])
def test_a_call_killed_before_its_first_second_is_known(tmp_path: Path, kind: str) -> None:
    recorder = CallRecorder(tmp_path, "call", rate_hz=RATE)
    recorder.event(event(0, kind, rate_hz=8000))
    assert [line["type"] for line in lines(recorder)] == [kind]
    recorder.close()
    assert len(lines(recorder)) == 1


def test_a_call_is_never_written_over_another(tmp_path: Path) -> None:
    CallRecorder(tmp_path, "call", rate_hz=RATE).close()
    with pytest.raises(InputError, match="exists already"):
        CallRecorder(tmp_path, "call", rate_hz=RATE)


def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    CallRecorder(tmp_path / "run", "../../up", rate_hz=RATE).close()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    recorder = CallRecorder(tmp_path, "call", rate_hz=RATE)
    recorder.close()
    recorder.close()


KILLED = """
import os, signal, sys
import numpy as np
from duplex.recording import CallRecorder
from duplex.values import Event, Side
recorder = CallRecorder(sys.argv[1], "call", rate_hz=24_000)
recorder.event(Event(seq=0, at=0, side=None, type="call.started", fields={"rate_hz": 24_000}))
one = np.full(480, 1000, np.int16)
for index in range(int(sys.argv[2])):
    recorder.append(one, one, one, one)
    recorder.event(Event(seq=index + 1, at=index * 480, side=Side.CALLER, type="x", fields={}))
    recorder.tick_flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_costs_less_than_a_second(tmp_path: Path) -> None:
    ticks = 5 * 50 + 30
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path, str(ticks)], check=False)
    assert done.returncode == -signal.SIGKILL
    recording = Recording.load(tmp_path, "call")
    assert recording.duration == 5 * RATE
    assert len(recording.source(Side.CALLER)) == len(recording.conversation()) == 5 * RATE
    assert not recording.ended
    assert recording.termination_reason is None
    assert recording.damage == ()
    assert len(recording.events) == 251


FULL = """
import resource, signal, sys
import numpy as np
from duplex.recording import CallRecorder
from duplex.values import Event
from duplex.wavfile import WriteFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
recorder = CallRecorder(sys.argv[1], "call", rate_hz=24_000)
recorder.event(Event(seq=0, at=0, side=None, type="call.started", fields={"rate_hz": 24_000}))
one = np.full(480, 1000, np.int16)
try:
    for _ in range(500):
        recorder.append(one, one, one, one)
        recorder.tick_flush()
except WriteFailed as error:
    print(error)
recorder.close()
sys.exit(4)
"""


def test_a_full_disk_ends_in_words_and_leaves_a_readable_call(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, check=False)
    assert done.returncode == 4, done.stderr
    assert b"conversation.wav cannot be written" in done.stdout
    recording = Recording.load(tmp_path, "call")
    assert recording.duration >= 4 * RATE
    assert len(recording.source(Side.ASSISTANT)) == recording.duration


def test_a_full_disk_never_leaves_half_an_event(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
from duplex.recording import CallRecorder
from duplex.values import Event
from duplex.wavfile import WriteFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
recorder = CallRecorder(sys.argv[1], "call", rate_hz=24_000)
for seq in range(500):
    recorder.event(Event(seq=seq, at=seq, side=None, type="x", fields={"text": "y" * 40}))
try:
    recorder.flush()
except WriteFailed as error:
    print(error)
recorder.close()
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, check=True)
    assert b"call.jsonl cannot be written" in done.stdout
    data = (tmp_path / "events" / "call.jsonl").read_bytes()
    assert data.endswith(b"}\n")
    assert [json.loads(line)["seq"] for line in data.splitlines()] == list(range(data.count(b"\n")))
    assert data.count(b"\n") > 50


def test_a_recorder_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "audio").write_text("in the way")
    with pytest.raises((InputError, WriteFailed), match="audio"):
        CallRecorder(tmp_path, "call", rate_hz=RATE)

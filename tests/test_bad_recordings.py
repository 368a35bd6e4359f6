"""``duplex measure`` on what people really have: broken headers, cut files, torn logs.

Whatever is named, there is one sentence and exit code 2, or numbers that stand
for the audio that is there; never a traceback, never a NaN, never a hang.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from duplex.call import Call, CallPlan
from duplex.cli import app
from duplex.clock import VirtualClock
from duplex.errors import DuplexError
from duplex.hangup import Policy
from duplex.measuring import measure
from duplex.participants.scripted import Scripted
from duplex.recording import CallRecorder
from duplex.values import Action, Json, Side, Span, Utterance
from stimuli import ASSISTANT, CALLER, RATE, conversation, pcm, save, side, speechlike, talk

Edit = Callable[[bytes], bytes]
T = TypeVar("T")
LEFT, RIGHT = conversation()
LATENCIES = [600, 600, 700, 700]
SHORT = 12.0


def asked(*paths: Path | str) -> tuple[int, dict[str, Json] | None, str]:
    """Exit code, JSON if any, and what was said; a traceback or a NaN fails."""
    done = CliRunner().invoke(app, ["measure", *map(str, paths), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    document = None
    if done.stdout:
        document = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
        assert isinstance(document, dict)
    return done.exit_code, document, done.stderr


def assert_refused(*paths: Path | str, saying: str = "") -> None:
    """Exit code 2, one sentence, and no numbers."""
    code, document, said = asked(*paths)
    assert code == 2, said
    assert len(said.strip().splitlines()) == 1, said
    assert saying in said
    assert document is None or document["timing"] is None


def unless_refused(work: Callable[[], T]) -> T | None:
    """The result, or None for a refusal in one sentence; any other error fails."""
    said = ""
    try:
        return work()
    except DuplexError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    assert not said.endswith(".")
    return None


def latencies(document: dict[str, Json] | None) -> list[float]:
    assert document is not None
    timing = document["timing"]
    assert isinstance(timing, dict)
    turns = timing["turns"]
    assert isinstance(turns, list)
    found = [turn["response_latency_ms"] for turn in turns if isinstance(turn, dict)]
    return [value for value in found if isinstance(value, float | int)]


# -- headers -------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return save(tmp_path_factory.mktemp("whole") / "a.wav", LEFT, RIGHT).read_bytes()


def put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def u16(value: int) -> bytes:
    return struct.pack("<H", value)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


MENDABLE: dict[str, Edit] = {
    "a streamed size": lambda data: put(data, 40, u32(0xFFFFFFFF)),
    "both sizes streamed": lambda data: put(put(data, 40, u32(0xFFFFFFFF)), 4, u32(0xFFFFFFFF)),
    "a size of 0": lambda data: put(data, 40, u32(0)),
    "a size too large": lambda data: put(data, 40, u32(len(data) + 16)),
    "an odd size": lambda data: put(data, 40, u32(len(data) - 45)),
    "a wrong RIFF size": lambda data: put(data, 4, u32(12)),
    "a block of 0 bytes": lambda data: put(data, 32, u16(0)),
    "a wrong byte rate": lambda data: put(data, 28, u32(1)),
    "a chunk before the format": lambda data: data[:12] + b"LIST" + u32(4) + b"INFO" + data[12:],
    "rubbish after the audio": lambda data: data + b"\0\1\2",
    "another file appended": lambda data: data + data,
    "half a frame at the end": lambda data: data + b"\x7f",
}


@pytest.mark.parametrize("name", MENDABLE)
def test_a_wrong_header_gives_the_numbers_of_the_audio(
    tmp_path: Path, whole: bytes, name: str
) -> None:
    (tmp_path / "a.wav").write_bytes(MENDABLE[name](whole))
    code, document, said = asked(tmp_path / "a.wav")
    assert (code, said) == (0, "")
    assert latencies(document) == pytest.approx(LATENCIES, abs=25)
    assert document is not None
    assert document["duration_ms"] == pytest.approx(20_000, abs=1)


HOPELESS: dict[str, Edit] = {
    "no channel": lambda data: put(data, 22, u16(0)),
    "65535 channels": lambda data: put(data, 22, u16(0xFFFF)),
    "three channels": lambda data: put(data, 22, u16(3)),
    "a rate of 0": lambda data: put(data, 24, u32(0)),
    "a rate of 4 GHz": lambda data: put(data, 24, u32(0xFFFFFFFF)),
    "no bits": lambda data: put(data, 34, u16(0)),
    "65535 bits": lambda data: put(data, 34, u16(0xFFFF)),
    "an unknown format": lambda data: put(data, 20, u16(0x9999)),
    "a format of 4 GiB": lambda data: put(data, 16, u32(0xFFFFFFFF)),
    "an AVI": lambda data: put(data, 8, b"AVI "),
    "big-endian in name only": lambda data: put(data, 0, b"RIFX"),
    "one sample": lambda data: data[:48],
    "half a sample": lambda data: data[:45],
    "no sample": lambda data: data[:44],
    "nothing": lambda data: b"",
    "text": lambda data: b"this is no sound " * 100,
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_hopeless_file_gets_one_sentence(tmp_path: Path, whole: bytes, name: str) -> None:
    (tmp_path / "a.wav").write_bytes(HOPELESS[name](whole))
    assert_refused(tmp_path / "a.wav", saying="a.wav")


def test_a_header_cut_at_any_byte_gets_one_sentence(tmp_path: Path, whole: bytes) -> None:
    for length in (*range(0, 44, 5), 1, 11, 12, 19, 36, 43, 44):
        (tmp_path / "a.wav").write_bytes(whole[:length])
        assert_refused(tmp_path / "a.wav")


@pytest.mark.parametrize("share", [0.37, 0.71, 0.999])
def test_a_file_cut_in_its_audio_is_measured_as_far_as_it_goes(
    tmp_path: Path, whole: bytes, share: float
) -> None:
    length = int(len(whole) * share) | 1
    (tmp_path / "a.wav").write_bytes(whole[:length])
    code, document, _ = asked(tmp_path / "a.wav")
    assert code == 0
    assert document is not None
    assert document["duration_ms"] == pytest.approx((length - 44) // 4 / 24, abs=0.1)
    heard = [
        latency
        for (start, _), latency in zip(ASSISTANT, LATENCIES, strict=True)
        if start + 0.2 < 20 * share
    ]
    assert latencies(document) == pytest.approx(heard, abs=25)


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ULAW", "ALAW"])
@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_streamed_files_of_any_format_are_measured(tmp_path: Path, subtype: str, size: int) -> None:
    path = save(tmp_path / "a.wav", LEFT, RIGHT, subtype=subtype)
    data = path.read_bytes()
    path.write_bytes(put(data, data.index(b"data") + 4, u32(size)))
    code, document, _ = asked(path)
    assert code == 0
    assert latencies(document) == pytest.approx(LATENCIES, abs=25)


edits = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 60), st.binary(min_size=1, max_size=4)),
        st.tuples(st.just("add"), st.integers(0, 60), st.binary(min_size=1, max_size=12)),
        st.tuples(st.just("cut"), st.integers(0, 200), st.just(b"")),
        st.tuples(
            st.just("put"),
            st.sampled_from((4, 16, 20, 22, 24, 28, 32, 34, 36, 40)),
            st.sampled_from((u32(0), u32(0xFFFFFFFF), u32(0x7FFFFFFF), u16(1), u16(0xFFFE))),
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits, st.sampled_from(("PCM_16", "PCM_24", "FLOAT", "ULAW", "PCM_U8")), st.booleans())
def test_any_header_is_measured_or_refused(
    tmp_path: Path, changes: list[tuple[str, int, bytes]], subtype: str, extensible: bool
) -> None:
    container = "WAVEX" if extensible else "WAV"
    quiet = np.stack([LEFT[: RATE // 2], RIGHT[: RATE // 2]], axis=1)
    path = tmp_path / "a.wav"
    soundfile.write(path, quiet, RATE, subtype=subtype, format=container)
    data = path.read_bytes()
    for kind, at, new in changes:
        if kind == "put":
            data = put(data, at, new)
        elif kind == "add":
            data = data[:at] + new + data[at:]
        else:
            data = data[: max(0, len(data) - at)] if at % 2 else data[:at]
    path.write_bytes(data)
    found = unless_refused(lambda: measure(path))
    if found is not None:
        assert found.refused or found.timing is not None
        assert found.duration_ms < 600_000
        json.dumps(found.as_json(), allow_nan=False)


# -- samples -------------------------------------------------------------------


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["a few", "one side", "all"])
def test_samples_that_are_no_numbers_give_numbers_or_a_refusal(
    tmp_path: Path, subtype: str, bad: float, where: str
) -> None:
    both = np.stack([LEFT, RIGHT], axis=1)
    if where == "a few":
        both[[7, 90_000, 300_001], [0, 1, 0]] = bad
    else:
        both[:, 1 if where == "one side" else slice(None)] = bad
    soundfile.write(tmp_path / "a.wav", both, RATE, subtype=subtype)
    if where == "a few":
        code, document, _ = asked(tmp_path / "a.wav")
        assert code == 0
        assert latencies(document) == pytest.approx(LATENCIES, abs=25)
    else:
        assert_refused(tmp_path / "a.wav", saying="a.wav")


def test_one_sample_far_beyond_full_scale_is_a_wrong_scale_and_refused(tmp_path: Path) -> None:
    both = np.stack([LEFT, RIGHT], axis=1)
    both[90_000, 1] = 1e30
    soundfile.write(tmp_path / "a.wav", both, RATE, subtype="FLOAT")
    assert_refused(tmp_path / "a.wav", saying="a.wav")


# -- places --------------------------------------------------------------------


def test_folders_without_sound_loops_and_odd_names_get_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_refused(tmp_path / "empty", saying="holds neither a call nor a sound file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert_refused(tmp_path / "loop", saying="symbolic links")
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / "again").symlink_to(tmp_path / "round")
    assert_refused(tmp_path / "round", saying="holds neither")
    (tmp_path / "call" / "conversation.wav").mkdir(parents=True)
    assert_refused(tmp_path / "call", saying="a folder")
    (tmp_path / "run" / "events").mkdir(parents=True)
    assert_refused(tmp_path / "run", saying="holds no call yet")
    (tmp_path / "two\nlines.wav").write_bytes(b"x")
    assert_refused(tmp_path / "two\nlines.wav", saying="too few")
    assert_refused(tmp_path / "gone.wav", saying="no such file")


def test_a_pipe_in_a_folder_of_recordings_is_refused_and_stops_no_other(
    tmp_path: Path, whole: bytes
) -> None:
    (tmp_path / "a.wav").write_bytes(whole)
    os.mkfifo(tmp_path / "b.wav")
    done = CliRunner().invoke(app, ["measure", str(tmp_path), "--json"])
    assert done.exit_code == 1
    assert latencies(json.loads(done.stdout)) == pytest.approx(LATENCIES, abs=25)
    assert "b.wav is no regular file but a pipe" in done.stderr


# -- what a call did or did not hold -------------------------------------------


def folder_of(
    place: Path, caller: list[tuple[float, float]], assistant: list[tuple[float, float]]
) -> Path:
    """Hold a virtual call with these spans of speech; the call's folder."""
    import asyncio

    labels = [
        Utterance(
            side=Side.CALLER,
            text="words",
            span=Span(start=round(start * RATE), end=round(end * RATE)),
            action=Action.SPEAK,
            source="caller_intent",
        )
        for start, end in caller
    ]
    voices = [pcm(talk(spans, SHORT, seed=k)) for k, spans in enumerate((caller, assistant))]
    plan = CallPlan(
        call_id="c",
        scenario_id="c",
        policy=Policy(drain_ms=60_000, max_duration_ms=int(SHORT * 1000)),
    )
    call = Call(
        plan,
        caller=Scripted(Side.CALLER, [(0, voices[0])], labels),
        assistant=Scripted(Side.ASSISTANT, [(0, voices[1])]),
        clock=VirtualClock(RATE),
        recorder=CallRecorder(place, "c", rate_hz=RATE),
    )
    asyncio.run(call.hold())
    return place / "audio" / "c"


@pytest.mark.parametrize(
    ("caller", "assistant"),
    [([], []), ([(1, 3)], []), ([], [(1, 3)]), ([(0, SHORT)], []), ([(1, 1.05)], [(3, 3.05)])],
)
def test_calls_without_turns_or_with_one_side_have_no_invented_numbers(
    tmp_path: Path, caller: list[tuple[float, float]], assistant: list[tuple[float, float]]
) -> None:
    code, document, said = asked(folder_of(tmp_path, caller, assistant))
    assert code in (0, 2)
    if code == 2:
        assert len(said.strip().splitlines()) == 1
    assert document is not None
    timing = document["timing"]
    if timing is None:
        return
    assert isinstance(timing, dict)
    latency = timing["response_latency"]
    assert isinstance(latency, dict)
    assert (latency["n"], latency["mean"], latency["p95"]) == (0, None, None)
    floor = timing["floor"]
    assert isinstance(floor, dict)
    assert floor["overlap_ms"] == 0
    assert sum(ms for ms in floor.values() if isinstance(ms, float)) == pytest.approx(12_000)


@pytest.mark.parametrize("silent", ["caller", "assistant"])
def test_a_recording_of_one_side_invents_no_other(tmp_path: Path, silent: str) -> None:
    voice, nothing = side([(1.0, speechlike(3.0, 1))], 10.0), np.zeros(10 * RATE)
    channels = (nothing, voice) if silent == "caller" else (voice, nothing)
    code, document, _ = asked(save(tmp_path / "a.wav", *channels))
    assert document is not None
    assert code in (0, 2)
    if code == 0:
        assert latencies(document) == []


# -- event logs ----------------------------------------------------------------


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("held")
    folder_of(place, [span for span in CALLER if span[1] < 11], [s for s in ASSISTANT if s[1] < 11])
    return place


@pytest.fixture(scope="module")
def truth(held: Path) -> tuple[Json, Json]:
    return numbers(held)


def numbers(run: Path) -> tuple[Json, Json]:
    document = measure(run / "audio" / "c").as_json()
    return document["timing"], document["contract"]


def with_events(held: Path, place: Path, lines: list[str]) -> Path:
    """A copy of the run with other event lines."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(held, place)
    (place / "events" / "c.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return place


def events(held: Path) -> list[str]:
    return (held / "events" / "c.jsonl").read_text().splitlines()


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**31), st.integers(0, 12))
def test_any_order_and_any_doubling_of_events_measures_the_same(
    tmp_path: Path, held: Path, truth: tuple[Json, Json], seed: int, doubled: int
) -> None:
    chance = random.Random(seed)
    lines = events(held)
    lines += chance.choices(lines, k=doubled)
    chance.shuffle(lines)
    assert numbers(with_events(held, tmp_path / "run", lines)) == truth


@pytest.mark.parametrize("jump", [-0.09, 3_600.0, -1e9, 1e308])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_jump_of_the_clock_in_the_log_moves_no_number(
    tmp_path: Path, held: Path, truth: tuple[Json, Json], jump: float, share: float
) -> None:
    lines = [json.loads(line) for line in events(held)]
    for index, line in enumerate(lines):
        line["received_at"] = index * 0.02 + (jump if index > share * len(lines) else 0.0)
    place = with_events(held, tmp_path / "run", [json.dumps(line) for line in lines])
    assert numbers(place) == truth


torn = st.one_of(
    st.just(""),
    st.just("}{"),
    st.just("null"),
    st.just("[1, 2]"),
    st.just('{"seq": 3, "at": 480, "ty'),
    st.just('{"seq": NaN, "at": 1e999, "type": "utterance", "side": "caller"}'),
    st.just('{"seq": -1, "at": -5, "type": "segment", "side": "nobody", "start": 9, "end": 2}'),
    st.just('{"seq": 99, "at": 480, "type": "utterance", "side": "caller", "start": "x"}'),
    st.just('{"seq": 99, "at": 99999999999999999999, "type": "tool.started", "side": null}'),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40).map(
        lambda text: text.replace("\n", " ").replace("\r", " ")
    ),
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 40), torn), min_size=1, max_size=4), st.integers(0, 60))
def test_torn_lines_are_left_out_or_named(
    tmp_path: Path,
    held: Path,
    truth: tuple[Json, Json],
    extra: list[tuple[int, str]],
    cut: int,
) -> None:
    lines = events(held)
    for at, line in extra:
        lines.insert(min(at, len(lines)), line)
    if cut > 40:
        lines[-1] = lines[-1][:cut]
    place = with_events(held, tmp_path / "run", lines)
    found = unless_refused(lambda: numbers(place))
    if found is None:
        return
    json.dumps(found, allow_nan=False)
    assert isinstance(found[0], dict)
    assert isinstance(truth[0], dict)
    assert found[0]["segments"] == truth[0]["segments"]


def test_an_empty_log_is_no_traceback(tmp_path: Path, held: Path) -> None:
    code, document, said = asked(with_events(held, tmp_path / "run", []) / "audio" / "c")
    assert code in (0, 2)
    assert document is not None or len(said.strip().splitlines()) == 1

"""A call in progress: what is told of it second by second, to whom, and that it ends so."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from booking_call import RATE_HZ
from duplex.journal import Journal
from duplex.metrics.of_call import timing_of_call
from duplex.options import make
from duplex.recording import CallRecorder, Recording
from duplex.recording.extract import read_events
from duplex.run_folder import RunFolder
from duplex.run_lock import RunLock
from duplex.serve.library import Library
from duplex.serve.live import following
from duplex.serve.live.following import Calls
from duplex.serve.live.hearing import Heard, Hearing, changed
from duplex.serve.live.levels import Levels
from duplex.serve.live.streaming import sound
from duplex.serve.live.tails import Frames, Lines
from duplex.serve.progress import MOST_STREAMS, Streams
from duplex.serve.refusals import Refusal
from duplex.values import Json, Side
from duplex.wavfile import HEADER_BYTES, Pcm, WavWriter, read_wav
from serve_support import application, begun, client, held
from viewer_runs import BOOKING, add_call

CALL = "booking.s1"


def voice(side: Side, text: str) -> Pcm:
    """A buzz with syllables, as long as the words would take."""
    t = np.arange(max(len(text), 8) * RATE_HZ // 60) / RATE_HZ
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    tone = sum(np.sin(2 * np.pi * (110 + 40 * side) * k * t) / k for k in range(1, 20))
    return np.rint(4000 * gate * tone).astype(np.int16)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("finished") / "run"
    folder.mkdir()
    add_call(folder, CALL, BOOKING, voice=voice)
    return Recording.load(folder, CALL)


class Growing:
    """A call written down again as a runner does, as far as somebody lets it."""

    def __init__(self, folder: Path, source: Recording) -> None:
        self.place = RunFolder(folder)
        self.rate_hz = source.rate_hz
        self.at = 0
        self.seconds = -(-source.duration // source.rate_hz)
        self._events = list(read_events(RunFolder(source.run_dir).events(CALL))[0])
        self._both = source.conversation()
        self._stems = [source.source(side) for side in Side]
        self._recorder = CallRecorder(folder, CALL, rate_hz=source.rate_hz)

    def second(self) -> None:
        """One second more, flushed."""
        end = min(self.at + self.rate_hz, len(self._both))
        cut = slice(self.at, end)
        caller, assistant = (stem[cut] for stem in self._stems)
        self._recorder.append(self._both[cut, 0], self._both[cut, 1], caller, assistant)
        self.at = end
        while self._events and self._events[0].at <= end:
            self._recorder.event(self._events.pop(0))
        self._recorder.flush()

    def end(self) -> None:
        while self.at < len(self._both):
            self.second()
        for event in self._events:
            self._recorder.event(event)
        self._recorder.close()


@pytest.fixture
def growing(tmp_path: Path, finished: Recording) -> Iterator[Growing]:
    runs = tmp_path / "runs"
    journal = begun(runs, "run_live", [CALL, "booking.s2"])
    journal.began(CALL, 1, CALL)
    journal.close()
    lock = held(runs / "run_live")
    made = Growing(runs / "run_live", finished)
    try:
        yield made
    finally:
        made._recorder.close()
        lock.release()


def hearing(growing: Growing) -> Hearing:
    return Hearing(growing.place, CALL, make({}))


# -- files that grow ---------------------------------------------------------------------


def test_lines_come_whole_and_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = Lines(tmp_path, path)
    assert lines.read() == []
    path.write_bytes(b"one\ntw")
    assert lines.read() == [b"one"]
    assert lines.read() == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert lines.read() == [b"two", b"three"]


def test_no_more_audio_is_read_than_a_header_claims(tmp_path: Path) -> None:
    frames = Frames(tmp_path, tmp_path / "x.wav", 1)
    assert frames.there() == 0
    with WavWriter(tmp_path / "x.wav", 8_000) as writer:
        writer.append(np.arange(100, dtype=np.int16))
        assert len(frames.read(1000)) == 0
        writer.flush()
        with (tmp_path / "x.wav").open("ab") as file:
            file.write(b"\x01\x02" * 50)
        assert frames.there() == 100
        assert frames.read(60)[:, 0].tolist() == list(range(60))
        assert frames.read(60)[:, 0].tolist() == list(range(60, 100))
        assert len(frames.read(60)) == 0
    assert frames.rate_hz == 8_000


@pytest.mark.parametrize("content", [b"", b"RIFF", b"\x00" * 60, b"RIFF" + b"\xff" * 60])
def test_what_is_no_recording_gives_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.wav").write_bytes(content)
    frames = Frames(tmp_path, tmp_path / "x.wav", 1)
    assert (frames.there(), len(frames.read(10)), frames.rate_hz) == (0, 0, None)


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path, growing: Growing) -> None:
    secret = tmp_path / "elsewhere"
    growing.second()
    folder = growing.place.audio(CALL)
    shutil.move(folder, secret)
    folder.symlink_to(secret)
    events = growing.place.events(CALL)
    shutil.move(events, secret / "events")
    events.symlink_to(secret / "events")
    found = hearing(growing)
    assert found.look() == Heard()
    assert found.levels is None


# -- what is heard -----------------------------------------------------------------------


def test_levels_say_what_the_contract_calls_voice() -> None:
    levels = Levels(8_000)
    levels.push(np.full(100, 219, np.int16))
    levels.push(
        np.concatenate([np.full(60, 219), np.full(160, 220), np.zeros(170)]).astype(np.int16)
    )
    assert len(levels) == 3
    assert levels.since(0) == {"db": [-44, -43, -99], "voiced": "010"}
    assert levels.since(2) == {"db": [-99], "voiced": "0"}


def test_a_call_heard_second_by_second_ends_with_the_numbers_of_the_finished_one(
    growing: Growing, finished: Recording
) -> None:
    found = hearing(growing)
    assert found.look() == Heard()
    counts, words = [], []
    while growing.at < finished.duration - growing.rate_hz:
        growing.second()
        heard = found.look()
        assert heard.position_ms == growing.at * 1000 // growing.rate_hz
        counts.append(len(heard.replies))
        words.append(len(heard.lines))
    growing.end()
    heard = found.look()
    block = timing_of_call(finished).as_json()
    turns = block["turns"]
    assert isinstance(turns, list)
    wanted = [
        (turn["start_ms"], turn["response_latency_ms"])
        for turn in turns
        if isinstance(turn, dict)
        and turn["side"] == "assistant"
        and turn["response_latency_ms"] is not None
    ]
    replies = [one for one in heard.replies if isinstance(one, dict)]
    assert [(one["start_ms"], one["latency_ms"]) for one in replies] == wanted
    assert len(wanted) == 2
    assert heard.floor == block["floor"]
    said = [one["text"] for one in heard.lines if isinstance(one, dict) and one["kind"] == "said"]
    assert said == [one.text for one in finished.lines]
    # They came one after the other, and none long after its time.
    assert sorted(counts) == counts
    assert counts[0] == 0
    assert len(set(counts)) == len(wanted) + 1 - (counts[-1] < len(wanted))
    assert words[len(words) // 2] < len(heard.lines)


def test_a_reply_that_goes_on_has_its_latency_already(
    growing: Growing, finished: Recording
) -> None:
    """Its speech is not over, so the detector that hears on does not know of it yet."""
    found = hearing(growing)
    seen: list[tuple[float, bool]] = []
    while growing.at < finished.duration:
        growing.second()
        for one in found.look().replies[-1:]:
            assert isinstance(one, dict)
            seen.append((float(str(one["latency_ms"])), one["open"] is True))
    assert any(going for _, going in seen)
    first = {latency for latency, going in seen if going}
    later = {latency for latency, going in seen if not going}
    assert any(abs(one - other) < 60 for one in first for other in later)


def test_a_stem_that_is_cut_while_it_is_heard_ends_the_story_and_nothing_else(
    growing: Growing,
) -> None:
    found = hearing(growing)
    growing.second()
    before = found.look()
    path = growing.place.audio(CALL) / "caller_source.wav"
    with path.open("r+b") as file:
        file.truncate(HEADER_BYTES + 10)
    growing.second()
    assert found.look().position_ms >= before.position_ms


@pytest.mark.parametrize(
    "before, now, at",
    [([], [], None), ([], [1], 0), ([1], [1, 2], 1), ([1, 2], [1], 1), ([1, 2], [3, 2], 0)],
)
def test_a_list_is_sent_from_where_it_differs(
    before: list[Json], now: list[Json], at: int | None
) -> None:
    assert changed(before, now) == at


# -- who follows -------------------------------------------------------------------------


Told = list[tuple[str, dict[str, Json]]]


async def read(events: AsyncIterator[bytes], into: Told, until: str = "over") -> None:
    async for event in events:
        if event.startswith(b":"):
            continue
        kind, data = event.decode().removesuffix("\n\n").split("\n")
        into.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        if into[-1][0] == until:
            return


def put_together(told: Told, kind: str) -> list[Json]:
    """A list as whoever follows has it in the end."""
    found: list[Json] = []
    for name, data in told:
        if name == kind:
            entries, at = data["entries"], data["from"]
            assert isinstance(entries, list)
            assert isinstance(at, int)
            found = [*found[:at], *entries]
    return found


async def test_all_who_follow_are_told_the_same_and_the_call_is_heard_once(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.02)
    made: list[Hearing] = []

    class Counted(Hearing):
        def __init__(self, *given: object) -> None:
            super().__init__(growing.place, CALL, make({}))
            made.append(self)

    monkeypatch.setattr(following, "Hearing", Counted)
    calls = Calls(Library(growing.place.path.parent), Streams())
    first: Told = []
    later: Told = []
    tasks = [asyncio.create_task(read(calls.follow("run_live", CALL), first))]
    for _ in range(6):
        growing.second()
        await asyncio.sleep(0.03)
    tasks.append(asyncio.create_task(read(calls.follow("run_live", CALL), later)))
    await asyncio.sleep(0.1)
    growing.end()
    journal = Journal.reopen(growing.place.path)
    journal.ended(CALL, 1, CALL, final=True)
    journal.close()
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    assert len(made) == 1
    for told in (first, later):
        assert told[0] == ("call", {"run": "run_live", "call": CALL, "step_ms": 20})
        assert told[-1][0] == "over"
        levels = [data for name, data in told if name == "levels"]
        ends = 0
        for one in levels:
            caller = one["caller"]
            assert isinstance(caller, dict)
            assert one["from_ms"] == ends or not ends
            ends = int(str(one["from_ms"])) + 20 * len(str(caller["voiced"]))
        assert ends >= growing.at * 1000 // growing.rate_hz - 20
    for kind in ("lines", "replies"):
        assert put_together(first, kind) == put_together(later, kind) != []
    assert calls._watches == {}


async def test_whoever_leaves_takes_what_was_kept_away(growing: Growing) -> None:
    streams = Streams()
    calls = Calls(Library(growing.place.path.parent), streams)
    growing.second()
    for _ in range(3):
        async with aclosing(calls.follow("run_live", CALL)) as events:
            assert (await anext(events)).startswith(b"event: call")
            assert len(calls._watches) == 1
        assert calls._watches == {}
    assert streams._open == 0


async def test_only_a_call_in_progress_can_be_followed(growing: Growing) -> None:
    runs = growing.place.path.parent
    async with client(application(runs)[0]) as http:
        for path in ("live", "live.wav"):
            for call, status in (("booking.s2", 409), ("none", 404), ("..", 404)):
                answer = await http.get(f"/api/runs/run_live/calls/{call}/{path}")
                assert answer.status_code == status, (call, path)
            assert (await http.get(f"/api/runs/none/calls/{CALL}/{path}")).status_code == 404
        assert (
            await http.get(f"/api/runs/run_live/calls/{CALL}/live.wav?hear=x")
        ).status_code == 422


async def test_no_more_streams_are_open_than_are_allowed(growing: Growing) -> None:
    streams = Streams()
    streams._open = MOST_STREAMS
    with pytest.raises(Refusal) as refused:
        Calls(Library(growing.place.path.parent), streams).follow("run_live", CALL)
    assert refused.value.status == 429


# -- what is heard of it -----------------------------------------------------------------


async def listened(growing: Growing, hear: str, from_ms: int | None, lock: RunLock | None) -> bytes:
    library = Library(growing.place.path.parent)
    stream = sound(library, Streams(), "run_live", CALL, hear, from_ms)  # type: ignore[arg-type]
    taking = asyncio.create_task(_all(stream))
    await asyncio.sleep(0.1)
    growing.end()
    journal = Journal.reopen(growing.place.path)
    journal.ended(CALL, 1, CALL, final=True)
    journal.close()
    return await asyncio.wait_for(taking, 30)


async def _all(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([part async for part in stream])


@pytest.mark.parametrize("hear", ["both", "assistant"])
async def test_the_sound_is_streamed_to_its_end(
    growing: Growing, finished: Recording, tmp_path: Path, hear: str
) -> None:
    growing.second()
    growing.second()
    found = await listened(growing, hear, 1500, None)
    (tmp_path / "x.wav").write_bytes(found)
    heard = read_wav(tmp_path / "x.wav")
    assert heard.rate_hz == finished.rate_hz
    whole = finished.conversation()[finished.rate_hz * 3 // 2 :]
    wanted = whole if hear == "both" else whole[:, 1:]
    np.testing.assert_array_equal(heard.samples, wanted)


async def test_the_sound_begins_now_unless_somebody_says_from_where(
    growing: Growing, finished: Recording
) -> None:
    for _ in range(5):
        growing.second()
    found = await listened(growing, "both", None, None)
    frames = (len(found) - HEADER_BYTES) // 4
    assert frames == finished.duration - growing.rate_hz * 9 // 2

"""Faults people reported in public, at the level of clocks, playout and whole calls.

What a right recording of such a situation measures as stands in
``test_timing_field_cases.py``; here the situation itself is made. Comments name
the report.
"""

from __future__ import annotations

import ast
import asyncio
import types
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import duplex
from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import Clock, VirtualClock, WallClock, utc_now
from duplex.engine import Engine, Playout, PlayoutEvent, SegmentEvent
from duplex.hangup import Policy
from duplex.local.faults import parse_fault
from duplex.local.server import LocalServer
from duplex.measuring import measure
from duplex.participants.base import Incoming, Participant, Spoken
from duplex.participants.live import LiveSession
from duplex.participants.scripted import Scripted
from duplex.protocols import g711
from duplex.recording import CallRecorder, Recording
from duplex.values import Event, Side
from gpt_live_voices import ToneVoice, Voices
from live_bench import LiveBench
from stimuli import noise, pcm, save, side, speechlike, voiced

RATE = 24_000
MS = RATE // 1000
TICK = 20 * MS
Pcm = npt.NDArray[np.int16]


def tone(ms: int, hz: float = 440.0) -> Pcm:
    t = np.arange(ms * MS) / RATE
    wave: Pcm = np.rint(9_000 * np.sin(2 * np.pi * hz * t + 0.3)).astype(np.int16)
    return wave


# -- pacing and wall clocks ----------------------------------------------------


class Machine:
    """A machine whose monotonic and wall clocks move only when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.wall = 1_700_000_000.0
        self._began = self.now
        self._sleep = asyncio.sleep

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall + self.now - self._began

    async def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)
        await self._sleep(0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    import time

    clocks = types.SimpleNamespace(
        monotonic=made.monotonic, time=made.time, strftime=time.strftime, gmtime=time.gmtime
    )
    monkeypatch.setattr("duplex.clock.time", clocks)
    monkeypatch.setattr("duplex.clock.asyncio.sleep", made.sleep)
    return made


@dataclass
class Work:
    """Looks on, and costs the machine time in every tick; notes when each began."""

    machine: Machine
    each: float = 0.003
    extra: dict[int, float] = field(default_factory=dict)
    steps: dict[int, float] = field(default_factory=dict)
    """Jumps of the wall clock alone, by tick."""
    began: list[float] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_tick(self, position: int, heard: tuple[Pcm, Pcm]) -> None:
        tick = len(self.began)
        self.began.append(self.machine.now)
        self.machine.now += self.each + self.extra.get(tick, 0.0)
        self.machine.wall += self.steps.get(tick, 0.0)


def parties() -> tuple[Scripted, Scripted]:
    caller = [(12_001, pcm(speechlike(1.5, 1))), (130_003, pcm(speechlike(2.0, 2)))]
    assistant = [(61_007, pcm(speechlike(2.0, 3))), (190_003, pcm(speechlike(1.0, 4)))]
    return Scripted(Side.CALLER, caller), Scripted(Side.ASSISTANT, assistant)


def hold(
    folder: Path,
    caller: Participant,
    assistant: Participant,
    *,
    clock: Clock | None = None,
    work: Work | None = None,
    policy: Policy | None = None,
    hold_ms: int = 0,
) -> Coroutine[None, None, CallEnd]:
    plan = CallPlan(
        call_id="c",
        scenario_id="c",
        hold_ms=(0, hold_ms),
        policy=policy or Policy(drain_ms=60_000, max_duration_ms=10_000),
    )
    call = Call(
        plan,
        caller=caller,
        assistant=assistant,
        clock=clock or VirtualClock(RATE),
        recorder=CallRecorder(folder, "c", rate_hz=RATE),
        watcher=work,
    )
    return call.hold()


async def test_500_ticks_last_10_seconds_whatever_each_one_costs(
    tmp_path: Path, machine: Machine
) -> None:
    # coval-ai/benchmarks#205: sleeping 20 ms after each 3 ms of work would take 11.5 s
    start = machine.now
    work = Work(machine)
    end = await hold(tmp_path, *parties(), clock=WallClock(RATE), work=work)
    assert (end.reason, end.position) == ("duration_limit", 10 * RATE)
    due = start + 0.02 * np.arange(1, 501)
    # A tick is worked on when it is over: the last one lasts its full 20 ms.
    assert np.allclose(work.began, due, atol=1e-6)


@pytest.mark.parametrize("stall", [0.05, 0.2])
async def test_a_stall_delays_no_later_tick(tmp_path: Path, machine: Machine, stall: float) -> None:
    # coval-ai/benchmarks#205
    start = machine.now
    work = Work(machine, extra={100: stall})
    end = await hold(tmp_path, *parties(), clock=WallClock(RATE), work=work)
    late = np.array(work.began) - start - 0.02 * np.arange(1, 501)
    assert end.fault is None
    assert late[101] == pytest.approx(stall + 0.003 - 0.02, abs=1e-6)
    # 17 ms are won back in every tick.
    caught_up = 101 + int(np.ceil((stall - 0.017) / 0.017))
    assert np.abs(late[caught_up:]).max() < 1e-6
    assert machine.now - start == pytest.approx(10.003, abs=0.001)
    (told,) = [event for event in work.events if event.type == "late"]
    assert told.fields["max_ms"] == pytest.approx((stall - 0.017) * 1000, abs=0.01)


@pytest.mark.parametrize("stood", [0.25, 2.5, 3_600.0])
async def test_a_machine_that_stood_still_is_at_fault_and_no_agent(
    tmp_path: Path, machine: Machine, stood: float
) -> None:
    # openclaw/openclaw#119086, the other way round: the monotonic clock itself jumps
    work = Work(machine, extra={100: stood})
    end = await hold(tmp_path, *parties(), clock=WallClock(RATE), work=work)
    assert end.fault is not None
    assert (end.reason, end.fault.stage) == ("error", "platform_late")
    assert 101 * TICK <= end.position <= 102 * TICK
    recording = Recording.load(tmp_path, "c")
    assert recording.duration == end.position


@pytest.mark.parametrize(
    "steps", [{150: -0.09}, {150: -0.09, 300: 3_600.0}, {0: 1e9, 1: -2e9}, {499: -86_400.0}]
)
async def test_a_step_of_the_wall_clock_changes_nothing_but_the_label(
    tmp_path: Path, machine: Machine, steps: dict[int, float]
) -> None:
    # openclaw/openclaw#119086
    before = utc_now()
    plain, stepped = Work(machine), Work(machine, steps=steps)
    start = machine.now
    await hold(tmp_path / "plain", *parties(), clock=WallClock(RATE), work=plain)
    middle = machine.now
    await hold(tmp_path / "stepped", *parties(), clock=WallClock(RATE), work=stepped)
    assert np.allclose(np.array(stepped.began) - middle, np.array(plain.began) - start)
    told = [
        [(e.seq, e.at, e.type, e.fields, round(e.received_at or 0, 6)) for e in work.events]
        for work in (plain, stepped)
    ]
    assert told[0] == told[1]
    first, second = (tmp_path / name / "audio" / "c" for name in ("plain", "stepped"))
    assert measure(first).as_json()["timing"] == measure(second).as_json()["timing"]
    assert (first / "conversation.wav").read_bytes() == (second / "conversation.wav").read_bytes()
    assert (utc_now() > before) is (sum(steps.values()) > -20)


def test_only_labels_are_taken_from_the_wall_clock() -> None:
    # openclaw/openclaw#119086: nothing else in the package asks what time of day it is
    wall = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}
    asked = []
    for path in sorted(Path(duplex.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in wall):
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                asked += [
                    f"{path.stem}.{function.name}"
                    for call in ast.walk(function)
                    if isinstance(call, ast.Attribute)
                    and ".".join(ast.unparse(call).split(".")[-2:]) in wall
                ]
    # The time of day that published expiries and servers' dates are told in; no call hears it.
    assert asked == ["clock.utc_seconds", "clock.utc_now"]


# -- arrival and playout -------------------------------------------------------


class Arriving:
    """An assistant whose audio comes when it comes, in pieces of any size."""

    lock_step = True

    def __init__(self, arrivals: Sequence[tuple[int, Pcm]]) -> None:
        """``arrivals``: the tick each piece comes in, and the piece."""
        self.side = Side.ASSISTANT
        self._arrivals = sorted(arrivals, key=lambda item: item[0])
        self._tick = 0

    async def start(self, clock: Clock) -> None: ...

    def hear(self, position: int, pcm: Pcm) -> None:
        self._tick += 1

    def collect(self) -> Sequence[Incoming]:
        return [Spoken(pcm=piece) for tick, piece in self._arrivals if tick == self._tick]

    async def finish(self) -> None:
        self._tick = -1

    async def abort(self) -> None: ...


def bunches(sound: Pcm, first_tick: int, late: Callable[[int], int] = lambda k: 0) -> Arriving:
    """Ten 20 ms frames every 200 ms; bunch ``k`` is late by so many ticks."""
    size = 10 * TICK
    return Arriving(
        [
            (first_tick + 10 * k + late(k), sound[at : at + size])
            for k, at in enumerate(range(0, len(sound), size))
        ]
    )


def ending(sound: Pcm) -> Pcm:
    """The sound and a pause: what a stream that ends in silence looks like."""
    return np.concatenate([sound, np.zeros(10 * TICK, np.int16)])


def playouts(recording: Recording, kind: Playout) -> int:
    return sum(
        int(str(event.fields["samples"]))
        for event in recording.events
        if event.type == "playout" and event.fields["kind"] == kind
    )


@pytest.mark.parametrize("hold_ms", [0, 120])
async def test_sessions_side_by_side_play_all_that_came_without_a_chop(
    tmp_path: Path, hold_ms: int
) -> None:
    # ServiceNow/eva#176
    sounds = [ending(tone(3_000, 300 + 50 * k)) for k in range(8)]
    short = Policy(drain_ms=60_000, max_duration_ms=5_000)
    calls = [
        hold(
            tmp_path / str(k),
            Scripted(Side.CALLER, []),
            bunches(sound, 30 + k),
            policy=short,
            hold_ms=hold_ms,
        )
        for k, sound in enumerate(sounds)
    ]
    await asyncio.gather(*calls)
    for k, sound in enumerate(sounds):
        recording = Recording.load(tmp_path / str(k), "c")
        heard = recording.conversation()[:, 1]
        at = (30 + k) * TICK + hold_ms * MS
        np.testing.assert_array_equal(heard[at : at + len(sound)], sound)
        assert not heard[:at].any()
        assert not heard[at + len(sound) :].any()
        assert playouts(recording, Playout.UNDERRUN) == 0


@pytest.mark.parametrize("late", [1, 4, 9])
async def test_only_a_true_underrun_adds_silence_and_it_is_told(tmp_path: Path, late: int) -> None:
    # ServiceNow/eva#176
    sound = ending(tone(2_000))
    assistant = bunches(sound, 30, lambda k: late if k >= 5 else 0)
    policy = Policy(drain_ms=60_000, max_duration_ms=5_000)
    await hold(tmp_path, Scripted(Side.CALLER, []), assistant, policy=policy)
    recording = Recording.load(tmp_path, "c")
    heard = recording.conversation()[:, 1]
    gap = late * TICK
    assert playouts(recording, Playout.UNDERRUN) == gap
    first, cut = 30 * TICK, 30 * TICK + 50 * TICK
    np.testing.assert_array_equal(heard[first:cut], sound[: 50 * TICK])
    assert not heard[cut : cut + gap].any()
    np.testing.assert_array_equal(heard[cut + gap :][: 60 * TICK], sound[50 * TICK :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the assistant's side of an engine gave."""

    said: Pcm
    segments: list[tuple[int, int]]
    discarded: int


def played(
    feeds: Sequence[tuple[int, Pcm]],
    flushes: Sequence[int],
    total_ms: int,
    *,
    tick_ms: int = 20,
    hold_ms: int = 0,
) -> Played:
    """Feed the assistant's audio and flush it at the given milliseconds."""
    engine = Engine(tick_ms=tick_ms, hold_ms=(0, hold_ms), detector="edge", ring_ms=20_000)
    said, found = [], []
    waiting, cuts = sorted(feeds, key=lambda item: item[0]), sorted(flushes)
    for now in range(0, total_ms, tick_ms):
        while cuts and cuts[0] <= now:
            cuts.pop(0)
            engine.flush(Side.ASSISTANT)
        while waiting and waiting[0][0] <= now:
            piece = waiting.pop(0)[1]
            assert engine.feed(Side.ASSISTANT, piece) == len(piece)
        engine.advance()
        said.append(engine.heard(Side.CALLER))
        found += engine.drain()
    engine.finish()
    found += engine.drain()
    return Played(
        said=np.concatenate(said),
        segments=[
            (event.start, event.end)
            for event in found
            if isinstance(event, SegmentEvent) and event.side is Side.ASSISTANT
        ],
        discarded=sum(
            event.samples
            for event in found
            if isinstance(event, PlayoutEvent) and event.kind is Playout.DISCARD
        ),
    )


@pytest.mark.parametrize("tick_ms", [10, 20, 200])
@pytest.mark.parametrize(("starts", "barge_in"), [(3_000, 4_200), (400, 5_200), (3_000, 3_200)])
def test_what_was_received_beyond_a_barge_in_was_never_heard(
    tick_ms: int, starts: int, barge_in: int
) -> None:
    # twilio/twilio-agent-connect-python#118: 5 s come within 0.2 s and are played in 5 s
    reply = pcm(speechlike(5.0, 6))
    quarters = [
        (starts + 50 * k, reply[k * RATE * 5 // 4 : (k + 1) * RATE * 5 // 4]) for k in range(4)
    ]
    found = played(
        [(when // tick_ms * tick_ms, piece) for when, piece in quarters],
        [barge_in],
        barge_in + 2_000,
        tick_ms=tick_ms,
    )
    heard = (barge_in - starts) * MS
    np.testing.assert_array_equal(found.said[starts * MS : barge_in * MS], reply[:heard])
    assert not found.said[barge_in * MS :].any()
    assert found.discarded == len(reply) - heard
    if heard > 500 * MS:
        assert found.segments[0][0] == pytest.approx(starts * MS, abs=5 * MS)
        assert found.segments[-1][1] == pytest.approx(barge_in * MS, abs=5 * MS)


@pytest.mark.parametrize("hold_ms", [0, 120])
@pytest.mark.parametrize(("flush", "again"), [(2_000, 2_500), (1_200, 1_220), (5_900, 6_000)])
def test_a_reply_after_a_flush_is_played_when_it_comes(
    hold_ms: int, flush: int, again: int
) -> None:
    # gradio-app/fastrtc#99: 5 s queued at 1.0 s and flushed do not hold the next reply back
    old, new = pcm(speechlike(5.0, 6)), pcm(speechlike(1.0, 7))
    found = played([(1_000, old), (again, new)], [flush], again + 2_500, hold_ms=hold_ms)
    at = flush * MS + int(np.flatnonzero(found.said[flush * MS :])[0])
    # A reply that is longer than the pause before it needs no hold.
    assert again * MS <= at <= (again + hold_ms) * MS + 1
    first = int(np.flatnonzero(new)[0])
    np.testing.assert_array_equal(found.said[at:][: len(new) - first], new[first:])
    assert found.discarded == len(old) - (flush - 1_000 - hold_ms) * MS


def test_flushes_one_after_the_other_leave_no_debt() -> None:
    # gradio-app/fastrtc#99
    replies = [(500 + 700 * k, pcm(speechlike(5.0, k))) for k in range(6)]
    found = played(replies, [when + 400 for when, _ in replies], 6_000)
    for when, reply in replies:
        np.testing.assert_array_equal(found.said[when * MS :][: 400 * MS], reply[: 400 * MS])
        assert not found.said[(when + 400) * MS : (when + 700) * MS].any()


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 48_000])
@pytest.mark.parametrize("seconds", [0.25, 1.2])
async def test_a_gap_between_messages_resets_no_resampler(rate_hz: int, seconds: float) -> None:
    # pipecat-ai/pipecat#5769: two halves of one tone, however far apart they come
    async def said(*faults: str) -> Pcm:
        voices = Voices(lambda config: ToneVoice(config, tone_ms=2_000))
        server = LocalServer(voices, faults=[parse_fault(text) for text in faults])
        session = LiveSession(
            side=Side.ASSISTANT, connect=server.connector(), lock_step=True, opening="hello"
        )
        bench = LiveBench(session, VirtualClock(rate_hz))
        await bench.start()
        await bench.run(6_000)
        await bench.finish()
        assert all(not fatal for _, _, fatal in bench.faults())
        return bench.audio()

    smooth, stalled = await said(), await said(f"stall,seconds={seconds}")
    length = min(len(smooth), len(stalled))
    assert length > 4 * rate_hz
    np.testing.assert_array_equal(stalled[:length], smooth[:length])
    loud = np.flatnonzero(np.abs(smooth.astype(int)) > 400)
    # One tone without a hole: at 440 Hz no two loud samples lie a millisecond apart.
    assert np.diff(loud).max() < rate_hz / 1_000
    assert abs((loud[-1] - loud[0]) / rate_hz - 2.0) < 0.01


# -- the harness's own waits ---------------------------------------------------


@pytest.mark.parametrize(("quiet_ms", "drain_ms"), [(600, 1_500), (5_000, 5_000)])
@pytest.mark.parametrize("delay_ms", [500, 1_900])
async def test_how_long_the_harness_waits_is_in_no_latency(
    tmp_path: Path, quiet_ms: int, drain_ms: int, delay_ms: int
) -> None:
    # egma-ai/egma#274, livekit/agents#6661: an answer whose end nobody tells is an answer
    request, answer = pcm(speechlike(1.5, 1)), pcm(speechlike(1.2, 2))
    start = 12_001
    reply_at = start + len(request) + delay_ms * MS
    caller = Scripted(Side.CALLER, [(start, request)])
    assistant = Scripted(Side.ASSISTANT, [(reply_at, answer)])
    policy = Policy(quiet_ms=quiet_ms, drain_ms=drain_ms, max_duration_ms=60_000)
    end = await hold(tmp_path, caller, assistant, policy=policy)
    assert end.reason == "response_completed"
    assert end.position >= reply_at + len(answer) + (quiet_ms + drain_ms) * MS
    found = measure(tmp_path / "audio" / "c")
    assert found.timing is not None
    (latency,) = found.timing.latencies
    assert latency.value == pytest.approx(delay_ms, abs=6)
    assert (found.timing.response_rate.numerator, found.timing.response_rate.denominator) == (1, 1)
    assert found.contract is not None
    counted = found.contract["response_opportunities"]
    assert isinstance(counted, dict)
    assert (counted["response_count"], counted["no_response_count"]) == (1, 0)
    assert found.contract["response_latency_ms"] == pytest.approx(delay_ms, abs=45)


# -- noise and levels ----------------------------------------------------------


@pytest.mark.parametrize("starts", [0.0, 2.9, 3.5])
@pytest.mark.parametrize("floor_dbfs", [None, -75])
def test_four_seconds_of_steady_noise_are_no_speech_and_hold_no_turn_open(
    tmp_path: Path, starts: float, floor_dbfs: float | None
) -> None:
    # aplisay/llm-agent#243
    seconds = 16.0
    spoken = side([(9.0, speechlike(1.5, 1)), (13.0, speechlike(1.5, 4))], seconds)
    caller = spoken + side([(starts, noise(4.0, -30))], seconds)
    assistant = side([(1.0, speechlike(4.0, 2)), (11.1, speechlike(1.5, 3))], seconds)
    if floor_dbfs is not None:
        caller = caller + noise(seconds, floor_dbfs)
        assistant = assistant + noise(seconds, floor_dbfs, seed=98)
    found = measure(save(tmp_path / "a.wav", caller, assistant))
    assert found.timing is not None
    voices = found.timing.talk.voices[Side.CALLER]
    window = (round(starts * RATE), round((starts + 4) * RATE))
    false = sum(max(0, min(v.end, window[1]) - max(v.start, window[0])) for v in voices)
    assert false <= 0.05 * (window[1] - window[0])
    assert found.timing.yielding.barge_ins == ()
    assert [round(v.start / RATE, 1) for v in voices if v.start > window[1]] == [9.0, 13.0]


@pytest.mark.parametrize("length", [0.02, 0.09])
@pytest.mark.parametrize("place", [0.7, 2.0, 4.9])
def test_clicks_in_a_recording_interrupt_nobody(
    tmp_path: Path, length: float, place: float
) -> None:
    # aplisay/llm-agent#243
    seconds = 12.0
    click = np.full(round(length * RATE), 0.99) if length < 0.05 else voiced(length)
    caller = side([(place, click), (7.0, speechlike(1.5, 1))], seconds)
    assistant = side([(0.5, speechlike(4.0, 2)), (9.2, speechlike(1.5, 3))], seconds)
    found = measure(save(tmp_path / "a.wav", caller, assistant))
    assert found.timing is not None
    assert len(found.timing.talk.turns[Side.CALLER]) == 1
    assert found.timing.yielding.barge_ins == ()
    assert [round(latency.value, -1) for latency in found.timing.latencies] == [700.0]


@pytest.mark.parametrize("law", ["mu", "a"])
@pytest.mark.parametrize("hz", [200.0, 1_003.0, 3_100.0])
def test_companding_keeps_level_and_quality(law: str, hz: float) -> None:
    # Vanilagy/mediabunny#517: the 14-bit domain would be 12 dB low
    t = np.arange(8_000) / 8_000
    sine = np.rint(32_767 * 10 ** (-3 / 20) * np.sin(2 * np.pi * hz * t)).astype(np.int16)
    coded = g711.encode(sine, law)
    assert len(coded) == 8_000
    back = g711.decode(coded, law).astype(float)
    gain_db = 10 * np.log10(np.mean(back**2) / np.mean(sine.astype(float) ** 2))
    snr_db = 10 * np.log10(np.mean(sine.astype(float) ** 2) / np.mean((back - sine) ** 2))
    assert abs(gain_db) < 0.1
    assert snr_db > 35


@pytest.mark.parametrize("subtype", ["ULAW", "ALAW"])
def test_a_telephone_recording_has_the_levels_of_its_source(tmp_path: Path, subtype: str) -> None:
    # Vanilagy/mediabunny#517
    seconds = 10.0
    caller = side(
        [(0.5, speechlike(2.0, 1, 8_000)), (6.0, speechlike(1.0, 2, 8_000))], seconds, 8_000
    )
    assistant = side([(3.1, speechlike(2.0, 3, 8_000))], seconds, 8_000)
    plain = measure(save(tmp_path / "plain.wav", caller, assistant, rate=8_000))
    coded = measure(save(tmp_path / "coded.wav", caller, assistant, rate=8_000, subtype=subtype))
    for who in Side:
        levels = [found.health.sides[who].speech_dbfs for found in (plain, coded)]
        assert levels[0] is not None
        assert levels[1] == pytest.approx(levels[0], abs=0.1)

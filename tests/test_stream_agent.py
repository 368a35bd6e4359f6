"""An agent behind a stream, in virtual time: pace, marks, clear, faults, hanging up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from duplex.clock import Clock, VirtualClock
from duplex.errors import SessionError
from duplex.participants.base import Discarded, Pcm, Spoken
from duplex.participants.steady import most_held
from duplex.participants.stream_agent import StreamAgent
from duplex.participants.transport import Transport, TransportRefused
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmFormat, PcmStream
from duplex.values import Side
from live_bench import LiveBench
from stream_peer import StreamPeer, TwilioPeer

RATE = 24_000
WIRE = 8_000
MS = RATE // 1000
IDS = StreamIds.drawn(7)


def twilio(tick_ms: int = 20, rate: int = RATE) -> tuple[LiveBench, TwilioPeer]:
    peer = TwilioPeer()
    agent = StreamAgent(connect=peer.connector(), dialect=MediaStream(IDS), provider="twilio")
    return LiveBench(agent, VirtualClock(rate), tick_ms), peer


def raw(form: PcmFormat, rate: int = RATE) -> tuple[LiveBench, StreamPeer]:
    peer = StreamPeer()
    agent = StreamAgent(connect=peer.connector(), dialect=PcmStream(form), provider="pcm")
    return LiveBench(agent, VirtualClock(rate)), peer


def tone(ms: int, rate: int = WIRE, level: int = 6_000) -> Pcm:
    t = np.arange(ms * rate // 1000)
    pcm: Pcm = np.rint(level * np.sin(2 * np.pi * 300 * t / rate)).astype(np.int16)
    return pcm


def line(bench: LiveBench) -> Pcm:
    """What the call played of the agent: its pieces where they were collected."""
    out = np.zeros(bench.position, np.int16)
    for position, pcm in bench.placed:
        out[position : position + len(pcm)] = pcm
    return out


def sounding(pcm: Pcm) -> tuple[float, float]:
    """Milliseconds of the first and after the last sample that is not silent."""
    loud = np.flatnonzero(np.abs(pcm.astype(int)) > 100)
    return float(loud[0] / MS), float((loud[-1] + 1) / MS)


# -- what the agent is sent -------------------------------------------------


@pytest.mark.parametrize("tick_ms", [10, 20, 100, 200])
async def test_twilio_hears_start_first_then_a_message_each_20_ms_and_stop_last(
    tick_ms: int,
) -> None:
    bench, peer = twilio(tick_ms)
    await bench.start()
    assert peer.received == []
    await bench.run(1_000)
    await bench.finish()
    events = peer.events()
    assert events[:2] == ["connected", "start"]
    assert events[2:-1] == ["media"] * 50
    assert events[-1] == "stop"
    assert peer.closed is not None
    assert peer.closed.code == 1000
    assert bench.faults() == []
    assert bench.told("session.started")[0]["session_id"] == IDS.stream
    assert bench.told("session.closed") == [{"reason": "close_requested"}]


async def test_media_leaves_at_the_pace_of_the_calls_clock() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(1_000)
    assert set(np.diff(peer.when("media"))) == {20 * MS}


async def test_the_callers_sound_reaches_the_agent_whole_and_as_late_as_is_told() -> None:
    bench, peer = twilio()
    whole = np.zeros(2 * RATE, np.int16)
    whole[12_000:18_000] = tone(250, RATE)

    def heard(position: int) -> Pcm:
        return whole[position : position + 480]

    await bench.start()
    await bench.run(1_400, heard)
    await bench.finish()
    first, last = sounding(np.repeat(peer.heard(), 3))
    delay = most_held(RATE, WIRE) * 1000 / WIRE
    assert first == pytest.approx(500 + delay, abs=2)
    assert last == pytest.approx(750 + delay, abs=2)
    (sent,) = bench.told("sent")
    assert isinstance(sent["end"], int)
    assert isinstance(sent["sent_at"], int)
    assert (sent["sent_at"] - sent["end"]) / MS == pytest.approx(delay, abs=1)


# -- what the agent says ----------------------------------------------------


@pytest.mark.parametrize("tick_ms", [10, 20, 100, 200])
async def test_a_burst_is_played_at_its_pace_to_the_sample(tick_ms: int) -> None:
    bench, peer = twilio(tick_ms)
    await bench.start()
    await bench.run(1_000)
    await peer.say(tone(3_000))
    await bench.run(4_000)
    played = [item for item in bench.items if isinstance(item, Spoken)]
    assert sum(len(item.pcm) for item in played) == 3 * RATE
    assert max(len(item.pcm) for item in played) <= bench.tick
    first, last = sounding(line(bench))
    assert first == pytest.approx(1_000, abs=1)
    assert last == pytest.approx(4_000, abs=1)
    assert played[0].arrived_at == RATE
    assert played[0].taken_at == RATE


async def test_speech_at_real_time_pace_is_unbroken_after_its_hold() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(1_000)
    whole = tone(2_000)
    for at in range(0, len(whole), 160):
        await peer.say(whole[at : at + 160])
        await bench.run(20)
    await bench.run(1_000)
    first, last = sounding(line(bench))
    assert 1_060 <= first <= 1_160
    assert last - first == pytest.approx(2_000, abs=2)
    spoken = line(bench)[round(first * MS) : round(last * MS)].astype(float)
    level = np.sqrt(np.mean(spoken[: 97 * 480].reshape(97, 480) ** 2, axis=1))
    assert level.min() > 0.9 * level.max()


async def test_a_mark_comes_back_when_the_audio_before_it_was_played() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(1_000)
    await peer.say(tone(1_000))
    await peer.mark("one")
    await peer.say(tone(500))
    await peer.mark("two")
    await bench.run(2_000)
    await peer.mark("nothing waits")
    await bench.run(100)
    assert [one["mark"] for one in peer.all("mark")] == [
        {"name": "one"},
        {"name": "two"},
        {"name": "nothing waits"},
    ]
    at = [position / MS for position in peer.when("mark")]
    assert at[0] == pytest.approx(2_000, abs=40)
    assert at[1] == pytest.approx(2_500, abs=40)
    assert at[2] == pytest.approx(3_000, abs=40)


async def test_a_clear_stops_at_once_and_counts_what_was_heard() -> None:
    # twilio/twilio-agent-connect-python#118: heard is not received.
    bench, peer = twilio()
    await bench.start()
    await bench.run(3_000)
    for at in range(0, 40_000, 4_000):
        await peer.say(tone(5_000)[at : at + 4_000])
    await peer.mark("end")
    await bench.run(1_200)
    assert peer.all("mark") == []
    await peer.tell("clear")
    await bench.run(1_000)
    assert bench.told("reply.interrupted") == [{"heard_ms": 1200.0, "received_ms": 5000.0}]
    thrown = [item.samples for item in bench.items if isinstance(item, Discarded)]
    assert thrown == [3_800 * MS]
    assert sounding(line(bench))[1] == pytest.approx(4_200, abs=1)
    assert peer.when("mark")[0] / MS - 4_200 <= 250
    await peer.tell("clear")
    assert len(bench.told("reply.interrupted")) == 1


async def test_what_follows_a_clear_is_a_reply_of_its_own() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(100)
    await peer.say(tone(2_000))
    await bench.run(400)
    await peer.tell("clear")
    await peer.say(tone(300))
    await peer.mark("late")
    await bench.run(1_000)
    first = [item for item in bench.items if isinstance(item, Spoken)]
    assert sum(len(item.pcm) for item in first) == (400 + 300) * MS
    assert peer.when("mark")[0] / MS == pytest.approx(800, abs=40)


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 48_000])
async def test_any_session_rate_plays_what_came(rate: int) -> None:
    bench, peer = twilio(rate=rate)
    await bench.start()
    await bench.run(200)
    await peer.say(tone(1_000))
    await bench.run(1_500)
    assert len(bench.audio()) == rate
    await bench.finish()
    assert len(peer.heard()) == WIRE * 1_700 // 1000


async def test_more_audio_than_can_wait_is_dropped_and_told() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(20)
    for _ in range(31):
        await peer.say(np.full(80_000, 500, np.int16))
    await bench.run(20)
    assert bench.faults() == [("agent", "audio_queue_overflow", False)]


# -- raw PCM ----------------------------------------------------------------


async def test_pcm_goes_both_ways_bit_for_bit_at_the_sessions_rate() -> None:
    bench, peer = raw(PcmFormat(frame_ms=40))
    whole = np.random.default_rng(1).integers(-9_000, 9_000, RATE).astype(np.int16)
    await bench.start()
    await bench.run(1_000, lambda position: whole[position : position + 480])
    await bench.clock.settle()
    assert b"".join(one for one in peer.received if isinstance(one, bytes)) == whole.tobytes()
    assert {len(one) for one in peer.received} == {40 * MS * 2}
    data = whole.tobytes()
    for at in range(0, len(data), 4_801):
        await peer.send(data[at : at + 4_801])
    await bench.run(1_500)
    await bench.finish()
    assert np.array_equal(bench.audio(), whole)
    assert bench.faults() == []
    assert peer.closed is not None


async def test_pcm_text_clears_marks_and_reports() -> None:
    bench, peer = raw(PcmFormat(rate_hz=16_000))
    await bench.start()
    await bench.run(100)
    await peer.send(tone(2_000, 16_000).tobytes())
    await peer.send('{"type": "mark", "name": "a"}')
    await peer.send('{"type": "latency", "ms": 640}')
    await bench.run(500)
    await peer.send('{"type": "clear"}')
    await bench.run(100)
    texts = [one for one in peer.received if isinstance(one, str)]
    assert [json.loads(text) for text in texts] == [{"type": "mark", "name": "a"}]
    assert bench.told("claim") == [
        {"kind": "latency", "moment": 100 * MS, "ms": 640.0, "told": "receipt"}
    ]
    assert bench.told("reply.interrupted") == [{"heard_ms": 500.0, "received_ms": 2000.0}]


async def test_an_odd_byte_left_at_the_end_is_told() -> None:
    bench, peer = raw(PcmFormat())
    await bench.start()
    await bench.run(20)
    await peer.send(b"\x00\x01\x02")
    await bench.finish()
    assert bench.faults() == [("transport", "odd_bytes", False)]


# -- the side channel -------------------------------------------------------


async def test_reports_become_the_events_of_an_application() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(1_000)
    await peer.tell("duplex", duplex={"type": "state", "state": {"open": True}})
    await peer.tell("duplex", duplex={"type": "tool", "name": "book", "arguments": {"n": 2}})
    await peer.tell("duplex", duplex={"type": "first_byte", "at_ms": 500})
    await bench.run(20)
    assert bench.told("state") == [{"state": {"open": True}}]
    (started,) = bench.told("tool.started")
    (ended,) = bench.told("tool.ended")
    assert (started["name"], started["arguments"]) == ("book", {"n": 2})
    assert (ended["call_id"], ended["status"]) == (started["call_id"], "completed")
    (claim,) = bench.told("claim")
    delay = most_held(RATE, WIRE) * RATE // WIRE
    assert claim == {"kind": "first_byte", "moment": 500 * MS - delay, "told": "stream"}


async def test_reports_are_bounded() -> None:
    bench, peer = raw(PcmFormat())
    await bench.start()
    await bench.run(20)
    for _ in range(5_010):
        await peer.send('{"type": "first_byte"}')
    await bench.run(20)
    assert len(bench.told("claim")) == 5_000
    assert set(bench.faults()) == {("agent", "too_many_reports", False)}
    assert len(bench.faults()) <= 6


# -- trouble ----------------------------------------------------------------


async def test_an_agent_that_hangs_up_ends_no_call() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(100)
    await peer.say(tone(500))
    await peer.close()
    await bench.run(1_000)
    await bench.finish()
    assert bench.faults() == []
    assert bench.told("session.closed") == [{"reason": "remote_hangup"}]
    assert len(bench.audio()) == RATE // 2


async def test_a_connection_that_breaks_off_is_fatal() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(100)
    await peer.drop()
    await bench.run(100)
    await bench.finish()
    assert bench.faults() == [("session", "dropped", True)]


async def test_garbage_is_told_and_the_call_goes_on() -> None:
    bench, peer = twilio()
    await bench.start()
    await bench.run(100)
    for _ in range(50):
        await peer.send("garbage")
    await peer.say(tone(200))
    await bench.run(500)
    await bench.finish()
    assert len(bench.audio()) == 200 * MS
    assert set(bench.faults()) == {("agent", "unreadable", False)}
    assert len(bench.faults()) == 6


async def test_an_agent_that_cannot_be_reached_has_a_stage() -> None:
    async def refuse(clock: Clock) -> Transport:
        raise TransportRefused("404", "ws://h/x answered the upgrade with status 404, wanted 101")

    agent = StreamAgent(connect=refuse, dialect=MediaStream(IDS), provider="twilio")
    with pytest.raises(SessionError, match="status 404") as caught:
        await agent.start(VirtualClock(RATE))
    assert caught.value.stage == f"{Side.ASSISTANT.label}_connection"
    await agent.finish()
    await agent.abort()


async def test_nothing_is_left_after_a_call() -> None:
    import asyncio

    before = asyncio.all_tasks()
    bench, peer = twilio()
    await bench.start()
    await bench.run(200)
    await bench.finish()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() - before <= {peer._task}

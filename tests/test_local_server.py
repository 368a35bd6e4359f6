"""The local server's sessions in memory and in virtual time: pacing, texts, ends, faults."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest

from duplex.clock import VirtualClock
from duplex.errors import InputError
from duplex.local import pipe as pipe_module
from duplex.local.faults import FAULTS, Plan, parse_fault
from duplex.local.pipe import pipe
from duplex.local.rate_bridge import DELAY_MS
from duplex.local.seams import Pcm, VoiceFrame
from duplex.local.server import LocalServer, connect_in_memory
from duplex.participants.held_queue import HeldQueue, QueueClosed
from duplex.participants.transport import TransportClosed, TransportRefused
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import Json
from gpt_live_peer import BareClient
from gpt_live_schema import problems
from gpt_live_voices import ToneVoice, Voices

RATE = 24_000


class Bench:
    """One in-memory session on a virtual clock."""

    def __init__(self, client: BareClient, server: LocalServer, voices: Voices) -> None:
        self.client, self.server, self.voices = client, server, voices

    @property
    def voice(self) -> ToneVoice:
        return self.voices.made[0]


async def bench(
    *,
    faults: Sequence[Plan] = (),
    session_seconds: float = 7200,
    start: bool = True,
    rate: int = RATE,
    width: int = 2,
    voices: Voices | None = None,
    **session: Json,
) -> Bench:
    voices = voices or Voices()
    server = LocalServer(voices, faults=faults, session_seconds=session_seconds)
    clock = VirtualClock(RATE)
    transport = await connect_in_memory(server, clock)
    client = BareClient(transport, clock, rate=rate, width=width)
    made = Bench(client, server, voices)
    if start:
        await client.start(**session)
    return made


async def say(client: BareClient, text: str) -> None:
    await client.send("session.commentary.append", content=text, delegation_id=None)


# -- pacing and audio -------------------------------------------------------


async def test_each_100_ms_of_input_gives_100_ms_of_output_zeros_when_silent() -> None:
    made = await bench()
    client = made.client
    await client.push(80)
    assert client.all("session.output_audio.delta") == []
    await client.push(920)
    deltas = client.all("session.output_audio.delta")
    assert [len(base64.b64decode(str(d["delta"]))) for d in deltas] == [4800] * 10
    assert not client.output().any()
    assert all(set(d) == {"type", "delta"} for d in deltas)


@pytest.mark.parametrize("chunk_ms", [10, 20, 100, 200])
async def test_the_voice_hears_the_same_blocks_whatever_the_clients_chunks(chunk_ms: int) -> None:
    made = await bench()
    await made.client.push(1000, value=7, chunk_ms=chunk_ms)
    assert {len(block) for block in made.voice.heard} == {480}
    assert len(np.concatenate(made.voice.heard)) == RATE
    assert len(made.client.output()) == RATE


async def test_speech_comes_out_where_it_was_asked_for() -> None:
    made = await bench()
    await made.client.push(400)
    await say(made.client, "hello")
    await made.client.push(1000)
    voiced = np.flatnonzero(made.client.output())
    assert 9_600 <= voiced[0] <= 9_602
    assert voiced[-1] < 9_600 + 400 * 24


async def test_input_ahead_of_real_time_waits_its_turn() -> None:
    made = await bench()
    client = made.client
    await client.send("session.input_audio.append", audio=client.pack(RATE * 3))
    heard = len(made.voice.heard) * 20
    assert 200 <= heard <= 300, "three seconds came at once, only what is due was heard"
    await client.clock.advance(RATE)
    assert 1200 <= len(made.voice.heard) * 20 <= 1300
    await client.clock.advance(RATE * 4)
    assert len(made.voice.heard) * 20 == 3000


async def test_a_client_that_was_late_catches_up_at_once() -> None:
    made = await bench()
    client = made.client
    await client.push(200)
    await client.clock.advance(RATE * 3)
    await client.send("session.input_audio.append", audio=client.pack(RATE * 2))
    assert len(made.voice.heard) * 20 == 2200


async def test_more_than_a_minute_of_waiting_audio_is_refused() -> None:
    made = await bench()
    for _ in range(3):
        audio = made.client.pack(RATE * 29)
        await made.client.send("session.input_audio.append", audio=audio)
    (error,) = made.client.all("error")
    assert problems(error) == []
    detail = error["error"]
    assert isinstance(detail, dict)
    assert detail["code"] == "input_audio_overflow"


async def test_mute_keeps_the_voice_speaking_and_does_not_run_the_clock() -> None:
    made = await bench()
    client = made.client
    await client.send("session.input_audio.mute")
    await say(client, "still here")
    await client.clock.advance(RATE)
    assert made.voice.heard == [], "mute alone is no audio"
    await client.push(1200, value=900)
    assert not np.concatenate(made.voice.heard).any()
    assert client.output().any()


@pytest.mark.parametrize(
    ("kind", "rate", "width"),
    [("audio/pcm", 16_000, 2), ("audio/pcmu", 8_000, 1), ("audio/pcma", 8_000, 1)],
)
async def test_other_formats_keep_frame_sizes_and_cost_a_fixed_delay(
    kind: str, rate: int, width: int
) -> None:
    made = await bench(rate=rate, width=width, audio={"format": {"type": kind, "rate": rate}})
    client = made.client
    await client.push(200)
    await say(client, "hello")
    await client.push(1800)
    config = made.voice.config.audio
    pieces = [base64.b64decode(str(d["delta"])) for d in client.all("session.output_audio.delta")]
    assert {len(piece) for piece in pieces} == {rate // 10 * width}
    out = config.decode(b"".join(pieces)).astype(int)
    assert len(out) == 2 * rate
    loud = np.flatnonzero(np.abs(out) > 1000)
    assert abs(loud[0] / rate - 0.2 - DELAY_MS / 1000) < 0.005
    assert abs((loud[-1] - loud[0]) / rate - 0.4) < 0.02
    assert np.abs(out[-rate // 2 :]).max() <= 8, "silence again at the end"


# -- texts, delegations, notes, usage ---------------------------------------


async def test_transcripts_lie_on_the_200_ms_grid_and_bring_their_spaces() -> None:
    made = await bench()
    await made.client.push(300)
    await say(made.client, "two words , done")
    await made.client.push(80)
    assert made.client.all("session.output_transcript.delta") == [], "told on the boundary only"
    await made.client.push(820)
    texts = made.client.all("session.output_transcript.delta")
    assert "".join(str(t["delta"]) for t in texts) == "two words, done"
    for text in texts:
        assert (text["start_ms"], text["end_ms"]) == (200, 800)
        assert problems(text) == []


async def test_what_the_voice_heard_is_the_input_transcript() -> None:
    class Hearing(ToneVoice):
        async def frame(self, pcm: Pcm) -> VoiceFrame:
            frame = await super().frame(pcm)
            said, self.swapped = frame.said, True
            return VoiceFrame(pcm=frame.pcm, heard=said)

    made = await bench(voices=Voices(Hearing))
    await say(made.client, "good evening")
    await made.client.push(400)
    texts = made.client.all("session.input_transcript.delta")
    assert "".join(str(t["delta"]) for t in texts) == "good evening"
    assert made.client.all("session.output_transcript.delta") == []


async def test_the_words_a_delegation_rests_on_go_out_before_it() -> None:
    class Asked(ToneVoice):
        async def frame(self, pcm: Pcm) -> VoiceFrame:
            frame = await super().frame(pcm)
            return VoiceFrame(pcm=frame.pcm, heard=frame.said, delegations=frame.delegations)

    made = await bench(voices=Voices(Asked))
    await say(made.client, "please delegate")
    await made.client.push(20)
    kinds = [message["type"] for message in made.client.events]
    heard = [i for i, kind in enumerate(kinds) if kind == "session.input_transcript.delta"]
    assert len(heard) == 2
    assert max(heard) < kinds.index("session.delegation.created")


async def test_a_delegation_is_announced_with_an_id_that_commentary_may_name() -> None:
    made = await bench()
    await say(made.client, "delegate")
    await made.client.push(100)
    (created,) = made.client.all("session.delegation.created")
    assert problems(created) == []
    delegation = created["delegation"]
    assert isinstance(delegation, dict)
    await made.client.send(
        "session.commentary.append", content="done", delegation_id=delegation["id"]
    )
    assert made.voice.told[-1] == ("commentary", "done", delegation["id"])


async def test_a_voices_notes_travel_as_info() -> None:
    made = await bench()
    await say(made.client, "note this")
    await made.client.push(100)
    (info,) = made.client.all("info")
    assert problems(info) == []
    assert info["code"] == "duplex.utterance"
    assert json.loads(str(info["message"]))["text"] == "note this"


async def test_usage_is_told_every_minute_in_whole_cumulative_seconds() -> None:
    made = await bench()
    await made.client.push(125_000, chunk_ms=200)
    usage = made.client.all("session.usage.updated")
    assert [u["usage"] for u in usage] == [{"seconds": 60}, {"seconds": 120}]


async def test_a_fixture_replaces_the_voice_and_tells_when_it_is_played() -> None:
    made = await bench()
    await say(made.client, "covered words")
    audio = base64.b64encode(np.full(RATE // 2, 5, "<i2").tobytes()).decode()
    await made.client.send("session.output_audio.fixture.play", audio=audio, event_id="f")
    await made.client.push(1000)
    out = made.client.output()
    assert np.flatnonzero(out == 5).tolist() == list(range(RATE // 2))
    assert not out[RATE // 2 :].any()
    (played,) = made.client.all("session.output_audio.fixture.played")
    assert played["client_event_id"] == "f"
    assert made.client.all("session.output_transcript.delta") == []


# -- the end ----------------------------------------------------------------


async def test_close_ends_with_usage_the_last_audio_and_code_1000() -> None:
    made = await bench()
    await made.client.push(1_060)
    await made.client.send("session.close", event_id="c")
    closed = made.client.events[-1]
    assert problems(closed) == []
    assert (closed["type"], closed["reason"]) == ("session.closed", "close_requested")
    assert closed["usage"] == {"seconds": 2}
    assert closed["client_event_id"] == "c"
    assert len(made.client.output()) == RATE * 1_060 // 1000
    assert made.client.closed is not None
    assert made.client.closed.code == 1000
    assert made.voice.closed


async def test_close_lets_the_voice_finish_but_not_for_ever() -> None:
    made = await bench()
    await say(made.client, "one")
    await made.client.push(100)
    await made.client.send("session.close")
    voiced = np.flatnonzero(made.client.output())
    assert voiced[-1] > 395 * 24, "its 400 ms were said to the end"
    assert len(made.client.output()) < RATE

    endless = await bench(voices=Voices(lambda config: ToneVoice(config, tone_ms=60_000)))
    await say(endless.client, "one")
    await endless.client.push(100)
    await endless.client.send("session.close")
    assert endless.client.all("session.closed")
    assert len(endless.client.output()) <= RATE * 9


async def test_a_session_expires() -> None:
    made = await bench(session_seconds=2)
    await made.client.push(3_000)
    (closed,) = made.client.all("session.closed")
    assert closed["reason"] == "expired"
    assert made.client.closed is not None


async def test_a_refused_start_is_answered_and_the_connection_closed() -> None:
    made = await bench(start=False)
    await made.client.send("session.start", session={"model": "gpt-live-1", "bogus": 1})
    assert [event["type"] for event in made.client.events] == ["error"]
    assert made.client.closed is not None
    assert made.voices.made == []


async def test_a_voice_that_fails_ends_the_session_with_an_error() -> None:
    class Failing(ToneVoice):
        async def frame(self, pcm: Pcm) -> VoiceFrame:
            raise RuntimeError("no more words")

    made = await bench(voices=Voices(Failing))
    await made.client.push(100)
    (error,) = made.client.all("error")
    assert problems(error) == []
    assert made.client.all("session.closed")[0]["reason"] == "connection_lost"
    assert made.client.closed is not None


async def test_no_voice_no_session() -> None:
    def none(config: SessionConfig) -> ToneVoice:
        raise InputError("no such voice here")

    made = await bench(start=False, voices=Voices(none))
    await made.client.send("session.start", session={"model": "gpt-live-1"})
    assert [event["type"] for event in made.client.events] == ["error"]
    assert made.client.closed is not None


async def test_a_client_that_vanishes_frees_its_voice_and_the_clock() -> None:
    made = await bench()
    await made.client.push(100)
    made.client.transport.abort()
    await made.client.clock.advance(RATE)
    await made.client.clock.settle()
    assert made.voice.closed


async def test_a_client_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module, "PIPE_LIMIT", 20)
    voices = Voices()
    clock = VirtualClock(RATE)
    transport = await connect_in_memory(LocalServer(voices), clock)
    await transport.send('{"type":"session.start","session":{"model":"gpt-live-1"}}')
    for _ in range(40):
        await transport.send('{"type":"session.input_audio.mute"}')
        await asyncio.sleep(0)
    for _ in range(20):
        await transport.receive()
    with pytest.raises(TransportClosed, match="1009"):
        await transport.receive()
    await clock.settle()
    assert voices.made[0].closed


async def test_closing_the_server_ends_its_sessions() -> None:
    made = await bench()
    await made.server.close()
    await made.client.clock.settle()
    assert made.client.closed is not None
    assert made.voice.closed


# -- faults -----------------------------------------------------------------


async def faulted(text: str, ms: int = 6_000) -> Bench:
    made = await bench(
        faults=[parse_fault(text)], voices=Voices(lambda config: ToneVoice(config, tone_ms=1_000))
    )
    await say(made.client, "hello")
    await made.client.push(ms)
    return made


async def test_a_stall_holds_everything_back_and_loses_nothing() -> None:
    made = await bench(
        faults=[parse_fault("stall,seconds=2")],
        voices=Voices(lambda config: ToneVoice(config, tone_ms=1_000)),
    )
    await say(made.client, "hello")
    await made.client.push(1_500)
    before = len(made.client.output())
    assert before <= RATE
    await made.client.push(500)
    assert len(made.client.output()) == before
    await made.client.push(2_000)
    assert len(made.client.output()) == 4 * RATE
    assert np.count_nonzero(made.client.output()) > 0.95 * RATE


async def test_a_drop_ends_the_connection_without_a_word() -> None:
    made = await faulted("drop")
    assert made.client.closed is not None
    assert made.client.closed.code == 1006
    assert np.count_nonzero(made.client.output()) > 0.3 * RATE
    assert made.client.all("session.closed") == []


async def test_a_drop_may_carry_a_close_code() -> None:
    made = await faulted("drop,code=1011")
    assert made.client.closed is not None
    assert made.client.closed.code == 1011


async def test_garbage_comes_once_between_sound_messages() -> None:
    made = await faulted("garbage", 2_000)
    kinds = {type(message) for message in made.client.unreadable}
    assert kinds == {str, bytes}
    assert len(made.client.unreadable) == 5
    assert len(made.client.all("session.unheard_of")) == 1
    assert made.client.closed is None


async def test_odd_bytes_cut_every_later_delta_oddly_and_lose_nothing() -> None:
    made = await faulted("odd_bytes", 2_000)
    await made.client.send("session.close")
    sizes = [
        len(base64.b64decode(str(d["delta"])))
        for d in made.client.all("session.output_audio.delta")
    ]
    assert sizes[:9] == [4800] * 9
    assert all(size % 2 for size in sizes[12:])
    assert sum(sizes) == 2 * 2 * RATE


async def test_never_close_goes_on_sending_and_never_says_closed() -> None:
    made = await faulted("never-close", 1_000)
    await made.client.send("session.close")
    before = len(made.client.events)
    await made.client.clock.advance(RATE * 4)
    assert len(made.client.events) >= before + 4
    assert made.client.all("session.closed") == []
    assert made.client.closed is None
    await made.server.close()


async def test_refuse_answers_at_the_door() -> None:
    server = LocalServer(Voices(), faults=[parse_fault("refuse,status=429")])
    with pytest.raises(TransportRefused) as refused:
        await connect_in_memory(server, VirtualClock(RATE))
    assert refused.value.code == "429"


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in ("refuse", "429")])
async def test_no_fault_strikes_before_the_voice_was_heard(name: str) -> None:
    quiet = await bench()
    await quiet.client.push(3_000)
    made = await bench(faults=[parse_fault(name)])
    await made.client.push(3_000)
    assert made.client.unreadable == []
    assert made.client.events[1:] == quiet.client.events[1:]
    await made.server.close()


@pytest.mark.parametrize(
    ("text", "names"),
    [("flood", "never_close"), ("stall,hours=1", "hours"), ("stall,seconds=x", "seconds=x")],
)
def test_a_wrong_fault_is_refused_by_name(text: str, names: str) -> None:
    with pytest.raises(InputError, match=names):
        parse_fault(text)


# -- in memory, in lock step ------------------------------------------------


async def test_the_clock_waits_for_a_message_on_its_way_and_for_its_reader() -> None:
    clock = VirtualClock(RATE)
    near, far = pipe(clock)
    await near.send("one")
    settled = False

    async def settle() -> None:
        nonlocal settled
        await clock.settle()
        settled = True

    task = clock.spawn(far.receive())
    waiting = asyncio.create_task(settle())
    assert await task == "one"
    await asyncio.sleep(0)
    assert not settled, "the reader has not asked for more yet"
    reading = asyncio.create_task(far.receive())
    await waiting
    await near.close(1000, "bye")
    with pytest.raises(TransportClosed, match="1000 bye"):
        await reading
    await clock.settle()


async def test_what_was_sent_before_the_end_still_arrives() -> None:
    near, far = pipe(VirtualClock(RATE))
    await near.send("one")
    await near.close(1000)
    assert await far.receive() == "one"
    for _ in range(2):
        with pytest.raises(TransportClosed):
            await far.receive()
    with pytest.raises(TransportClosed):
        await far.send("too late")


async def test_a_pipe_is_bounded_and_tells_its_end() -> None:
    near, far = pipe(VirtualClock(RATE))

    async def forever(step: Callable[[], Awaitable[object]]) -> None:
        for _ in range(20_000):
            await step()

    for step in (lambda: near.send("x"), far.receive):
        with pytest.raises(TransportClosed, match="1009"):
            await forever(step)


async def test_a_queue_refuses_what_is_too_much_and_gives_its_token_back() -> None:
    clock = VirtualClock(RATE)
    queue: HeldQueue[int] = HeldQueue(clock, 2)
    assert [queue.put(n) for n in range(3)] == [True, True, False]
    assert await queue.get() == 0
    queue.close()
    queue.close()
    await clock.settle()
    assert queue.put(9) is False
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_a_sleeping_consumer_lends_its_token_while_more_comes_in() -> None:
    clock = VirtualClock(RATE)
    queue: HeldQueue[int] = HeldQueue(clock, 10)
    done: list[tuple[int, int]] = []

    async def consume() -> None:
        while (item := await queue.get()) >= 0:
            await clock.until(item)
            done.append((item, clock.position))
        queue.close()

    task = asyncio.create_task(consume())
    queue.put(100)
    await asyncio.sleep(0)
    queue.put(50)
    queue.put(-1)
    await clock.advance(200)
    await task
    assert done == [(100, 100), (50, 100)]


async def test_two_virtual_sessions_give_the_same_events_twice() -> None:
    async def once() -> list[str]:
        made = await bench()
        await say(made.client, "delegate and note")
        await made.client.push(2_000)
        await made.client.send("session.close")
        return [
            json.dumps(event)
            for event in made.client.events
            if event["type"] not in ("session.started", "session.closed")
        ]

    assert await once() == await once()

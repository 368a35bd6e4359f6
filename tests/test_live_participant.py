"""A live session in virtual time: what it sends, what it tells, what it survives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pytest

from duplex.application.base import Line, Tell
from duplex.clock import Clock, VirtualClock
from duplex.errors import SessionError
from duplex.local.faults import parse_fault
from duplex.local.pipe import pipe
from duplex.local.seams import Note, Pcm, VoiceFrame, Words
from duplex.local.server import LocalServer
from duplex.participants.live import Limits, LiveSession
from duplex.participants.live_reading import Reading
from duplex.participants.live_words import Piece, conversation
from duplex.participants.transport import Transport, TransportClosed, sessions_url
from duplex.protocols.gpt_live import estimate_tokens
from duplex.protocols.gpt_live_client import Info, LiveConfig
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import Happening, Side
from gpt_live_voices import ToneVoice, Voices
from live_bench import LiveBench

RATE = 24_000


class Answers:
    """A backend that gives fixed answers after some media time, or fails."""

    def __init__(self, *pieces: str, after_ms: int = 200, error: Exception | None = None) -> None:
        self.pieces = pieces
        self.after_ms = after_ms
        self.error = error
        self.seen: list[Sequence[Line]] = []

    def begin(self, tell: Tell) -> None:
        tell(Happening(type="state", fields={"state": {"open": True}}))

    async def handle(
        self, delegation_id: str, conversation: Sequence[Line], clock: Clock, tell: Tell
    ) -> Sequence[str]:
        self.seen.append(conversation)
        await clock.until(clock.position + self.after_ms * clock.rate_hz // 1000)
        if self.error is not None:
            raise self.error
        return self.pieces


def held(
    *,
    side: Side = Side.ASSISTANT,
    opening: str | None = None,
    backend: Answers | None = None,
    fault: str | None = None,
    voices: Voices | None = None,
    rate: int = RATE,
    tick_ms: int = 20,
    session_seconds: float = 7_200,
    config: LiveConfig | None = None,
) -> LiveBench:
    server = LocalServer(
        voices or Voices(),
        faults=[parse_fault(fault)] if fault else [],
        session_seconds=session_seconds,
    )
    session = LiveSession(
        side=side,
        connect=server.connector(),
        config=config,
        provider="local",
        lock_step=True,
        opening=opening,
        backend=backend,
    )
    return LiveBench(session, VirtualClock(rate), tick_ms)


async def call(bench: LiveBench, ms: int = 2_000) -> LiveBench:
    await bench.start()
    await bench.run(ms)
    await bench.finish()
    return bench


# -- the plain course of a session ------------------------------------------


async def test_a_session_tells_its_start_its_use_and_its_end() -> None:
    bench = await call(held(config=LiveConfig(voice="cedar")), 3_000)
    (started,) = bench.told("session.started")
    assert started == {
        "session_id": started["session_id"],
        "model": "gpt-live-1",
        "voice": "cedar",
        "provider": "local",
    }
    assert bench.told("session.usage") == [{"seconds": 3, "final": True}]
    assert bench.told("session.closed") == [{"reason": "close_requested"}]
    assert bench.faults() == []
    assert len(bench.audio()) == 3 * RATE


@pytest.mark.parametrize("tick_ms", [10, 20, 100, 137, 200])
async def test_every_tick_of_silence_is_sent(tick_ms: int) -> None:
    voices = Voices()
    await call(held(voices=voices, tick_ms=tick_ms), 1_370)
    assert sum(len(block) for block in voices.made[0].heard) >= 1_340 * 24


async def test_what_the_side_hears_reaches_the_voice_unchanged() -> None:
    voices = Voices()
    bench = held(voices=voices)
    sound = np.arange(-12_000, 12_000, dtype=np.int16)
    await bench.start()
    await bench.run(1_000, lambda at: sound[at : at + bench.tick])
    await bench.finish()
    assert np.array_equal(np.concatenate(voices.made[0].heard)[: len(sound)], sound)


async def test_the_opening_is_spoken_and_counts_as_commentary_of_the_assistant() -> None:
    bench = await call(held(opening="Say hello."))
    assert bench.told("commentary") == [{"delegation_id": None, "text": "Say hello."}]
    assert np.flatnonzero(bench.audio())[0] < 100
    caller = await call(held(side=Side.CALLER, opening="Say hello."))
    assert caller.told("commentary") == []
    assert caller.audio().any()


async def test_transcripts_of_both_directions_keep_their_session_times() -> None:
    class Both(ToneVoice):
        async def frame(self, pcm: Pcm) -> VoiceFrame:
            frame = await super().frame(pcm)
            heard = Words(text="hm", start_ms=0, end_ms=150)
            first = (heard,) if len(self.heard) == 1 else ()
            return VoiceFrame(pcm=frame.pcm, said=frame.said, heard=first)

    bench = await call(held(opening="hello", voices=Voices(Both)))
    assert bench.told("transcript") == [
        {"direction": "heard", "text": "hm", "start_ms": 0, "end_ms": 200},
        {"direction": "said", "text": "hello", "start_ms": 0, "end_ms": 400},
    ]


async def test_utterances_come_from_the_voices_notes_where_it_sends_them() -> None:
    bench = await call(held(side=Side.CALLER, opening="note mine"), 4_000)
    assert bench.told("utterance") == [
        {
            "text": "note mine",
            "start_ms": 0,
            "end_ms": 400,
            "action": "SPEAK",
            "source": "caller_intent",
        }
    ]
    (assistant,) = (await call(held(opening="note mine"), 4_000)).told("utterance")
    assert (assistant["action"], assistant["source"]) == (None, "transcript")


@pytest.mark.parametrize("side", Side)
def test_a_stale_utterance_of_a_caller_keeps_its_mark(side: Side) -> None:
    note = {"text": "hm", "start_ms": 900, "end_ms": 990, "stale": True, "decided_ms": 400}
    reading = Reading(side, "local")
    reading.take(Info(code="duplex.utterance", message=json.dumps(note)), None)
    [told] = reading.collect()
    assert isinstance(told, Happening)
    marked = {name: told.fields[name] for name in ("stale", "decided_ms") if name in told.fields}
    assert marked == ({"stale": True, "decided_ms": 400} if side is Side.CALLER else {})


async def test_without_notes_utterances_are_runs_of_transcript_without_a_gap() -> None:
    bench = held(backend=Answers("and more", after_ms=1_500), opening="delegate now")
    await call(bench, 5_000)
    assert [(u["text"], u["start_ms"], u["end_ms"]) for u in bench.told("utterance")] == [
        ("delegate now", 0, 400),
        ("and more", 1_400, 2_000),
    ]
    assert {u["source"] for u in bench.told("utterance")} == {"transcript"}


async def test_agenda_and_finished_are_told_by_a_caller_only() -> None:
    class Noting(ToneVoice):
        async def frame(self, pcm: Pcm) -> VoiceFrame:
            frame = await super().frame(pcm)
            notes = (
                Note(kind="agenda", fields={"item_id": "date", "status": "completed"}),
                Note(kind="finished", fields={"outcome": "completed"}),
                Note(kind="late", fields={"what": "ears", "late_ms": 40}),
                Note(kind="news", fields={}),
            )
            return VoiceFrame(pcm=frame.pcm, notes=notes if len(self.heard) == 1 else ())

    caller = await call(held(side=Side.CALLER, voices=Voices(Noting)), 200)
    assert caller.told("agenda") == [{"item_id": "date", "status": "completed"}]
    assert caller.told("caller.finished") == [{"outcome": "completed"}]
    assert caller.told("voice.late") == [{"what": "ears", "late_ms": 40}]
    assistant = await call(held(voices=Voices(Noting)), 200)
    assert assistant.told("agenda") == assistant.told("caller.finished") == []


@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
async def test_a_session_works_at_any_rate_and_its_audio_stays_in_place(rate: int) -> None:
    bench = await call(held(rate=rate, opening="hello"), 2_000)
    audio = np.abs(bench.audio().astype(int))
    loud = np.flatnonzero(audio > 2_000)
    assert loud[0] / rate < (0.09 if rate == 16_000 else 0.02)
    assert abs((loud[-1] - loud[0]) / rate - 0.4) < 0.02
    assert len(audio) >= 1.8 * rate


# -- delegated work ---------------------------------------------------------


async def test_delegated_work_sees_the_conversation_and_its_answer_is_passed_on() -> None:
    backend, voices = Answers("it is free"), Voices()
    bench = await call(held(backend=backend, voices=voices, opening="delegate this"))
    assert bench.told("state") == [{"state": {"open": True}}]
    (created,) = bench.told("delegation.created")
    assert created["target"] == "client"
    identity = created["delegation_id"]
    assert isinstance(identity, str)
    assert bench.told("commentary")[1:] == [{"delegation_id": identity, "text": "it is free"}]
    assert bench.told("delegation.closed") == [{"delegation_id": identity, "ok": True}]
    assert voices.made[0].told[-1] == ("commentary", "it is free", identity)
    assert backend.seen == [[Line(role="assistant", text="delegate this", start_ms=0)]]


async def test_a_later_delegation_sees_what_was_said_before() -> None:
    backend = Answers("please delegate again")
    bench = held(backend=backend, opening="delegate this")
    await bench.start()
    await bench.run(300)
    await bench.finish()
    (line,) = backend.seen[1]
    assert (line.role, line.start_ms) == ("assistant", 0)
    assert line.text.startswith("delegate this")


async def test_long_answers_are_cut_to_what_the_wire_allows() -> None:
    long = " ".join(f"Sentence number {n} is here." for n in range(300))
    voices = Voices()
    bench = await call(held(backend=Answers(long), voices=voices, opening="delegate"))
    pieces = [text for kind, text, identity in voices.made[0].told if identity]
    assert len(pieces) > 2
    assert max(estimate_tokens(piece) for piece in pieces) <= 450
    assert " ".join(pieces) == long
    assert len(bench.told("commentary")) == 2, "the call is told the answer once, whole"
    assert bench.faults() == []


async def test_a_backend_that_fails_is_a_fault_and_a_sentence() -> None:
    voices = Voices()
    backend = Answers(error=ValueError("no table"))
    bench = await call(held(backend=backend, voices=voices, opening="delegate"))
    assert bench.faults() == [("backend", "ValueError", False)]
    assert bench.told("delegation.closed")[0]["ok"] is False
    assert "wrong" in voices.made[0].told[-1][1]


async def test_nothing_to_say_still_says_something() -> None:
    voices = Voices()
    bench = await call(held(backend=Answers(), voices=voices, opening="delegate"))
    assert len(voices.made[0].told) == 2
    assert bench.told("delegation.closed")[0]["ok"] is True


async def test_a_delegation_nobody_works_on_is_answered_all_the_same() -> None:
    voices = Voices()
    bench = await call(held(voices=voices, opening="delegate", side=Side.CALLER))
    assert bench.faults() == [("backend", "no_backend", False)]
    assert bench.told("delegation.closed")[0]["ok"] is False
    assert len(voices.made[0].told) == 2


async def test_work_still_open_at_the_end_is_closed_as_not_done() -> None:
    bench = held(backend=Answers("late", after_ms=60_000), opening="delegate")
    await call(bench, 1_000)
    assert [c["ok"] for c in bench.told("delegation.closed")] == [False]
    assert bench.told("session.closed") == [{"reason": "close_requested"}]
    await bench.clock.settle()


def test_a_conversation_is_in_order_of_speech_not_of_arrival() -> None:
    def piece(said: bool, text: str, start_ms: int, end_ms: int) -> Piece:
        return Piece(said=said, text=text, start_ms=start_ms, end_ms=end_ms)

    lines = conversation(
        [
            piece(True, "Which day?", 4_000, 6_000),
            piece(False, "A table", 1_000, 1_400),
            piece(False, " please", 1_400, 3_000),
            piece(True, "Hello.", 0, 600),
            piece(True, " And", 7_000, 7_200),
            piece(True, " when?", 7_200, 7_600),
            piece(False, "  ", 8_000, 8_200),
        ]
    )
    assert lines == [
        Line(role="assistant", text="Hello.", start_ms=0),
        Line(role="user", text="A table please", start_ms=1_000),
        Line(role="assistant", text="Which day? And when?", start_ms=4_000),
    ]


# -- faults -----------------------------------------------------------------


async def plain_audio(ms: int) -> Pcm:
    voices = Voices(lambda config: ToneVoice(config, tone_ms=1_000))
    return (await call(held(voices=voices, opening="hello"), ms)).audio()


async def faulted(fault: str, ms: int = 6_000) -> LiveBench:
    voices = Voices(lambda config: ToneVoice(config, tone_ms=1_000))
    return await call(held(fault=fault, voices=voices, opening="hello"), ms)


async def test_garbage_is_told_and_survived() -> None:
    bench = await faulted("garbage")
    assert bench.faults()[0] == ("session", "garbage", False)
    # Five are told one by one, the rest as a number.
    assert bench.faults()[1:] == [("session", "unreadable", False)] * 6
    assert np.array_equal(bench.audio(), await plain_audio(6_000))


async def test_odd_bytes_change_nothing() -> None:
    bench = await faulted("odd_bytes")
    assert ("transport", "odd_bytes", False) in bench.faults()
    assert np.array_equal(bench.audio(), await plain_audio(6_000))


async def test_a_stall_is_told_and_its_audio_comes_once() -> None:
    bench = await faulted("stall", 8_000)
    assert bench.faults() == [("session", "stall", False), ("transport", "stalled", False)]
    assert np.array_equal(bench.audio(), await plain_audio(8_000))


async def test_a_connection_that_stays_silent_is_lost_after_ten_seconds() -> None:
    bench = await faulted("stall,seconds=100", 30_000)
    assert bench.faults()[1:3] == [("transport", "stalled", False), ("transport", "dead", True)]
    assert 10_800 <= bench.position / 24 <= 11_200
    assert ("session", "usage_unconfirmed", False) in bench.faults()


async def test_a_dropped_connection_ends_the_session_and_leaves_usage_open() -> None:
    bench = await faulted("drop")
    assert bench.faults() == [
        ("session", "drop", False),
        ("session", "dropped", True),
        ("session", "usage_unconfirmed", False),
    ]
    assert bench.position < 1_100 * 24


async def test_a_peer_that_never_closes_cannot_hold_up_the_end() -> None:
    bench = held(fault="never_close", opening="hello", voices=Voices(long_tone))
    async with asyncio.timeout(5):
        await call(bench, 2_000)
    assert bench.faults() == [
        ("session", "never_close", False),
        ("session", "close_timeout", False),
        ("session", "usage_unconfirmed", False),
    ]


def long_tone(config: SessionConfig) -> ToneVoice:
    return ToneVoice(config, tone_ms=1_000)


async def test_an_expired_session_says_so() -> None:
    bench = held(session_seconds=1)
    await call(bench, 4_000)
    assert bench.faults() == [("session", "expired", True)]
    assert bench.told("session.closed") == [{"reason": "expired"}]


async def test_many_faults_of_one_kind_are_counted_not_repeated() -> None:
    near, far = pipe(clock := VirtualClock(RATE))

    async def connect(clock: Clock) -> Transport:
        return near

    async def read_all() -> None:
        with suppress(TransportClosed):
            while True:
                await far.receive()

    reading = asyncio.create_task(read_all())
    session = LiveSession(side=Side.ASSISTANT, connect=connect, lock_step=True)
    bench = LiveBench(session, clock)
    await far.send('{"type":"session.started","session":{"id":"s"}}')
    await bench.start()
    for _ in range(40):
        await far.send("{nope")
    await far.send('{"type":"error","error":{"code":"odd","message":"m"}}')
    await far.send('{"type":"error","error":{"code":"insufficient_quota","message":"m"}}')
    await bench.run(100)
    assert bench.faults() == [("session", "unreadable", False)] * 5 + [
        ("session", "odd", False),
        ("session", "insufficient_quota", True),
    ]
    far.abort()
    await bench.finish()
    await reading
    messages = [str(item) for item in bench.items]
    assert any("35 more of the kind" in message for message in messages)


# -- starting ---------------------------------------------------------------


@pytest.mark.parametrize(("fault", "code"), [("refuse", "503"), ("refuse,status=429", "429")])
@pytest.mark.parametrize("side", Side)
async def test_a_refused_connection_names_its_stage(fault: str, code: str, side: Side) -> None:
    bench = held(fault=fault, side=side)
    with pytest.raises(SessionError) as failed:
        await bench.start()
    assert (failed.value.stage, failed.value.code) == (f"{side.label}_connection", code)
    await bench.finish()
    waited = {(f"{side.label}_connection", "429", False)}
    assert set(bench.faults()) == (waited if code == "429" else set())


async def test_a_forbidden_voice_is_refused_by_its_code() -> None:
    bench = held(config=LiveConfig(voice="nova"))
    with pytest.raises(SessionError, match="refused") as failed:
        await bench.start()
    assert failed.value.code == "forbidden"
    await bench.clock.settle()


async def test_a_connection_that_ends_before_the_start_is_a_start_that_failed() -> None:
    near, far = pipe(clock := VirtualClock(RATE))

    async def connect(clock: Clock) -> Transport:
        return near

    await far.close(1013, "busy")
    session = LiveSession(side=Side.CALLER, connect=connect, lock_step=True)
    with pytest.raises(SessionError, match="1013") as failed:
        await session.start(clock)
    assert (failed.value.stage, failed.value.code) == ("caller_connection", "closed")


async def test_two_virtual_calls_tell_the_same_to_the_last_field() -> None:
    async def once() -> list[str]:
        bench = held(backend=Answers("note more"), opening="delegate and note")
        await call(bench, 3_000)
        return [repr(item) for item in bench.items]

    assert await once() == await once()


async def test_a_slow_reader_fills_a_bounded_queue_and_is_told_once() -> None:
    class Deaf:
        """Starts a session and then never takes another message."""

        def __init__(self) -> None:
            self.sent = 0

        async def send(self, message: str | bytes) -> None:
            self.sent += 1
            if self.sent > 1:
                await asyncio.Event().wait()

        async def receive(self) -> str:
            await asyncio.sleep(0)
            if self.sent == 1:
                self.sent = 2
                return '{"type":"session.started","session":{"id":"s"}}'
            await asyncio.Event().wait()
            raise AssertionError

        async def close(self, code: int = 1000, reason: str = "") -> bool:
            return True

        def abort(self) -> None: ...

    class Free(VirtualClock):
        """A clock that a stuck sender does not stop."""

        async def settle(self) -> None:
            await asyncio.sleep(0)

    async def connect(clock: Clock) -> Transport:
        return Deaf()

    limits = Limits(outgoing=10, quiet_ms=60_000, dead_ms=60_000)
    session = LiveSession(side=Side.CALLER, connect=connect, limits=limits)
    bench = LiveBench(session, Free(RATE))
    await bench.start()
    await bench.run(1_000)
    assert bench.faults() == [("transport", "outgoing_overflow", False)]
    await bench.finish()
    assert [str(i) for i in bench.items if "were never sent" in str(i)]


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:80/v1", "ws://127.0.0.1:80/v1/live/sessions"),
        ("https://api.x.com/v1/", "wss://api.x.com/v1/live/sessions"),
        ("wss://h/openai/v1?api=2", "wss://h/openai/v1/live/sessions?api=2"),
        ("ws://h/v1/live/sessions", "ws://h/v1/live/sessions"),
    ],
)
def test_the_sessions_url_follows_the_endpoint(endpoint: str, url: str) -> None:
    assert sessions_url(endpoint) == url

"""A Realtime session in virtual time: paced replies, barge-ins, functions, faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import numpy as np
import pytest

from duplex.application.base import Tell
from duplex.application.loading import load_application
from duplex.application.workbench import Workbench
from duplex.clock import Clock, VirtualClock
from duplex.errors import SessionError
from duplex.participants.base import Discarded, Incoming, Pcm, Spoken
from duplex.participants.realtime import RealtimeSession
from duplex.participants.realtime_calls import Functions
from duplex.protocols.model_values import Call, Output
from duplex.protocols.realtime import Encoding, RealtimeConfig, TurnDetection
from duplex.values import Happening, Json, RemoteFault, Side
from realtime_peer import Peer, tone

T = TypeVar("T")
RATE = 24_000
TICK = RATE // 50


class Held:
    """One session and its peer, driven through ticks as the call loop does."""

    def __init__(
        self,
        *,
        peer: Peer | None = None,
        rate: int = RATE,
        side: Side = Side.ASSISTANT,
        opening: str | None = None,
        functions: Functions | None = None,
        turns: TurnDetection = "server_vad",
        encoding: Encoding = "pcm",
    ) -> None:
        self.peer = peer or Peer()
        self.clock = VirtualClock(rate)
        self.tick = rate // 50
        self.session = RealtimeSession(
            side=side,
            connect=self.peer.connect(),
            config=RealtimeConfig(turn_detection=turns, encoding=encoding, voice="cedar"),
            lock_step=True,
            opening=opening,
            functions=functions,
        )
        self.position = 0
        self.items: list[Incoming] = []
        self.track: list[Pcm] = []

    async def __aenter__(self) -> Held:
        await self.session.start(self.clock)
        self.clock.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.finish()

    async def finish(self) -> None:
        await self.session.finish()
        await self.session.abort()
        self._collect()

    async def run(self, ms: int, heard: Pcm | None = None) -> None:
        """Hold the call on for ``ms``, hearing ``heard`` from now on."""
        await self.clock.settle()
        for n in range(ms // 20):
            await self.clock.advance(self.position + self.tick)
            said = self._collect()
            silence = np.zeros(self.tick - len(said), np.int16)
            self.track.append(np.concatenate((said, silence)))
            pcm = np.zeros(self.tick, np.int16)
            if heard is not None:
                part = heard[n * self.tick : (n + 1) * self.tick]
                pcm[: len(part)] = part
            self.session.hear(self.position, pcm)
            self.position += self.tick
        await self.clock.settle()

    async def event_error(self, code: str) -> None:
        await self.peer.event("error", error={"type": "server_error", "code": code, "message": "x"})

    def _collect(self) -> Pcm:
        new = self.session.collect()
        self.items += new
        pieces = [item.pcm for item in new if isinstance(item, Spoken)]
        return np.concatenate([np.zeros(0, np.int16), *pieces])

    def audible_ms(self) -> tuple[int, int]:
        """From when to when there was anything to hear, on the shared timeline."""
        loud = np.flatnonzero(np.concatenate(self.track))
        return int(loud[0]) * 1000 // self.clock.rate_hz, int(loud[-1]) * 1000 // self.clock.rate_hz

    def told(self, kind: str) -> list[dict[str, Json]]:
        return [
            dict(item.fields)
            for item in self.items
            if isinstance(item, Happening) and item.type == kind
        ]

    def faults(self) -> list[tuple[str, str, bool]]:
        return [
            (item.stage, item.code, item.fatal)
            for item in self.items
            if isinstance(item, RemoteFault)
        ]

    @property
    def discarded(self) -> int:
        return sum(item.samples for item in self.items if isinstance(item, Discarded))


# -- the handshake ------------------------------------------------------------


async def test_the_session_is_agreed_on_before_anything_else_is_sent() -> None:
    async with Held(opening="Greet them.") as held:
        await held.run(200)
    first, opening, create, *rest = held.peer.got
    assert first["type"] == "session.update"
    assert (opening["type"], create["type"]) == ("conversation.item.create", "response.create")
    assert {event["type"] for event in rest} == {"input_audio_buffer.append"}
    assert held.told("session.started") == [
        {"session_id": "sess_000001", "model": "m", "voice": "cedar", "provider": "realtime"}
    ]
    assert held.faults() == []
    assert held.peer.refused == []


async def test_nothing_is_sent_to_a_server_that_does_not_say_hello() -> None:
    held = Held(peer=Peer(greets=False))
    held.clock = Impatient(RATE)
    with pytest.raises(SessionError) as caught:
        await held.session.start(held.clock)
    assert (caught.value.stage, caught.value.code) == ("assistant_connection", "timeout")
    assert held.peer.got == []


class Impatient(VirtualClock):
    """A clock on which every wait takes too long, once there is nothing left to do."""

    async def within(self, work: Awaitable[T], timeout_ms: int) -> T:
        waiting = asyncio.ensure_future(work)
        await asyncio.wait([waiting], timeout=0.05)
        if not waiting.done():
            waiting.cancel()
            raise TimeoutError
        return waiting.result()


async def test_settings_that_are_refused_refuse_the_session() -> None:
    held = Held()
    held.session._config = RealtimeConfig(voice="fable")
    with pytest.raises(SessionError, match="fable") as caught:
        await held.session.start(held.clock)
    assert caught.value.stage == "assistant_connection"


async def test_what_is_heard_is_sent_unchanged() -> None:
    sound = np.arange(-4_800, 4_800, dtype=np.int16)
    async with Held() as held:
        await held.run(400, sound)
    assert np.array_equal(held.peer.heard(), sound)


# -- replies faster than real time --------------------------------------------


async def test_a_reply_that_comes_at_once_is_heard_in_real_time() -> None:
    async with Held() as held:
        await held.run(100)
        await held.peer.reply(2_000, "one two three four")
        await held.run(3_000)
    start, end = held.audible_ms()
    assert 100 <= start <= 140
    assert abs(end - start - 2_000) <= 2
    (said,) = held.told("transcript")
    assert (said["direction"], said["text"]) == ("said", "one two three four")
    assert (said["start_ms"], said["end_ms"]) == (0, 2_000)
    assert held.told("utterance")[0]["action"] is None
    assert held.told("reply.interrupted") == []
    assert held.discarded == 0
    assert held.told("backend.usage")[0]["cached_tokens"] == 5


async def test_only_the_first_piece_of_a_reply_says_when_it_came() -> None:
    async with Held() as held:
        await held.run(100)
        await held.peer.reply(400)
        await held.run(600)
    arrived = [item.arrived_at for item in held.items if isinstance(item, Spoken)]
    assert arrived[0] is not None
    assert arrived[1:] == [None] * (len(arrived) - 1)


@pytest.mark.parametrize(("rate", "encoding"), [(8_000, "pcm"), (48_000, "pcm"), (24_000, "pcmu")])
async def test_replies_keep_their_length_at_any_rate(rate: int, encoding: Encoding) -> None:
    async with Held(rate=rate, encoding=encoding) as held:
        wire = held.peer.machine.settings.said.rate_hz
        _, item_id = await held.peer.begin()
        await held.peer.say(item_id, tone(1_000, rate=wire))
        await held.peer.end(item_id)
        await held.run(1_600)
    start, end = held.audible_ms()
    assert abs(end - start - 1_000) <= 20
    assert sum(len(i.pcm) for i in held.items if isinstance(i, Spoken)) == rate


# -- barge-ins ----------------------------------------------------------------


async def test_a_barge_in_truncates_at_what_was_heard_and_not_at_what_was_received() -> None:
    """The field case: 5 s came within 0.2 s, the caller was noticed after 1.2 s of it."""
    async with Held() as held:
        await held.run(1_000)
        item_id = await held.peer.reply(5_000, "a b c d e f g h i j")
        await held.run(1_200)
        await held.peer.hears(2_000)
        await held.run(2_000)
    (truncated,) = held.peer.kinds("conversation.item.truncate")
    assert truncated["item_id"] == item_id
    assert truncated["content_index"] == 0
    assert truncated["audio_end_ms"] == 1_200
    assert isinstance(truncated["audio_end_ms"], int)
    assert held.told("reply.interrupted") == [{"heard_ms": 1_200, "received_ms": 5_000}]
    assert held.discarded == 3_800 * RATE // 1000
    start, end = held.audible_ms()
    assert abs(end - start - 1_200) <= 2
    assert held.told("utterance")[0]["text"] == "a b c"
    assert held.peer.refused == []
    assert held.faults() == []


async def test_a_reply_under_way_is_cut_once_and_its_late_deltas_are_dropped() -> None:
    """sgl-project/sglang-omni#1344: 10 more deltas of a cancelled response, then the next one."""
    async with Held() as held:
        await held.run(20)
        _, item_id = await held.peer.begin()
        await held.peer.say(item_id, tone(1_200))
        await held.run(1_000)
        await held.peer.hears(900)
        await held.run(100)
        await held.peer.say(item_id, tone(400, hz=900.0), piece=960)
        await held.peer.end(item_id, "cancelled", {"type": "cancelled", "reason": "turn_detected"})
        await held.run(400)
        after = held.position
        await held.peer.reply(1_000)
        await held.run(1_500)
    assert held.peer.commands() == ["conversation.item.truncate"]
    assert held.told("reply.interrupted") == [{"heard_ms": 1_000, "received_ms": 1_200}]
    assert held.discarded == 600 * RATE // 1000
    track = np.concatenate(held.track)
    assert not track[RATE + 2 * TICK : after].any()
    loud = np.flatnonzero(track[after:])
    assert loud[0] <= TICK
    assert abs(int(loud[-1]) - RATE) <= TICK
    assert held.peer.refused == []


async def test_a_reply_that_was_declared_and_never_heard_is_cancelled_and_never_truncated() -> None:
    """livekit/agents#6157: the caller speaks between the item and its first delta."""
    async with Held() as held:
        response_id, item_id = await held.peer.begin()
        await held.run(60)
        await held.peer.hears(50)
        await held.run(200)
        await held.peer.say(item_id, tone(500))
        await held.run(600)
    assert held.peer.commands() == ["response.cancel"]
    assert held.peer.kinds("response.cancel")[0]["response_id"] == response_id
    assert held.told("reply.interrupted") == [{"heard_ms": 0, "received_ms": 0}]
    assert not np.concatenate(held.track).any()
    assert held.faults() == []


async def test_a_whole_reply_of_which_nothing_was_heard_leaves_the_conversation() -> None:
    async with Held() as held:
        await held.run(40)
        first = await held.peer.reply(1_000)
        second = await held.peer.reply(1_000)
        await held.run(500)
        await held.peer.hears(500)
        await held.run(100)
    assert held.peer.kinds("conversation.item.truncate")[0]["item_id"] == first
    assert held.peer.kinds("conversation.item.delete")[0]["item_id"] == second
    assert len(held.peer.commands()) == 2
    assert held.told("reply.interrupted") == [
        {"heard_ms": 500, "received_ms": 1_000},
        {"heard_ms": 0, "received_ms": 1_000},
    ]


async def test_a_reply_that_was_heard_out_is_not_interrupted() -> None:
    async with Held() as held:
        await held.peer.reply(400)
        await held.run(800)
        await held.peer.hears(800)
        await held.run(200)
    assert held.peer.commands() == []
    assert held.told("reply.interrupted") == []


async def test_a_cancellation_that_came_too_late_is_no_fault() -> None:
    async with Held() as held:
        _, item_id = await held.peer.begin()
        await held.run(40)
        await held.peer.hears(40)
        await held.peer.end(item_id, "cancelled", {"type": "cancelled", "reason": "turn_detected"})
        await held.run(100)
    assert [event["error"] for event in held.peer.refused if isinstance(event["error"], dict)]
    assert held.faults() == []


async def test_after_a_flush_the_next_reply_is_heard_when_it_comes() -> None:
    """The field case: a clock that kept running on flushed audio delays what follows."""
    async with Held() as held:
        await held.run(1_000)
        await held.peer.reply(5_000)
        await held.run(1_000)
        await held.peer.hears(2_000)
        await held.run(500)
        at = held.position
        await held.peer.reply(500)
        await held.run(1_000)
    loud = np.flatnonzero(np.concatenate(held.track)[at:])
    assert loud[0] <= TICK


# -- manual turns -------------------------------------------------------------


async def test_manual_turns_are_committed_and_answered_once() -> None:
    async with Held(turns="manual") as held:
        await held.run(2_500, np.concatenate((np.zeros(RATE // 2, np.int16), tone(1_000))))
    update = held.peer.kinds("session.update")[0]["session"]
    assert isinstance(update, dict)
    assert update["audio"]["input"]["turn_detection"] is None  # type: ignore[index,call-overload]
    assert held.peer.commands() == ["input_audio_buffer.commit", "response.create"]
    assert held.peer.refused == []


async def test_in_manual_mode_our_own_ears_notice_a_barge_in() -> None:
    async with Held(turns="manual") as held:
        _, item_id = await held.peer.begin()
        await held.peer.say(item_id, tone(4_000))
        await held.run(500)
        await held.run(600, tone(600))
    (truncated,) = held.peer.kinds("conversation.item.truncate")
    heard_ms = truncated["audio_end_ms"]
    assert isinstance(heard_ms, int)
    assert 680 <= heard_ms <= 780
    assert held.peer.commands()[:2] == ["response.cancel", "conversation.item.truncate"]


async def test_a_click_interrupts_nobody() -> None:
    async with Held(turns="manual") as held:
        await held.peer.reply(1_000)
        await held.run(300)
        await held.run(1_000, tone(60))
    assert held.peer.commands() == []


async def test_a_response_waits_for_the_one_under_way() -> None:
    async with Held(turns="manual") as held:
        await held.run(200)
        _, item_id = await held.peer.begin()
        await held.run(1_700, tone(800))
        assert "response.create" not in held.peer.commands()
        await held.peer.end(item_id, "cancelled")
        await held.run(100)
    assert held.peer.commands()[-1] == "response.create"
    assert held.peer.commands().count("response.create") == 1


async def test_a_response_that_was_refused_may_be_asked_for_again() -> None:
    async with Held(turns="manual") as held:
        await held.run(200)
        await held.run(1_700, tone(800))
        (asked,) = held.peer.kinds("response.create")
        refused: Json = {"code": "rate_limit_exceeded", "event_id": asked["event_id"]}
        await held.peer.event("error", error=refused)
        await held.run(200)
        await held.run(1_700, tone(800))
    assert held.peer.commands().count("response.create") == 2
    assert held.faults() == [("session", "rate_limit_exceeded", False)]


async def test_words_heard_in_a_manual_turn_are_placed_by_our_own_ears() -> None:
    async with Held(turns="manual") as held:
        await held.run(500)
        await held.run(1_700, tone(800))
        (item_id,) = [item for item, samples in held.peer.machine._items.items() if samples is None]
        await held.peer.send(held.peer.machine.say_heard(item_id, "hm", 0.8))
        await held.run(100)
    (heard,) = held.told("transcript")
    start_ms, end_ms = heard["start_ms"], heard["end_ms"]
    assert isinstance(start_ms, int)
    assert isinstance(end_ms, int)
    assert abs(start_ms - 500) <= 20
    assert abs(end_ms - 1_300) <= 20


# -- functions ----------------------------------------------------------------


SLOT = {"date": "2026-08-07", "time": "19:00", "party_size": 2}


def restaurant() -> Workbench:
    application = load_application()
    return Workbench(application.tools, application.state({}), seed=3)


async def test_a_function_call_runs_on_the_application_and_is_answered() -> None:
    async with Held(functions=restaurant()) as held:
        await held.peer.call(("c1", "check_availability", json.dumps(SLOT)))
        await held.run(600)
    assert held.peer.commands() == ["conversation.item.create", "response.create"]
    item = held.peer.kinds("conversation.item.create")[0]["item"]
    assert isinstance(item, dict)
    assert (item["type"], item["call_id"]) == ("function_call_output", "c1")
    assert json.loads(str(item["output"]))["available"] is True
    (started,), (ended,) = held.told("tool.started"), held.told("tool.ended")
    assert (started["arguments"], started["delegation_id"]) == (SLOT, None)
    assert ended["status"] == "completed"
    assert held.peer.refused == []


async def test_parallel_calls_are_all_answered_before_one_response_is_asked_for() -> None:
    async with Held(functions=restaurant()) as held:
        calls = [(f"c{n}", "check_availability", json.dumps(SLOT)) for n in range(3)]
        await held.peer.call(*calls)
        await held.run(800)
    assert held.peer.commands() == ["conversation.item.create"] * 3 + ["response.create"]


@pytest.mark.parametrize("arguments", ['{"a":1', "[1]", '"{}"', "{" * 5_000, "NaN", '{"a":NaN}'])
async def test_arguments_that_are_no_object_become_a_failed_call(arguments: str) -> None:
    """ahyatt/llm#272: malformed arguments are told to the model like any other error."""
    async with Held(functions=restaurant()) as held:
        await held.peer.call(("c1", "check_availability", arguments))
        await held.run(600)
    (ended,) = held.told("tool.ended")
    assert ended["status"] == "failed"
    assert str(ended["error"]).startswith("tool_args_error")
    assert held.peer.commands() == ["conversation.item.create", "response.create"]
    assert held.faults() == []


async def test_calls_of_a_cancelled_response_are_not_run_again() -> None:
    async with Held(functions=restaurant()) as held:
        call = ("c1", "check_availability", json.dumps(SLOT))
        await held.peer.call(call)
        await held.peer.call(call)
        await held.run(600)
    assert len(held.told("tool.started")) == 1


@pytest.mark.parametrize(("status", "runs"), [("completed", 1), ("cancelled", 0)])
async def test_a_call_told_by_its_arguments_alone_waits_for_its_response(
    status: str, runs: int
) -> None:
    async with Held(functions=restaurant()) as held:
        machine = held.peer.machine
        await held.peer.send(machine.say_response())
        told = machine.say_call("item_1", 0, "c1", "check_availability", json.dumps(SLOT))
        await held.peer.send(told)
        await held.run(300)
        assert held.told("tool.started") == []
        await held.peer.send(machine.say_response_done(status, []))
        await held.run(300)
    assert len(held.told("tool.started")) == runs


async def test_functions_that_break_are_answered_with_an_error() -> None:
    class Breaks:
        def begin(self, tell: Tell) -> None:
            raise ValueError("no state")

        async def run(
            self, calls: Sequence[Call], delegation_id: str | None, clock: Clock, tell: Tell
        ) -> list[Output]:
            raise SystemExit(3)

    async with Held(functions=Breaks()) as held:
        await held.peer.call(("c1", "anything", "{}"))
        await held.run(100)
    item = held.peer.kinds("conversation.item.create")[0]["item"]
    assert isinstance(item, dict)
    assert "error" in json.loads(str(item["output"]))
    assert [code for _, code, _ in held.faults()] == ["ValueError", "SystemExit"]


async def test_a_caller_has_no_functions_and_says_so() -> None:
    async with Held(side=Side.CALLER) as held:
        await held.peer.call(("c1", "anything", "{}"))
        await held.run(100)
    assert held.faults() == [("backend", "no_functions", False)]
    assert held.peer.commands() == ["conversation.item.create", "response.create"]


# -- faults -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "details", "code"),
    [
        (
            "failed",
            {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
            "rate_limit_exceeded",
        ),
        ("incomplete", {"reason": "max_output_tokens"}, "max_output_tokens"),
        ("failed", None, "failed"),
    ],
)
async def test_a_response_that_fails_is_told_with_its_reason_and_the_call_goes_on(
    status: str, details: Json, code: str
) -> None:
    async with Held() as held:
        _, item_id = await held.peer.begin()
        await held.peer.end(item_id, status, details)
        await held.run(200)
        await held.peer.reply(300)
        await held.run(500)
    assert held.faults() == [("provider", code, False)]
    assert np.concatenate(held.track).any()


async def test_an_error_in_mid_call_is_survived_and_a_hopeless_one_ends_it() -> None:
    async with Held() as held:
        await held.event_error("server_error")
        await held.event_error("insufficient_quota")
        await held.run(100)
    assert held.faults() == [
        ("session", "server_error", False),
        ("session", "insufficient_quota", True),
    ]


@pytest.mark.parametrize(
    ("code", "reason", "named"),
    [
        (1001, "Your session hit the maximum duration of 60 minutes.", "expired"),
        (1011, "", "dropped"),
    ],
)
async def test_the_end_of_a_connection_is_told_by_what_it_was(
    code: int, reason: str, named: str
) -> None:
    async with Held() as held:
        await held.run(100)
        assert held.peer.transport is not None
        await held.peer.transport.close(code, reason)
        await held.run(100)
    assert held.faults() == [("session", named, True)]


async def test_what_cannot_be_read_is_told_and_survived() -> None:
    async with Held() as held:
        await held.peer.send('{"type":', "[1]", b"\xff\xfe", '{"type":"response.unheard_of"}')
        await held.peer.event("response.output_audio.delta", item_id="i", delta="!!!")
        await held.run(100)
        await held.peer.reply(200)
        await held.run(400)
    assert {code for _, code, _ in held.faults()} == {"unreadable"}
    assert np.concatenate(held.track).any()


async def test_words_that_were_heard_are_placed_where_they_were_spoken() -> None:
    async with Held() as held:
        await held.run(1_000)
        await held.peer.hears(300)
        await held.peer.hears(900, started=False)
        await held.peer.send(held.peer.machine.say_heard("item_heard", " Good morning. ", 0.6))
        await held.run(100)
    assert held.told("transcript") == [
        {"direction": "heard", "text": "Good morning.", "start_ms": 300, "end_ms": 900}
    ]


async def test_closing_tells_what_was_heard_of_a_reply_under_way() -> None:
    async with Held() as held:
        _, item_id = await held.peer.begin()
        await held.peer.say(item_id, tone(4_000), "one two three four")
        await held.run(1_040)
    assert held.told("utterance")[0]["text"] == "one two"
    assert held.told("session.closed") == [{"reason": "close_requested"}]
    assert held.peer.closed is not None

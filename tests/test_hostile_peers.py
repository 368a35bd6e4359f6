"""Peers that send without end: what is kept of them has bounds, and none is slow to read."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from duplex.clock import WallClock
from duplex.errors import SessionError
from duplex.participants import live_reading, paced_queue
from duplex.participants.base import Incoming
from duplex.participants.live_reading import Reading
from duplex.participants.live_words import Grouper
from duplex.participants.paced_queue import PacedQueue, Stretch
from duplex.participants.realtime import RealtimeSession
from duplex.participants.realtime_replies import Replies
from duplex.participants.transport import bare_websocket
from duplex.protocols.gpt_live_client import Refusal, Transcript
from duplex.values import Happening, RemoteFault, Side


def told(items: list[Incoming], kind: str) -> list[Happening]:
    return [one for one in items if isinstance(one, Happening) and one.type == kind]


def faults(items: list[Incoming]) -> Counter[str]:
    return Counter(one.code for one in items if isinstance(one, RemoteFault))


def refusal(code: str) -> Refusal:
    return Refusal(code=code, message="x", param=None, client_event_id=None)


def transcript(text: str, at_ms: int) -> Transcript:
    return Transcript(said=True, text=text, start_ms=at_ms, end_ms=at_ms + 20)


def test_codes_that_a_peer_makes_up_are_told_apart_only_up_to_a_bound() -> None:
    reading = Reading(Side.ASSISTANT, "gpt_live")
    for number in range(5_000):
        reading.take(refusal(f"made_up_{number}"), None)
    reading.fault("session", "insufficient_quota", "no more", fatal=True)
    reading.end()
    found = faults(reading.collect())
    assert len(found) == live_reading.FAULT_CODES_LIMIT + 2
    assert found["other"] == live_reading.SAME_FAULT_LIMIT + 1
    assert found["insufficient_quota"] == 1


def test_one_transcript_and_all_of_them_have_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_reading, "LETTERS_LIMIT", 100_000)
    reading = Reading(Side.ASSISTANT, "gpt_live")
    for number in range(20):
        reading.take(transcript("a" * 1_000_000, number * 20), None)
    reading.end()
    items = reading.collect()
    texts = [str(one.fields["text"]) for one in told(items, "transcript")]
    assert [len(text) for text in texts] == [live_reading.TEXT_LIMIT] * 5
    assert sum(len(piece.text) for piece in reading.pieces) == 100_000
    assert faults(items)["too_many_events"] == 1


def test_what_a_peer_tells_without_end_is_recorded_up_to_a_bound_and_what_we_tell_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_reading, "TOLD_LIMIT", 50)
    reading = Reading(Side.ASSISTANT, "realtime")
    for _ in range(500):
        reading.tell("reply.interrupted", {"heard_ms": 1, "received_ms": 2})
    reading.tell("tool.ended", {"call_id": "c"})
    reading.tell("session.closed", {"reason": "close_requested"})
    reading.end()
    items = reading.collect()
    assert len(told(items, "reply.interrupted")) == 50
    assert [len(told(items, kind)) for kind in ("tool.ended", "session.closed")] == [1, 1]
    (lost,) = [one for one in items if isinstance(one, RemoteFault)]
    assert (lost.code, lost.message.split()[0]) == ("too_many_events", "450")


def test_a_run_of_many_pieces_is_joined_once_and_in_order() -> None:
    grouper = Grouper()
    count = 100_000
    for number in reversed(range(count)):
        assert grouper.add(f"{number % 10}", number, number + 1) == []
    (run,) = grouper.flush()
    assert (run.start_ms, run.end_ms, run.text) == (0, count, "0123456789" * (count // 10))
    assert grouper.flush() == []


def test_audio_in_pieces_of_one_sample_fills_the_queue_by_its_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paced_queue, "PIECES", 100)
    queue, stretch = PacedQueue(24_000), Stretch(key="item")
    one = np.ones(1, np.int16)
    assert sum(queue.add(stretch, one, None) for _ in range(500)) == 100
    assert (stretch.received, queue.waiting) == (100, 100)
    spoken = queue.take(480)
    assert spoken is not None
    assert len(spoken.pcm) == 100
    assert queue.add(stretch, one, None) == 1


def test_words_without_letters_cost_nothing() -> None:
    replies = Replies(24_000, 24_000)
    for _ in range(1_000):
        replies.words("item", "response", "", whole=False)
    replies.words("item", "response", "hello", whole=False)
    replies.audio("item", "response", np.ones(480, np.int16), None)
    replies.audio_done("item")
    assert not any(len(reply.words) > 1 for reply in replies._open.values())
    replies.take(480)
    assert [one.fields["text"] for one in replies.take_told()] == ["hello"] * 2


async def test_a_session_that_is_refused_and_closed_at_once_is_one_error_and_no_other() -> None:
    left: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: left.append(told["message"]))

    async def refuse(connection: ServerConnection) -> None:
        error = {"code": "model_not_found", "message": "no such model"}
        await connection.send(json.dumps({"type": "error", "error": error}))
        await connection.close(1008)

    async with serve(refuse, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        connect = bare_websocket(f"ws://127.0.0.1:{port}/v1/realtime")
        for _ in range(3):
            session = RealtimeSession(side=Side.ASSISTANT, connect=connect)
            with pytest.raises(SessionError, match="no such model"):
                await session.start(WallClock(24_000))
            del session
            gc.collect()
    await asyncio.sleep(0)
    assert left == []

"""The local voice behind the Realtime protocol, in memory: turns, cancels, nonsense, ends."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.clock import VirtualClock
from duplex.local.faults import parse_fault
from duplex.local.parties import party_maker
from duplex.local.seams import Style
from duplex.local.server import LocalServer
from duplex.participants.transport import Transport, TransportClosed
from duplex.values import Json
from fake_engines import Parrot, _Engines
from gpt_live_voices import Voices

RATE = 24_000
Event = dict[str, Json]
TOOLS: Json = [
    {"type": "function", "name": name, "description": "", "parameters": {"type": "object"}}
    for name in ("check_availability", "create_reservation")
]


class Client:
    """A bare client on a virtual clock: sends dictionaries, keeps every event."""

    def __init__(self, *, fault: str | None = None, seconds: float = 3_600) -> None:
        self.parrot = Parrot()
        engines = _Engines(self.parrot, self.parrot)
        self.server = LocalServer(
            Voices(),
            make_party=party_maker(engines, seed=3),  # type: ignore[arg-type]
            faults=[parse_fault(fault)] if fault else [],
            session_seconds=seconds,
        )
        self.clock = VirtualClock(RATE)
        self.events: list[Event] = []
        self.closed: TransportClosed | None = None
        self.sent = 0
        self._transport: Transport | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Client:
        self._transport = await self.server.connector(realtime=True)(self.clock)
        self._task = asyncio.create_task(self._read())
        await self.clock.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._transport is not None
        self._transport.abort()
        await self.server.close()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=5)
        assert len(asyncio.all_tasks()) == 1, "a task of the session is left"

    async def _read(self) -> None:
        assert self._transport is not None
        try:
            while True:
                message = await self._transport.receive()
                with suppress(ValueError):
                    event = json.loads(message)
                    self.events += [event] if isinstance(event, dict) else []
        except TransportClosed as closed:
            self.closed = closed

    async def send(self, kind: str, **fields: Json) -> None:
        await self.raw(json.dumps({"type": kind, **fields}))

    async def raw(self, message: str | bytes) -> None:
        assert self._transport is not None
        with suppress(TransportClosed):
            await self._transport.send(message)
        await self.clock.settle()

    async def hear(self, pcm: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
        """Send audio in real time, 20 ms at a time."""
        for at in range(0, len(pcm), 480):
            part = pcm[at : at + 480]
            self.sent += len(part)
            await self.clock.advance(self.sent)
            audio = base64.b64encode(part.tobytes()).decode()
            await self.send("input_audio_buffer.append", audio=audio)

    async def quiet(self, ms: int) -> None:
        await self.hear(np.zeros(ms * 24, np.int16))

    async def say(self, text: str) -> None:
        """Speak ``text`` so that the parrot's ears know it."""
        async for pcm in self.parrot.speak(text, Style(voice="coral")):
            await self.hear(pcm)

    async def configure(self, **audio_input: Json) -> None:
        heard: Json = {"transcription": {"model": "whisper-1"}, **audio_input}
        session: Json = {"type": "realtime", "tools": TOOLS, "audio": {"input": heard}}
        await self.send("session.update", session=session)

    def all(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("type") == kind]

    def kinds(self) -> list[str]:
        return [str(event["type"]) for event in self.events]

    def spoken_ms(self) -> float:
        deltas = [str(event.get("delta", "")) for event in self.all("response.output_audio.delta")]
        return sum(len(delta) for delta in deltas) * 3 / 4 / 48

    def statuses(self) -> list[tuple[str, str]]:
        """(status, reason) of every response that is over."""
        found = []
        for event in self.all("response.done"):
            response = event["response"]
            if not isinstance(response, dict):
                continue
            details = response["status_details"]
            reason = details.get("reason", "") if isinstance(details, dict) else ""
            found.append((str(response["status"]), str(reason)))
        return found

    def errors(self) -> list[str]:
        return [
            str(event["error"]["code"])
            for event in self.all("error")
            if isinstance(event["error"], dict)
        ]

    def said(self) -> list[str]:
        return [str(e["transcript"]) for e in self.all("response.output_audio_transcript.done")]


WISH = "I'd like a table for two on August seventh, please."


async def test_a_turn_is_heard_and_answered_at_once_and_whole() -> None:
    async with Client() as client:
        await client.configure()
        await client.quiet(300)
        await client.say(WISH)
        before = len(client.events)
        await client.quiet(2_000)
        kinds = [kind for kind in client.kinds()[before:] if not kind.endswith("delta")]
        assert kinds == [
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "conversation.item.input_audio_transcription.completed",
            "response.created",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_audio.done",
            "response.output_audio_transcript.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.done",
        ]
        assert client.statuses() == [("completed", "")]
        started = client.all("input_audio_buffer.speech_started")[0]["audio_start_ms"]
        assert started == 0
        assert client.errors() == []


async def test_a_barge_in_cancels_the_response_under_way() -> None:
    async with Client() as client:
        await client.configure()
        await client.quiet(300)
        await client.say(WISH)
        # Heard, not answered yet: the answer is still being thought of.
        while "response.created" not in client.kinds():
            await client.quiet(20)
        await client.say("Sorry, for three people please.")
        assert client.statuses() == [("cancelled", "turn_detected")]
        assert client.said() == []
        await client.quiet(2_500)
        assert client.statuses()[-1] == ("completed", "")
        assert client.errors() == []


async def test_without_turn_detection_the_client_commits_and_asks() -> None:
    async with Client() as client:
        await client.configure(turn_detection=None)
        await client.quiet(300)
        await client.say(WISH)
        await client.quiet(100)
        assert client.kinds() == ["session.created", "session.updated"]
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        await client.quiet(1_500)
        assert [e["transcript"] for e in client.events if "transcription" in str(e["type"])] == [
            WISH
        ]
        assert client.statuses() == [("completed", "")]
        assert len(client.said()) == 1


async def test_the_work_is_asked_of_the_client_step_by_step() -> None:
    async with Client() as client:
        await client.configure(turn_detection=None)
        wish = "A table for two on August seventh at seven p.m., under the name Maya, please."
        await client.quiet(300)
        await client.say(wish)
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        await client.quiet(1_500)
        answers: list[Json] = [{"available": True}, {"reservation_created": True}]
        for number, answer in enumerate(answers):
            calls = client.all("response.function_call_arguments.done")
            assert len(calls) == number + 1
            item: Json = {
                "type": "function_call_output",
                "call_id": calls[-1]["call_id"],
                "output": json.dumps(answer),
            }
            await client.send("conversation.item.create", item=item)
            await client.send("response.create")
            await client.quiet(2_000)
        assert [call["name"] for call in client.all("response.function_call_arguments.done")] == [
            "check_availability",
            "create_reservation",
        ]
        assert "booked" in client.said()[-1]
        assert client.errors() == []


async def test_a_client_that_never_answers_a_call_can_still_talk() -> None:
    async with Client() as client:
        await client.configure()
        await client.quiet(300)
        await client.say("A table for two on August seventh at seven p.m., under Maya, please.")
        await client.quiet(2_500)
        assert len(client.all("response.function_call_arguments.done")) == 1
        before = len(client.statuses())
        await client.say("Are you still there?")
        await client.quiet(2_500)
        assert client.statuses()[before:] == [("completed", "")]
        assert client.said()[-1].endswith("still checking.")


async def test_a_session_expires_with_the_services_words() -> None:
    async with Client(seconds=1) as client:
        await client.quiet(1_500)
        assert client.closed is not None
        assert (client.closed.code, "maximum duration" in client.closed.reason) == (1001, True)


@pytest.mark.parametrize("fault", ["stall,seconds=1,after-ms=0", "garbage", "drop", "odd_bytes"])
async def test_faults_of_the_wire_strike_here_too(fault: str) -> None:
    async with Client(fault=fault) as client:
        await client.configure()
        await client.quiet(300)
        await client.say(WISH)
        await client.quiet(6_000)
        # Nothing strikes before the voice has been heard for a while, and all do in mid-word.
        assert client.spoken_ms() >= (0 if "after-ms=0" in fault else 1_000)
        if fault == "drop":
            assert client.closed is not None
            assert client.statuses() == []
            return
        assert client.closed is None
        assert client.statuses() == [("completed", "")]


kinds = st.sampled_from(
    [
        "session.update",
        "input_audio_buffer.append",
        "input_audio_buffer.commit",
        "input_audio_buffer.clear",
        "conversation.item.create",
        "conversation.item.truncate",
        "conversation.item.delete",
        "response.create",
        "response.cancel",
        "nonsense",
    ]
)
sound = base64.b64encode(np.full(4_800, 3_000, np.int16).tobytes()).decode()
fields = st.fixed_dictionaries(
    {},
    optional={
        "audio": st.sampled_from([sound, "", "!", "AAA="]),
        "session": st.sampled_from(
            [
                {"type": "realtime"},
                {"type": "realtime", "audio": {"input": {"turn_detection": None}}},
                {"type": "realtime", "audio": {"output": {"format": {"type": "audio/pcmu"}}}},
                {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcma"}}}},
                3,
            ]
        ),
        "item": st.sampled_from(
            [
                {"type": "message", "role": "user", "content": [{"text": "Hello."}]},
                {"type": "function_call_output", "call_id": "c", "output": "{}"},
                {"type": "message"},
                [],
            ]
        ),
        "item_id": st.sampled_from(["item_000001_00002", "", 3]),
        "audio_end_ms": st.integers(-5, 5),
        "content_index": st.integers(-1, 1),
    },
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(kinds, fields), max_size=12))
def test_no_course_of_messages_breaks_a_session(course: list[tuple[str, Event]]) -> None:
    async def held() -> None:
        async with Client() as client:
            for kind, event in course:
                await client.send(kind, **event)
            await client.quiet(800)
            assert client.closed is None
            assert not any(status == "failed" for status, _ in client.statuses())

    asyncio.run(held())

"""The official SDK drives the local server over a real socket, and cannot tell."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import numpy as np
import openai
import pytest
from openai import AsyncOpenAI
from openai.resources.live.live import AsyncLiveConnection
from openai.types.live import ServerEvent
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed, InvalidStatus

from duplex.local.faults import Fault, Plan
from duplex.local.server import LocalServer
from duplex.values import Json
from gpt_live_schema import event_models, problems
from gpt_live_voices import ToneVoice, Voices

pytestmark = pytest.mark.wall
Event = dict[str, Json]
CHUNK = base64.b64encode(bytes(960 * 5)).decode()
"""100 ms of silence."""


class Talk:
    """An SDK connection whose every message is also kept raw."""

    def __init__(self, connection: AsyncLiveConnection) -> None:
        self.connection = connection
        self.raw: list[Event] = []
        self.parsed: list[ServerEvent] = []

    async def until(self, kind: str) -> ServerEvent:
        """Read on until an event of ``kind``, sending silence whenever nothing comes."""
        async with asyncio.timeout(8):
            while True:
                try:
                    data = await asyncio.wait_for(self.connection.recv_bytes(), 0.1)
                except TimeoutError:
                    # The session may be closing: then audio is neither wanted nor possible.
                    with suppress(ConnectionClosed):
                        await self.connection.session.input_audio.append(audio=CHUNK)
                    continue
                event = self.connection.parse_event(data)
                self.raw.append(json.loads(data))
                self.parsed.append(event)
                if event.type == kind:
                    return event

    def errors(self) -> list[Event]:
        found = [event["error"] for event in self.raw if event["type"] == "error"]
        return [error for error in found if isinstance(error, dict)]

    def assert_sound(self) -> None:
        assert [(event["type"], problems(event)) for event in self.raw if problems(event)] == []


@asynccontextmanager
async def talking(
    server: LocalServer, *, key: str = "x", start: bool = True
) -> AsyncIterator[Talk]:
    client = AsyncOpenAI(base_url=server.url, api_key=key)
    async with client.live.connect() as connection:
        talk = Talk(connection)
        if start:
            await connection.session.start(session={"model": "gpt-live-1"}, event_id="start")
            await talk.until("session.started")
        yield talk
    await client.close()


async def whole_session(talk: Talk) -> None:
    """Use everything a client-delegated session offers, once."""
    session = talk.connection.session
    await session.commentary.append(content="delegate and note", delegation_id=None, event_id="c")
    created = await talk.until("session.delegation.created")
    assert created.type == "session.delegation.created"
    dlg = created.delegation.id
    await session.thinking.append(content="looking", delegation_id=dlg, event_id="t")
    await session.instructions.append(content="be kind", delegation_id=None, event_id="i")
    await session.commentary.append(content="it is free", delegation_id=dlg)
    await talk.until("session.instructions.appended")
    await talk.until("session.output_transcript.delta")
    await session.input_audio.mute(event_id="m")
    await session.input_audio.unmute(event_id="u")
    await talk.until("session.input_audio.unmuted")
    delegation = {"type": "client", "acknowledgement_delay_ms": 300}
    await session.update(session={"delegation": delegation}, event_id="up")  # type: ignore[typeddict-item]
    await talk.until("session.updated")
    fixture = base64.b64encode(np.full(2400, 9, "<i2").tobytes()).decode()
    await session.output_audio.fixture.play(audio=fixture, event_id="f")
    await talk.until("session.output_audio.fixture.played")
    await talk.connection.decision.create(event_id="no")
    await talk.until("error")
    await session.close(event_id="bye")
    await talk.until("session.closed")


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    voices = Voices(lambda config: ToneVoice(config, tone_ms=100))
    async with LocalServer(voices) as server:
        yield server


async def test_a_whole_session_is_sound_to_the_last_field(server: LocalServer) -> None:
    async with talking(server) as talk:
        await whole_session(talk)
        with pytest.raises(ConnectionClosed) as ended:
            await talk.connection.recv_bytes()
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1000
    talk.assert_sound()
    kinds = {event["type"] for event in talk.raw}
    assert kinds == {
        "session.started",
        "session.updated",
        "session.output_audio.delta",
        "session.output_transcript.delta",
        "session.delegation.created",
        "session.commentary.appended",
        "session.thinking.appended",
        "session.instructions.appended",
        "session.input_audio.muted",
        "session.input_audio.unmuted",
        "session.output_audio.fixture.playing",
        "session.output_audio.fixture.played",
        "session.closed",
        "info",
        "error",
    }
    echoes = {str(e["type"]): e["client_event_id"] for e in talk.raw if "client_event_id" in e}
    assert echoes == {
        "session.started": "start",
        "session.commentary.appended": "c",
        "session.thinking.appended": "t",
        "session.instructions.appended": "i",
        "session.input_audio.muted": "m",
        "session.input_audio.unmuted": "u",
        "session.updated": "up",
        "session.output_audio.fixture.playing": "f",
        "session.output_audio.fixture.played": "f",
        "session.closed": "bye",
        "error": "no",
    }


async def test_the_sdk_reads_a_started_session_with_everything_resolved(
    server: LocalServer,
) -> None:
    async with talking(server, start=False) as talk:
        session = talk.connection.session
        await session.start(session={"model": "gpt-live-1"})
        started = await talk.until("session.started")
        assert started.type == "session.started"
        shown = started.session
        assert shown.id.startswith("sess_")
        assert shown.status == "active"
        assert shown.expires_at > 1_700_000_000
        assert shown.audio is not None
        assert shown.audio.output is not None
        assert shown.audio.output.voice == "marin"
        assert shown.audio.format is not None
        assert (shown.audio.format.type, shown.audio.format.rate) == ("audio/pcm", 24000)
        assert shown.delegation is not None
        assert shown.delegation.type == "client"


async def test_iteration_ends_quietly_after_closed(server: LocalServer) -> None:
    async with talking(server) as talk:
        await talk.connection.session.close()
        kinds = [event.type async for event in talk.connection]
    assert kinds == ["session.closed"]


async def test_an_unknown_session_field_is_an_error_and_the_socket_lives(
    server: LocalServer,
) -> None:
    async with talking(server, start=False) as talk:
        session = talk.connection.session
        await session.start(session={"model": "gpt-live-1", "bogus": 1}, event_id="s")  # type: ignore[typeddict-unknown-key]
        await talk.until("error")
        (error,) = talk.errors()
        assert error == {
            "type": "invalid_request_error",
            "code": "unknown_parameter",
            "message": error["message"],
            "param": "session.bogus",
            "client_event_id": "s",
        }
        await session.start(session={"model": "gpt-live-1"})
        await talk.until("session.started")
        talk.assert_sound()


async def test_a_start_that_is_not_mended_closes_the_socket(server: LocalServer) -> None:
    async with talking(server, start=False) as talk:
        await talk.connection.session.start(session={"model": "gpt-4"})
        kinds = [event.type async for event in talk.connection]
    assert kinds == ["error"]


async def test_audio_before_the_start_is_an_error(server: LocalServer) -> None:
    async with talking(server, start=False) as talk:
        await talk.connection.session.input_audio.append(audio=CHUNK, event_id="early")
        await talk.until("error")
        assert talk.errors()[0]["code"] == "session_not_started"
        talk.assert_sound()


async def test_a_session_with_a_backend_of_its_own_calls_functions(server: LocalServer) -> None:
    async with talking(server, start=False) as talk:
        wants = {"type": "object", "properties": {}}
        tools = [
            {"type": "function", "name": name, "parameters": wants, "strict": False}
            for name in ("check_availability", "create_reservation")
        ]
        responses = {"model": "local", "tools": tools, "reasoning": {"effort": "low"}}
        config = {
            "model": "gpt-live-1",
            "delegation": {"type": "responses", "responses": responses},
        }
        await talk.connection.session.start(session=config)  # type: ignore[arg-type]
        await talk.until("session.started")
        # The voice repeats these words as its own; its backend asks for what is missing.
        await talk.connection.session.commentary.append(
            content="delegate a table", delegation_id=None
        )
        created = await talk.until("session.delegation.created")
        assert created.type == "session.delegation.created"
        assert created.delegation.target == "responses"
        nested: list[ResponseStreamEvent] = []
        while not nested or nested[-1].type != "response.completed":
            event = await talk.until("response.event")
            assert event.type == "response.event"
            assert event.delegation_id == created.delegation.id
            nested.append(TypeAdapter(ResponseStreamEvent).validate_python(event.event))
        first, last = nested[0], nested[-1]
        assert first.type == "response.created"
        assert first.response.id == created.delegation.response_id
        assert last.type == "response.completed"
        assert last.response.output == []
        assert last.response.usage is not None
        await talk.connection.session.close()
        await talk.until("session.closed")
        talk.assert_sound()


async def test_decisions_delegation_is_declined_by_name(server: LocalServer) -> None:
    async with talking(server, start=False) as talk:
        config = {"model": "gpt-live-1", "delegation": {"type": "decisions", "decisions": {}}}
        await talk.connection.session.start(session=config)  # type: ignore[arg-type]
        await talk.until("error")
        assert talk.errors()[0]["param"] == "session.delegation.type"


async def test_a_sideband_is_answered_by_an_error(server: LocalServer) -> None:
    client = AsyncOpenAI(base_url=server.url, api_key="x")
    async with client.live.sideband.connect(session_id="sess_1") as connection:
        event = await connection.recv()
        assert event.type == "error"
        assert event.error.code == "unsupported_transport"
    await client.close()


async def test_webrtc_is_answered_by_an_error(server: LocalServer) -> None:
    client = AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0)
    with pytest.raises(openai.BadRequestError) as refused:
        await client.live.create(
            transport={"type": "webrtc", "sdp": "v=0"}, session={"model": "gpt-live-1"}
        )
    assert refused.value.code == "unsupported_transport"
    await client.close()


@pytest.mark.parametrize(("key", "wanted"), [("right", None), ("wrong", 401)])
async def test_a_wrong_key_is_refused_before_the_upgrade(key: str, wanted: int | None) -> None:
    async with LocalServer(Voices(), api_key="right") as server:
        if wanted is None:
            async with talking(server, key=key):
                return
        with pytest.raises(InvalidStatus) as refused:
            async with talking(server, key=key):
                pass
        assert refused.value.response.status_code == wanted


async def test_odd_audio_and_unknown_types_are_errors_the_session_survives(
    server: LocalServer,
) -> None:
    async with talking(server) as talk:
        await talk.connection.session.input_audio.append(audio="AAAA")
        await talk.until("error")
        await talk.connection.send_raw('{"type":"x","event_id":"z"}')
        await talk.until("error")
        assert [error["code"] for error in talk.errors()] == ["invalid_audio", "invalid_value"]
        await talk.connection.session.input_audio.mute()
        await talk.until("session.input_audio.muted")
        talk.assert_sound()


# -- the checker itself -----------------------------------------------------


def mutants(event: Event) -> Iterator[tuple[str, Event]]:
    """Yield ``event`` with one thing wrong, for every place in it."""
    for path in places(event):
        *parents, name = path
        for kind in ("dropped", "renamed", "mistyped", "null"):
            changed = copy.deepcopy(event)
            inside = changed
            for parent in parents:
                inside = cast(Event, inside[parent])
            value = inside.pop(name)
            if kind == "renamed":
                inside[f"{name}_"] = value
            elif kind == "mistyped":
                inside[name] = 7.5 if isinstance(value, (str, dict, bool)) else "7"
            elif kind == "null":
                inside[name] = None
            yield f"{'.'.join(path)} {kind}", changed


def places(event: Event, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in event.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from places(value, (*above, name))


OPTIONAL = {
    "client_event_id",
    "session.audio",
    "session.audio.format",
    "session.audio.output",
    "session.audio.output.voice",
    "session.delegation",
    "session.delegation.acknowledgement_delay_ms",
    "session.instructions",
    "session.store",
    "error.client_event_id",
    "error.param",
}
"""What the SDK's types let a server leave out or make null."""


async def test_every_mutant_of_every_message_is_caught(server: LocalServer) -> None:
    async with talking(server) as talk:
        await whole_session(talk)
    samples = {str(event["type"]): event for event in talk.raw}
    assert len(samples) == 15
    for event in samples.values():
        for name, mutant in mutants(event):
            path, kind = name.split(" ")
            if path in OPTIONAL and kind in ("dropped", "null"):
                continue
            assert problems(mutant), f"{event['type']}: {name} passed"
            assert problems(event) == []


class Mutating(Fault):
    """Renames one field of every delta on its way out."""

    async def send(self, message: str | bytes) -> None:
        assert isinstance(message, str)
        await self.onward(message.replace('"delta":', '"data":'))


async def test_a_mutant_server_is_caught_though_the_sdk_says_nothing() -> None:
    faults = [Plan(name="mutating", make=Mutating)]
    async with LocalServer(Voices(), faults=faults) as server, talking(server) as talk:
        delta = await talk.until("session.output_audio.delta")
        assert delta.type == "session.output_audio.delta"
        assert getattr(delta, "delta", None) is None, "the sdk built it without a word"
        with pytest.raises(AssertionError, match=r"event.delta: missing"):
            talk.assert_sound()


def test_the_checker_knows_every_type_of_the_sdk() -> None:
    assert {"session.started", "session.closed", "error", "response.event"} <= set(event_models())
    assert problems({"type": "session.unheard_of"}) == [
        "type 'session.unheard_of' is not in the sdk"
    ]

"""The official SDK talks Realtime to the local server over a real socket, and cannot tell."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import numpy as np
import pytest
from openai import AsyncOpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel, ValidationError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from duplex.clock import Clock, WallClock
from duplex.local.parties import party_maker
from duplex.local.server import LocalServer
from duplex.participants.base import Incoming
from duplex.participants.realtime import RealtimeSession
from duplex.participants.realtime_door import realtime_websocket
from duplex.protocols.realtime import RealtimeConfig
from duplex.values import Happening, Json, RemoteFault, Side
from fake_engines import Parrot, _Engines
from gpt_live_voices import Voices

pytestmark = pytest.mark.wall
Event = dict[str, Json]
RATE = 24_000


def models() -> dict[str, type[BaseModel]]:
    """The SDK's model of each server event, by type."""
    union = get_args(RealtimeServerEvent)[0]
    found: dict[str, type[BaseModel]] = {}
    for model in get_args(union):
        for name in get_args(model.model_fields["type"].annotation):
            found[name] = model
    return found


def problems(event: Event) -> str:
    model = models().get(str(event["type"]))
    if model is None:
        return f"the SDK knows no {event['type']}"
    try:
        model.model_validate(event)
    except ValidationError as error:
        return f"{event['type']}: {error}"
    return ""


@asynccontextmanager
async def serving(parrot: Parrot, *, key: str | None = None) -> AsyncIterator[LocalServer]:
    engines = _Engines(parrot, parrot)
    make = party_maker(engines, seed=3)  # type: ignore[arg-type]
    async with LocalServer(Voices(), api_key=key, make_party=make) as server:
        yield server


def silence(ms: int) -> str:
    return base64.b64encode(bytes(ms * RATE * 2 // 1000)).decode()


async def test_the_sdk_holds_a_turn_and_every_event_is_as_it_declares() -> None:
    parrot = Parrot()
    question = "I'd like a table for two on August seventh, please."
    pieces = [pcm async for pcm in parrot.speak(question, None)]  # type: ignore[arg-type]
    spoken = np.concatenate(pieces)
    raw: list[Event] = []
    async with serving(parrot) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="x")
        async with client.realtime.connect(model="gpt-realtime-2") as connection:
            await connection.session.update(
                session={
                    "type": "realtime",
                    "audio": {"input": {"transcription": {"model": "gpt-4o-mini-transcribe"}}},
                }
            )
            chunks = [silence(200), base64.b64encode(spoken.tobytes()).decode()]
            for chunk in [*chunks, *[silence(100)] * 15]:
                await connection.input_audio_buffer.append(audio=chunk)
            async with asyncio.timeout(20):
                while not raw or raw[-1]["type"] != "response.done":
                    event = json.loads(await connection.recv_bytes())
                    raw.append(event)
    assert [problem for event in raw if (problem := problems(event))] == []
    kinds = list(dict.fromkeys(str(event["type"]) for event in raw))
    assert kinds[:5] == [
        "session.created",
        "session.updated",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
    ]
    assert {"response.output_audio.delta", "response.output_audio_transcript.done"} <= set(kinds)
    heard = [event["transcript"] for event in raw if "input_audio_transcription" in event["type"]]  # type: ignore[operator]
    assert heard == [question]


async def test_the_door_is_as_narrow_as_for_gpt_live() -> None:
    async with serving(Parrot(), key="right") as server:
        url = server.url.replace("http", "ws") + "/realtime?model=m"
        good = {"Authorization": "Bearer right"}
        async with connect(url, additional_headers=good) as connection:
            assert json.loads(await connection.recv())["type"] == "session.created"
        for where, headers, status in (
            (url, {"Authorization": "Bearer wrong"}, 401),
            (url, {}, 401),
            (url.replace("/realtime", "/realtimes"), good, 404),
            (url, {**good, "Origin": "https://example.com"}, 403),
        ):
            with pytest.raises(InvalidStatus) as caught:
                await connect(where, additional_headers=headers)
            assert caught.value.response.status_code == status


async def test_eight_sessions_at_once_hear_only_their_own_greeting() -> None:
    """The field case: with many sessions, nothing is sent before each is open, none is mixed up."""
    parrot = Parrot()
    async with serving(parrot) as server:

        async def one(number: int) -> tuple[str, int]:
            session = RealtimeSession(
                side=Side.ASSISTANT,
                connect=realtime_websocket(server.url, "m", "x"),
                config=RealtimeConfig(),
                opening=f"Word {'again ' * number}.",
            )
            clock: Clock = WallClock(RATE)
            await session.start(clock)
            session.hear(0, np.zeros(RATE, np.int16))
            items: list[Incoming] = []
            said = ""
            async with asyncio.timeout(20):
                while not said:
                    for item in session.collect():
                        items.append(item)
                        if isinstance(item, Happening) and item.type == "utterance":
                            said = str(item.fields["text"])
                    await asyncio.sleep(0.01)
            await session.finish()
            items += session.collect()
            return said, sum(isinstance(item, RemoteFault) for item in items)

        results = await asyncio.gather(*(one(number) for number in range(8)))
    assert [said.count("again") for said, _ in results] == list(range(8))
    assert [faults for _, faults in results] == [0] * 8

"""Agents behind real sockets of this machine: pace, hanging up, size, TLS, redirects."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from duplex.clock import WallClock
from duplex.errors import SessionError
from duplex.participants.stream_agent import StreamAgent
from duplex.participants.transport import MAX_MESSAGE_BYTES, MOST_BYTES, bare_websocket
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmStream
from live_bench import LiveBench

RATE = 24_000
Handler = Callable[[ServerConnection], Awaitable[None]]
Door = Callable[[ServerConnection, Request], Response | None]
pytestmark = pytest.mark.wall


@asynccontextmanager
async def agent_at(
    handler: Handler, door: Door | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    async with serve(
        handler, "127.0.0.1", 0, process_request=door, ssl=tls, compression=None, close_timeout=1
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"{'wss' if tls else 'ws'}://127.0.0.1:{port}/stream"


def twilio(url: str) -> LiveBench:
    dialect = MediaStream(StreamIds.drawn(7))
    agent = StreamAgent(connect=bare_websocket(url), dialect=dialect, provider="twilio")
    return LiveBench(agent, WallClock(RATE))


async def test_a_twilio_agent_is_sent_audio_at_the_pace_of_the_wall_clock() -> None:
    came: list[tuple[float, str]] = []

    async def hear(socket: ServerConnection) -> None:
        async for message in socket:
            event = json.loads(message)
            came.append((time.monotonic(), event["event"]))
            if event["event"] == "start":
                payload = base64.b64encode(bytes([0x20]) * 4_000).decode()
                said = {"event": "media", "streamSid": event["streamSid"]}
                await socket.send(json.dumps({**said, "media": {"payload": payload}}))

    async with agent_at(hear) as url:
        bench = twilio(url)
        await bench.start()
        await bench.run(1_000)
        await bench.finish()
    events = [event for _, event in came]
    assert events == ["connected", "start", *["media"] * 50, "stop"]
    media = [at for at, event in came if event == "media"]
    assert 0.7 < media[-1] - media[0] < 1.5
    assert len(bench.audio()) == RATE // 2
    assert bench.faults() == []


async def test_an_agent_that_closes_has_hung_up() -> None:
    async def hear(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.close(1000)

    async with agent_at(hear) as url:
        bench = twilio(url)
        await bench.start()
        await bench.run(300)
        await bench.finish()
    assert bench.faults() == []
    assert bench.told("session.closed") == [{"reason": "remote_hangup"}]


@pytest.mark.parametrize(
    ("size", "fault"),
    [
        (MAX_MESSAGE_BYTES + 2, ("agent", "oversize", False)),
        (MOST_BYTES + 2, ("transport", "oversize", True)),
    ],
)
async def test_a_message_that_is_too_large_is_named_and_one_beyond_bearing_ends_the_connection(
    size: int, fault: tuple[str, str, bool]
) -> None:
    async def shout(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bytes(size))
        await socket.wait_closed()

    async with agent_at(shout) as url:
        agent = StreamAgent(connect=bare_websocket(url), dialect=PcmStream(), provider="pcm")
        bench = LiveBench(agent, WallClock(RATE))
        await bench.start()
        await bench.run(1_000)
        await bench.finish()
    assert bench.faults()[0] == fault
    assert len(bench.audio()) == 0


def redirect(to: str) -> Door:
    def door(connection: ServerConnection, request: Request) -> Response | None:
        return Response(302, "Found", Headers({"Location": to, "Content-Length": "0"}))

    return door


async def test_a_redirect_to_another_origin_is_not_followed() -> None:
    reached: list[str] = []

    async def hear(socket: ServerConnection) -> None:
        reached.append("elsewhere")
        await socket.wait_closed()

    async with agent_at(hear) as elsewhere, agent_at(hear, redirect(elsewhere)) as url:
        with pytest.raises(SessionError, match="another origin") as caught:
            await twilio(url).start()
    assert caught.value.stage == "assistant_connection"
    assert reached == []


async def test_a_redirect_within_the_origin_is_followed() -> None:
    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    def door(connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/stream":
            return redirect("/moved")(connection, request)
        return None

    async with agent_at(hear, door) as url:
        bench = twilio(url)
        await bench.start()
        await bench.finish()
    assert bench.faults() == []


async def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    certificate = tmp_path / "own.pem"
    make = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", str(certificate), "-out", str(tmp_path / "cert.pem")),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    if await make.wait():
        pytest.skip("openssl makes no certificate here")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", certificate)

    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with agent_at(hear, tls=tls) as url:
        with pytest.raises(SessionError, match=r"(?i)certificate"):
            await twilio(url).start()


async def test_an_agent_that_does_not_read_holds_up_nobody() -> None:
    async def ignore(socket: ServerConnection) -> None:
        socket.transport.pause_reading()
        await asyncio.sleep(2)

    async with agent_at(ignore) as url:
        bench = twilio(url)
        await bench.start()
        began = time.monotonic()
        await bench.run(500, lambda position: np.full(480, 3_000, np.int16))
        await bench.finish()
        assert time.monotonic() - began < 6

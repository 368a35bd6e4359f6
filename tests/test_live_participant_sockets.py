"""Live sessions and the local server over real sockets: doors, time, hung ends, many at once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus

from duplex.clock import Clock, WallClock, wall_seconds
from duplex.errors import SessionError
from duplex.local import server as server_module
from duplex.local import session as session_module
from duplex.local.faults import parse_fault
from duplex.local.server import LocalServer
from duplex.participants import door as door_module
from duplex.participants.base import Pcm
from duplex.participants.live import Limits, LiveSession
from duplex.participants.realtime import Limits as RealtimeLimits
from duplex.participants.realtime import RealtimeSession
from duplex.participants.realtime_door import realtime_websocket
from duplex.participants.transport import sessions_url, websocket
from duplex.protocols.gpt_live_client import LiveConfig
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import RemoteFault, Side
from gpt_live_peer import BareClient
from gpt_live_voices import ToneVoice, Voices
from live_bench import LiveBench

pytestmark = pytest.mark.wall
RATE = 24_000
KEY = {"Authorization": "Bearer x"}


def bench_of(
    url: str,
    *,
    key: str = "x",
    side: Side = Side.ASSISTANT,
    opening: str | None = None,
    limits: Limits | None = None,
) -> LiveBench:
    session = LiveSession(side=side, connect=websocket(url, key), opening=opening, limits=limits)
    return LiveBench(session, WallClock(RATE))


def peak_hz(pcm: Pcm) -> float:
    spectrum = np.abs(np.fft.rfft(pcm.astype(float)))
    return float(np.argmax(spectrum) * RATE / len(pcm))


# -- the door ---------------------------------------------------------------


async def test_the_upgrade_offers_neither_extension_nor_subprotocol() -> None:
    async with (
        LocalServer(Voices()) as server,
        connect(
            sessions_url(server.url),
            additional_headers={**KEY, "X-Unheard-Of": "1"},
            compression="deflate",
        ) as socket,
    ):
        assert socket.response is not None
        headers = socket.response.headers
        assert "Sec-WebSocket-Extensions" not in headers
        assert "Sec-WebSocket-Protocol" not in headers
        await asyncio.wait_for(await socket.ping(), 2)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/live/sessions", {}, 401),
        ("/v1/live/sessions", {"Authorization": "Bearer "}, 401),
        ("/v1/live/sessions", {"Authorization": "Basic x"}, 401),
        ("/v1/live/sessions", {**KEY, "Origin": "https://evil.example"}, 403),
        ("/v1/realtime", KEY, 404),
        ("/", KEY, 404),
    ],
)
async def test_the_door_refuses_before_the_upgrade(
    path: str, headers: dict[str, str], status: int
) -> None:
    async with LocalServer(Voices()) as server:
        port = urlsplit(server.url).port
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}{path}", additional_headers=headers)
        assert refused.value.response.status_code == status


async def test_one_session_too_many_is_answered_429(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_SESSIONS", 1)
    monkeypatch.setattr(door_module, "PATIENCE_SECONDS", 1.5)
    async with LocalServer(Voices()) as server:
        first = bench_of(server.url)
        await first.start()
        with pytest.raises(SessionError) as refused:
            await bench_of(server.url).start()
        assert refused.value.code == "429"
        await first.finish()


async def test_a_connection_that_never_starts_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "START_MS", 100)
    async with (
        LocalServer(Voices()) as server,
        connect(sessions_url(server.url), additional_headers=KEY) as socket,
    ):
        await asyncio.wait_for(socket.wait_closed(), 2)
        assert socket.close_code == 1000


async def test_a_prefix_of_ones_own_and_a_fixed_host() -> None:
    async with LocalServer(Voices(), prefix="openai/v1/") as server:
        assert server.url.endswith("/openai/v1")
        bench = bench_of(server.url)
        await bench.start()
        await bench.finish()
        assert bench.told("session.closed")


# -- starting ---------------------------------------------------------------


async def test_a_wrong_key_is_a_401_of_that_sides_connection() -> None:
    async with LocalServer(Voices(), api_key="right") as server:
        with pytest.raises(SessionError) as refused:
            await bench_of(server.url, key="wrong").start()
    assert (refused.value.stage, refused.value.code) == ("assistant_connection", "401")
    assert "wrong" not in str(refused.value).replace("answered", ""), "no key in a message"


async def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with LocalServer(Voices()) as server:
        bench = bench_of(server.url)
        await bench.start()
        await bench.finish()
    assert bench.told("session.closed")


async def test_nobody_listening_is_refused() -> None:
    async with LocalServer(Voices()) as server:
        url = server.url
    with pytest.raises(SessionError) as refused:
        await bench_of(url, side=Side.CALLER).start()
    assert (refused.value.stage, refused.value.code) == ("caller_connection", "refused")


async def test_a_peer_that_says_nothing_times_out() -> None:
    async def mute(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with serve(mute, "127.0.0.1", 0) as peer:
        port = peer.sockets[0].getsockname()[1]
        bench = bench_of(f"http://127.0.0.1:{port}/v1", limits=Limits(start_ms=100))
        with pytest.raises(SessionError) as failed:
            await bench.start()
    assert failed.value.code == "timeout"


async def test_a_peer_that_speaks_no_http_is_refused() -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        writer.close()

    peer = await asyncio.start_server(odd, "127.0.0.1", 0)
    async with peer:
        port = peer.sockets[0].getsockname()[1]
        with pytest.raises(SessionError) as refused:
            await bench_of(f"http://127.0.0.1:{port}/v1").start()
    assert refused.value.code == "refused"


# -- time -------------------------------------------------------------------


async def test_a_second_on_the_wall_gives_a_second_of_audio_about_when_it_was_due() -> None:
    async with LocalServer(Voices()) as server:
        bench = bench_of(server.url, opening="hello")
        await bench.start()
        await bench.run(1_000)
        await bench.finish()
    assert len(bench.audio()) == RATE
    assert bench.faults() == []
    assert bench.told("session.usage")[-1] == {"seconds": 1, "final": True}
    transcript = next(item for item in bench.items if "transcript" in str(item))
    assert transcript.received_at is not None  # type: ignore[union-attr]
    assert transcript.received_at < 0.9  # type: ignore[union-attr]


async def test_audio_sent_ahead_is_heard_at_real_time() -> None:
    voices = Voices()
    async with LocalServer(voices) as server:
        clock = WallClock(RATE)
        transport = await websocket(server.url, "x")(clock)
        client = BareClient(transport, clock)
        await client.start()
        await client.send("session.input_audio.append", audio=client.pack(RATE * 3))
        await asyncio.sleep(0.5)
        heard_ms = len(voices.made[0].heard) * 20
        await transport.close()
        await client.task
    assert 500 <= heard_ms <= 1_500


async def test_a_stall_on_the_wall_is_survived_and_doubles_nothing() -> None:
    voices = Voices(lambda config: ToneVoice(config, tone_ms=600))
    async with LocalServer(
        voices, faults=[parse_fault("stall,seconds=1.7,after_ms=400")]
    ) as server:
        bench = bench_of(server.url, opening="hello")
        await bench.start()
        await bench.run(2_800)
        await bench.finish()
    assert bench.faults() == [("session", "stall", False), ("transport", "stalled", False)]
    assert len(bench.audio()) == 2_800 * 24
    assert np.count_nonzero(bench.audio()) > 0.95 * 600 * 24


# -- ends that hang ---------------------------------------------------------


async def test_five_peers_that_never_answer_close_do_not_hold_up_the_end() -> None:
    """python-websockets/websockets#704: they ignore every close and keep on sending."""
    async with deaf_peer() as url:
        limits = Limits(finish_ms=300)
        benches = [bench_of(url, limits=limits) for _ in range(5)]
        await asyncio.gather(*(bench.start() for bench in benches))
        began = wall_seconds()
        await asyncio.gather(*(bench.finish() for bench in benches))
        took = wall_seconds() - began
    assert took <= 0.3 + 1.0
    for bench in benches:
        assert bench.faults() == [
            ("session", "close_timeout", False),
            ("session", "usage_unconfirmed", False),
        ]


async def test_five_realtime_peers_that_never_answer_close_do_not_either() -> None:
    opening = [
        f'{{"type":"session.{how}","session":{{"id":"s"}}}}' for how in ("created", "updated")
    ]
    async with deaf_peer(*opening) as url:
        sessions = [
            RealtimeSession(
                side=Side.ASSISTANT,
                connect=realtime_websocket(url, "m", "x"),
                limits=RealtimeLimits(finish_ms=300),
            )
            for _ in range(5)
        ]
        await asyncio.gather(*(session.start(WallClock(RATE)) for session in sessions))
        began = wall_seconds()
        await asyncio.gather(*(session.finish() for session in sessions))
        took = wall_seconds() - began
        told = [[i for i in one.collect() if isinstance(i, RemoteFault)] for one in sessions]
    assert took <= 0.3 + 1.0
    assert [[fault.code for fault in faults] for faults in told] == [["close_timeout"]] * 5


STARTED = '{"type":"session.started","session":{"id":"s"}}'


@asynccontextmanager
async def deaf_peer(*opening: str) -> AsyncIterator[str]:
    """A websocket server by hand: it upgrades, starts a session, then only ever sends."""

    def frame(text: str) -> bytes:
        data = text.encode()
        assert len(data) < 126
        return bytes([0x81, len(data)]) + data

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        key = next(
            line.split(b":", 1)[1].strip()
            for line in request.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key")
        )
        guid = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key + guid).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        for message in opening or (STARTED,):
            writer.write(frame(message))
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(frame('{"type":"session.output_audio.delta","delta":"AAA="}'))
                await writer.drain()
                await asyncio.sleep(0.05)

    peer = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = peer.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        peer.close()


async def test_a_drop_on_the_wall_is_an_abnormal_close() -> None:
    voices = Voices(lambda config: ToneVoice(config, tone_ms=600))
    async with LocalServer(voices, faults=[parse_fault("drop,after_ms=100")]) as server:
        bench = bench_of(server.url, opening="hello")
        await bench.start()
        await bench.run(2_000)
        await bench.finish()
    assert bench.faults()[-2:] == [
        ("session", "dropped", True),
        ("session", "usage_unconfirmed", False),
    ]


async def test_abort_ends_at_once_and_may_be_repeated() -> None:
    voices = Voices()
    async with LocalServer(voices) as server:
        bench = bench_of(server.url)
        await bench.start()
        await bench.session.abort()
        await bench.session.abort()
        await bench.session.finish()
        for _ in range(100):
            if voices.made[0].closed:
                break
            await asyncio.sleep(0.01)
    assert voices.made[0].closed


# -- many at once -----------------------------------------------------------


async def test_eight_sessions_behind_slow_doors_never_hear_each_other() -> None:
    """Each accept is delayed by up to 210 ms and each start by 150 ms more."""
    tones = {f"voice_{n}": 300.0 + 50 * n for n in range(8)}

    class Slow(ToneVoice):
        async def begin(self, clock: Clock) -> None:
            await asyncio.sleep(0.15)

    def make(config: SessionConfig) -> ToneVoice:
        return Slow(config, hz=tones[config.voice], tone_ms=600)

    async with LocalServer(Voices(make)) as server, slow_door(server.url) as url:
        benches = []
        for name in tones:
            session = LiveSession(
                side=Side.ASSISTANT,
                connect=websocket(url, "x"),
                config=LiveConfig(voice=name),
                opening="hello",
            )
            benches.append(LiveBench(session, WallClock(RATE)))

        async def whole(bench: LiveBench) -> None:
            await bench.start()
            await bench.run(1_000)
            await bench.finish()

        await asyncio.gather(*(whole(bench) for bench in benches))
    for bench, hz in zip(benches, tones.values(), strict=True):
        assert bench.faults() == []
        audio = bench.audio()
        voiced = audio[np.flatnonzero(audio)[0] :][: RATE // 2]
        assert abs(peak_hz(voiced) - hz) < 5


@asynccontextmanager
async def slow_door(target: str) -> AsyncIterator[str]:
    """Pass bytes on to ``target``, the n-th connection ``30 n`` ms late."""
    parts = urlsplit(target)
    count = 0
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(0.03 * (count - 1))
        inner_reader, inner_writer = await asyncio.open_connection(parts.hostname, parts.port)
        for task in (
            asyncio.create_task(copy(reader, inner_writer)),
            asyncio.create_task(copy(inner_reader, writer)),
        ):
            tasks.add(task)

    door = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = door.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}{parts.path}"
    finally:
        door.close()
        await asyncio.gather(*tasks)

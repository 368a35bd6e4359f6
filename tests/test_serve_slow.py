"""Clients who mean no good: heads that never end, answers nobody takes, half a connection."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from duplex.serve import patience
from serve_process import Server, asking, connected, got, serving
from serve_support import application, stored
from verdict_runs import call

HEAD = 0.3
TAKE = 0.5


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A server in this process whose patience is short."""
    monkeypatch.setattr(patience, "HEAD_SECONDS", HEAD)
    monkeypatch.setattr(patience, "TAKE_SECONDS", TAKE)
    stored(tmp_path / "runs", "run_one", call())
    app, _ = application(tmp_path / "runs")
    endless(app)
    config = uvicorn.Config(
        app,
        port=0,
        log_level="critical",
        http=patience.PatientProtocol,
        lifespan="off",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        limit_concurrency=40,
    )
    server = uvicorn.Server(config)
    # A test that is told to end must end.
    monkeypatch.setattr(server, "capture_signals", contextlib.nullcontext)
    serving_it = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving_it


def endless(app: FastAPI) -> None:
    async def forever() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield b"x" * 65_536

    @app.get("/endless", include_in_schema=False)
    def answer() -> StreamingResponse:
        return StreamingResponse(forever())


async def cut(reader: asyncio.StreamReader) -> bytes:
    """What came until the server cut the connection."""
    try:
        return await asyncio.wait_for(reader.read(-1), 20)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: x\r\na: b\r\n"]
)
async def test_a_head_that_does_not_end_ends_its_connection(port: int, sent: bytes) -> None:
    reader, writer = await connected(port)
    writer.write(sent)
    assert await cut(reader) == b""
    writer.close()


async def test_a_head_that_comes_byte_by_byte_is_not_waited_for_either(port: int) -> None:
    reader, writer = await connected(port)
    waiting = asyncio.create_task(cut(reader))
    for letter in b"GET / HTTP/1.1\r\n" + b"a" * 400:
        if waiting.done():
            break
        writer.write(bytes([letter]))
        await asyncio.sleep(0.02)
    assert waiting.done()
    writer.close()


async def test_the_next_request_of_a_connection_is_waited_for_no_longer(port: int) -> None:
    reader, writer = await connected(port)
    request = asking(port, "/static/icon.svg").replace(b"connection: close\r\n", b"")
    for _ in range(3):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        assert (await reader.readexactly(length)).startswith(b"<svg")
        await asyncio.sleep(HEAD / 3)
    writer.write(b"GET / HTTP/1.1\r\n")
    assert await cut(reader) == b""
    writer.close()


async def test_an_answer_that_nobody_takes_ends_its_connection(port: int) -> None:
    reader, writer = await connected(port)
    writer.write(asking(port, "/endless"))
    transport = writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    await asyncio.sleep(TAKE * 3)
    transport.resume_reading()
    # What lay in the sockets is what comes; then it is over, though the answer is not.
    assert len(await cut(reader)) < 64 << 20
    writer.close()


async def test_an_answer_that_is_taken_slowly_goes_on(port: int) -> None:
    reader, writer = await connected(port)
    writer.write(asking(port, "/endless"))
    for _ in range(8):
        await reader.readexactly(1 << 20)
        await asyncio.sleep(TAKE / 4)
    assert not reader.at_eof()
    writer.close()


async def test_many_silent_connections_keep_nobody_out_for_long(port: int) -> None:
    held = [await connected(port) for _ in range(60)]
    status, _ = await got(port, "/api/runs")
    assert status == 503
    await asyncio.sleep(HEAD * 3)
    status, _ = await got(port, "/api/runs")
    assert status == 200
    for _, writer in held:
        writer.close()


async def test_a_stream_whose_client_is_gone_is_let_go(port: int) -> None:
    """Half of the connection closed, then all of it: the server does not mind."""
    for abrupt in (False, True):
        reader, writer = await connected(port)
        writer.write(asking(port, "/endless"))
        await reader.readexactly(1000)
        if abrupt:
            writer.transport.abort()
        else:
            writer.write_eof()
            writer.close()
    status, _ = await got(port, "/api/runs")
    assert status == 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    stored(tmp_path / "runs", "run_one", call())
    with serving(tmp_path / "runs") as made:
        yield made


async def test_readers_who_take_nothing_cost_a_bounded_memory(server: Server) -> None:
    """A hundred of them ask for everything there is, again and again, and read nothing."""
    most = min(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    await got(server.port, "/runs/run_one")
    before = server.resident()
    held = [await connected(server.port) for _ in range(most)]
    for reader, writer in held:
        transport = writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()
        paths = ("/runs/run_one", "/openapi.json", "/api/runs", "/static/page.css")
        asked = b"".join(asking(server.port, path) for path in paths * 20)
        writer.write(asked.replace(b"connection: close\r\n", b""))
        assert not reader.at_eof()
    for _ in range(5):
        await asyncio.sleep(0.2)
        assert server.resident() - before < 300 << 20
    status, _ = await got(server.port, "/api/runs")
    assert status == 200
    for _, writer in held:
        writer.transport.abort()

"""Who gets in, who is called, and with what: certificates, redirects, browsers, rebinding, keys."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus

from duplex.application.base import BackendFailed
from duplex.application.endpoint import Endpoint
from duplex.application.remote import HttpBackend
from duplex.clock import WallClock
from duplex.errors import InputError
from duplex.local.admission import is_loopback, stranger
from duplex.local.server import LocalServer
from duplex.models.client import ModelClient, ModelError
from duplex.models.limiter import Limiter
from duplex.models.place import ModelPlace
from duplex.participants.transport import (
    TransportRefused,
    bare_websocket,
    keyed_url,
    sessions_url,
)
from duplex.protocols.model_values import Ask, Message
from duplex.results.schema import read_run
from duplex.wavfile import write_wav
from gpt_live_voices import Voices

TREE = Path(__file__).parents[1]
RATE = 24_000
KEY = {"Authorization": "Bearer x"}


# -- certificates -----------------------------------------------------------


@pytest.fixture(scope="module")
def own_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no openssl here to make a certificate with")
    return folder


@asynccontextmanager
async def behind_tls(folder: Path) -> AsyncIterator[int]:
    """A websocket server on loopback whose certificate nobody signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    async def hang_up(connection: ServerConnection) -> None:
        await connection.close()

    async with serve(hang_up, "127.0.0.1", 0, ssl=context) as server:
        yield next(iter(server.sockets)).getsockname()[1]


async def test_a_session_trusts_no_certificate_that_nobody_signed(own_certificate: Path) -> None:
    async with behind_tls(own_certificate) as port:
        with pytest.raises(TransportRefused, match="its certificate is not trusted") as refused:
            await bare_websocket(f"wss://127.0.0.1:{port}/v1", KEY)(WallClock(RATE))
    assert refused.value.code == "tls"
    assert "self" in str(refused.value), "the reason is told"


async def test_neither_does_a_model_or_a_service(own_certificate: Path) -> None:
    async with behind_tls(own_certificate) as port:
        url = f"https://127.0.0.1:{port}/v1"
        async with ModelClient(ModelPlace(url=url, model="m"), Limiter()) as client:
            ask = Ask(model="m", items=(Message(role="user", text="hi"),))
            with pytest.raises(ModelError, match="its certificate is not trusted"):
                await client.answer(ask, WallClock(RATE))
        service = HttpBackend(Endpoint(url=url), {}, "call")
        try:
            with pytest.raises(BackendFailed, match="its certificate is not trusted"):
                await service.handle("d", [], WallClock(RATE), lambda _: None)
        finally:
            await service.close()


@pytest.mark.wall
async def test_a_run_against_it_is_one_sentence_and_no_call(
    own_certificate: Path, tmp_path: Path
) -> None:
    t = np.arange(24_000) / 24_000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    write_wav(tmp_path / "caller.wav", np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    async with behind_tls(own_certificate) as port:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "duplex", "run", "--assistant", f"wss://127.0.0.1:{port}/pcm"),
            *("--caller", str(tmp_path / "caller.wav"), "--data", str(TREE / "scenarios")),
            *("--scenario", "restaurant_booking_complete", "--out", str(tmp_path / "runs")),
            cwd=TREE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        _, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 2, err
    assert b"Traceback" not in err
    assert b"its certificate is not trusted" in err
    (folder,) = (tmp_path / "runs").iterdir()
    (result,) = read_run((folder / "results.json").read_text(encoding="utf-8")).results
    assert result.error is not None
    assert result.error.stage == "assistant_connection"


# -- redirects --------------------------------------------------------------


@pytest.mark.parametrize("target", ["ws://127.0.0.1:1/v1", "wss://127.0.0.1/v1", "ws://localhost/"])
async def test_a_websocket_follows_no_redirect_to_another_origin(target: str) -> None:
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TransportRefused, match="redirects to another origin"):
            await bare_websocket(f"ws://127.0.0.1:{port}/v1", KEY)(WallClock(RATE))
    assert len(asked) == 1


async def test_an_http_request_follows_none_at_all() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        service = HttpBackend(Endpoint(url=f"http://127.0.0.1:{port}/"), {}, "call")
        try:
            with pytest.raises(BackendFailed, match=r"redirects \(307\), which is not followed"):
                await service.handle("d", [], WallClock(RATE), lambda _: None)
        finally:
            await service.close()


# -- keys -------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", ["http://models.example/v1", "ws://10.0.0.7/v1"])
def test_a_key_never_travels_in_clear_to_another_machine(endpoint: str) -> None:
    with pytest.raises(InputError, match="a key would go in clear"):
        keyed_url(endpoint)
    assert keyed_url("http://127.0.0.1:8080/v1") == "ws://127.0.0.1:8080/v1/live/sessions"
    assert keyed_url("https://models.example/v1") == "wss://models.example/v1/live/sessions"


async def test_a_user_in_the_address_is_no_second_authorization() -> None:
    given: list[list[str]] = []

    async def look(connection: ServerConnection) -> None:
        assert connection.request is not None
        given.append(connection.request.headers.get_all("Authorization"))

    async with serve(look, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        url = f"ws://me:secret@127.0.0.1:{port}/"
        for headers in (KEY, None):
            transport = await bare_websocket(url, headers)(WallClock(RATE))
            await transport.close()
    assert given == [["Bearer x"], ["Basic bWU6c2VjcmV0"]]


# -- browsers and rebinding -------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "origins", "hosts", "code"),
    [
        ("127.0.0.1", [], ["127.0.0.1:8123"], None),
        ("127.0.0.1", [], ["localhost:8123"], None),
        ("::1", [], ["[::1]:8123"], None),
        ("127.0.0.1", [], ["evil.example:8123"], "host_not_allowed"),
        ("127.0.0.1", [], ["127.0.0.1.evil.example"], "host_not_allowed"),
        ("127.0.0.1", [], ["me@127.0.0.1"], "host_not_allowed"),
        ("127.0.0.1", [], [], "host_not_allowed"),
        ("127.0.0.1", [], ["localhost", "evil.example"], "host_not_allowed"),
        ("localhost", ["null"], ["localhost"], "origin_not_allowed"),
        ("0.0.0.0", [], ["my-machine.lan:80"], None),
        ("0.0.0.0", ["http://my-machine.lan"], ["my-machine.lan"], "origin_not_allowed"),
    ],
)
def test_strangers_are_told_by_origin_and_host(
    bound: str, origins: list[str], hosts: list[str], code: str | None
) -> None:
    found = stranger(bound, origins, hosts)
    assert (found.code if found is not None else None) == code


@pytest.mark.parametrize(
    ("name", "own"),
    [("127.8.9.1", True), ("localhost.", True), ("::1", True), ("0.0.0.0", False), ("", False)],
)
def test_loopback_is_told_by_address(name: str, own: bool) -> None:
    assert is_loopback(name) is own


def asked(port: int, method: str, path: str, **headers: str) -> str:
    """The first line of what a server answers to one plain request."""
    sent = {"Host": f"127.0.0.1:{port}", "Authorization": "Bearer x"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    body = "\r\n\r\n" if method == "GET" else "\r\nContent-Length: 2\r\n\r\n{}"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(("\r\n".join(lines) + body).encode())
        return link.recv(65_536).decode().splitlines()[0]


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize("path", ["/v1/live/sessions", "/v1/realtime", "/v1/responses", "/"])
@pytest.mark.parametrize("who", [{"Origin": "http://localhost"}, {"Host": "evil.example"}])
async def test_no_path_of_a_local_server_answers_a_browser(path: str, who: dict[str, str]) -> None:
    async with LocalServer(Voices()) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        for method, more in (("POST", {}), ("GET", UPGRADE), ("OPTIONS", {})):
            line = await asyncio.to_thread(asked, port, method, path, **{**more, **who})
            assert line.split()[1] == "403", (method, line)


async def test_two_authorizations_open_nothing() -> None:
    async with LocalServer(Voices(), api_key="right") as server:
        headers = [("Authorization", "Bearer right"), ("Authorization", "Bearer wrong")]
        with pytest.raises(InvalidStatus) as refused:
            async with connect(sessions_url(server.url), additional_headers=headers):
                pass
    assert refused.value.response.status_code == 401


async def test_whoever_is_connected_and_says_nothing_does_not_hold_up_the_end() -> None:
    links = []
    async with LocalServer(Voices()) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        for said in (b"", b"G", b"GET /v1/live/sessions HTTP/1.1\r\n", b"POST /v1/responses HT"):
            links.append(await asyncio.open_connection("127.0.0.1", port))
            links[-1][1].write(said)
        assert "404" in await asyncio.to_thread(asked, port, "GET", "/nothing")
        # The door itself would be kept open for ten seconds.
        await asyncio.wait_for(server.close(), timeout=5)
    for reader, writer in links:
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

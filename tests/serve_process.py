"""A server in a process of its own, and clients that cost next to nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What a server said when it began."""

    process: subprocess.Popen[str]
    url: str
    token: str
    link: str

    @property
    def auth(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def begin(self, options: dict[str, object]) -> str:
        """Begin a run; its id."""
        answer = httpx.post(
            f"{self.url}/api/runs", json={"options": options}, headers=self.auth, timeout=60
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def over(self, id: str) -> None:
        """Wait until a run is over."""
        httpx.get(f"{self.url}/api/runs/{id}/events", timeout=120)

    def resident(self) -> int:
        """Bytes of memory the server holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(one for one in status.splitlines() if one.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


@contextmanager
def serving(runs: Path) -> Iterator[Server]:
    """Serve a folder; the server must end by itself and without a fault afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "duplex", "serve", "--runs", str(runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        token = process.stderr.readline().removeprefix("token: ").strip()
        link = process.stderr.readline().removeprefix("page: ").strip()
        yield Server(process=process, url=url, token=token, link=link)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in told, told
        assert token not in told
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)


def asking(port: int, path: str) -> bytes:
    """A request whose connection ends with its answer."""
    return (
        f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: */*\r\nconnection: close\r\n\r\n"
    ).encode()


async def got(port: int, path: str) -> tuple[int, bytes]:
    """Status and the rest of an answer, read to its end."""
    reader, writer = await connected(port)
    try:
        writer.write(asking(port, path))
        answer = await reader.read(-1)
    finally:
        writer.close()
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]

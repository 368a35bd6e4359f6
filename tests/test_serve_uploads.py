"""Uploads as nobody's client sends them: too long, too slow, cut off, without a ticket."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from duplex.serve import livekit_uploads, uploads
from duplex.serve.door import BODY_BYTES
from duplex.serve.simulations import FOLDER
from serve_support import AUTH, client
from test_serve_archive import packed
from test_serve_creating import BASE, SESSION, SOURCE, Server, created, got, refused

EDGE = "an-edge"
FORM = {"content-type": f"multipart/form-data; boundary={EDGE}"}


class Waiting:
    """A server with one run that waits for its source."""

    def __init__(self, server: Server, made: dict[str, object]) -> None:
        self.server = server
        self.id = str(made["simulationRunId"])
        post = made["presignedPostRequest"]
        assert isinstance(post, dict)
        self.values: dict[str, str] = post["values"]
        self.path = httpx.URL(post["url"]).path

    @property
    def left(self) -> list[str]:
        """What an upload left on the disk."""
        folder = self.server.runs / FOLDER / self.id
        return sorted(one.name for one in folder.iterdir() if one.name != "record.json")

    async def send(self, content: bytes | AsyncIterator[bytes], **headers: str) -> httpx.Response:
        async with client(self.server.app) as http:
            return await http.post(self.path, content=content, headers=FORM | headers)

    def fields(self, **more: str) -> bytes:
        return b"".join(part(name, value.encode()) for name, value in (self.values | more).items())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One for all: making an application takes longer than any of these tests."""
    return Server(tmp_path_factory.mktemp("uploads") / "runs")


@pytest.fixture
async def waiting(server: Server) -> AsyncIterator[Waiting]:
    async with server.http() as http:
        found = Waiting(server, await created(http))
        yield found
        assert (await http.post(f"{BASE}/{found.id}:cancel")).status_code == 200


def part(name: str, data: bytes, more: str = "") -> bytes:
    head = f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + data + b"\r\n"


def file(data: bytes) -> bytes:
    return part("file", data, '; filename="source.tar.gz"')


END = f"--{EDGE}--\r\n".encode()


async def pieces(*found: bytes, then: float = 0.0) -> AsyncIterator[bytes]:
    for one in found:
        yield one
    if then:
        await asyncio.sleep(then)


async def test_an_upload_in_pieces_of_any_size_is_taken(waiting: Waiting) -> None:
    whole = waiting.fields() + file(packed(SOURCE)) + END
    answer = await waiting.send(pieces(*(whole[at : at + 7] for at in range(0, len(whole), 7))))
    assert answer.status_code == 204, answer.text
    assert answer.content == b""
    assert waiting.left == ["run.lock", "source.tar.gz"]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([b"", END], "no multipart form|no file"),
        (["fields", END], "no file"),
        (["fields"], "no file"),
        (["fields", "file"], "cut off"),
        ([b"no form at all"], "no multipart form"),
        (["fields", b"--an-edge\r\nbroken header\r\n"], "no multipart form"),
    ],
)
async def test_a_form_that_is_none_is_refused_and_leaves_nothing(
    waiting: Waiting, parts: Sequence[str | bytes], said: str
) -> None:
    known = {"fields": waiting.fields(), "file": file(packed(SOURCE))}
    content = b"".join(known[one] if isinstance(one, str) else one for one in parts)
    message = refused(await waiting.send(content), "InvalidArgument")
    assert any(one in message for one in said.split("|")), message
    assert waiting.left == []


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data", "multipart/form-data; boundary=", "\x7f"]
)
async def test_another_kind_of_body_is_refused(waiting: Waiting, kind: str) -> None:
    answer = await waiting.send(b"{}", **{"content-type": kind})
    assert "boundary" in refused(answer, "InvalidArgument")


async def test_without_a_ticket_hardly_anything_is_read(waiting: Waiting) -> None:
    read = 0

    async def endless(lead: bytes) -> AsyncIterator[bytes]:
        nonlocal read
        yield lead
        while True:
            read += 4096
            yield b"x" * 4096

    for lead in (part("a", b"")[:-2], file(b"")[:-2]):
        answer = await waiting.send(endless(lead))
        assert answer.status_code in (400, 403)
        assert answer.headers["connection"] == "close"
    many = b"".join(part(f"field_{number}", b"") for number in range(60))
    assert "fields" in refused(await waiting.send(many), "InvalidArgument")
    assert read <= 2 * uploads.FIELDS_BYTES + 65_536
    assert waiting.left == []


async def test_more_than_an_archive_may_have_is_not_taken(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "PACKED_BYTES", 50_000)
    body = waiting.fields() + file(b"x" * 200_000) + END
    said = await waiting.send(body)
    streamed = await waiting.send(pieces(*(body[at : at + 1000] for at in range(0, 200_000, 1000))))
    behind = waiting.fields() + file(packed(SOURCE)) + part("more", b"y" * 200_000)
    trailing = await waiting.send(pieces(*(behind[at : at + 999] for at in range(0, 200_000, 999))))
    assert [one.status_code for one in (said, streamed, trailing)] == [413, 413, 413]
    assert waiting.left == []


@pytest.mark.parametrize("at", ["nothing", "fields", "file"])
async def test_a_slow_upload_is_given_up(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(uploads, "PIECE_SECONDS", 0.1)
    sent = {
        "nothing": b"",
        "fields": waiting.fields(),
        "file": waiting.fields() + file(packed(SOURCE))[:150],
    }[at]
    answer = await waiting.send(pieces(sent, then=30))
    refused(answer, "DeadlineExceeded", 408)
    assert waiting.left == []


async def test_an_upload_byte_by_byte_is_given_up_too(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "WHOLE_SECONDS", 0.2)

    async def trickle() -> AsyncIterator[bytes]:
        yield waiting.fields() + file(b"")[:-2]
        while True:
            await asyncio.sleep(0.01)
            yield b"x"

    refused(await waiting.send(trickle()), "DeadlineExceeded", 408)
    assert waiting.left == []


async def test_no_more_uploads_go_on_than_are_allowed(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(livekit_uploads, "MOST_UPLOADS", 1)
    begun, go_on = asyncio.Event(), asyncio.Event()
    whole = waiting.fields() + file(packed(SOURCE)) + END

    async def held_back() -> AsyncIterator[bytes]:
        yield whole[:-40]
        begun.set()
        await go_on.wait()
        yield whole[-40:]

    first = asyncio.create_task(waiting.send(held_back()))
    await asyncio.wait_for(begun.wait(), 10)
    refused(await waiting.send(whole), "ResourceExhausted", 429)
    go_on.set()
    assert (await first).status_code == 204


async def test_a_disk_that_is_full_is_told(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(uploads.Form, "_data", full)
    answer = await waiting.send(waiting.fields() + file(packed(SOURCE)) + END)
    assert "no space left" in refused(answer, "Unavailable", 503)
    assert answer.headers["connection"] == "close"
    assert waiting.left == []


async def test_two_uploads_with_one_ticket_leave_one_source(waiting: Waiting) -> None:
    whole = waiting.fields() + file(packed(SOURCE)) + END
    both = await asyncio.gather(waiting.send(whole), waiting.send(whole))
    assert sorted(one.status_code for one in both) in ([204, 400], [204, 403])
    assert waiting.left == ["run.lock", "source.tar.gz"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"authorization": "Bearer wrong"}, 401),
    ],
)
async def test_a_ticket_opens_no_door_to_another_site(
    waiting: Waiting, headers: dict[str, str], status: int
) -> None:
    whole = waiting.fields() + file(packed(SOURCE)) + END
    assert (await waiting.send(whole, **headers)).status_code == status
    assert waiting.left == []


@pytest.mark.parametrize("id", ["..%2f..%2fx", "%2e%2e", "..", "SR_x%00", "SR_none", "a" * 300])
async def test_no_id_leads_anywhere_else(waiting: Waiting, id: str) -> None:
    whole = waiting.fields() + file(packed(SOURCE)) + END
    before = set(waiting.server.runs.rglob("*"))
    async with client(waiting.server.app) as http:
        answer = await http.post(f"/v0/uploads/{id}", content=whole, headers=FORM)
    assert answer.status_code in (400, 401, 403, 404)
    assert waiting.left == []
    assert set(waiting.server.runs.rglob("*")) == before


async def test_every_write_but_the_upload_wants_the_token(waiting: Waiting) -> None:
    paths = [BASE, SESSION]
    paths += [f"{BASE}/{waiting.id}:{verb}" for verb in ("cancel", "confirmSourceUpload")]
    async with client(waiting.server.app) as http:
        for path in paths:
            assert (await http.post(path, json={})).status_code == 401
            crossed = await http.post(path, json={}, headers=AUTH | {"origin": "https://e.example"})
            assert crossed.status_code == 403
        assert (await got(http, waiting.id))["status"] == "STATUS_PENDING_UPLOAD"
        body = b'{"mode": "' + b"x" * BODY_BYTES + b'"}'
        assert (await http.post(BASE, content=body, headers=AUTH)).status_code == 413
    assert waiting.server.launcher.asked == []


async def test_the_ticket_is_nowhere_on_the_disk_and_in_no_answer(waiting: Waiting) -> None:
    ticket = waiting.values["ticket"]
    async with client(waiting.server.app) as http:
        assert ticket not in (await http.get(f"{BASE}/{waiting.id}")).text
    for path in (waiting.server.runs / FOLDER).rglob("*"):
        assert path.is_dir() or ticket.encode() not in path.read_bytes()
    record = waiting.server.runs / FOLDER / waiting.id / "record.json"
    assert record.stat().st_mode & 0o077 == 0

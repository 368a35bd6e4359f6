"""Delegated work at a remote service: what it may answer, what it may not, what is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.application.backend import LocalBackend
from duplex.application.base import BackendFailed, Line
from duplex.application.endpoint import Endpoint, check_endpoint, endpoint
from duplex.application.loading import load_application
from duplex.application.remote import HttpBackend, SocketBackend
from duplex.clock import VirtualClock, WallClock
from duplex.errors import InputError
from duplex.local.pipe import PipeEnd, pipe
from duplex.options import make
from duplex.participants.transport import Transport, TransportClosed
from duplex.protocols import remote_work
from duplex.protocols.gpt_live import Broken
from duplex.runner import Runner
from duplex.values import Happening, Json
from fake_engines import Parrot, speaking

TREE = Path(__file__).parents[1]
MESSAGES = (
    *(remote_work.Ready, remote_work.Passed, remote_work.Observed),
    *(remote_work.Completed, remote_work.Stopped, Broken),
)
HERE = Endpoint(url="http://127.0.0.1:9/work", token="t0ken")
TALK = [
    Line(role="user", text="A table for two, please.", start_ms=1_000),
    Line(role="assistant", text="Under what name?", start_ms=3_000),
]
BOOKED: dict[str, Json] = {
    "commentary": ["It is booked."],
    "reports": [
        {"type": "tool", "name": "book", "arguments": {"party_size": 2}, "result": {"ok": True}},
        {"type": "state", "state": {"booked": 1}},
    ],
}


# -- where it may be --------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://agent.example/work",
        "wss://agent.example",
        "http://127.0.0.1:8000/",
        "ws://localhost:1",
        "http://[::1]:8000",
    ],
)
def test_tls_anywhere_and_plain_text_only_here(url: str) -> None:
    check_endpoint(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://agent.example/work",
        "ws://10.0.0.1",
        "http://127.0.0.1.agent.example/",
        "ftp://127.0.0.1/",
        "agent.example",
        "https://",
        "https://me:pass@agent.example/",
        "https://agent.example/#x",
        "https://agent.example:0/",
        "https://agent.example:x/",
        "",
    ],
)
def test_any_other_address_is_refused_before_a_run(url: str) -> None:
    with pytest.raises(InputError, match="assistant-endpoint"):
        check_endpoint(url)
    with pytest.raises(InputError, match="assistant-endpoint"):
        make({"assistant_endpoint": url})


def test_the_token_comes_from_the_environment_and_shows_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DUPLEX_ASSISTANT_TOKEN", "OPENAI_CLIENT_ASSISTANT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert endpoint("http://127.0.0.1:1").headers == {}
    with pytest.raises(InputError, match="DUPLEX_ASSISTANT_TOKEN"):
        endpoint("https://agent.example")
    monkeypatch.setenv("OPENAI_CLIENT_ASSISTANT_TOKEN", "older")
    assert endpoint("https://agent.example").headers == {"Authorization": "Bearer older"}
    monkeypatch.setenv("DUPLEX_ASSISTANT_TOKEN", "s3cret")
    found = endpoint("https://agent.example")
    assert found.headers == {"Authorization": "Bearer s3cret"}
    assert "s3cret" not in repr(found)
    monkeypatch.setenv("DUPLEX_ASSISTANT_TOKEN", "a\r\nX: y")
    with pytest.raises(InputError, match="no token"):
        endpoint("https://agent.example")


@pytest.mark.parametrize(
    "values",
    [{"assistant": "realtime"}, {"assistant": "m:f"}, {"assistant": "ws://127.0.0.1:1"}],
)
def test_only_client_delegation_has_work_to_own(values: dict[str, object]) -> None:
    with pytest.raises(InputError, match="client delegation"):
        make({"assistant_endpoint": "http://127.0.0.1:1", **values})


# -- over HTTP --------------------------------------------------------------


class Told(list[Happening]):
    def kinds(self) -> list[str]:
        return [one.type for one in self]


async def asked(
    answer: Callable[[httpx2.Request], httpx2.Response | Awaitable[httpx2.Response]],
    timeout_ms: int = 5_000,
) -> tuple[Sequence[str], Told]:
    async def streamed(request: httpx2.Request) -> httpx2.Response:
        made = answer(request)
        found = made if isinstance(made, httpx2.Response) else await made

        async def content() -> AsyncIterator[bytes]:
            yield found.content

        return httpx2.Response(found.status_code, headers=found.headers, content=content())

    transport = httpx2.MockTransport(streamed)
    backend = HttpBackend(HERE, {"today": 1}, "c1", timeout_ms=timeout_ms, transport=transport)
    told = Told()
    try:
        clock = VirtualClock(24_000)
        work = clock.spawn(backend.handle("d1", TALK, clock, told.append))
        while not work.done():
            await clock.advance(clock.position + 2_400)
        return await work, told
    finally:
        await backend.close()


async def test_a_delegation_is_one_request_and_its_reports_are_events() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=BOOKED)

    said, told = await asked(answer)
    assert said == ("It is booked.",)
    assert told.kinds() == ["tool.started", "tool.ended", "state"]
    assert told[0].fields["delegation_id"] == "d1"
    (request,) = seen
    assert request.headers["authorization"] == "Bearer t0ken"
    assert json.loads(request.content) == {
        "call_id": "c1",
        "delegation_id": "d1",
        "conversation": [
            {"role": "user", "text": "A table for two, please.", "start_ms": 1000},
            {"role": "assistant", "text": "Under what name?", "start_ms": 3000},
        ],
        "initial_state": {"today": 1},
    }


@pytest.mark.parametrize(
    "response, code",
    [
        (httpx2.Response(302, headers={"Location": "https://elsewhere.example/"}), "redirect"),
        (httpx2.Response(307, headers={"Location": "/other"}), "redirect"),
        (httpx2.Response(500), "500"),
        (httpx2.Response(401), "401"),
        (httpx2.Response(200, content=b"no json"), "unreadable"),
        (httpx2.Response(200, json=[]), "unreadable"),
        (httpx2.Response(200, json={}), "unreadable"),
        (httpx2.Response(200, json={"commentary": ["x"] * 33}), "unreadable"),
        (httpx2.Response(200, json={"commentary": "x", "reports": [{}]}), "unreadable"),
        (httpx2.Response(200, json={"commentary": "x", "reports": 5}), "unreadable"),
        (httpx2.Response(200, content=b"x" * (1 << 21)), "too_long"),
    ],
)
async def test_any_other_answer_is_a_delegation_that_failed(
    response: httpx2.Response, code: str
) -> None:
    with pytest.raises(BackendFailed) as caught:
        await asked(lambda request: response)
    assert caught.value.code == code
    assert not caught.value.fatal


async def test_a_service_that_cannot_be_reached_is_a_failure_with_its_reason() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("nobody listens")

    with pytest.raises(BackendFailed, match="nobody listens"):
        await asked(answer)


async def test_a_service_that_never_answers_is_given_up_in_time() -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(60)
        return httpx2.Response(200)

    with pytest.raises(BackendFailed, match="100 ms") as caught:
        await asked(answer, timeout_ms=100)
    assert caught.value.code == "timeout"


# -- over a socket ----------------------------------------------------------


class Service:
    """The other end of a socket: answers each delegation with the messages it was given."""

    def __init__(self, *answers: Json | str, ready: Json = None) -> None:
        self.answers = answers
        self.ready = ready or {"type": "session.ready"}
        self.received: list[dict[str, Json]] = []
        self.opened = 0

    async def connect(self, clock: object) -> Transport:
        self.opened += 1
        ours, theirs = pipe(WallClock(24_000))
        self._task = asyncio.create_task(self._serve(theirs))
        return ours

    async def _serve(self, end: PipeEnd) -> None:
        try:
            while True:
                message = json.loads(await end.receive())
                self.received.append(message)
                if message["type"] == "session.configure":
                    await end.send(json.dumps(self.ready))
                elif message["event"]["type"] == "session.delegation.created":
                    for answer in self.answers:
                        text = answer if isinstance(answer, str) else json.dumps(answer)
                        await end.send(text)
                    if not self.answers:
                        await end.close(1011)
        except TransportClosed:
            return

    def events(self) -> list[Mapping[str, Json]]:
        found = [one["event"] for one in self.received if one["type"] == "live.event"]
        return [one for one in found if isinstance(one, dict)]


def passed(text: str, delegation_id: str = "d1") -> Json:
    event: Json = {
        "type": "session.commentary.append",
        "content": text,
        "delegation_id": delegation_id,
    }
    return {"type": "live.send", "event": event}


def observed(kind: str, **fields: Json) -> Json:
    return {"type": "assistant.event", "event": {"type": kind, **fields}}


DONE = observed("client_delegation.completed", delegation_id="d1")


async def socketed(
    service: Service, *talks: list[Line], timeout_ms: int = 2_000
) -> tuple[list[Sequence[str]], Told]:
    backend = SocketBackend(service.connect, timeout_ms=timeout_ms)
    told, answers = Told(), []
    clock = WallClock(24_000)
    try:
        for talk in talks or (TALK,):
            answers.append(await backend.handle("d1", talk, clock, told.append))
    finally:
        await backend.close()
        await asyncio.sleep(0)
    return answers, told


async def test_a_call_is_one_connection_on_which_the_conversation_is_followed() -> None:
    tool: dict[str, Json] = {
        "call_id": "t1",
        "name": "book",
        "arguments": {"n": 2},
        "status": "completed",
        "output": {"ok": True},
    }
    service = Service(
        observed("tool.completed", tool_execution=tool, application_state={"booked": True}),
        passed("Not this one.", "d0"),
        passed("It is booked."),
        DONE,
    )
    longer = [
        *TALK[:1],
        Line(role="assistant", text="Under what name? Or is it yours?", start_ms=3_000),
    ]
    more = [*longer, Line(role="user", text="Mine.", start_ms=6_000)]
    answers, told = await socketed(service, TALK, more)
    assert answers == [["It is booked."], ["It is booked."]]
    assert told.kinds() == ["tool.started", "tool.ended", "state"] * 2
    assert told[1].fields["result"] == {"ok": True}
    assert service.opened == 1
    assert service.received[0] == {"type": "session.configure", "initial_items": []}
    said = [(one["type"], one.get("delta")) for one in service.events()]
    assert said == [
        ("session.input_transcript.delta", "A table for two, please."),
        ("session.output_transcript.delta", "Under what name?"),
        ("session.delegation.created", None),
        ("session.output_transcript.delta", "Or is it yours?"),
        ("session.input_transcript.delta", "Mine."),
        ("session.delegation.created", None),
        ("session.closed", None),
    ]
    created = service.events()[2]
    assert created["delegation"] == {"id": "d1", "type": "delegation", "target": "client"}


@pytest.mark.parametrize(
    "answers, code",
    [
        (["garbage"], "unreadable"),
        ([{"type": "guess"}], "unreadable"),
        ([passed("")], "unreadable"),
        ([{"type": "error", "error": {"message": "no"}}], "stopped"),
        ([observed("error", error={"message": "no"})], "stopped"),
        ([{"type": "session.closed"}], "stopped"),
        ([observed("tool.completed")], "unreadable"),
        ([passed("x")] * 33, "too_long"),
        ([observed("state", state={})] * 501, "too_many_reports"),
        ([], "closed"),
        ([passed("but never done")], "timeout"),
    ],
)
async def test_a_service_that_breaks_the_contract_fails_the_delegation(
    answers: list[Json], code: str
) -> None:
    with pytest.raises(BackendFailed) as caught:
        await socketed(Service(*answers), timeout_ms=300)
    assert caught.value.code == code


async def test_after_a_failure_the_next_delegation_begins_anew() -> None:
    service = Service({"type": "session.closed"})
    backend = SocketBackend(service.connect)
    clock, told = WallClock(24_000), Told()
    with pytest.raises(BackendFailed):
        await backend.handle("d1", TALK, clock, told.append)
    service.answers = (passed("Again."), DONE)
    assert await backend.handle("d1", TALK, clock, told.append) == ["Again."]
    assert service.opened == 2
    await backend.close()
    await backend.close()


async def test_a_service_that_does_not_take_the_session_is_a_failure() -> None:
    with pytest.raises(BackendFailed, match="did not take"):
        await socketed(Service(ready={"type": "error", "error": {}}))


@settings(max_examples=80)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "event", "content", "delegation_id", "commentary"])
                | st.sampled_from(["reports", "tool_execution", "application_state", "name"]),
                inner | st.sampled_from(["live.send", "assistant.event", "tool.completed"]),
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_no_answer_makes_the_codec_raise(value: Json) -> None:
    data = json.dumps(value)
    assert isinstance(remote_work.read_message(data), MESSAGES)
    assert isinstance(remote_work.read_reply(data.encode()), (remote_work.WorkReply, Broken))


# -- a whole call -----------------------------------------------------------


@pytest.fixture
async def service() -> AsyncIterator[str]:
    """A service at a port of this machine that does the restaurant's work; its address."""
    backends: dict[str, LocalBackend] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = json.loads(await reader.readexactly(int(lines["content-length"])))
        own = backends.setdefault(
            body["call_id"],
            LocalBackend(load_application(), body["initial_state"], tool_ms=0),
        )
        told = Told()
        own.begin(told.append)
        talk = [Line(**one) for one in body["conversation"]]
        clock = WallClock(24_000)
        clock.begin()
        words = await own.handle(body["delegation_id"], talk, clock, told.append)
        reports: list[Json] = []
        for one in told:
            if one.type == "state":
                reports.append({"type": "state", **one.fields})
            else:
                status = "started" if one.type == "tool.started" else one.fields["status"]
                reports.append({"type": "tool", **one.fields, "status": status})
        data = json.dumps({"commentary": list(words), "reports": reports}).encode()
        status_line = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(status_line % len(data) + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/work?key=never-shown"
    server.close()
    await server.wait_closed()


async def test_a_remote_service_books_the_demos_table(service: str, tmp_path: Path) -> None:
    values: dict[str, object] = {
        "data": TREE / "scenarios",
        "scenario": ("restaurant_booking_complete",),
        "assistant_endpoint": service,
        "clock": "virtual",
        "out": tmp_path,
    }
    with speaking(Parrot()):
        finished = await Runner(make(values)).run()
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.metrics.task.tool_accuracy == 1.0
    shown = finished.run.run.configuration.assistant_endpoint
    assert shown == service.partition("?")[0]
    written = [path for path in finished.folder.rglob("*") if path.suffix in (".json", ".jsonl")]
    assert not any("never-shown" in path.read_text(encoding="utf-8") for path in written)

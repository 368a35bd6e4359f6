"""Asking a model: dialects, refusals, rate limits, and what is never followed or sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from duplex.application.base import BackendFailed, Line
from duplex.application.model_backend import ModelBackend
from duplex.application.restaurant import application
from duplex.clock import VirtualClock, WallClock, wall_seconds
from duplex.errors import InputError
from duplex.models import client as asking
from duplex.models.client import ModelClient, ModelError, Waited
from duplex.models.limiter import LONGEST_SECONDS, Limiter, retry_after
from duplex.models.place import ModelPlace, place
from duplex.protocols.model_values import Ask, Call, Function, Message, Output
from duplex.values import Happening
from fake_models import FakeModels, Reply, completion, error, in_turn, response, serving

CLOCK = VirtualClock(24_000)
FUNCTION = Function(
    name="look",
    description="Looks.",
    parameters={
        "type": "object",
        "properties": {"day": {"type": "string"}, "seat": {"type": "string", "enum": ["a"]}},
        "required": ["day"],
    },
)
ASK = Ask(
    model="",
    instructions="Be brief.",
    items=(Message(role="user", text="hello"),),
    functions=(FUNCTION,),
)


@asynccontextmanager
async def asked(
    replies: Iterable[Reply], **settings: object
) -> AsyncIterator[tuple[ModelClient, FakeModels]]:
    with serving(in_turn(replies)) as fake:
        where = ModelPlace(url=fake.url, model="m", key="k")
        async with ModelClient(where, **settings) as client:  # type: ignore[arg-type]
            yield client, fake


# -- what is sent and what comes back -----------------------------------------


async def test_a_request_holds_model_instructions_input_and_strict_functions() -> None:
    async with asked([response("hi")]) as (client, fake):
        answer = await client.answer(replace(ASK, effort="low"), CLOCK)
    (sent,) = fake.asked
    assert sent.path == "/v1/responses"
    assert sent.headers["authorization"] == "Bearer k"
    assert sent.body["model"] == "m"
    assert sent.body["reasoning"] == {"effort": "low"}
    tools = sent.body["tools"]
    assert isinstance(tools, list)
    tool = tools[0]
    assert isinstance(tool, dict)
    assert tool["strict"] is True
    assert tool["parameters"] == {
        "type": "object",
        "properties": {
            "day": {"type": "string"},
            "seat": {"type": ["string", "null"], "enum": ["a", None]},
        },
        "required": ["day", "seat"],
        "additionalProperties": False,
    }
    assert (answer.text, answer.status, answer.response_id) == ("hi", "completed", "resp_1")
    assert answer.tokens is not None
    assert (answer.tokens.cached_tokens, answer.tokens.reasoning_tokens) == (1, 2)


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_server_without_responses_is_asked_by_chat_completions(status: int) -> None:
    replies = [error(status, "not_found"), completion(calls=[("look", {"day": "x"})])]
    async with asked(replies) as (client, fake):
        answer = await client.answer(ASK, CLOCK)
        (call,) = answer.calls
        again = replace(
            ASK,
            history=(*ASK.items, *answer.items),
            items=(Output(call_id=call.call_id, text="{}"),),
            previous_id=answer.response_id,
        )
        await client.answer(again, CLOCK)
    paths = [one.path for one in fake.asked]
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]
    assert (call.name, json.loads(call.arguments)) == ("look", {"day": "x"})
    assert answer.tokens is not None
    assert answer.tokens.total_tokens == 10
    messages = fake.asked[2].body["messages"]
    assert isinstance(messages, list)
    roles = [message["role"] for message in messages if isinstance(message, dict)]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_model_that_does_not_exist_is_said_and_chat_is_not_tried() -> None:
    async with asked([error(404, "model_not_found", "no model m")]) as (client, fake):
        with pytest.raises(ModelError, match="no model m") as refused:
            await client.answer(ASK, CLOCK)
    assert refused.value.code == "model_not_found"
    assert len(fake.asked) == 1


async def test_a_server_that_forgot_the_chain_is_sent_everything() -> None:
    chained = replace(ASK, history=(Message(role="user", text="before"),), previous_id="resp_0")
    replies = [error(404, "previous_response_not_found"), response("hi")]
    async with asked(replies) as (client, fake):
        await client.answer(chained, CLOCK)
        await client.answer(chained, CLOCK)
    first, second, third = (one.body for one in fake.asked)
    assert first["previous_response_id"] == "resp_0"
    assert len(first["input"]) == 1  # type: ignore[arg-type]
    for body in (second, third):
        assert "previous_response_id" not in body
        assert len(body["input"]) == 2  # type: ignore[arg-type]


async def test_a_stream_gives_the_same_answer_as_a_whole_response() -> None:
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "item": {"type": "reasoning"}},
        {
            "type": "response.output_item.done",
            "item": {
                "type": "function_call",
                "call_id": "c1",
                "name": "look",
                "arguments": "{}",
                "status": "completed",
            },
        },
        {"type": "response.unheard_of"},
        {
            "type": "response.completed",
            "response": {"id": "resp_1", "output": [], "usage": {"total_tokens": 4}},
        },
    ]
    raw = "".join(f"event: x\r\ndata: {json.dumps(event)}\r\n\r\n" for event in events)
    reply = Reply(headers={"Content-Type": "text/event-stream"}, raw=raw.encode())
    async with asked([reply], stream=True) as (client, fake):
        answer = await client.answer(ASK, CLOCK)
    assert fake.asked[0].body["stream"] is True
    assert answer.calls == (Call(call_id="c1", name="look", arguments="{}"),)
    assert answer.tokens is not None
    assert answer.tokens.total_tokens == 4


@pytest.mark.parametrize("status", ["failed", "incomplete", "cancelled"])
async def test_calls_of_a_response_that_is_not_whole_are_void(status: str) -> None:
    reply = response(
        calls=[("look", {})], status=status, incomplete_details={"reason": "max_output_tokens"}
    )
    async with asked([reply]) as (client, _):
        answer = await client.answer(ASK, CLOCK)
    assert (answer.status, answer.calls) == (status, ())
    assert answer.problem == "max_output_tokens"


# -- what goes wrong --------------------------------------------------------


async def test_a_redirect_is_refused_and_the_key_stays_home() -> None:
    with serving(in_turn([response("stolen")])) as other:
        moved = Reply(status=307, headers={"Location": f"{other.url}/responses"})
        async with asked([moved]) as (client, _):
            with pytest.raises(ModelError, match="redirected") as refused:
                await client.answer(ASK, CLOCK)
        assert refused.value.code == "redirect"
        assert other.asked == []


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(raw=b"<html>"), "unreadable"),
        (Reply({"id": 7}), "unreadable"),
        (Reply({"id": "r", "status": "dreaming"}), "unreadable"),
        (Reply(raw=b" " * (5 << 20)), "too_long"),
        (Reply(raw=b"x", headers={"Content-Encoding": "gzip"}), "unreadable"),
        (Reply(raw=b"data: {}\n\n", headers={"Content-Type": "text/event-stream"}), "unreadable"),
        (error(401, "invalid_api_key"), "invalid_api_key"),
        (error(429, "insufficient_quota"), "rate_limited"),
    ],
)
async def test_what_cannot_be_used_is_an_error_with_a_code(reply: Reply, code: str) -> None:
    async with asked([reply]) as (client, fake):
        with pytest.raises(ModelError) as refused:
            await client.answer(ASK, CLOCK)
    assert refused.value.code == code
    assert len(fake.asked) == 1


async def test_a_server_that_is_not_there_is_tried_again_and_then_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asking, "real_pause", pause)
    where = ModelPlace(url="http://127.0.0.1:9/v1", model="m")
    async with ModelClient(where) as client:
        with pytest.raises(ModelError, match="cannot be reached") as refused:
            await client.answer(ASK, CLOCK)
    assert refused.value.code == "unreachable"
    assert pauses == sorted(pauses)
    assert len(pauses) == asking.ATTEMPTS - 1


# -- rate limits ------------------------------------------------------------


async def test_a_429_is_waited_out_and_told() -> None:
    waits: list[Waited] = []
    limited = error(429, "rate_limit_exceeded", retry_after_ms="30")
    async with asked([limited, limited, response("hi")]) as (client, fake):
        answer = await client.answer(ASK, CLOCK, waits.append)
    assert answer.text == "hi"
    assert len(fake.asked) == 3
    assert [one.status for one in waits] == [429, 429]
    assert all(0 < one.seconds <= 0.03 for one in waits)


async def test_all_calls_leave_a_host_alone_that_asked_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]

    async def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(asking, "real_pause", pause)
    monkeypatch.setattr(asking, "wall_seconds", lambda: now[0])
    limiter = Limiter()
    limiter.refused(ModelPlace(url="http://127.0.0.1:1/v1", model="m").host, now[0], 50)
    waits: list[Waited] = []
    with serving(in_turn([response("hi")])) as fake:
        where = ModelPlace(url=fake.url, model="m")
        limiter.refused(where.host, now[0], 7)
        async with ModelClient(where, limiter) as client:
            await client.answer(ASK, CLOCK, waits.append)
    assert [(one.seconds, one.status) for one in waits] == [(7.0, None)]


async def test_a_host_that_wants_too_much_time_is_given_up() -> None:
    limited = error(429, "rate_limit_exceeded", retry_after="3000")
    async with asked([limited]) as (client, fake):
        client._limiter.refused(client.where.host, wall_seconds() + 1e6, 60)
        with pytest.raises(ModelError, match="more than 120 s"):
            await client.answer(ASK, CLOCK)
    assert fake.asked == []


def test_pauses_double_and_never_exceed_the_longest() -> None:
    limiter = Limiter(seed=3)
    waits = [limiter.refused("h", 0.0, None) for _ in range(12)]
    assert waits == sorted(waits)
    assert 0.5 <= waits[0] <= 0.625
    assert waits[-1] == LONGEST_SECONDS
    limiter.served("h")
    assert limiter.refused("h", 1000.0, None) <= 0.625
    assert limiter.wait("other", 0.0) == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, 60.0) == seconds


# -- where a model may be ---------------------------------------------------


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://example.com/v1", "in plain text"),
        ("ftp://example.com", "neither http nor https"),
        ("example.com", "is no url"),
        ("https://user:secret@example.com/v1", "is no url"),
        ("https://example.com/v1?key=secret", "is no url"),
        ("http://[::1", "is no url"),
    ],
)
def test_places_that_may_not_be_asked_are_refused_without_their_secrets(
    url: str, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint) as refused:
        place("backend-url", url, "m", environment={})
    assert "secret" not in str(refused.value)


def test_keys_go_only_where_they_belong() -> None:
    both = {"OPENAI_API_KEY": "theirs", "DUPLEX_BACKEND_API_KEY": "own"}
    theirs = {"OPENAI_API_KEY": "theirs"}

    def key(url: str | None, environment: dict[str, str]) -> str:
        return place("backend-url", url, "m", environment=environment).key

    assert key(None, theirs) == "theirs"
    assert key(None, both) == "own"
    assert key("https://example.com/v1", theirs) == ""
    assert key("https://example.com/v1", both) == "own"
    assert key("http://127.0.0.1:8000/v1", theirs) == ""
    proxied = {**theirs, "OPENAI_BASE_URL": "https://proxy.example/v1"}
    assert key("https://proxy.example/v1", proxied) == "theirs"
    assert "theirs" not in repr(place("x", None, "m", environment=theirs))
    with pytest.raises(InputError, match="needs a key"):
        key(None, {})


def test_plain_http_elsewhere_must_be_allowed() -> None:
    assert place("x", "http://example.com/v1", "m", insecure=True, environment={}).model == "m"


async def test_live_a_wait_that_would_be_heard_takes_the_call_out_of_the_count() -> None:
    limited = error(429, "rate_limit_exceeded", retry_after_ms="1050")
    told: list[Happening] = []
    async with asked([limited, response("Free.")]) as (client, _):
        backend = ModelBackend(application, {}, client)
        with pytest.raises(BackendFailed, match="made this call wait") as failed:
            await backend.handle("d1", [], WallClock(24_000), told.append)
        assert (failed.value.code, failed.value.fatal) == ("rate_limited", True)
        again = ModelBackend(application, {}, client)
        assert await again.handle("d1", [], WallClock(24_000), told.append) == ["Free."]
    assert [one.fields["status"] for one in told if one.type == "backend.waited"] == [429]


async def test_after_a_failure_a_backend_sends_everything_again_without_calls_that_hang() -> None:
    replies = [
        response(calls=[("check_availability", {})], name="r1"),
        response(status="incomplete", name="r2"),
        response("Done.", name="r3"),
    ]
    clock = WallClock(24_000)
    line = Line(role="user", text="A table, please.", start_ms=0)
    more = Line(role="user", text="A table, please. For two.", start_ms=0)
    async with asked(replies) as (client, fake):
        backend = ModelBackend(application, {}, client)
        with pytest.raises(BackendFailed, match="incomplete"):
            await backend.handle("d1", [line], clock, lambda told: None)
        assert await backend.handle("d2", [more], clock, lambda told: None) == ["Done."]
    sent = fake.asked[2].body
    assert "previous_response_id" not in sent
    items = sent["input"]
    assert isinstance(items, list)
    kinds = [item["type"] for item in items if isinstance(item, dict)]
    assert kinds == ["message"] * 2 + ["function_call", "function_call_output"] + ["message"] * 2

"""What models and clients of the Responses API may send, read without ever failing."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.application.schema import problems
from duplex.local.http_desk import BODY_LIMIT, Answered, Head, HttpDesk
from duplex.local.responses_http import ResponsesDesk
from duplex.protocols import chat_completions, responses
from duplex.protocols.gpt_live import Broken
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.model_values import (
    CALLS_LIMIT,
    TEXT_LIMIT,
    Answer,
    Ask,
    Call,
    Function,
    Message,
    Output,
)
from duplex.protocols.responses_server import (
    KEPT,
    Memory,
    Wanted,
    read_request,
    resource,
    stream_events,
)
from duplex.protocols.server_sent import EVENT_LIMIT, EventReader, write_event
from duplex.protocols.strict_schema import strict_schema, without_nulls
from duplex.values import Json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)
CALL: dict[str, Json] = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def bent(shape: dict[str, st.SearchStrategy[Json] | Json]) -> st.SearchStrategy[dict[str, Json]]:
    """An object of this shape in which anything may be missing or something else."""
    fields: dict[str, st.SearchStrategy[Json]] = {}
    for name, inner in shape.items():
        fits = inner if isinstance(inner, st.SearchStrategy) else st.just(inner)
        fields[name] = st.one_of(fits, JSON)
    return st.fixed_dictionaries({}, optional=fields)


PARTS = bent({"type": "output_text", "text": "hello", "refusal": "no"})
ITEMS = bent(
    {
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning"]),
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": st.lists(PARTS, max_size=2) | st.just("hi"),  # type: ignore[dict-item]
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
        "output": "{}",
        "status": "completed",
    }
)
RESPONSES = bent(
    {
        "id": "resp_1",
        "status": st.sampled_from(["completed", "failed", "incomplete", "cancelled", "queued"]),
        "output": st.lists(ITEMS, max_size=3),
        "usage": bent({"input_tokens": 3, "input_tokens_details": {"cached_tokens": 1}}),
        "error": {"message": "x"},
        "incomplete_details": {"reason": "y"},
    }
)


@settings(max_examples=120, deadline=None)
@given(RESPONSES)
def test_no_response_breaks_its_reader(body: dict[str, Json]) -> None:
    answer = responses.read_answer(json.dumps(body).encode())
    if isinstance(answer, Answer):
        assert answer.status == "completed" or not answer.calls
        json.dumps([answer.text, *(call.arguments for call in answer.calls)]).encode("utf-8")
        again = responses.read_response(resource(answer, {}, 0))
        assert isinstance(again, Answer)
        assert again.calls == answer.calls


@settings(max_examples=80, deadline=None)
@given(
    bent(
        {
            "id": "c",
            "choices": st.lists(
                bent(
                    {
                        "finish_reason": st.sampled_from(["stop", "tool_calls", "length"]),
                        "message": bent(
                            {
                                "content": "hi",
                                "tool_calls": st.lists(
                                    bent(
                                        {
                                            "id": "c",
                                            "function": bent({"name": "f", "arguments": ""}),
                                        }
                                    ),
                                    max_size=2,
                                ),
                            }
                        ),
                    }
                ),
                max_size=2,
            ),
            "usage": bent({"prompt_tokens": 3, "completion_tokens_details": {}}),
        }
    )
)
def test_no_completion_breaks_its_reader(body: dict[str, Json]) -> None:
    answer = chat_completions.read_answer(json.dumps(body))
    assert isinstance(answer, (Answer, Broken))


@given(st.binary(max_size=200))
def test_no_bytes_break_a_reader(data: bytes) -> None:
    assert isinstance(responses.read_answer(data), (Answer, Broken))
    assert isinstance(chat_completions.read_answer(data), (Answer, Broken))


@settings(max_examples=120, deadline=None)
@given(
    bent(
        {
            "model": "local",
            "input": st.lists(ITEMS, max_size=4) | st.just("hello"),  # type: ignore[dict-item]
            "instructions": "be brief",
            "tools": st.lists(
                bent({"type": "function", "name": "f", "parameters": {"type": "object"}}),
                max_size=2,
            ),
            "tool_choice": JSON,
            "previous_response_id": st.sampled_from(["known", "unknown"]),
            "stream": st.booleans(),
            "reasoning": bent({"effort": "low"}),
        }
    )
)
def test_no_request_breaks_the_server(body: dict[str, Json]) -> None:
    memory = Memory()
    memory.keep("known", (Message(role="user", text="hello"),))
    wanted = read_request(body, memory)
    if isinstance(wanted, Problem):
        assert wanted.param
        json.dumps(wanted.message).encode("utf-8")
        return
    desk = ResponsesDesk("/v1", lambda _: True)
    head = Head(method="POST", target="/v1/responses", headers={})
    answered = desk.respond(head, json.dumps(body).encode())
    assert answered.status in (200, 404)
    b"".join(answered.body)


# -- bounds -----------------------------------------------------------------


def test_a_response_with_too_many_calls_runs_none() -> None:
    output: list[Json] = [{**CALL, "call_id": f"c{n}"} for n in range(CALLS_LIMIT + 1)]
    answer = responses.read_response({"id": "r", "status": "completed", "output": output})
    assert isinstance(answer, Answer)
    assert (answer.status, answer.calls) == ("failed", ())
    assert str(CALLS_LIMIT) in answer.problem


def test_too_long_words_and_arguments_are_refused() -> None:
    long = "x" * (TEXT_LIMIT + 1)
    part: Json = {"type": "output_text", "text": long}
    for item in ({"type": "message", "content": [part]}, {**CALL, "arguments": long}):
        answer = responses.read_response({"id": "r", "output": [item]})  # type: ignore[list-item]
        assert isinstance(answer, Answer)
        assert answer.status == "failed"
        assert answer.text == ""


def test_a_call_that_is_told_twice_is_made_once() -> None:
    answer = responses.read_response({"id": "r", "output": [CALL, dict(CALL)]})
    assert isinstance(answer, Answer)
    assert answer.calls == (Call(call_id="c", name="f", arguments="{}"),)


def test_the_oldest_response_is_forgotten_first() -> None:
    memory = Memory()
    for number in range(KEPT + 1):
        memory.keep(f"r{number}", ())
    assert memory.recall("r0") is None
    assert memory.recall(f"r{KEPT}") == ()


# -- both halves together ---------------------------------------------------

ASK = Ask(
    model="m",
    instructions="be brief",
    items=(
        Message(role="user", text="hello"),
        Call(call_id="c", name="f", arguments="{}"),
        Output(call_id="c", text="1"),
        Message(role="assistant", text="there"),
        Message(role="developer", text="note"),
    ),
    functions=(Function(name="f", description="d", parameters={"type": "object"}),),
    must_call="f",
    effort="low",
    max_output_tokens=9,
)


def test_what_the_client_writes_the_server_reads() -> None:
    wanted = read_request(responses.request(ASK, stream=True), Memory())
    assert isinstance(wanted, Wanted)
    assert wanted.stream
    assert wanted.ask.items == ASK.items
    assert (wanted.ask.must_call, wanted.ask.effort) == ("f", "low")
    assert (wanted.ask.instructions, wanted.ask.max_output_tokens) == ("be brief", 9)


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(0, 3), st.lists(st.integers(1, 900), min_size=1))
def test_a_stream_cut_anywhere_gives_the_answer_back(
    text: str, calls: int, sizes: list[int]
) -> None:
    answer = Answer(
        response_id="resp_1",
        status="completed",
        text=text.strip().encode("utf-8", "replace").decode(),
        calls=tuple(Call(call_id=f"c{n}", name="f", arguments="{}") for n in range(calls)),
    )
    stream = b"".join(write_event(event) for event in stream_events(answer, {}, 0))
    reader, events = EventReader(), responses.StreamReader()
    over: list[Answer | Broken] = []
    for size in itertools.cycle(sizes):
        piece, stream = stream[:size], stream[size:]
        for event in reader.take(piece):
            assert not isinstance(event, Broken)
            if (end := events.take(event)) is not None:
                over.append(end)
        if not stream:
            break
    assert over == [answer]


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_no_stream_of_bytes_breaks_the_event_reader(chunks: list[bytes]) -> None:
    reader = EventReader()
    for chunk in chunks:
        for event in reader.take(chunk):
            assert isinstance(event, (dict, Broken))


def test_an_endless_event_is_given_up() -> None:
    reader = EventReader()
    found = [event for _ in range(40) for event in reader.take(b"data:" + b"x" * (1 << 16))]
    assert len(found) == 1
    assert isinstance(found[0], Broken)
    lines = EventReader()
    many = [event for _ in range(40) for event in lines.take(b"data:\n" * (1 << 16))]
    assert [type(event) for event in many[:1]] == [Broken]
    assert EVENT_LIMIT < 40 << 16


# -- strict schemas ---------------------------------------------------------

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "minLength": 1, "format": "date"},
        "seat": {"type": "string", "enum": ["bar", "hall"]},
        "more": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "none": {"type": ["string", "null"]},
    },
    "required": ["day"],
}


def test_arguments_that_fit_the_strict_schema_fit_the_tools_own() -> None:
    strict = strict_schema(SCHEMA)
    assert strict["required"] == ["day", "seat", "more", "none"]
    assert strict["properties"]["day"] == {"type": "string", "format": "date"}  # type: ignore[index, call-overload]
    given: dict[str, Json] = {
        "day": "2026-08-07",
        "seat": None,
        "more": {"n": None},
        "none": None,
    }
    kept = without_nulls(SCHEMA, given)
    assert kept == {"day": "2026-08-07", "more": {}, "none": None}
    assert problems(SCHEMA, kept) == []
    assert without_nulls(SCHEMA, {"day": None}) == {"day": None}, "what is required stays wrong"


# -- the desk ---------------------------------------------------------------


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def desk() -> tuple[HttpDesk, Wire]:
    wire = Wire()
    answered = Answered(status=200, body=(b"{}",))
    return HttpDesk(wire, lambda head: None, lambda head, body: answered), wire


@settings(max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=80) | st.just(b"POST /v1/responses HTTP/1.1\r\n"), max_size=5))
async def test_no_bytes_break_the_desk(chunks: list[bytes]) -> None:
    made, wire = desk()
    for chunk in chunks:
        made.data_received(chunk)
    made.gone()
    assert wire.written == b"" or wire.written.startswith(b"HTTP/1.1 ")


async def test_a_body_that_is_waited_for_is_asked_for_and_bounded() -> None:
    made, wire = desk()
    made.data_received(
        b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    assert wire.written.startswith(b"HTTP/1.1 100")
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(BODY_LIMIT // 0x10000 + 1):
        made.data_received(piece)
    assert b"HTTP/1.1 413" in wire.written
    made.data_received(piece)


@pytest.mark.parametrize("cut", [1, 20, 60])
async def test_a_request_may_come_in_pieces(cut: int) -> None:
    whole = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    made, wire = desk()
    for start in range(0, len(whole), cut):
        made.data_received(whole[start : start + cut])
    assert wire.written.startswith(b"HTTP/1.1 200")
    assert wire.closed

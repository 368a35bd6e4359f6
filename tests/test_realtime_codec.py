"""The Realtime wire: settings, what is read, what is refused; no message breaks either half."""

from __future__ import annotations

import base64
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.errors import InputError
from duplex.participants.realtime_door import realtime_url
from duplex.participants.realtime_replies import OPEN_LIMIT, REMEMBERED, Replies
from duplex.protocols.gpt_live import Broken
from duplex.protocols.model_values import Function
from duplex.protocols.realtime import RealtimeConfig, audio_format
from duplex.protocols.realtime_client import RealtimeCodec
from duplex.protocols.realtime_events import (
    Audio,
    FunctionCall,
    HeardWords,
    ItemBegun,
    Notice,
    Opened,
    Refusal,
    ResponseDone,
    SaidWords,
    SpeechEdge,
    Unknown,
)
from duplex.protocols.realtime_server import (
    Commit,
    Hear,
    Output,
    RealtimeMachine,
    Reply,
    Respond,
    Told,
    Truncate,
)
from duplex.values import Json

Event = dict[str, Json]
ramp = np.arange(-500, 500, dtype=np.int16)


def codec(encoding: str = "pcm") -> RealtimeCodec:
    return RealtimeCodec(audio_format(encoding))


def machine() -> RealtimeMachine:
    return RealtimeMachine(session_id="sess_000001", model="gpt-realtime-2", expires_at=9)


def read(**event: Json) -> object:
    return codec().receive(json.dumps(event))


def take(server: RealtimeMachine, **event: Json) -> list[object]:
    return list(server.receive(json.dumps(event)))


def refusal(effects: list[object]) -> str:
    """The code of the one error in ``effects``."""
    (effect,) = effects
    assert isinstance(effect, Reply)
    event = json.loads(effect.text)
    assert event["type"] == "error"
    return str(event["error"]["code"])


# -- settings -----------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["pcm", "pcmu", "pcma"])
@pytest.mark.parametrize("turns", ["server_vad", "semantic_vad", "manual"])
def test_a_server_settles_on_what_a_client_asks_for(encoding: str, turns: str) -> None:
    tool = Function(name="book", description="Book.", parameters={"type": "object"})
    config = RealtimeConfig(
        voice="cedar",
        instructions="Be kind.",
        tools=(tool,),
        turn_detection=turns,  # type: ignore[arg-type]
        encoding=encoding,  # type: ignore[arg-type]
    )
    server = machine()
    server.receive(codec(encoding).update(config))
    settled = server.settings
    assert (settled.voice, settled.instructions) == ("cedar", "Be kind.")
    assert settled.vad == (None if turns == "manual" else turns)
    assert settled.heard == settled.said == audio_format(encoding)
    assert settled.tool_names == {"book"}
    assert settled.transcription == "gpt-4o-mini-transcribe"
    opened = codec().receive(server.say_created())
    assert isinstance(opened, Opened)
    assert (opened.session_id, opened.voice, opened.updated) == ("sess_000001", "cedar", False)


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"type": "realtime", "colour": 1}, "session.colour"),
        ({"type": "transcription"}, "session.type"),
        ({"type": "realtime", "tools": [3]}, "session.tools"),
        ({"type": "realtime", "instructions": 3}, "session.instructions"),
        ({"type": "realtime", "audio": 3}, "session.audio"),
        (
            {"type": "realtime", "audio": {"output": {"voice": "nova"}}},
            "session.audio.output.voice",
        ),
        (
            {"type": "realtime", "audio": {"input": {"format": {"type": "audio/mp3"}}}},
            "session.audio.input.format.type",
        ),
        (
            {
                "type": "realtime",
                "audio": {"input": {"format": {"type": "audio/pcm", "rate": 8000}}},
            },
            "session.audio.input.format.rate",
        ),
        (
            {"type": "realtime", "audio": {"input": {"turn_detection": {"type": "ears"}}}},
            "session.audio.input.turn_detection.type",
        ),
        ("none", "session"),
    ],
)
def test_settings_that_cannot_be_change_nothing(session: Json, param: str) -> None:
    server = machine()
    before = server.settings
    (effect,) = take(server, type="session.update", event_id="mine", session=session)
    assert isinstance(effect, Reply)
    error = json.loads(effect.text)["error"]
    assert (error["param"], error["event_id"]) == (param, "mine")
    assert server.settings is before


# -- reading ------------------------------------------------------------------


def test_audio_travels_both_ways_unchanged() -> None:
    client, server = codec(), machine()
    (heard,) = server.receive(client.append(ramp))
    assert isinstance(heard, Hear)
    assert np.array_equal(heard.pcm, ramp)
    server.say_response()
    said = client.receive(server.say_audio(server.new_item(audio=True), 0, ramp))
    assert isinstance(said, Audio)
    assert np.array_equal(said.pcm, ramp)


def test_half_a_sample_is_carried_within_an_item_and_never_into_another() -> None:
    client = codec()

    def delta(item_id: str, data: bytes) -> list[int]:
        event = {
            "type": "response.output_audio.delta",
            "item_id": item_id,
            "delta": base64.b64encode(data).decode(),
        }
        message = client.receive(json.dumps(event))
        assert isinstance(message, Audio)
        return [int(sample) for sample in message.pcm]

    assert delta("a", b"\x01\x00\x02") == [1]
    assert delta("a", b"\x00\x03") == [2]
    assert delta("b", b"\x04\x00") == [4]
    assert client.end() == 1


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("response.audio_transcript.delta", "response.output_audio_transcript.delta"),
        ("response.audio_transcript.done", "response.output_audio_transcript.done"),
    ],
)
def test_the_names_of_the_first_version_are_read_as_todays(former: str, now: str) -> None:
    event: Event = {"response_id": "r", "item_id": "i", "delta": " hi", "transcript": " hi"}
    assert read(**event, type=former) == read(**event, type=now)
    assert isinstance(read(**event, type=now), SaidWords)


def test_messages_become_values_by_their_type() -> None:
    edge = read(type="input_audio_buffer.speech_started", item_id="i", audio_start_ms=40.0)
    assert edge == SpeechEdge(started=True, item_id="i", at_ms=40)
    heard = read(
        type="conversation.item.input_audio_transcription.completed", item_id="i", transcript="x"
    )
    assert heard == HeardWords(item_id="i", text="x")
    message: Json = {"id": "i", "type": "message"}
    begun = read(type="response.output_item.added", response_id="r", item=message)
    assert begun == ItemBegun(response_id="r", item_id="i")
    assert isinstance(read(type="rate_limits.updated"), Notice)
    assert read(type="response.unheard_of") == Unknown(type="response.unheard_of")
    failed: Json = {"code": "audio_unintelligible", "message": "no"}
    unheard = read(type="conversation.item.input_audio_transcription.failed", error=failed)
    assert isinstance(unheard, Refusal)
    assert unheard.about == "transcription"


@pytest.mark.parametrize(
    ("item", "called"),
    [
        ({"status": "completed", "call_id": "c", "arguments": "{}"}, True),
        ({"call_id": "c"}, True),
        ({"status": "incomplete", "call_id": "c", "arguments": '{"a'}, False),
        ({"status": "completed"}, False),
    ],
)
def test_only_finished_function_calls_are_called(item: Event, called: bool) -> None:
    whole: Json = {"type": "function_call", "name": "f", **item}
    message = read(type="response.output_item.done", response_id="r", item=whole)
    assert isinstance(message, FunctionCall) is called


def test_a_finished_response_says_why_and_what_it_took() -> None:
    response: Json = {
        "id": "r",
        "status": "failed",
        "status_details": {"type": "failed", "error": {"type": "x", "code": "rate_limit_exceeded"}},
        "usage": {"input_tokens": 3, "output_tokens": True, "total_tokens": -1},
        "output": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, 3],
    }
    done = read(type="response.done", response=response)
    assert isinstance(done, ResponseDone)
    assert (done.status, done.code) == ("failed", "rate_limit_exceeded")
    assert done.usage is not None
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.total_tokens) == (
        3,
        None,
        None,
    )
    assert [call.call_id for call in done.calls] == ["c"]


# -- what the server refuses --------------------------------------------------


def test_nothing_is_truncated_at_zero_beyond_its_length_or_without_audio() -> None:
    server = machine()
    server.say_response()
    item_id = server.new_item(audio=True)
    server.say_audio(item_id, 0, np.zeros(24_000, np.int16))

    def truncate(end: Json, item: str = item_id, content: int = 0) -> list[object]:
        return take(
            server,
            type="conversation.item.truncate",
            item_id=item,
            content_index=content,
            audio_end_ms=end,
        )

    for wrong in (0, 1_001, -5, 400.5, True, None, "400"):
        assert refusal(truncate(wrong)) == "invalid_value"
    assert refusal(truncate(400, item="item_other")) == "invalid_value"
    assert refusal(truncate(400, content=1)) == "invalid_value"
    assert truncate(1_000)[1] == Truncate(item_id=item_id, audio_end_ms=1_000)


def test_there_is_one_response_at_a_time() -> None:
    server = machine()
    assert take(server, type="response.create") == [Respond()]
    server.say_response()
    busy = "conversation_already_has_active_response"
    assert refusal(take(server, type="response.create")) == busy
    server.say_response_done("completed", [])
    assert refusal(take(server, type="response.cancel")) == "response_cancel_not_active"


def test_an_output_answers_a_call_that_was_made_once() -> None:
    server, client = machine(), codec()
    assert refusal(list(server.receive(client.output("c", "{}")))) == "invalid_tool_call_id"
    server.say_response()
    server.say_call(server.new_item(), 0, "c", "f", "{}")
    assert list(server.receive(client.output("c", "{}")))[1] == Output(call_id="c", output="{}")
    assert refusal(list(server.receive(client.output("c", "{}")))) == "invalid_tool_call_id"


def test_an_empty_turn_cannot_be_committed() -> None:
    server, client = machine(), codec()
    commit = json.dumps({"type": "input_audio_buffer.commit"})
    assert refusal(list(server.receive(commit))) == "input_audio_buffer_commit_empty"
    server.receive(client.append(np.zeros(2_400, np.int16)))
    assert isinstance(server.receive(commit)[1], Commit)
    assert list(server.receive(client.message("system", "Say hi.")))[1] == Told(
        role="system", text="Say hi."
    )


# -- no message breaks either half --------------------------------------------

texts = st.text(max_size=12) | st.just("\ud83d") | st.just("AAAA")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
names = st.sampled_from(
    [
        "id",
        "item",
        "item_id",
        "response",
        "response_id",
        "session",
        "audio",
        "delta",
        "transcript",
        "error",
        "status",
        "status_details",
        "usage",
        "output",
        "call_id",
        "arguments",
        "audio_start_ms",
        "audio_end_ms",
        "content_index",
        "type",
    ]
)
fields = st.dictionaries(names, values | st.dictionaries(names, values, max_size=4), max_size=6)
server_types = st.sampled_from(sorted([*codec()._readers, "response.audio.delta", "nothing"]))
client_types = st.sampled_from(sorted([*machine()._readers, "nothing"]))


@settings(max_examples=100, deadline=None)
@given(server_types, fields)
def test_no_server_message_breaks_the_client(kind: str, event: Event) -> None:
    client = codec()
    message = client.receive(json.dumps({**event, "type": kind}))
    assert message is not None
    # Whatever was read can be written anywhere.
    repr(message).encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(client_types, fields), max_size=4))
def test_no_client_message_breaks_the_server(events: list[tuple[str, Event]]) -> None:
    server = machine()
    for kind, event in events:
        for effect in server.receive(json.dumps({**event, "type": kind})):
            if isinstance(effect, Reply):
                json.loads(effect.text)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80) | st.text(max_size=80))
def test_noise_is_told_and_never_raised(noise: bytes | str) -> None:
    assert isinstance(codec().receive(noise), Broken | Unknown)
    assert all(isinstance(effect, Reply) for effect in machine().receive(noise))


ids = st.sampled_from(["a", "b", "c", ""])
steps = st.one_of(
    st.tuples(st.just("audio"), ids, ids, st.integers(0, 3_000)),
    st.tuples(st.just("words"), ids, ids, st.integers(0, 9)),
    st.tuples(st.just("begun"), ids, ids, st.just(0)),
    st.tuples(st.just("audio_done"), ids, ids, st.just(0)),
    st.tuples(st.just("response_done"), ids, ids, st.just(0)),
    st.tuples(st.just("take"), ids, ids, st.integers(1, 2_000)),
    st.tuples(st.just("interrupt"), ids, ids, st.just(0)),
    st.tuples(st.just("reject"), ids, ids, st.just(0)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=60))
def test_every_sample_is_heard_or_dropped_and_nothing_cut_was_heard_out(
    course: list[tuple[str, str, str, int]],
) -> None:
    replies = Replies(24_000, 24_000)
    came = heard = dropped = 0
    for kind, item_id, response_id, number in course:
        match kind:
            case "audio":
                came += number
                replies.audio(item_id, response_id, np.ones(number, np.int16), None)
            case "words":
                replies.words(item_id, response_id, "ab " * number, whole=number > 5)
            case "begun":
                replies.begun(item_id, response_id)
            case "audio_done":
                replies.audio_done(item_id)
            case "response_done":
                replies.response_done(response_id)
            case "take":
                spoken = replies.take(number)
                heard += len(spoken.pcm) if spoken else 0
            case "interrupt":
                for cut in replies.interrupt():
                    assert cut.heard_ms <= cut.received_ms
                assert not replies.speaking
                assert replies.waiting == 0
            case "reject":
                replies.reject(response_id)
        dropped += replies.take_dropped()
    assert came == heard + dropped + replies.waiting


def test_a_flood_of_items_is_bounded() -> None:
    replies = Replies(24_000, 24_000)
    tracemalloc.start()
    for n in range(3 * REMEMBERED):
        replies.audio(f"item {n}", f"response {n}", np.ones(10, np.int16), None)
        replies.words(f"item {n}", f"response {n}", "word " * 100, whole=False)
        if n == REMEMBERED:
            replies.interrupt()
            replies.take_told()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 2_000 * (OPEN_LIMIT + 2 * REMEMBERED)


# -- where it is ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://api.openai.com/v1", "wss://api.openai.com/v1/realtime?model=m"),
        ("ws://127.0.0.1:80/v1/realtime", "ws://127.0.0.1:80/v1/realtime?model=m"),
        ("http://localhost:9/v1/", "ws://localhost:9/v1/realtime?model=m"),
        ("wss://h/v1?model=other", "wss://h/v1/realtime?model=other"),
        ("wss://h/realtime?api-version=1", "wss://h/realtime?api-version=1&model=m"),
    ],
)
def test_an_endpoint_may_be_a_base_or_the_place_itself(endpoint: str, url: str) -> None:
    assert realtime_url(endpoint, "m") == url


@pytest.mark.parametrize(
    "endpoint",
    ["", "api.openai.com", "ftp://h/v1", "wss://", "wss://h:99999/v1", "ws://example.com/v1"],
)
def test_no_url_and_no_key_in_the_clear(endpoint: str) -> None:
    with pytest.raises(InputError, match="endpoint"):
        realtime_url(endpoint, "m")

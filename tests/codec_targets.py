"""What both fuzzers drive: every codec of ``protocols/`` as a function of bytes.

A target takes what a peer might send and checks that the codec answers with its own
values, of bearable size; anything that is raised is a finding. Messages of a stateful
codec stand one a line. ``test_codec_fuzz.py`` (hypothesis, in the suite) and
``bench/fuzz_codecs.py`` (atheris, coverage guided) drive them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

import numpy as np

from duplex.errors import InputError
from duplex.protocols import (
    agent_stream,
    chat_completions,
    g711,
    gpt_live_client,
    gpt_live_server,
    realtime_client,
    realtime_events,
    realtime_server,
    remote_work,
    responses,
    responses_server,
    side_channel,
)
from duplex.protocols.dtmf import KeyEar
from duplex.protocols.gpt_live import AudioFormat, Broken, read_object, split_text
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.model_values import Answer
from duplex.protocols.pcm import PcmStream, format_of
from duplex.protocols.pcm_bytes import SampleCarry
from duplex.protocols.server_sent import EventReader
from duplex.protocols.strict_schema import strict_schema, without_nulls
from duplex.values import Json

IDS = StreamIds.drawn(7)
LONGEST = 64
"""Times as long as what came in, plus a MiB: more than a codec may make of it."""


def _bounded(came: bytes, found: Iterable[object]) -> None:
    """Fail when a codec answers with far more than it was given."""
    size = sum(len(repr(one)) for one in found)
    assert size <= LONGEST * len(came) + (1 << 20), size


def _each(data: bytes) -> list[str | bytes]:
    """A line each: text where it is UTF-8, as a websocket would have it, else binary."""
    found: list[str | bytes] = []
    for line in data.split(b"\n")[:64]:
        try:
            found.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            found.append(line)
    return found


def gpt_live_as_client(data: bytes) -> None:
    for audio in (AudioFormat(), AudioFormat(type="audio/pcmu", rate_hz=8000)):
        codec = gpt_live_client.ClientCodec(audio)
        found = [codec.receive(message) for message in _each(data)]
        assert all(isinstance(one, get_args(gpt_live_client.ServerMessage)) for one in found)
        _bounded(data, found)
        codec.end()


def gpt_live_as_server(data: bytes) -> None:
    session = gpt_live_server.ServerSession(session_id="sess_fuzz", expires_at=1)
    for message in _each(data):
        effects = session.receive(message)
        assert all(isinstance(one, get_args(gpt_live_server.Effect)) for one in effects)
        _bounded(message if isinstance(message, bytes) else message.encode(), effects)
        for one in effects:
            if isinstance(one, gpt_live_server.Begin):
                session.say_started()
                session.new_delegation()


def realtime_as_client(data: bytes) -> None:
    codec = realtime_client.RealtimeCodec(AudioFormat())
    found = [codec.receive(message) for message in _each(data)]
    assert all(isinstance(one, get_args(realtime_events.ServerMessage)) for one in found)
    _bounded(data, found)
    codec.end()


def realtime_as_server(data: bytes) -> None:
    machine = realtime_server.RealtimeMachine(session_id="sess_fuzz", model="m", expires_at=1)
    item = machine.new_item(audio=True)
    machine.say_audio(item, 0, np.zeros(2400, np.int16))
    machine.say_call(item, 0, "call_1", "look", "{}")
    for message in _each(data):
        effects = machine.receive(message)
        assert all(isinstance(one, get_args(realtime_server.Effect)) for one in effects)
        _bounded(message if isinstance(message, bytes) else message.encode(), effects)


def media_stream(data: bytes) -> None:
    _dialect(MediaStream(IDS), data)


def raw_pcm(data: bytes) -> None:
    _dialect(PcmStream(), data)


def _dialect(dialect: agent_stream.Dialect, data: bytes) -> None:
    found = [dialect.receive(message) for message in (*_each(data), data)]
    assert all(isinstance(one, (*get_args(agent_stream.AgentMessage), Broken)) for one in found)
    _bounded(data, found)
    dialect.end()


def pcm_address(data: bytes) -> None:
    try:
        form = format_of("ws://host/?" + data.decode("latin-1"))
    except InputError:
        return
    assert 0 < form.frame <= 48_000 // 5


def remote_service(data: bytes) -> None:
    reply = remote_work.read_reply(data)
    assert isinstance(reply, remote_work.WorkReply | Broken)
    found = [remote_work.read_message(message) for message in _each(data)]
    assert all(isinstance(one, get_args(remote_work.Message)) for one in found)
    _bounded(data, [reply, *found])


def side_reports(data: bytes) -> None:
    value = read_object(data)
    if not isinstance(value, Broken):
        report = side_channel.read_report(value, len(data))
        assert isinstance(report, (*get_args(side_channel.Report), Broken))
        _bounded(data, [report])


def responses_answers(data: bytes) -> None:
    answers: list[Answer | Broken | None] = [responses.read_answer(data)]
    stream = responses.StreamReader()
    for message in _each(data):
        event = read_object(message)
        if not isinstance(event, Broken):
            answers.append(stream.take(event))
    assert all(one is None or isinstance(one, Answer | Broken) for one in answers)
    _bounded(data, answers)


def chat_answers(data: bytes) -> None:
    answer = chat_completions.read_answer(data)
    assert isinstance(answer, Answer | Broken)
    _bounded(data, [answer])


def server_sent(data: bytes) -> None:
    whole, pieces = EventReader(), EventReader()
    found = whole.take(data)
    cut = [one for at in range(0, len(data), 7) for one in pieces.take(data[at : at + 7])]
    assert [repr(one) for one in found] == [repr(one) for one in cut]
    _bounded(data, found)


def responses_requests(data: bytes) -> None:
    memory = responses_server.Memory()
    memory.keep("resp_1", ())
    for message in _each(data):
        body = read_object(message)
        if isinstance(body, Broken):
            continue
        wanted = responses_server.read_request(body, memory)
        assert isinstance(wanted, responses_server.Wanted | Problem)
        if isinstance(wanted, responses_server.Wanted):
            answer = Answer(response_id="resp_2", status="completed", text="yes")
            events = list(responses_server.stream_events(answer, wanted.echo, 1))
            json.dumps([dict(event) for event in events], allow_nan=False)


def function_schemas(data: bytes) -> None:
    for message in _each(data):
        value = read_object(message)
        if isinstance(value, Broken):
            continue
        schema: Mapping[str, Json] = value
        strict = strict_schema(schema)
        without_nulls(strict, value)
        _bounded(data, [strict])


def samples(data: bytes) -> None:
    carry = SampleCarry(2)
    whole = b"".join(carry.align(data[at : at + 3]) for at in range(0, len(data), 3))
    assert whole == data[: len(data) // 2 * 2]
    assert carry.end() == len(data) % 2
    for law in ("mu", "a"):
        pcm = g711.decode(data, law)
        assert len(pcm) == len(data)
        assert np.array_equal(g711.decode(g711.encode(pcm, law), law), pcm)
    ear = KeyEar(160)
    pcm = np.frombuffer(whole, "<i2").astype(np.int16)
    for at in range(0, len(pcm) - 159, 160):
        assert len(ear.hear(pcm[at : at + 160])) <= 1


def long_texts(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    pieces = split_text(text, 500)
    assert "".join("".join(pieces).split()) == "".join(text.split())


Target = Callable[[bytes], None]
TARGETS: tuple[Target, ...] = (
    gpt_live_as_client,
    gpt_live_as_server,
    realtime_as_client,
    realtime_as_server,
    media_stream,
    raw_pcm,
    pcm_address,
    remote_service,
    side_reports,
    responses_answers,
    chat_answers,
    server_sent,
    responses_requests,
    function_schemas,
    samples,
    long_texts,
)

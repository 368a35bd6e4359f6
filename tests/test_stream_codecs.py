"""Twilio's messages, raw PCM and the side channel as pure codecs: facts, faults and fuzz."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.protocols import g711
from duplex.protocols.agent_stream import AgentAudio, Clear, Mark
from duplex.protocols.gpt_live import Broken
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmFormat, PcmStream, format_of
from duplex.protocols.side_channel import (
    CLAIMS,
    Claim,
    StateReport,
    ToolReport,
    read_report,
)
from duplex.values import Json

IDS = StreamIds.drawn(7)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)
REPORT_FIELDS = (
    *("at_ms", "ms", "text", "name", "call_id"),
    *("arguments", "status", "result", "error", "state"),
)
MEANINGS = (AgentAudio, Mark, Clear, Claim, ToolReport, StateReport, Broken)


def stream() -> MediaStream:
    return MediaStream(IDS)


def said(event: str, **fields: Json) -> str:
    return json.dumps({"event": event, "streamSid": IDS.stream, **fields})


# -- Twilio: what goes out --------------------------------------------------


def test_ids_have_the_form_of_twilios_and_come_from_the_seed() -> None:
    for prefix, one in (("MZ", IDS.stream), ("AC", IDS.account), ("CA", IDS.call)):
        assert one.startswith(prefix)
        assert len(one) == 34
        assert set(one[2:]) <= set("0123456789abcdef")
    assert StreamIds.drawn(7) == IDS
    assert StreamIds.drawn(8) != IDS


def test_a_stream_opens_with_connected_and_start() -> None:
    connected, start = map(json.loads, stream().opening())
    assert connected == {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    assert start["sequenceNumber"] == "1"
    assert start["streamSid"] == IDS.stream
    assert start["start"] == {
        "accountSid": IDS.account,
        "streamSid": IDS.stream,
        "callSid": IDS.call,
        "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        "customParameters": {"duplex": "1"},
    }


def test_media_carries_160_bytes_of_mu_law_and_20_ms_more_each_time() -> None:
    codec = stream()
    codec.opening()
    pcm = np.arange(-80, 80, dtype=np.int16) * 200
    first, second = (json.loads(codec.audio(pcm)) for _ in range(2))
    assert first["event"] == "media"
    assert (first["sequenceNumber"], second["sequenceNumber"]) == ("2", "3")
    assert (first["media"]["chunk"], second["media"]["chunk"]) == ("1", "2")
    assert int(second["media"]["timestamp"]) - int(first["media"]["timestamp"]) == 20
    assert first["media"]["track"] == "inbound"
    assert base64.b64decode(first["media"]["payload"]) == g711.encode(pcm, "mu")
    assert len(base64.b64decode(first["media"]["payload"])) == 160


def test_every_message_after_start_counts_on() -> None:
    codec = stream()
    messages = [*codec.opening(), codec.audio(np.zeros(160, np.int16)), codec.mark("m")]
    messages += [codec.dtmf("5"), *codec.closing()]
    counted = [json.loads(message) for message in messages][1:]
    assert [one["sequenceNumber"] for one in counted] == ["1", "2", "3", "4", "5"]
    assert [one["event"] for one in counted] == ["start", "media", "mark", "dtmf", "stop"]
    assert counted[2]["mark"] == {"name": "m"}
    assert counted[3]["dtmf"] == {"track": "inbound_track", "digit": "5"}
    assert counted[4]["stop"] == {"accountSid": IDS.account, "callSid": IDS.call}
    assert {one["streamSid"] for one in counted} == {IDS.stream}


# -- Twilio: what comes in --------------------------------------------------


def test_audio_marks_and_clears_are_read() -> None:
    pcm = np.arange(-400, 400, dtype=np.int16) * 40
    payload = base64.b64encode(g711.encode(pcm, "mu")).decode()
    heard = stream().receive(said("media", media={"payload": payload}))
    assert isinstance(heard, AgentAudio)
    assert np.array_equal(heard.pcm, g711.decode(g711.encode(pcm, "mu"), "mu"))
    assert stream().receive(said("mark", mark={"name": "a"})) == Mark(name="a")
    assert stream().receive(said("clear")) == Clear()
    report: dict[str, Json] = {"type": "state", "state": {"open": True}}
    assert stream().receive(said("duplex", duplex=report)) == StateReport(state={"open": True})


@pytest.mark.parametrize(
    "message, why",
    [
        ("no json", "not json"),
        ("[]", "not an object"),
        (b"\x00\x01", "binary"),
        (json.dumps({"event": "clear"}), "streamSid"),
        (json.dumps({"event": "clear", "streamSid": "MZ0"}), "streamSid"),
        (said("hangup"), "event"),
        (said("media"), "audio"),
        (said("media", media={"payload": "%%%"}), "base64"),
        (said("media", media={"payload": 5}), "base64"),
        (said("mark", mark={}), "mark.name"),
        (said("mark", mark={"name": ""}), "mark.name"),
        (said("mark", mark={"name": "x" * 501}), "mark.name"),
        (said("duplex", duplex={"type": "guess"}), "report type"),
        (said("duplex", duplex=[]), "report type"),
        (said("duplex", duplex={"type": "state", "state": {"x": "y" * 263_000}}), "characters"),
    ],
)
def test_what_twilio_would_not_play_is_a_fault_that_says_why(
    message: str | bytes, why: str
) -> None:
    found = stream().receive(message)
    assert isinstance(found, Broken)
    assert why in found.reason


# -- raw PCM ----------------------------------------------------------------


def test_the_address_says_rate_and_framing() -> None:
    assert format_of("ws://h/") == PcmFormat(rate_hz=24_000, frame_ms=20)
    assert format_of("ws://h/?rate_hz=16000&frame_ms=40&x=1").frame == 640


@given(data=st.binary(max_size=400), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_pcm_cut_anywhere_gives_the_same_samples(data: bytes, cuts: list[int]) -> None:
    codec = PcmStream()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = []
    for start, end in itertools.pairwise(places):
        found = codec.receive(data[start:end])
        assert isinstance(found, AgentAudio)
        parts.append(found.pcm)
    whole = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
    assert np.array_equal(np.concatenate(parts), whole)
    assert codec.end() == len(data) % 2


def test_pcm_text_is_clear_mark_or_a_report() -> None:
    codec = PcmStream()
    assert codec.receive('{"type": "clear"}') == Clear()
    assert codec.receive('{"type": "mark", "name": "a"}') == Mark(name="a")
    assert codec.receive(codec.mark("a")) == Mark(name="a")
    assert codec.receive('{"type": "first_byte"}') == Claim(kind="first_byte")
    assert isinstance(codec.receive('{"type": "mark"}'), Broken)
    assert isinstance(codec.receive("{"), Broken)


# -- the side channel -------------------------------------------------------


def test_claims_are_read_with_their_moment() -> None:
    for kind in CLAIMS:
        found = read_report({"type": kind, "at_ms": 1200, "ms": 300.5, "text": "hi"})
        assert found == Claim(kind=kind, at_ms=1200.0, ms=300.5, text="hi")


def test_a_tool_may_be_told_once_or_twice() -> None:
    once = read_report({"type": "tool", "name": "book", "arguments": {"n": 2}, "result": [1]})
    assert once == ToolReport(
        call_id=None, name="book", arguments={"n": 2}, status="completed", result=[1]
    )
    begun = read_report({"type": "tool", "name": "book", "call_id": "c", "status": "started"})
    ended = read_report({"type": "tool", "call_id": "c", "status": "failed", "error": "full"})
    assert isinstance(begun, ToolReport)
    assert isinstance(ended, ToolReport)
    assert (begun.status, ended.status, ended.error) == ("started", "failed", "full")


@pytest.mark.parametrize(
    "report, why",
    [
        ({}, "report type None"),
        ({"type": "latency"}, "no ms"),
        ({"type": "latency", "ms": -1}, "latency.ms"),
        ({"type": "latency", "ms": True}, "latency.ms"),
        ({"type": "first_byte", "at_ms": "soon"}, "at_ms"),
        ({"type": "first_byte", "at_ms": 1e300}, "at_ms"),
        ({"type": "asr_final", "text": 5}, "text"),
        ({"type": "tool"}, "no name"),
        ({"type": "tool", "call_id": "c", "status": "started"}, "no name"),
        ({"type": "tool", "name": "x", "status": "started"}, "no call_id"),
        ({"type": "tool", "name": ""}, "tool.name"),
        ({"type": "tool", "name": "x" * 201}, "tool.name"),
        ({"type": "tool", "name": "x", "arguments": []}, "arguments"),
        ({"type": "tool", "name": "x", "status": "done"}, "status"),
        ({"type": "state"}, "state"),
        ({"type": "state", "state": []}, "state"),
    ],
)
def test_a_report_that_cannot_be_used_says_why(report: Mapping[str, Json], why: str) -> None:
    found = read_report(report)
    assert isinstance(found, Broken)
    assert why in found.reason
    assert len(found.reason) < 300


# -- fuzz: nothing raises, and nothing grows --------------------------------


@settings(max_examples=60)
@given(message=st.text(max_size=200) | st.binary(max_size=200) | JSON.map(json.dumps))
def test_no_message_makes_a_codec_raise(message: str | bytes) -> None:
    for codec in (MediaStream(IDS), PcmStream()):
        assert isinstance(codec.receive(message), MEANINGS)


@settings(max_examples=60)
@given(
    event=st.sampled_from(["media", "mark", "clear", "duplex", "start", "stop"]),
    member=JSON,
    sid=st.just(IDS.stream) | JSON,
)
def test_no_event_of_twilios_makes_its_codec_raise(event: str, member: Json, sid: Json) -> None:
    message = json.dumps({"event": event, "streamSid": sid, event: member})
    found = stream().receive(message)
    assert isinstance(found, MEANINGS)
    if isinstance(found, Broken):
        assert len(found.reason) < 400


@settings(max_examples=80)
@given(
    kind=st.sampled_from([*CLAIMS, "tool", "state"]) | JSON,
    fields=st.dictionaries(
        st.sampled_from(REPORT_FIELDS),
        JSON | st.sampled_from(["started", "completed"]),
    ),
)
def test_no_report_makes_the_side_channel_raise(kind: Json, fields: dict[str, Json]) -> None:
    found = read_report({**fields, "type": kind})
    assert isinstance(found, (Claim, ToolReport, StateReport, Broken))
    if isinstance(found, Claim):
        assert len(found.text or "") <= 4_000

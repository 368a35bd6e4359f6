"""The GPT-Live client codec, sample alignment and companding."""

from __future__ import annotations

import base64
import hashlib
import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duplex.protocols import g711
from duplex.protocols.gpt_live import (
    AudioFormat,
    Broken,
    clean_text,
    estimate_tokens,
    read_base64,
    read_object,
    split_text,
)
from duplex.protocols.gpt_live_client import (
    Acknowledged,
    Audio,
    ClientCodec,
    Closed,
    Delegated,
    Info,
    LiveConfig,
    Refusal,
    Started,
    Transcript,
    Unknown,
    Usage,
)
from duplex.protocols.pcm_bytes import SampleCarry, from_bytes, to_bytes
from duplex.values import Json

_EVERY = np.arange(-32_768, 32_768).astype(np.int16)

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no fault of the code under test."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TYPES = st.sampled_from(
    [
        "session.started",
        "session.updated",
        "session.output_audio.delta",
        "session.input_transcript.delta",
        "session.output_transcript.delta",
        "session.delegation.created",
        "session.usage.updated",
        "session.closed",
        "session.commentary.appended",
        "error",
        "info",
        "nobody.knows",
    ]
)
FIELDS = st.sampled_from(
    ["session", "delta", "start_ms", "end_ms", "delegation", "usage", "error", "code", "reason"]
)


def codec() -> ClientCodec:
    return ClientCodec(AudioFormat())


def delta(data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return json.dumps({"type": "session.output_audio.delta", "delta": text})


def ramp(samples: int) -> bytes:
    return to_bytes(np.arange(samples, dtype=np.int16) * 101)


@UNHURRIED
@given(st.binary(max_size=400), st.lists(st.integers(1, 60), max_size=20))
def test_any_split_of_the_bytes_gives_the_same_samples(data: bytes, cuts: list[int]) -> None:
    carry = SampleCarry()
    pieces, rest = [], data
    for cut in cuts:
        pieces.append(carry.align(rest[:cut]))
        rest = rest[cut:]
    pieces.append(carry.align(rest))
    assert b"".join(pieces) == data[: len(data) // 2 * 2]
    assert carry.end() == len(data) % 2


def test_odd_deltas_carry_the_half_sample_to_the_next() -> None:
    client, data = codec(), ramp(240)
    got = []
    for start, stop in ((0, 161), (161, 321), (321, 480)):
        message = client.receive(delta(data[start:stop]))
        assert isinstance(message, Audio)
        got.append(message.pcm)
    assert np.array_equal(np.concatenate(got), from_bytes(data))
    assert client.end() == 0


def test_a_truly_odd_total_drops_one_byte_and_counts_it() -> None:
    client = codec()
    message = client.receive(delta(ramp(240) + b"\x7f"))
    assert isinstance(message, Audio)
    assert len(message.pcm) == 240
    assert client.end() == 1


def test_the_carried_byte_is_forgotten_when_the_session_closes() -> None:
    client = codec()
    client.receive(delta(b"\x01"))
    client.receive('{"type":"session.closed","reason":"expired"}')
    message = client.receive(delta(ramp(2)))
    assert isinstance(message, Audio)
    assert message.pcm.tolist() == [0, 101]


@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_an_audio_message_is_what_a_json_encoder_would_write(rate: int) -> None:
    pcm = np.array([1, -2, 300, -32_768], np.int16)
    event = json.loads(ClientCodec(AudioFormat(rate_hz=rate)).append(pcm))
    assert event["type"] == "session.input_audio.append"
    assert set(event) == {"type", "audio"}
    assert base64.b64decode(event["audio"]) == pcm.astype("<i2").tobytes()


def test_commands_carry_ids_of_their_own_and_the_nullable_delegation() -> None:
    client = codec()
    config = LiveConfig(voice="cedar", instructions="Be brief.")
    events = [
        json.loads(text)
        for text in (
            client.start(config),
            client.text("commentary", "hello"),
            client.text("thinking", "hm", "dlg_1"),
            client.close(),
        )
    ]
    assert [event["type"] for event in events] == [
        "session.start",
        "session.commentary.append",
        "session.thinking.append",
        "session.close",
    ]
    assert len({event["event_id"] for event in events}) == 4
    assert events[0]["session"] == {
        "model": "gpt-live-1",
        "audio": {"format": {"type": "audio/pcm", "rate": 24000}, "output": {"voice": "cedar"}},
        "delegation": {"type": "client"},
        "instructions": "Be brief.",
    }
    assert events[1]["delegation_id"] is None
    assert events[2]["delegation_id"] == "dlg_1"


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        (
            {
                "type": "session.started",
                "session": {"id": "s", "model": "m", "audio": {"output": {"voice": "v"}}},
            },
            Started(session_id="s", model="m", voice="v"),
        ),
        (
            {"type": "session.updated", "session": {"id": "s"}},
            Started(session_id="s", model="", voice="", updated=True),
        ),
        (
            {
                "type": "session.output_transcript.delta",
                "delta": " hi",
                "start_ms": 0,
                "end_ms": 200,
            },
            Transcript(said=True, text=" hi", start_ms=0, end_ms=200),
        ),
        (
            {"type": "session.input_transcript.delta", "delta": "x", "start_ms": 5, "end_ms": 2},
            Transcript(said=False, text="x", start_ms=5, end_ms=5),
        ),
        (
            {
                "type": "session.delegation.created",
                "offset_ms": 9,
                "delegation": {"id": "d", "type": "delegation", "target": "client"},
            },
            Delegated(delegation_id="d", target="client", offset_ms=9),
        ),
        ({"type": "session.usage.updated", "usage": {"seconds": 60}}, Usage(seconds=60)),
        (
            {"type": "session.closed", "reason": "expired", "usage": {"seconds": 3}},
            Closed(reason="expired", seconds=3),
        ),
        (
            {"type": "error", "error": {"type": "t", "code": "c", "message": "m", "param": "p"}},
            Refusal(code="c", message="m", param="p", client_event_id=None),
        ),
        ({"type": "info", "code": "c", "message": "m"}, Info(code="c", message="m")),
        (
            {"type": "session.commentary.appended", "client_event_id": "e"},
            Acknowledged(type="session.commentary.appended", client_event_id="e"),
        ),
        ({"type": "session.new_thing", "x": 1}, Unknown(type="session.new_thing")),
    ],
)
def test_messages_are_told_apart_by_type_in_text_and_binary(
    event: dict[str, Json], wanted: object, as_bytes: bool
) -> None:
    text = json.dumps(event)
    assert codec().receive(text.encode() if as_bytes else text) == wanted


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        "[1]",
        "NaN",
        '{"type":"session.usage.updated","usage":{"seconds":NaN}}',
        '{"type":"session.usage.updated","usage":{"seconds":1e999}}',
        '{"type":5}',
        "{}",
        b"\xff\xfe\x00",
        b"\x00\x00",
        "[" * 100_000,
        '{"type":"session.output_audio.delta","delta":"!!!"}',
        '{"type":"session.output_audio.delta","delta":"AAA"}',
        '{"type":"session.output_audio.delta","delta":"\\u20ac"}',
        '{"type":"session.output_audio.delta"}',
        '{"type":"session.started","session":{}}',
        '{"type":"session.output_transcript.delta","delta":"x","start_ms":"0","end_ms":1}',
        '{"type":"session.delegation.created","delegation":{"id":7}}',
        '{"type":"error","error":"no"}',
        '{"type":"x","n":' + "9" * 5_000 + "}",
    ],
)
def test_what_cannot_be_read_is_a_value(message: str | bytes) -> None:
    assert isinstance(codec().receive(message), Broken)


@UNHURRIED
@given(st.text() | st.binary())
def test_reading_never_raises_on_noise(message: str | bytes) -> None:
    codec().receive(message)


@UNHURRIED
@given(TYPES, st.dictionaries(FIELDS, JSON))
def test_reading_never_raises_on_wrong_fields(kind: str, fields: dict[str, Json]) -> None:
    codec().receive(json.dumps({**fields, "type": kind}))


def test_lone_surrogates_cannot_make_text_unwritable() -> None:
    message = codec().receive(
        '{"type":"session.output_transcript.delta","delta":"a\\ud83d b","start_ms":0,"end_ms":1}'
    )
    assert isinstance(message, Transcript)
    assert message.text.encode("utf-8") == b"a? b"
    assert clean_text("Zürich 😀") == "Zürich 😀"


def test_base64_is_read_strictly() -> None:
    assert read_base64("AAEC") == b"\x00\x01\x02"
    for bad in ("AA=E", "AA\nEC", " AAEC", "AAE", 7, None):
        assert isinstance(read_base64(bad), Broken), bad


def test_reading_an_object_keeps_numbers_and_nesting() -> None:
    assert read_object('{"a":[1,2.5,{"b":null}]}') == {"a": [1, 2.5, {"b": None}]}


@UNHURRIED
@given(st.text(max_size=600), st.integers(1, 40))
def test_split_text_fits_the_limit_and_keeps_every_word(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert all(estimate_tokens(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_split_text_breaks_at_sentences_when_it_can() -> None:
    text = "One two three four. Five six seven. Eight nine ten eleven."
    assert split_text(text, 9) == ["One two three four. Five six seven.", "Eight nine ten eleven."]
    assert split_text(text, 500) == [text]


def test_tokens_are_counted_on_the_high_side_for_prose() -> None:
    prose = "The table for four is free on Friday at half past seven, shall I book it? "
    # English prose runs at about four characters a token.
    assert len(prose) / 4 * 0.85 <= estimate_tokens(prose) <= len(prose) / 4 * 1.6
    assert estimate_tokens("word " * 501) > 500
    assert estimate_tokens("word " * 500) == 500


# Code words from the recommendation's tables: (law, code, value).
@pytest.mark.parametrize(
    ("law", "code", "value"),
    [
        ("mu", 0x00, -32_124),
        ("mu", 0x80, 32_124),
        ("mu", 0xFF, 0),
        ("mu", 0x7F, 0),
        ("mu", 0xFE, 8),
        ("mu", 0xEF, 132),
        ("a", 0xD5, 8),
        ("a", 0x55, -8),
        ("a", 0xAA, 32_256),
        ("a", 0x2A, -32_256),
        ("a", 0xD4, 24),
    ],
)
def test_companding_decodes_known_code_words(law: str, code: int, value: int) -> None:
    assert g711.decode(bytes([code]), law).tolist() == [value]


@pytest.mark.parametrize("law", ["mu", "a"])
def test_companding_is_its_own_inverse_on_every_code_word(law: str) -> None:
    codes = bytes(range(256))
    again = g711.encode(g711.decode(codes, law), law)
    # Minus zero of the mu-law comes back as plus zero.
    assert again == (codes if law == "a" else codes.replace(b"\x7f", b"\xff"))


@pytest.mark.parametrize(("law", "worst"), [("mu", 644), ("a", 512)])
def test_companding_error_stays_within_half_a_step(law: str, worst: int) -> None:
    samples = _EVERY
    back = g711.decode(g711.encode(samples, law), law)
    error = np.abs(back.astype(int) - samples)
    assert error.max() <= worst
    assert np.all(error <= np.abs(samples.astype(int)) // 16 + 8)


@pytest.mark.parametrize(
    ("law", "digest"),
    [
        ("mu", "90c29de505fb68e766118303bd552a16005dcf810873698bee1d8f3b247ce28c"),
        ("a", "38488f6fd710f4686360edc4d38639f96c491595ef93f8eb8d62d5e07ca6ce7b"),
    ],
)
def test_companding_is_that_of_the_reference_implementation(law: str, digest: str) -> None:
    """The codes of every int16 value, in order, as ITU-T G.191's own encoder gives them."""
    assert hashlib.sha256(g711.encode(_EVERY, law)).hexdigest() == digest


@pytest.mark.parametrize(("law", "differ"), [("mu", 508), ("a", 0)])
def test_companding_differs_from_the_standard_library_where_it_is_said_to(
    law: str, differ: int
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audioop = pytest.importorskip("audioop")
    encode = audioop.lin2ulaw if law == "mu" else audioop.lin2alaw
    theirs = np.frombuffer(encode(_EVERY.tobytes(), 2), np.uint8)
    ours = np.frombuffer(g711.encode(_EVERY, law), np.uint8)
    assert np.count_nonzero(ours != theirs) == differ
    assert np.all(_EVERY[ours != theirs] < 0)

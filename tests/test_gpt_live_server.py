"""The GPT-Live server's state machine: what is accepted, acknowledged and refused."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duplex.protocols.gpt_live import CLIENT_TYPES, FORBIDDEN_VOICES, VOICES
from duplex.protocols.gpt_live_server import (
    Begin,
    Close,
    Hear,
    PlayFixture,
    Refused,
    Reply,
    ServerSession,
    Tell,
)
from duplex.protocols.gpt_live_settings import DEFAULT_INSTRUCTIONS
from duplex.values import Json
from gpt_live_schema import problems

START: dict[str, Json] = {"type": "session.start", "session": {"model": "gpt-live-1"}}
TEXT_KINDS = ["commentary", "thinking", "instructions"]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Peer:
    """Drives one machine with dictionaries and checks every reply against the SDK."""

    def __init__(self, session: dict[str, Json] | None = None, *, start: bool = True) -> None:
        self.machine = ServerSession(session_id="sess_1", expires_at=1_900_000_000)
        self.started: dict[str, Json] = {}
        if start:
            wanted = {"model": "gpt-live-1", **(session or {})}
            effects = self.machine.receive(
                json.dumps({"type": "session.start", "event_id": "s", "session": wanted})
            )
            assert [type(effect) for effect in effects] == [Begin], effects
            self.started = self.read(self.machine.say_started())

    def read(self, text: str) -> dict[str, Json]:
        event = json.loads(text)
        assert problems(event) == []
        assert isinstance(event, dict)
        return event

    def send(self, event: dict[str, Json] | str) -> tuple[list[dict[str, Json]], list[object]]:
        """Return the replies and the other effects of one event."""
        text = event if isinstance(event, str) else json.dumps(event)
        effects = self.machine.receive(text)
        replies = [self.read(effect.text) for effect in effects if isinstance(effect, Reply)]
        return replies, [effect for effect in effects if not isinstance(effect, Reply)]

    def error(self, event: dict[str, Json] | str) -> dict[str, Json]:
        """Return the one error that ``event`` is answered with, and nothing else."""
        replies, rest = self.send(event)
        assert [reply["type"] for reply in replies] == ["error"], replies
        assert rest in ([], [Refused()])
        error = replies[0]["error"]
        assert isinstance(error, dict)
        return error


def test_a_started_session_is_shown_with_its_defaults() -> None:
    session = Peer().started["session"]
    assert session == {
        "id": "sess_1",
        "expires_at": 1_900_000_000,
        "status": "active",
        "model": "gpt-live-1",
        "audio": {"format": {"type": "audio/pcm", "rate": 24000}, "output": {"voice": "marin"}},
        "delegation": {"type": "client"},
        "instructions": DEFAULT_INSTRUCTIONS,
        "store": False,
    }


def test_what_the_client_chose_is_shown_back() -> None:
    peer = Peer(
        {
            "model": "gpt-live-1.1",
            "instructions": "Be kind.",
            "audio": {
                "format": {"type": "audio/pcmu", "rate": 8000},
                "output": {"voice": {"id": "voice_7"}},
            },
            "delegation": {"type": "client", "acknowledgement_delay_ms": 250},
            "input": [
                {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            ],
            "safety_identifier": "u1",
            "store": True,
        }
    )
    session = peer.started["session"]
    assert isinstance(session, dict)
    assert session["audio"] == {
        "format": {"type": "audio/pcmu", "rate": 8000},
        "output": {"voice": {"id": "voice_7"}},
    }
    assert session["delegation"] == {"type": "client", "acknowledgement_delay_ms": 250}
    assert session["store"] is True
    assert session["safety_identifier"] == "u1"
    config = peer.machine.config
    assert config is not None
    assert config.voice == "voice_7"
    assert list(config.history) == [("developer", "d"), ("assistant", "a")]
    assert peer.started["client_event_id"] == "s"


@pytest.mark.parametrize("blank", [None, "", "  \n"])
def test_blank_instructions_and_null_settings_mean_the_defaults(blank: str | None) -> None:
    peer = Peer({"instructions": blank, "audio": None, "delegation": None, "triggers": []})
    session = peer.started["session"]
    assert isinstance(session, dict)
    assert session["instructions"] == DEFAULT_INSTRUCTIONS
    assert session["delegation"] == {"type": "client"}


@pytest.mark.parametrize("voice", VOICES)
def test_every_built_in_voice_is_accepted(voice: str) -> None:
    Peer({"audio": {"output": {"voice": voice}}})


@pytest.mark.parametrize("kind", [kind for kind in CLIENT_TYPES if kind != "session.start"])
def test_nothing_may_come_before_session_start(kind: str) -> None:
    peer = Peer(start=False)
    error = peer.error({"type": kind, "event_id": "e1"})
    assert (error["code"], error["type"]) == ("session_not_started", "invalid_request_error")
    assert error["client_event_id"] == "e1"
    assert isinstance(peer.machine.receive(json.dumps(START))[0], Begin), "a start mends it"


BAD_STARTS: list[tuple[dict[str, Json], str, str]] = [
    ({"foo": 1}, "unknown_parameter", "session.foo"),
    ({"audio": {"formats": {}}}, "unknown_parameter", "session.audio.formats"),
    ({"audio": {"output": {"speed": 1}}}, "unknown_parameter", "session.audio.output.speed"),
    ({"model": None}, "invalid_type", "session.model"),
    ({"model": "gpt-4"}, "invalid_model", "session.model"),
    ({"model": "gpt-realtime-2"}, "invalid_model", "session.model"),
    (
        {"audio": {"format": {"type": "audio/pcm", "rate": 8000}}},
        "invalid_value",
        "session.audio.format.rate",
    ),
    (
        {"audio": {"format": {"type": "audio/pcmu", "rate": 24000}}},
        "invalid_value",
        "session.audio.format.rate",
    ),
    (
        {"audio": {"format": {"type": "audio/opus"}}},
        "invalid_value",
        "session.audio.format.type",
    ),
    (
        {"audio": {"format": {"rate": 24000}}},
        "missing_required_parameter",
        "session.audio.format.type",
    ),
    ({"audio": {"output": {"voice": "robot"}}}, "invalid_value", "session.audio.output.voice"),
    ({"audio": {"output": {"voice": 7}}}, "invalid_value", "session.audio.output.voice"),
    (
        {"delegation": {"type": "responses", "responses": {"instructions": "x"}}},
        "missing_required_parameter",
        "session.delegation.responses.model",
    ),
    ({"delegation": {"type": "decisions"}}, "unsupported_value", "session.delegation.type"),
    ({"delegation": {"type": "nobody"}}, "invalid_value", "session.delegation.type"),
    ({"delegation": {}}, "missing_required_parameter", "session.delegation.type"),
    (
        {"delegation": {"type": "client", "responses": {}}},
        "unknown_parameter",
        "session.delegation.responses",
    ),
    (
        {"delegation": {"type": "client", "acknowledgement_delay_ms": -1}},
        "invalid_value",
        "session.delegation.acknowledgement_delay_ms",
    ),
    ({"triggers": [{}]}, "invalid_value", "session.triggers"),
    ({"client": {"data_channel": {}}}, "unknown_parameter", "session.client"),
    ({"store": "yes"}, "invalid_type", "session.store"),
    ({"input": [{"role": "robot"}]}, "invalid_value", "session.input[0].role"),
    (
        {"input": [{"role": "user", "content": []}]},
        "invalid_value",
        "session.input[0].content",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]},
        "invalid_value",
        "session.input[0].content[0].type",
    ),
    (
        {"input": [{"role": "user", "content": [{"text": "x"}]}] * 129},
        "invalid_value",
        "session.input",
    ),
    (
        {"input": [{"role": "user", "content": [{"text": "x " * 8_193}]}]},
        "string_above_max_tokens",
        "session.input",
    ),
    ({"instructions": "x " * 16_385}, "string_above_max_tokens", "session.instructions"),
    ({"instructions": 5}, "invalid_type", "session.instructions"),
]


@pytest.mark.parametrize(("settings", "code", "param"), BAD_STARTS)
def test_a_start_is_refused_with_the_path_at_fault(
    settings: dict[str, Json], code: str, param: str
) -> None:
    peer = Peer(start=False)
    session = {"model": "gpt-live-1", **settings}
    error = peer.error({"type": "session.start", "event_id": "e9", "session": session})
    assert error["type"] == "invalid_request_error"
    assert (error["code"], error["param"], error["client_event_id"]) == (code, param, "e9")
    assert peer.machine.phase == "opening"


def test_a_start_without_model_or_session_says_what_is_missing() -> None:
    peer = Peer(start=False)
    assert peer.error({"type": "session.start", "session": {}})["param"] == "session.model"
    assert peer.error({"type": "session.start"})["param"] == "session"
    assert peer.error({"type": "session.start", "session": 3})["code"] == "invalid_type"


@pytest.mark.parametrize("voice", FORBIDDEN_VOICES)
def test_forbidden_voices_are_forbidden(voice: str) -> None:
    event: dict[str, Json] = {
        "type": "session.start",
        "session": {"model": "gpt-live-1", "audio": {"output": {"voice": voice}}},
    }
    assert Peer(start=False).error(event)["code"] == "forbidden"


def test_a_second_start_is_refused_and_the_session_goes_on() -> None:
    peer = Peer()
    assert peer.error(START)["code"] == "session_already_started"
    assert peer.machine.phase == "active"


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_text_is_acknowledged_on_the_timeline_and_handed_on(kind: str) -> None:
    peer = Peer()
    peer.machine.now_ms = 1_240
    event: dict[str, Json] = {"type": f"session.{kind}.append", "event_id": "t1"}
    replies, rest = peer.send({**event, "content": "Hi.", "delegation_id": None})
    assert replies[0]["type"] == f"session.{kind}.appended"
    assert replies[0]["client_event_id"] == "t1"
    assert (replies[0]["start_ms"], replies[0]["end_ms"]) == (1_240, 1_240)
    assert rest == [Tell(kind=kind, text="Hi.", delegation_id=None)]


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_text_is_limited_to_500_tokens_and_needs_its_nullable_id(kind: str) -> None:
    peer = Peer()
    event: dict[str, Json] = {"type": f"session.{kind}.append", "delegation_id": None}
    assert peer.send({**event, "content": "word " * 500})[1]
    error = peer.error({**event, "content": "word " * 501})
    assert (error["code"], error["param"]) == ("string_above_max_tokens", "content")
    missing = peer.error({"type": f"session.{kind}.append", "content": "x"})
    assert (missing["code"], missing["param"]) == ("missing_required_parameter", "delegation_id")
    assert peer.error({**event, "content": 3})["code"] == "invalid_type"


def test_text_for_a_delegation_needs_one_of_this_session() -> None:
    peer = Peer()
    event: dict[str, Json] = {"type": "session.commentary.append", "content": "x"}
    assert peer.error({**event, "delegation_id": "dlg_none"})["param"] == "delegation_id"
    created = peer.read(peer.machine.say_delegation(600))
    assert created["offset_ms"] == 600
    delegation = created["delegation"]
    assert isinstance(delegation, dict)
    assert delegation["target"] == "client"
    assert "response_id" not in delegation
    rest = peer.send({**event, "delegation_id": delegation["id"]})[1]
    assert rest == [Tell(kind="commentary", text="x", delegation_id=str(delegation["id"]))]


def test_audio_is_decoded_and_never_acknowledged() -> None:
    replies, rest = Peer().send({"type": "session.input_audio.append", "audio": b64(b"\1\0\2\0")})
    assert replies == []
    assert isinstance(rest[0], Hear)
    assert rest[0].pcm.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("audio", "code"),
    [
        (b64(b"abc"), "invalid_audio"),
        ("", "invalid_audio"),
        ("@@@@", "invalid_audio"),
        ("AAA", "invalid_audio"),
        (7, "invalid_type"),
        (None, "invalid_type"),
    ],
)
def test_unsound_audio_is_refused(audio: Json, code: str) -> None:
    peer = Peer()
    for kind in ("session.input_audio.append", "session.output_audio.fixture.play"):
        error = peer.error({"type": kind, "audio": audio, "event_id": "a"})
        assert (error["code"], error["param"], error["client_event_id"]) == (code, "audio", "a")


@pytest.mark.parametrize(("kind", "law"), [("audio/pcmu", 0xFF), ("audio/pcma", 0xD5)])
def test_telephone_formats_take_odd_counts_and_answer_in_kind(kind: str, law: int) -> None:
    peer = Peer({"audio": {"format": {"type": kind, "rate": 8000}}})
    _, rest = peer.send({"type": "session.input_audio.append", "audio": b64(bytes([law] * 3))})
    assert isinstance(rest[0], Hear)
    assert rest[0].pcm.tolist() == [0 if kind == "audio/pcmu" else 8] * 3
    delta = peer.read(peer.machine.say_audio(np.zeros(5, np.int16)))["delta"]
    assert base64.b64decode(str(delta)) == bytes([law] * 5)


def test_muted_input_is_heard_as_silence_of_the_same_length() -> None:
    peer = Peer()
    loud: dict[str, Json] = {"type": "session.input_audio.append", "audio": b64(b"\x10\x10" * 9)}
    muted = peer.send({"type": "session.input_audio.mute", "event_id": "m"})[0][0]
    assert (muted["type"], muted["client_event_id"]) == ("session.input_audio.muted", "m")
    (heard,) = peer.send(loud)[1]
    assert isinstance(heard, Hear)
    assert heard.pcm.tolist() == [0] * 9
    unmuted = peer.send({"type": "session.input_audio.unmute"})[0][0]
    assert unmuted["type"] == "session.input_audio.unmuted"
    assert "client_event_id" not in unmuted
    (heard,) = peer.send(loud)[1]
    assert isinstance(heard, Hear)
    assert heard.pcm.all()


def test_a_fixture_plays_alone_and_mutes_the_input_until_it_is_played() -> None:
    peer = Peer()
    play: dict[str, Json] = {
        "type": "session.output_audio.fixture.play",
        "audio": b64(b"\1\0" * 240),
        "event_id": "f",
    }
    replies, rest = peer.send(play)
    assert replies[0]["type"] == "session.output_audio.fixture.playing"
    assert isinstance(rest[0], PlayFixture)
    assert len(rest[0].pcm) == 240
    (heard,) = peer.send({"type": "session.input_audio.append", "audio": b64(b"\1\1")})[1]
    assert isinstance(heard, Hear)
    assert not heard.pcm.any()
    assert peer.error(play)["code"] == "fixture_active"
    for kind in TEXT_KINDS:
        event: dict[str, Json] = {"type": f"session.{kind}.append", "content": "x"}
        assert peer.error({**event, "delegation_id": None})["code"] == "fixture_active"
    played = peer.read(peer.machine.say_fixture_played())
    assert played["type"] == "session.output_audio.fixture.played"
    assert played["client_event_id"] == "f"
    assert peer.send(play)[0][0]["type"] == "session.output_audio.fixture.playing"


def test_a_fixture_lasts_at_most_thirty_seconds() -> None:
    play = "session.output_audio.fixture.play"
    assert Peer().send({"type": play, "audio": b64(bytes(2 * 720_000))})[1]
    error = Peer().error({"type": play, "audio": b64(bytes(2 * 720_001))})
    assert (error["code"], error["param"]) == ("invalid_audio", "audio")


def test_only_the_delegation_settings_can_be_updated() -> None:
    peer = Peer({"delegation": {"type": "client", "acknowledgement_delay_ms": 100}})
    update: dict[str, Json] = {"type": "session.update", "event_id": "u"}
    change: Json = {"delegation": {"type": "client", "acknowledgement_delay_ms": 900}}
    updated = peer.send({**update, "session": change})[0][0]
    assert (updated["type"], updated["client_event_id"]) == ("session.updated", "u")
    session = updated["session"]
    assert isinstance(session, dict)
    assert session["delegation"] == {"type": "client", "acknowledgement_delay_ms": 900}
    assert session["model"] == "gpt-live-1", "the whole session is shown"
    kept = peer.send({**update, "session": {"delegation": {"type": "client"}}})[0][0]["session"]
    assert isinstance(kept, dict)
    assert kept["delegation"] == session["delegation"], "what is not named is kept"
    for name in ("model", "instructions", "audio", "input", "store"):
        error = peer.error({**update, "session": {name: None}})
        assert (error["code"], error["param"]) == ("unknown_parameter", f"session.{name}")
    for kind in ("responses", "decisions"):
        error = peer.error({**update, "session": {"delegation": {"type": kind}}})
        assert error["param"] == "session.delegation.type"


@pytest.mark.parametrize(
    "kind",
    [
        "decision.create",
        "decision.item.create",
        "decision.item.delete",
        "response.create",
        "response.item.create",
    ],
)
def test_events_of_other_delegations_are_answered_by_an_error(kind: str) -> None:
    error = Peer().error({"type": kind, "event_id": "d"})
    assert (error["code"], error["client_event_id"]) == ("unsupported_event", "d")


@pytest.mark.parametrize("kind", ["session.pause", "transport.dtmf.send", "", 7, None])
def test_an_unknown_type_is_answered_with_the_types_there_are(kind: Json) -> None:
    error = Peer().error({"type": kind, "event_id": "x"})
    assert (error["code"], error["param"]) == ("invalid_value", "type")
    assert all(f"'{name}'" in str(error["message"]) for name in CLIENT_TYPES)
    assert str(error["message"]).endswith("and 'session.close'.")


@pytest.mark.parametrize("message", ["{", "[]", "nope", "1", '{"type":NaN}'])
def test_what_is_not_a_json_object_is_an_error_and_no_more(message: str) -> None:
    peer = Peer()
    assert peer.error(message)["code"] == "invalid_json"
    assert peer.machine.phase == "active"


def test_an_unknown_field_of_any_event_is_named() -> None:
    error = Peer().error({"type": "session.input_audio.mute", "extra": 1, "event_id": "m"})
    assert (error["code"], error["param"]) == ("unknown_parameter", "extra")
    error = Peer().error({"type": "session.close", "event_id": 5})
    assert (error["code"], error["param"]) == ("invalid_type", "event_id")
    assert "client_event_id" not in error


def test_closing_refuses_commands_lets_late_audio_pass_and_ends_with_usage() -> None:
    peer = Peer()
    assert peer.send({"type": "session.close", "event_id": "c"}) == ([], [Close()])
    event: dict[str, Json] = {"type": "session.commentary.append", "content": "x"}
    assert peer.error({**event, "delegation_id": None})["code"] == "session_closing"
    assert peer.error({"type": "session.close"})["code"] == "session_closing"
    assert peer.send({"type": "session.input_audio.append", "audio": b64(b"\0\0")}) == ([], [])
    closed = peer.read(peer.machine.say_closed("close_requested", 12))
    assert closed["usage"] == {"seconds": 12}
    assert (closed["reason"], closed["client_event_id"]) == ("close_requested", "c")
    session = closed["session"]
    assert isinstance(session, dict)
    assert session["status"] == "active"


def test_every_event_but_audio_has_an_id_of_its_own() -> None:
    peer = Peer()
    machine = peer.machine
    events = [
        peer.read(text)
        for text in (
            machine.say_info("duplex.utterance", "{}"),
            machine.say_usage(60),
            machine.say_transcript(said=True, text="a", start_ms=0, end_ms=200),
            machine.say_delegation(0),
        )
    ]
    assert len({str(event["event_id"]) for event in events}) == 4
    assert "event_id" not in peer.read(machine.say_audio(np.zeros(4, np.int16)))


UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is slow, which is no fault of the code under test."""
KEYS = st.sampled_from(["event_id", "session", "audio", "content", "delegation_id", "item", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@UNHURRIED
@given(st.booleans(), st.sampled_from(CLIENT_TYPES), st.dictionaries(KEYS, JSON))
def test_the_machine_never_raises_and_every_reply_is_sound(
    started: bool, kind: str, fields: dict[str, Json]
) -> None:
    Peer(start=started).send({**fields, "type": kind})


@UNHURRIED
@given(st.text() | st.binary())
def test_the_machine_never_raises_on_noise(message: str | bytes) -> None:
    ServerSession(session_id="s", expires_at=0).receive(message)


@UNHURRIED
@given(st.dictionaries(st.sampled_from(["model", "audio", "input", "delegation"]), JSON))
def test_the_machine_never_raises_on_odd_settings(session: dict[str, Json]) -> None:
    Peer(start=False).send({"type": "session.start", "session": {"model": "gpt-live-1", **session}})

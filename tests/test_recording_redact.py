"""Secrets never reach a file; everything else arrives unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.redact import HIDDEN, Redactor, is_secret_key
from duplex.values import Json


@pytest.mark.parametrize(
    "key",
    [
        "authorization",
        "Authorization",
        "api_key",
        "API-Key",
        "apiKey",
        "x-api-key",
        "token",
        "access_token",
        "refreshToken",
        "client_secret",
        "password",
        "bearer",
        "Set-Cookie",
    ],
)
def test_members_with_secret_names_are_hidden(key: str) -> None:
    assert is_secret_key(key)
    assert Redactor().json({"deep": [{key: "hunter22"}]}) == {"deep": [{key: HIDDEN}]}
    assert Redactor().fields({key: {"nested": "hunter22"}}) == {key: HIDDEN}


@pytest.mark.parametrize(
    "key", ["input_tokens", "total_tokens", "cached_tokens", "key", "keys", "name", "secretary"]
)
def test_members_that_only_sound_like_secrets_stay(key: str) -> None:
    assert not is_secret_key(key)
    assert Redactor().json({key: 12}) == {key: 12}


def test_what_is_absent_is_not_hidden() -> None:
    assert Redactor().json({"token": None, "api_key": False}) == {"token": None, "api_key": False}


def test_known_secrets_are_hidden_wherever_they_occur() -> None:
    redactor = Redactor(["s3cr", "s3cr3t-long", "x"])
    cleaned = redactor.json({"a s3cr3t-long": ["say s3cr3t-long twice: s3cr3t-long", "s3cr", "xx"]})
    assert cleaned == {
        f"a {HIDDEN}": [f"say {HIDDEN} twice: {HIDDEN}", HIDDEN, "xx"],
    }


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("sent Authorization: Bearer abc.DEF123-xyz", "DEF123"),
        ("key sk-proj-ABCDEFGHIJKLMNOP1234 refused", "ABCDEFGH"),
        ("wss://host/v1?model=m&api_key=verysecret&x=1", "verysecret"),
        ("http://user:pa55word@host/", "pa55word"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4", "SflKxw"),
    ],
)
def test_unmistakable_shapes_are_hidden(text: str, gone: str) -> None:
    cleaned = Redactor().text(text)
    assert gone not in cleaned
    assert HIDDEN in cleaned


@pytest.mark.parametrize(
    "text",
    ["The bearer certificates arrived.", "ask for table 7 at 19:00?", "a risk-free sk-8 board"],
)
def test_ordinary_speech_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_lone_surrogates_and_numbers_that_are_none_become_harmless() -> None:
    cleaned = Redactor().json(
        {"a\ud800": "b\udfff", "ok": "\ud83d\ude00 é", "n": float("nan"), "i": float("-inf")}
    )
    assert cleaned == {"a\ufffd": "b\ufffd", "ok": "😀 é", "n": None, "i": None}


def test_bottomless_nesting_is_cut() -> None:
    value: Json = "deep"
    for _ in range(5000):
        value = [value]
    assert "deep" not in json.dumps(Redactor().json(value))


def test_other_objects_become_text() -> None:
    assert Redactor().json({"t": (1, 2), "o": Ellipsis}) == {"t": [1, 2], "o": "Ellipsis"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(json_values)
def test_whatever_goes_in_strict_json_comes_out(value: Json) -> None:
    cleaned = Redactor(["secret"]).json(value)
    text = json.dumps(cleaned, allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert Redactor(["secret"]).json(cleaned) == cleaned


@pytest.mark.parametrize("place", ["state", "arguments", "result", "evidence"])
def test_what_the_application_holds_stays_gradeable_whatever_it_is_called(place: str) -> None:
    own: Json = {"gate_token": "T-17", "members": [{"password": "swordfish"}], "count": 2}
    assert Redactor().fields({place: own}) == {place: own}
    assert Redactor().json({"deep": [{place: own}]}) == {"deep": [{place: own}]}


def test_a_secret_is_hidden_in_what_the_application_holds_too() -> None:
    key = "sk-abcdefghijklmnop1234"
    state: Json = {"state": {"token": f"my {key}", "note": "the-key-of-this-run"}}
    cleaned = Redactor(["the-key-of-this-run"]).json(state)
    assert cleaned == {"state": {"token": f"my {HIDDEN}", "note": HIDDEN}}
    assert Redactor().json({"state": {}, "token": "T-17"}) == {"state": {}, "token": HIDDEN}


EVENTS = ["fault", "message", "deep", "arguments", "state", "error", "reason", "code"]


def _is_told(text: str) -> bool:
    return "redacted" not in text and text not in json.dumps(EVENTS)


SECRET: st.SearchStrategy[str] = st.text(
    st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=8, max_size=24
).filter(_is_told)


@given(secret=SECRET, before=st.text(max_size=6), after=st.text(max_size=6), where=st.data())
def test_a_known_secret_is_found_in_every_place(
    secret: str, before: str, after: str, where: st.DataObject
) -> None:
    planted: Json = f"{before}{secret}{after}"
    for _ in range(where.draw(st.integers(0, 4))):
        name = where.draw(st.sampled_from([*EVENTS, f"x {secret}"]))
        shapes: list[Json] = [{name: planted, "n": 1}, [planted, None], {str(planted): [planted]}]
        planted = where.draw(st.sampled_from(shapes))
    redactor = Redactor([secret])
    texts: list[str] = []

    def walk(value: Json) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            for key, item in value.items():
                texts.append(key)
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(redactor.json(planted))
    assert not [text for text in texts if secret in text]
    assert secret not in redactor.text(f"https://h/?q={secret}&token={secret} Bearer {secret}")


def test_numbers_no_reader_can_hold_become_null_like_those_that_are_none() -> None:
    assert Redactor().json({"big": 10**5000, "fits": 2**1000}) == {"big": None, "fits": 2**1000}


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_what_cannot_be_shown_is_null() -> None:
    assert Redactor().json({"x": Unshowable()}) == {"x": None}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ('{"authorization": "Bearer abc"}', '{"authorization": "Bearer [redacted]"}'),
        ("x-api-key=abc, retry", "x-api-key=[redacted], retry"),
        ("wss://token-only@host/p", "wss://[redacted]@host/p"),
        ("http://h/a?x_token=1&b=2", "http://h/a?x_token=[redacted]&b=2"),
        ("ghp_abcdefghijklmnopqrst1234", "[redacted]"),
        ("the cookie jar: full", "the cookie jar: full"),
        ("mail me@host.org", "mail me@host.org"),
    ],
)
def test_headers_and_addresses_in_running_text_lose_their_secrets(text: str, kept: str) -> None:
    assert Redactor().text(text) == kept
    assert Redactor().text(kept) == kept


@pytest.mark.parametrize(
    "piece",
    ["eyj-", "eyJ.", "bearer ", "?a", "://", "authorization ", "Authorization: bearer ", "@"],
)
def test_no_text_takes_longer_than_its_length_is_worth(piece: str) -> None:
    """Were it quadratic, half a million characters would take minutes."""
    text = (piece * 500_000)[:500_000]
    assert len(Redactor(["known-secret"]).text(text)) > 0

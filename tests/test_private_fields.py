"""Marks stand for private values: the same for the same, in any spelling, across any cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.grading.matching import mismatch
from duplex.private_fields import SEARCHED, PrivateFields
from duplex.redact import Redactor
from duplex.secret_values import environment_secrets, url_secrets
from duplex.values import Json

VALUE = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=3, max_size=12)
TOLD = VALUE.filter(lambda value: value.lower() not in "redacted" and not value.isdigit())


def private(*values: Json) -> PrivateFields:
    fields = PrivateFields(["guest"])
    Redactor(private=fields).json({"state": {"Guest": list(values)}})
    return fields


@given(value=TOLD, cuts=st.lists(st.integers(0, 60), max_size=5), around=st.sampled_from(["", " "]))
def test_a_value_is_hidden_wherever_the_text_is_cut(
    value: str, cuts: list[int], around: str
) -> None:
    text = f"it is {value}{around}, {value.upper()} and {value}."
    at = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:end] for start, end in pairwise(at)]
    fields = private(value)
    hidden = fields.hide_across(pieces)
    assert len(hidden) == len(pieces)
    assert "".join(hidden) == fields.hide(text)
    assert value.lower() not in "".join(hidden).lower().replace("redacted", "")


@pytest.mark.parametrize(
    "spelling",
    ["415-555-0136", "415) 555 0136", "4155550136", "415.555.01.36", "4 1 5 5 5 5 0 1 3 6"],
)
def test_a_number_is_known_however_it_is_grouped(spelling: str) -> None:
    assert private("415-555-0136").hide(f"call {spelling} now") == "call [redacted 1] now"


def test_a_word_is_never_found_inside_others_or_taken_apart() -> None:
    fields = private("Ina", "Jo", 42)
    told = "in a finale, Ina's Jo is 42; INA!"
    assert fields.hide(told) == "in a finale, [redacted 1]'s Jo is 42; [redacted 1]!"


@given(st.lists(st.one_of(VALUE, st.integers(), st.booleans()), min_size=2, max_size=2))
def test_marks_compare_as_their_values_do(values: list[Json]) -> None:
    fields = PrivateFields(["guest"])
    redactor = Redactor(private=fields)
    one, two = ({"guest": value} for value in values)
    hidden = [redactor.json({"arguments": part}) for part in (one, two)]
    marked = [part["arguments"] if isinstance(part, dict) else None for part in hidden]
    assert (marked[0] == marked[1]) == (one == two and type(values[0]) is type(values[1]))
    if all(isinstance(value, str) for value in values):
        assert (mismatch(marked[0], marked[1]) is None) == (mismatch(one, two) is None)


def test_many_values_and_long_ones_are_still_marked() -> None:
    values = [f"guest-number-{number}" for number in range(SEARCHED + 100)]
    fields = private(*values, "x" * 100_000)
    assert fields.known == SEARCHED + 101
    assert fields.hide(f"here is {values[5]}") == "here is [redacted 6]"
    assert fields.hide("x" * 100_000) == "x" * 100_000, "too long to be looked for"


def test_names_of_our_own_are_never_private() -> None:
    redactor = Redactor(private=PrivateFields(["type", "status"]))
    event: dict[str, Json] = {"type": "x", "status": "completed", "arguments": {"status": "gold"}}
    assert redactor.fields(event) == {**event, "arguments": {"status": "[redacted 1]"}}


def test_keys_of_the_environment_are_told_by_name_and_placeholders_are_none() -> None:
    found = environment_secrets(
        {
            "OPENAI_API_KEY": "sk-1",
            "DUPLEX_NEW_TOKEN": "tok-2",
            "GPT_LIVE_THING_SECRET": "local",
            "OPENAI_BASE_URL": "https://me:pa55@host/v1?sig=abc",
            "HOME_KEY": "no",
            "OPENAI_LIVE_MODEL": "gpt-live-1",
            "MY_OWN": "mine-3",
        },
        also=["MY_OWN"],
    )
    assert set(found) == {"sk-1", "tok-2", "mine-3", "pa55", "bWU6cGE1NQ==", "abc"}


def test_tokens_of_an_address_are_secrets_and_its_settings_are_not() -> None:
    url = "wss://agent.example/pcm?rate_hz=16000&frame_ms=20&k=Ab3dEf6hIj9kLm&access_token=xyz&v=2"
    assert set(url_secrets(url, None, "not a url", "http://[bad")) == {"Ab3dEf6hIj9kLm", "xyz"}

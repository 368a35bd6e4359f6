"""No codec crashes, and none makes much of little, whatever a peer sends.

Three ways to be wrong: bytes at random, JSON of the protocol's own words with values of
every kind in every place, and good messages that were cut, joined and changed.
"""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import codec_seeds
from codec_targets import TARGETS, Target, gpt_live_as_client, side_reports
from duplex.protocols.model_values import TEXT_LIMIT, Message
from duplex.protocols.responses_server import KEPT_CHARACTERS, Memory
from duplex.values import Json

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
WORDS = st.sampled_from(codec_seeds.words())
NUMBERS = st.integers() | st.sampled_from([10**400, -(10**400), 2**63, -1, 0, 1, 2.0, 1e308, 0.5])
LEAVES = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=12)
VALUES: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=24,
)
OBJECTS = st.dictionaries(WORDS | st.sampled_from(["type", "event"]), VALUES, max_size=8)
TYPED = st.builds(lambda kind, rest: {**rest, "type": kind}, WORDS, OBJECTS)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A good message with one of its values replaced, or its bytes cut and joined."""
    message = draw(st.sampled_from(codec_seeds.messages()))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(message)))
        other = draw(st.sampled_from(codec_seeds.messages()))
        return (message[:at] + draw(st.sampled_from(["", "\n", '"', other]))).encode()
    try:
        value: Json = json.loads(message)
    except ValueError:
        return message.encode() + draw(st.binary(max_size=8))
    return json.dumps(_with_one_changed(draw, value)).encode()


def _with_one_changed(draw: st.DrawFn, value: Json) -> Json:
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: _with_one_changed(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _with_one_changed(draw, value[at]), *value[at + 1 :]]
    return draw(VALUES)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@QUICK
@given(data=st.binary(max_size=600))
def test_bytes_at_random_are_answered_with_values(target: Target, data: bytes) -> None:
    target(data)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@QUICK
@given(messages=st.lists(TYPED | OBJECTS, min_size=1, max_size=3))
def test_any_values_in_any_place_are_answered_with_values(
    target: Target, messages: list[dict[str, Json]]
) -> None:
    target("\n".join(map(json.dumps, messages)).encode())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@QUICK
@given(messages=st.lists(changed(), min_size=1, max_size=4))
def test_good_messages_gone_wrong_are_answered_with_values(
    target: Target, messages: list[bytes]
) -> None:
    target(b"\n".join(messages))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@pytest.mark.parametrize("text", ["[" * 100_000, '{"type":' * 5_000, "9" * 5_000, "\x00" * 1_000])
def test_what_is_made_to_exhaust_a_reader_does_not(target: Target, text: str) -> None:
    target(text.encode())


def test_a_number_no_float_can_hold_is_no_claim() -> None:
    side_reports(b'{"type": "latency", "ms": ' + b"9" * 400 + b"}")


def test_a_large_message_is_not_kept_by_the_reader() -> None:
    message = ('{"type":"session.output_audio.delta","delta":"' + "A" * 2_000_000 + '"}').encode()
    tracemalloc.start()
    try:
        for _ in range(3):
            gpt_live_as_client(message)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


def test_remembered_responses_are_bounded_by_what_they_hold() -> None:
    memory = Memory()
    for number in range(20):
        memory.keep(f"resp_{number}", (Message(role="user", text="x" * TEXT_LIMIT * 16),))
    held = [number for number in range(20) if memory.recall(f"resp_{number}") is not None]
    assert held == list(range(20 - len(held), 20))
    assert 1 <= len(held) <= KEPT_CHARACTERS // (TEXT_LIMIT * 16)

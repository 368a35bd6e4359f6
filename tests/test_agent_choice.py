"""What ``--assistant`` may say, and what a run then knows of its agent."""

from __future__ import annotations

import pytest

from duplex.agents import parse
from duplex.errors import InputError
from duplex.options import make
from duplex.participants.transport import shown_url


@pytest.mark.parametrize(
    "text, kind, target",
    [
        ("local", "local", ""),
        ("client", "gpt-live", ""),
        ("twilio:ws://127.0.0.1:5050/media-stream", "twilio", "ws://127.0.0.1:5050/media-stream"),
        ("twilio:wss://agent.example/s", "twilio", "wss://agent.example/s"),
        ("ws://127.0.0.1:9/a?rate_hz=8000", "pcm", "ws://127.0.0.1:9/a?rate_hz=8000"),
        ("wss://[::1]:9", "pcm", "wss://[::1]:9"),
        ("my.agents:factory", "python", "my.agents:factory"),
        ("folder/agent.py:make", "python", "folder/agent.py:make"),
    ],
)
def test_every_spelling_names_one_kind_of_agent(text: str, kind: str, target: str) -> None:
    agent = parse(text)
    assert (agent.kind, agent.target) == (kind, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "locl",
        "http://127.0.0.1:1",
        "twilio:",
        "twilio:http://127.0.0.1",
        "twilio:ws://",
        "ws://",
        "wss:///path",
        "ws://host:port",
        "ws://host:99999",
        "ws://ho st/",
        "ws://host/#part",
        "ws://host/\n",
        "module:",
        ":factory",
        "module:not-a-name",
    ],
)
def test_anything_else_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match="assistant") as caught:
        parse(text)
    assert "\n" not in str(caught.value).replace(text, "")
    with pytest.raises(InputError):
        make({"assistant": text})


def test_an_address_is_shown_without_what_may_be_a_secret() -> None:
    agent = parse("wss://me:pass@agent.example:8/a?token=t0ps3cret")
    assert shown_url(agent.target) == "wss://agent.example:8/a"
    assert shown_url("my.agents:factory") == "my.agents:factory"


def test_only_agents_that_can_wait_take_part_in_virtual_time() -> None:
    assert make({"assistant": "m:f", "clock": "virtual"}).agent.lock_step
    with pytest.raises(InputError, match="virtual"):
        make({"assistant": "twilio:ws://127.0.0.1:1", "clock": "virtual"})


@pytest.mark.parametrize(
    "query, said",
    [
        ("rate_hz=7999", "rate_hz=7999"),
        ("rate_hz=1e4", "rate_hz=1e4"),
        ("rate_hz=", "rate_hz="),
        ("frame_ms=0", "frame_ms=0"),
        ("frame_ms=-20", "frame_ms=-20"),
        ("rate_hz=11025&frame_ms=5", "frame_ms=5"),
    ],
)
def test_a_rate_or_frame_that_cannot_be_is_refused(query: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make({"assistant": f"ws://127.0.0.1:1/?{query}"})

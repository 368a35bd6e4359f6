"""A model nobody serves is refused before any call, by every option that names one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import duplex
from duplex.cli import app
from duplex.errors import InputError
from duplex.models.place import ModelPlace
from duplex.models.reach import refuse_unreachable
from fake_models import error, in_turn, serving


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A loopback URL at which nobody listens while the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("backend-url", ("backend_model",)),
        ("brain-url", ("brain_model",)),
        ("brain-url", ("simulator_brain_model",)),
        ("completion-url", ("completion_model",)),
    ],
)
def test_a_refused_connection_is_one_sentence_and_no_call(
    tmp_path: Path, nowhere: str, option: str, names: tuple[str, ...]
) -> None:
    given: dict[str, object] = {option.replace("-", "_"): nowhere, "clock": "virtual"}
    given |= dict.fromkeys(names, "m")
    with pytest.raises(
        InputError, match=rf"^{option}: no server .* {nowhere} .*connection refused"
    ):
        duplex.run(out=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


def test_the_command_ends_with_2_and_one_line(tmp_path: Path, nowhere: str) -> None:
    arguments = ["run", "--out", str(tmp_path), "--backend-url", nowhere, "--backend-model", "m"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    result = CliRunner().invoke(app, ["local", "--brain-url", nowhere, "--brain-model", "m"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


async def test_whatever_a_server_answers_it_is_there_and_asked_once_without_a_key() -> None:
    for reply in (error(401, "who are you"), error(500, "broken")):
        with serving(in_turn([reply])) as fake:
            where = ModelPlace(url=fake.url, model="m", key="sk-secret")
            await refuse_unreachable({"backend-url": where, "brain-url": where})
            assert fake.asked == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"completion_url": "http://127.0.0.1:9/v1"}, "completion-model"),
        ({"semantic_drain": True}, "wants a completion-model"),
        ({"completion_model": "m", "completion_url": "ftp://x"}, "completion-url"),
        ({"completion_model": "m", "completion_url": "http://example.org/v1"}, "plain text"),
        ({"completion_model": "m", "completion_timeout_seconds": 0.0}, "completion-timeout"),
        ({"completion_model": "m", "completion_timeout_seconds": 1e9}, "completion-timeout"),
    ],
)
def test_completion_options_that_cannot_be_are_refused(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        duplex.run(**options)

"""A response that was begun and failed for want of capacity: asked again, and nobody's failure."""

from __future__ import annotations

import pytest

from duplex.application.base import BackendFailed, Line
from duplex.application.model_backend import ModelBackend
from duplex.application.restaurant import application
from duplex.clock import VirtualClock
from duplex.models import client as asking
from duplex.models.client import Waited
from duplex.protocols.responses import StreamReader
from duplex.values import RemoteFault
from fake_models import Reply, response
from test_managed_work import Bench
from test_models import ASK, CLOCK, asked


def failed(code: str) -> Reply:
    return response(status="failed", error={"code": code, "message": "slow down"})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    paused: list[float] = []

    async def at_once(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(asking, "real_pause", at_once)
    return paused


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "overloaded_error"])
async def test_it_is_asked_again_and_the_wait_is_told(code: str) -> None:
    waits: list[Waited] = []
    async with asked([failed(code), response("hi")]) as (client, fake):
        answer = await client.answer(ASK, CLOCK, waits.append)
    assert (answer.status, answer.text, len(fake.asked)) == ("completed", "hi", 2)
    assert [one.status for one in waits] == [429 if code.startswith("rate") else 503]


async def test_it_is_asked_so_often_and_no_more() -> None:
    async with asked([failed("rate_limit_exceeded")]) as (client, fake):
        answer = await client.answer(ASK, CLOCK)
    assert (answer.status, answer.unserved) == ("failed", True)
    assert len(fake.asked) == asking.ATTEMPTS


@pytest.mark.parametrize("code", ["insufficient_quota", "content_filter", "invalid_prompt"])
async def test_what_waiting_cannot_mend_is_not_asked_again(code: str) -> None:
    async with asked([failed(code)]) as (client, fake):
        answer = await client.answer(ASK, CLOCK)
    assert (answer.code, len(fake.asked)) == (code, 1)
    assert answer.unserved == (code == "insufficient_quota")


@pytest.mark.parametrize(("code", "fatal"), [("insufficient_quota", True), ("other", False)])
async def test_our_own_models_want_of_capacity_is_no_failed_delegation(
    code: str, fatal: bool
) -> None:
    clock = VirtualClock(24_000)
    async with asked([failed(code)]) as (client, _):
        backend = ModelBackend(application, {}, client)
        line = Line(role="user", text="A table, please.", start_ms=0)
        task = clock.spawn(backend.handle("d1", [line], clock, lambda one: None))
        await clock.advance(24_000 * 10)
        with pytest.raises(BackendFailed) as caught:
            await task
    assert (caught.value.fatal, caught.value.code) == (fatal, code if fatal else "response_failed")


@pytest.mark.parametrize(
    ("code", "stage", "told"),
    [
        ("rate_limit_exceeded", "provider", "rate_limit_exceeded"),
        ("invalid_prompt", "backend", "response_failed"),
    ],
)
def test_a_services_own_backend_without_capacity_is_its_providers_fault(
    code: str, stage: str, told: str
) -> None:
    bench = Bench()
    bench.delegated("d1")
    bench.begin("d1", "r1")
    bench.end("d1", "r1", "failed", error={"code": code, "message": "slow down"})
    (fault,) = [item for item in bench.reading.collect() if isinstance(item, RemoteFault)]
    assert (fault.stage, fault.code, fault.fatal) == (stage, told, False)


def test_an_error_in_a_stream_keeps_its_code() -> None:
    reader = StreamReader()
    reader.take({"type": "response.created", "response": {"id": "r"}})
    answer = reader.take({"type": "error", "code": "rate_limit_exceeded", "message": "slow"})
    assert answer is not None
    assert (answer.code, answer.unserved) == ("rate_limit_exceeded", True)  # type: ignore[union-attr]

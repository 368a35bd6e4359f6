"""Whole calls with a fake Twilio agent in virtual time: the demo, and what reports change."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from duplex import agents, ends, viewer
from duplex.local.engines import SpeechEngines
from duplex.options import make
from duplex.remeasuring import remeasure
from duplex.results import schema
from duplex.runner import Finished, Runner
from duplex.values import Json
from duplex.viewer.claims import claim_rows
from fake_engines import Parrot, speaking
from twilio_agent import TwilioAgent

TREE = Path(__file__).parents[1]
BOOKING = "restaurant_booking_complete"


@contextmanager
def joined(agent: TwilioAgent) -> Iterator[None]:
    """Let a run reach ``agent`` over memory, so that it can be held in virtual time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agents, "_TWILIO", replace(agents._TWILIO, lock_step=True))
        patch.setattr(ends, "bare_websocket", lambda url: agent.connector())
        yield


def options(out: Path) -> dict[str, object]:
    return {
        "data": TREE / "scenarios",
        "scenario": (BOOKING,),
        "assistant": "twilio:ws://127.0.0.1:1/stream",
        "clock": "virtual",
        "out": out,
    }


async def booked(out: Path, *, reports: bool = True) -> tuple[Finished, TwilioAgent]:
    with speaking(Parrot()):
        engines = await SpeechEngines.open()
        agent = TwilioAgent(engines=engines, state={}, reports=reports)
        with joined(agent):
            return await Runner(make(options(out))).run(), agent


def check(result: schema.Result, name: str) -> tuple[str, bool]:
    (found,) = [one for one in result.assessment.checks if one.id == name]
    return found.status, found.required


def at(value: Json, *path: str | int) -> Json:
    for step in path:
        assert isinstance(value, dict | list)
        value = value[step]  # type: ignore[index]
    return value


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, TwilioAgent]:
    """The demo with an agent that reports what it does; held once, only looked at."""
    return asyncio.run(booked(tmp_path_factory.mktemp("demo")))


def test_the_demo_books_its_table_with_a_twilio_agent(demo: tuple[Finished, TwilioAgent]) -> None:
    finished, agent = demo
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.duplex["faults"] == []
    assert result.duplex["interrupted_replies"] == []
    # What its tools did came over the side channel; its wire has no delegation.
    assert check(result, "application_state") == ("passed", True)
    assert check(result, "verified_state_change") == ("passed", True)
    assert check(result, "grounded_assistant_response") == ("passed", True)
    assert check(result, "delegation_policy") == ("not_applicable", False)
    assert [tool.status for tool in result.observability.tools.executed] == ["completed"] * 2
    assert result.metrics.task.tool_accuracy == 1.0
    assert result.metrics.task.delegation_accuracy is None
    assert result.observability.interaction.audio_source == "local_twilio"
    configuration = finished.run.run.configuration
    assert (configuration.assistant_mode, configuration.model) == ("twilio", None)
    assert configuration.assistant_endpoint == "ws://127.0.0.1:1/stream"
    hold = finished.run.run.duplex["playout_hold"]
    assert hold == {"start_ms": 120, "adaptive": True, "assistant_start_ms": 60}
    # Every mark it set came back, and stop came last.
    names = [at(one, "mark", "name") for one in agent.sent if one["event"] == "mark"]
    assert names
    assert [at(one, "mark", "name") for one in agent.of("mark")] == names
    assert [one["event"] for one in agent.received][:2] == ["connected", "start"]
    assert agent.received[-1]["event"] == "stop"
    media = agent.of("media")
    assert len(media) == at(dict(result.duplex), "duration_ms") // 20  # type: ignore[operator]


def test_what_the_agent_claims_stands_beside_what_was_heard(
    demo: tuple[Finished, TwilioAgent],
) -> None:
    finished, _ = demo
    (result,) = finished.run.results
    ours = dict(result.duplex)
    claims = ours["claims"]
    assert isinstance(claims, list)
    assert len(claims) >= 3
    for row in claims:
        turn = at(ours, "timing", "turns", at(row, "turn"))  # type: ignore[arg-type]
        heard, own = at(row, "heard_latency_ms"), at(row, "assistant_own_ms")
        first, final = at(row, "first_byte_ms"), at(row, "asr_final_ms")
        assert at(turn, "side") == "assistant"
        assert at(turn, "response_latency_ms") == heard
        assert isinstance(heard, float)
        assert isinstance(own, float)
        assert isinstance(first, float)
        assert isinstance(final, float)
        assert 0 < final < first < heard
        # The agent heard the caller 73 ms late, and so made its claim later than it knows.
        assert own == pytest.approx(first - 73, abs=60)
    hold, turns = at(ours, "timing", "relay", "hold_ms"), at(ours, "timing", "turns")
    assert isinstance(turns, list)
    assert at(hold, "n") == len([turn for turn in turns if at(turn, "side") == "assistant"])
    assert 60 <= float(str(at(hold, "mean"))) <= 150
    page = (finished.folder / "transcripts" / f"{BOOKING}.json").read_text(encoding="utf-8")
    said = [one for one in json.loads(page) if one["role"] == "assistant"]
    assert {one["source"] for one in said} == {"heard"}


async def test_an_agent_that_reports_nothing_is_not_graded_on_it(tmp_path: Path) -> None:
    finished, agent = await booked(tmp_path, reports=False)
    (result,) = finished.run.results
    assert not [one for one in agent.sent if one["event"] == "duplex"]
    assert result.status == "passed", result.model_dump_json(indent=1)
    for name in (
        "application_state",
        "verified_state_change",
        "grounded_assistant_response",
    ):
        assert check(result, name) == ("not_assessed", False), name
    assert check(result, "delegation_policy") == ("not_applicable", False)
    assert result.metrics.task.tool_accuracy is None
    assert result.duplex["claims"] is None
    assert at(dict(result.duplex), "unknown", "/duplex/claims")


def test_the_page_and_a_second_measurement_show_the_claims(
    demo: tuple[Finished, TwilioAgent],
) -> None:
    finished, _ = demo
    (result,) = finished.run.results
    claims = result.duplex["claims"]
    assert isinstance(claims, list)
    rows = claim_rows(claims)
    assert len(rows) == len(claims)
    assert all("heard" in row.value and "first byte" in row.details[-1] for row in rows)
    assert "beside what was heard" in viewer.build(finished.folder).read_text(encoding="utf-8")
    (again,) = remeasure(finished.folder, response_deadline_ms=1_000).run.results
    assert again.duplex["claims"] == claims


@pytest.mark.speech
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ctranslate2", "piper")),
    reason="the local extra is not installed",
)
async def test_the_embedded_voice_behind_a_telephone_books_the_demos_table(tmp_path: Path) -> None:
    engines = await SpeechEngines.open()
    try:
        agent = TwilioAgent(engines=engines, state={})
        with joined(agent):
            finished = await Runner(make(options(tmp_path))).run()
    finally:
        await engines.close()
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert check(result, "application_state") == ("passed", True)

"""Whole calls over Realtime: the local voice in turns, joined to a caller by audio alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from duplex.api import run
from duplex.errors import InputError
from duplex.options import make
from duplex.recording import Recording
from duplex.runner import Finished
from duplex.values import Json, Side
from fake_engines import Parrot, speaking
from scenario_files import single, write

SCENARIOS = Path(__file__).parents[1] / "scenarios"
BOOKING = "restaurant_booking_complete"
OVER: dict[str, object] = {
    "clock": "virtual",
    "endpoint": "local",
    "assistant": "realtime",
    "detector": "rms",
}


def booked(tmp_path: Path, **options: object) -> Finished:
    given: dict[str, object] = {"data": SCENARIOS, "scenario": (BOOKING,), **OVER}
    with speaking(Parrot()):
        return run(out=tmp_path / "runs", **(given | options))


def interrupted(tmp_path: Path, **options: object) -> Finished:
    """A caller that talks over the assistant's second turn."""
    script: list[dict[str, object]] = [
        {"text": "I'd like a table for two on August seventh, please.", "action": "OPENING"},
        {"text": "Sorry, make it for three people.", "action": "INTERRUPT", "into_ms": 600},
        {"text": "Goodbye.", "action": "STOP"},
    ]
    scenario = single("talked_over", duplex={"script": script, "first_speaker": "assistant"})
    file = write(tmp_path / "in.json", scenario)
    with speaking(Parrot()):
        return run(
            data=file, out=tmp_path / "runs", caller="scripted", drain_ms=0, **(OVER | options)
        )


def clock_of(finished: Finished) -> dict[str, Json]:
    timing = finished.run.results[0].duplex["timing"]
    assert isinstance(timing, dict)
    clock = timing["clock"]
    assert isinstance(clock, dict)
    return clock


@pytest.mark.parametrize("turns", ["server_vad", "manual"])
def test_the_demo_books_its_table_over_realtime(tmp_path: Path, turns: str) -> None:
    finished = booked(tmp_path, turn_detection=turns)
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.assessment is not None
    status = {check.id: check.status for check in result.assessment.checks}
    assert status["delegation_policy"] == "not_applicable"
    assert status["application_state"] == status["grounded_assistant_response"] == "passed"
    assert [call.name for call in result.observability.tools.executed or ()] == [
        "check_availability",
        "create_reservation",
    ]
    assert result.observability.interaction.audio_source == "local_realtime"
    assert result.duplex["interrupted_replies"] == []
    assert finished.run.run.configuration.model == "gpt-realtime-2"


def test_the_demo_passes_in_a_telephone_format_with_semantic_turns(tmp_path: Path) -> None:
    finished = booked(tmp_path, audio_format="pcmu", turn_detection="semantic_vad")
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        finished = booked(tmp_path / name)
        folder = finished.folder / "audio" / BOOKING
        sound = (folder / "conversation.wav").read_bytes()
        digests.add(hashlib.sha256(sound).hexdigest())
    assert len(digests) == 1


def test_a_caller_over_realtime_gets_its_table(tmp_path: Path) -> None:
    (result,) = booked(tmp_path, assistant="local", caller="realtime").run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.observability.interaction.caller_mode == "realtime"
    assert result.observability.interaction.audio_source == "realtime_local"


def test_a_talked_over_reply_stands_in_the_result_with_what_was_heard(tmp_path: Path) -> None:
    finished = interrupted(tmp_path)
    (result,) = finished.run.results
    cuts = result.duplex["interrupted_replies"]
    assert isinstance(cuts, list)
    (cut,) = cuts
    assert isinstance(cut, dict)
    heard_ms, received_ms = cut["heard_ms"], cut["received_ms"]
    assert isinstance(heard_ms, (int, float))
    assert isinstance(received_ms, (int, float))
    assert 0 < heard_ms < received_ms
    clock = clock_of(finished)
    assert clock["interrupted_replies"] == cuts
    discarded = clock["discarded_samples"]
    assert isinstance(discarded, int)
    assert abs(discarded - (received_ms - heard_ms) * 24) <= 24
    call = Recording.load(finished.folder, "talked_over")
    spoken = [line for line in call.spoken_by(Side.ASSISTANT) if line.span.length == heard_ms * 24]
    assert len(spoken) == 1
    # After the cut there is silence to the sample until the next reply.
    source = call.source(Side.ASSISTANT)
    assert not source[spoken[0].span.end : spoken[0].span.end + 12_000].any()


@pytest.mark.parametrize("transport_ms", [10, 100])
def test_what_was_heard_does_not_depend_on_the_tick(tmp_path: Path, transport_ms: int) -> None:
    finished = interrupted(tmp_path, transport_ms=transport_ms)
    cuts = finished.run.results[0].duplex["interrupted_replies"]
    assert isinstance(cuts, list)
    (cut,) = cuts
    assert isinstance(cut, dict)
    heard_ms = cut["heard_ms"]
    assert isinstance(heard_ms, (int, float))
    assert 600 <= heard_ms <= 600 + 320 + 2 * transport_ms


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"assistant": "realtime", "clock": "virtual"}, "remote session"),
        ({"caller": "realtime", "clock": "virtual"}, "remote session"),
        ({"assistant": "gpt-live", "endpoint": "local"}, "answers the Realtime API"),
        ({"assistant": "realtime", "turn_detection": "ears"}, "turn-detection"),
        ({"turn_detection": "manual"}, "of Realtime sessions"),
        ({"assistant": "realtime", "assistant_endpoint": "https://h/w"}, "client delegation"),
        ({"assistant": "realtime", "audio_format": "mp3"}, "audio-format"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(options)


def test_a_model_may_be_named_and_each_api_has_its_own_default() -> None:
    assert make({"assistant": "realtime"}).assistant_model == "gpt-realtime-2"
    assert make({"assistant": "realtime", "model": "mine"}).assistant_model == "mine"
    assert make({"assistant": "gpt-live"}).assistant_model == "gpt-live-1"
    assert make({"caller": "realtime"}).caller_model == "gpt-realtime-2"


def test_without_a_key_nothing_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        run(data=SCENARIOS, scenario=(BOOKING,), assistant="realtime", out=tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with pytest.raises(InputError, match="TLS"):
        run(
            data=SCENARIOS,
            scenario=(BOOKING,),
            assistant="realtime",
            endpoint="ws://example.com/v1",
            out=tmp_path,
        )

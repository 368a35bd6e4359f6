"""A scripted caller says its lines at their times, labelled, whatever is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duplex.api import run
from duplex.cli import app
from duplex.recording import Recording
from duplex.runner import Finished
from duplex.values import Side, Utterance
from fake_engines import Parrot, speaking
from scenario_files import single, write

FIRST = "I'd like a table for two on August seventh, please."
SCRIPT: list[dict[str, object]] = [
    {"text": FIRST, "action": "OPENING"},
    {"text": "Mm-hmm.", "action": "BACKCHANNEL", "into_ms": 700},
    {"text": "Under Maya, at seven p.m., please.", "pause_ms": 1500},
    {"text": "Sorry, make it eight p.m. instead, please.", "action": "INTERRUPT"},
    {"text": "Yes, that's right."},
    {"text": "Great, thank you. Goodbye.", "action": "STOP"},
]


def held(tmp_path: Path, script: list[dict[str, object]], **options: object) -> Finished:
    scenario = single("scripted", duplex={"script": script, "first_speaker": "assistant"})
    file = write(tmp_path / "in.json", scenario)
    shared: dict[str, object] = {"clock": "virtual", "detector": "rms", "caller": "scripted"}
    with speaking(Parrot()):
        return run(data=file, out=tmp_path / "runs", **(shared | options))


def recording(finished: Finished) -> Recording:
    return Recording.load(finished.folder, "scripted")


def lines(call: Recording) -> tuple[Utterance, ...]:
    return call.spoken_by(Side.CALLER)


def turns(call: Recording) -> list[tuple[int, int]]:
    """The assistant's stretches of speech in ms, joined over pauses below 800 ms."""
    found: list[tuple[int, int]] = []
    for segment in call.segments:
        if segment.side is Side.ASSISTANT:
            start, end = call.ms(segment.span.start), call.ms(segment.span.end)
            if found and start - found[-1][1] < 800:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
    return found


def test_a_script_is_said_in_order_and_its_actions_are_the_labels(tmp_path: Path) -> None:
    finished = held(tmp_path, SCRIPT)
    [result] = finished.run.results
    call = recording(finished)
    assert [(u.text, str(u.action), u.source) for u in lines(call)] == [
        (line["text"], line.get("action", "SPEAK"), "caller_intent") for line in SCRIPT
    ]
    assert result.error is None
    assert result.observability.interaction.caller_mode == "scripted"
    assert result.observability.interaction.caller_actions == {
        "OPENING": 1, "SPEAK": 2, "INTERRUPT": 1, "BACKCHANNEL": 1, "STOP": 1,
    }  # fmt: skip
    assert result.observability.completion.termination_reason == "response_completed"
    assert result.observability.agenda.completed == []
    state = call.final_state
    assert isinstance(state, dict)
    assert (state["time"], state["guest_name"]) == ("20:00", "Maya")


def test_each_line_begins_at_its_place_in_the_conversation(tmp_path: Path) -> None:
    call = recording(held(tmp_path, SCRIPT))
    spoken = [(call.ms(u.span.start), call.ms(u.span.end)) for u in lines(call)]
    theirs = turns(call)
    opening, murmur, answer, interruption, agreed, _ = spoken
    # After the greeting, as soon as it is surely over.
    assert 800 <= opening[0] - theirs[0][1] <= 1_100
    # 700 ms into the turn it is murmured into, and a second and a half after that turn.
    assert abs(murmur[0] - theirs[1][0] - 700) <= 60
    assert murmur[1] < theirs[1][1]
    assert abs(answer[0] - theirs[1][1] - 1_500) <= 60
    # Without a time, a second into the assistant's next turn, which stops for it.
    assert abs(interruption[0] - theirs[2][0] - 1_000) <= 60
    assert agreed[0] > interruption[1] + 800


@pytest.mark.parametrize("transport_ms", [10, 137, 200])
def test_set_times_are_kept_to_the_sample_at_any_tick(tmp_path: Path, transport_ms: int) -> None:
    script: list[dict[str, object]] = [
        {"text": "One two three.", "at_ms": 1_234},
        {"text": "Four.", "at_ms": 9_001, "action": "CORRECT"},
    ]
    call = recording(held(tmp_path, script, transport_ms=transport_ms, drain_ms=0))
    first, second = lines(call)
    assert (first.span.start, second.span.start) == (1_234 * 24, 9_001 * 24)
    source = call.source(Side.CALLER)
    sounding = [place for place in (first, second) if source[place.span.start :][:2_000].any()]
    assert len(sounding) == 2
    assert not source[first.span.end : second.span.start].any()


def test_lines_whose_time_has_passed_follow_the_line_before(tmp_path: Path) -> None:
    script: list[dict[str, object]] = [
        {"text": "one two three four five six", "at_ms": 3_000},
        {"text": "seven", "at_ms": 3_100},
    ]
    first, second = lines(recording(held(tmp_path, script, drain_ms=0)))
    assert second.span.start == first.span.end


def test_a_script_that_begins_the_call_waits_for_nobody(tmp_path: Path) -> None:
    script: list[dict[str, object]] = [{"text": "Hello there.", "action": "OPENING"}]
    [line] = lines(recording(held(tmp_path, script, first_speaker="caller")))
    assert line.span.start == 0


def test_the_same_script_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    calls = [recording(held(tmp_path, SCRIPT[:3], run_name=name)) for name in ("a", "b")]
    first, second = (call.conversation().tobytes() for call in calls)
    assert first == second


def test_a_scenario_without_a_script_has_nothing_to_say(tmp_path: Path) -> None:
    file = write(tmp_path / "in.json", single("bare"))
    done = CliRunner().invoke(app, ["run", "--data", str(file), "--caller", "scripted"])
    assert done.exit_code == 2
    assert "scenarios[0].duplex.script is empty, want the lines that --caller" in done.stderr


def test_a_line_has_one_time(tmp_path: Path) -> None:
    script = [{"text": "x", "into_ms": 5, "pause_ms": 5}]
    file = write(tmp_path / "in.json", single("bare", duplex={"script": script}))
    done = CliRunner().invoke(app, ["scenario", "validate", str(file)])
    assert done.exit_code == 2
    assert "script[0] has both pause_ms and into_ms, want one" in done.stderr


def test_the_results_say_who_called(tmp_path: Path) -> None:
    finished = held(tmp_path, SCRIPT[:1])
    written = json.loads((finished.folder / "results.json").read_text(encoding="utf-8"))
    assert written["run"]["configuration"]["simulator_model"] == "scripted"
    [result] = written["results"]
    assert result["observability"]["interaction"]["audio_source"] == "scripted_local"
    assert result["validity"]["scope"] == "scripted_caller"

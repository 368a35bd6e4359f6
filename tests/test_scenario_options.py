"""The object ``duplex`` says how a call is held, and is as strict as the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from duplex.scenario import DuplexOptions, load, validate
from duplex.values import Action
from scenario_files import multi, single, write


def test_a_scenario_lays_its_options_over_those_of_its_dataset(tmp_path: Path) -> None:
    ours = {"seed": 3, "persona": {"interruptions": "frequent"}, "conditions": ["telephony"]}
    shared = {
        "seed": 1,
        "rate_hz": 16000,
        "persona": {"interruptions": "off", "backchannels": "off"},
        "conditions": ["noisy", "echo"],
    }
    path = write(tmp_path / "f.json", multi("a") | {"duplex": ours}, multi("b"), duplex=shared)
    first, second = load(path).scenarios
    assert (first.duplex.seed, first.duplex.rate_hz) == (3, 16000)
    assert first.duplex.conditions == ("telephony",)
    assert (first.persona.interrupt_tendency, first.persona.backchannel_tendency) == (0.75, 0.0)
    assert (second.duplex.seed, second.persona.interrupt_tendency) == (1, 0.0)
    assert second.duplex.first_speaker is None


def test_levels_left_out_leave_the_persona_as_written(tmp_path: Path) -> None:
    persona = {"interrupt_tendency": 0.6, "backchannel_tendency": 0.4}
    scenario = multi(persona=persona) | {"duplex": {"persona": {"backchannels": "occasional"}}}
    loaded = load(write(tmp_path / "f.json", scenario)).scenarios[0].persona
    assert (loaded.interrupt_tendency, loaded.backchannel_tendency) == (0.6, 0.25)


def test_a_script_is_read(tmp_path: Path) -> None:
    script = [
        {"text": "Hello.", "at_ms": 500, "action": "OPENING"},
        {"text": "Mm-hmm.", "pause_ms": 0, "action": "BACKCHANNEL"},
        {"text": "Bye."},
    ]
    path = write(tmp_path / "f.json", single(duplex={"script": script}))
    lines = load(path).scenarios[0].duplex.script
    assert lines is not None
    assert [(line.at_ms, line.pause_ms, line.action) for line in lines] == [
        (500, None, Action.OPENING),
        (None, 0, Action.BACKCHANNEL),
        (None, None, Action.SPEAK),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rate_hz": 11025}, ".rate_hz is the number 11025, want 8000, 16000, 24000 or 48000"),
        ({"rate_hz": "24000"}, '.rate_hz is text "24000", want 8000'),
        ({"seed": -1}, ".seed is the number -1, want at least 0"),
        ({"seed": 1.0}, ".seed is the number 1.0, want an integer"),
        ({"first_speaker": "agent"}, '.first_speaker is text "agent", want "caller"'),
        ({"conditions": [" "]}, '.conditions[0] " " is no condition'),
        ({"conditions": "noisy"}, '.conditions is text "noisy", want a list'),
        ({"checks": ["latency"]}, '.checks[0] "latency" is no check, want for example'),
        ({"persona": {"pace": "super"}}, '.persona.pace is text "super", want "slow"'),
        (
            {"script": [{"text": "x", "at_ms": 1, "pause_ms": 1}]},
            ".script[0] has both at_ms and pause_ms, want one",
        ),
        ({"script": [{"text": " "}]}, '.script[0].text is text " ", want some text'),
        ({"script": [{"text": "x", "action": "TALK"}]}, '.script[0].action is text "TALK"'),
    ],
)
def test_options_are_strict(tmp_path: Path, options: dict[str, object], told: str) -> None:
    path = write(tmp_path / "f.json", single(duplex=options))
    errors = validate(path)
    assert len(errors) == 1
    assert f"scenarios[0].duplex{told}" in errors[0]
    whole = write(tmp_path / "g.json", single(), duplex=options)
    assert f": duplex{told}" in validate(whole)[0]


@pytest.mark.parametrize(
    "check", ["response_latency.p95 <= 1500ms", "floor.silence_ms<3000", "yield_rate >= 90%"]
)
def test_checks_of_every_form_are_taken(check: str) -> None:
    assert DuplexOptions(checks=(check,)).checks == (check,)

"""Scenarios made from runs, from LiveKit's files and from answers: valid, and true to them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duplex.cli import app
from duplex.composing import Answers, compose
from duplex.errors import InputError
from duplex.exports.said import SaidLine
from duplex.importing import imported
from duplex.preflight import validate
from duplex.reliving import find, scenario_of, script_of
from duplex.results.schema import to_json
from duplex.scenario_files import put
from duplex.values import Action
from duplex.verdict.block import judged
from duplex.verdict.criteria import read_check
from duplex.verdict.incidents import incidents
from plan_runs import runner
from verdict_runs import call, run

APPLICATION = "duplex.application.restaurant:application"
SAID = [
    {"role": "assistant", "text": "Hello?", "start_ms": 500, "end_ms": 1000},
    {"role": "user", "text": "A table, please.", "start_ms": 1600, "end_ms": 2500},
    {"role": "assistant", "text": "For when would that be?", "start_ms": 5400, "end_ms": 7000},
    {"role": "user", "text": "Mm-hmm.", "start_ms": 6000, "end_ms": 6300, "action": "BACKCHANNEL"},
    {"role": "user", "text": "Friday.", "start_ms": 7500, "end_ms": 8000},
]
THEIRS = """
name: Hotel
id: SCNG_1
scenarios:
  - id: SCN_late
    label: Late arrival
    instructions: |
      PERSONA: Tired, short answers.
      OPENING LINE: "Hi, I'll be late tonight."
      FACTS (reveal only when asked):
      - booking number: H-2231
      - arrival: 11 pm
      DO, IN ORDER:
      1. Say that you will be late.
      2. Ask whether the bar is open.
      HIDDEN TRUTH: The card has expired.
    agent_expectations: |
      - Notes the late arrival.
      - Says when the bar closes.
    tags: {area: desk}
    userdata: {room: 12}
  - label: Towels
    instructions: Ask for more towels. Be kind.
"""


def stored(folder: Path) -> Path:
    """A run's folder with one slow call in it."""
    place = folder / "run"
    (place / "transcripts").mkdir(parents=True)
    made = run(call(scenario="restaurant_booking_complete", condition="noisy,snr=10", seed=11,
                    latencies=(900.0, 4000.0)))  # fmt: skip
    (place / "results.json").write_text(to_json(made))
    (place / "transcripts" / "restaurant_booking_complete.s1.json").write_text(json.dumps(SAID))
    return place


def test_a_recorded_call_becomes_a_script_at_the_same_pauses() -> None:
    script = script_of([SaidLine.model_validate(line) for line in SAID])
    assert [(line.text, line.pause_ms, line.into_ms, line.action) for line in script] == [
        ("A table, please.", 600, None, Action.SPEAK),
        ("Mm-hmm.", None, 600, Action.BACKCHANNEL),
        ("Friday.", 500, None, Action.SPEAK),
    ]


def test_an_incident_becomes_a_scenario_whose_check_fails_on_the_call(tmp_path: Path) -> None:
    place = stored(tmp_path)
    cases, criteria, _ = judged(run(call(scenario="restaurant_booking_complete",
                                         condition="noisy,snr=10", seed=11,
                                         latencies=(900.0, 4000.0))))  # fmt: skip
    (slow,) = incidents(cases, criteria)
    source = find(place, runs=tmp_path, call=None, incident=slow.id)
    scenario = scenario_of(source)
    assert scenario.duplex.conditions == ("noisy,snr=10",)
    assert scenario.duplex.seed == 11
    assert scenario.duplex.checks is not None
    check = read_check(scenario.duplex.checks[-1])
    assert check.min_pass_rate == 100
    assert check.grade(source.case.result).passed is False
    out = tmp_path / "slow.json"
    put((scenario,), out)
    found = validate(out, APPLICATION)
    assert found.errors == []
    assert found.scenarios[0].id == scenario.id
    # It keeps what its own scenario expects, and is another scenario all the same.
    assert scenario.expected.tools.required
    assert scenario.id != "restaurant_booking_complete"


def test_an_incident_of_an_own_check_needs_no_check_and_a_known_one_takes_its_share(
    tmp_path: Path,
) -> None:
    source = find(stored(tmp_path), runs=tmp_path, call="restaurant_booking_complete.s1",
                  incident=None)  # fmt: skip
    cases, criteria, _ = judged(run(call(latencies=(4000.0,))))
    (slow,) = incidents(cases, criteria)
    own = replace(slow, check="check.check_function:polite")
    assert scenario_of(replace(source, incident=own)).duplex.checks is None
    known = scenario_of(replace(source, incident=slow))
    loose = known.duplex.model_copy(update={"checks": (f"{slow.check} @ 50%", "turns <= 9")})
    again = replace(source, incident=slow, scenario=known.model_copy(update={"duplex": loose}))
    assert scenario_of(again).duplex.checks == ("turns <= 9", f"{slow.check} @ 100%")


def test_what_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    place = stored(tmp_path)
    with pytest.raises(InputError, match="no incident nothing, it has: slow-reply-"):
        find(place, runs=tmp_path, call=None, incident="nothing")
    with pytest.raises(InputError, match="it has no call x; calls: restaurant"):
        find(place, runs=tmp_path, call="x", incident=None)
    (place / "transcripts" / "restaurant_booking_complete.s1.json").unlink()
    with pytest.raises(InputError, match="nobody knows what its caller said"):
        scenario_of(find(place, runs=tmp_path, call=None, incident=None))


def test_a_file_that_exists_is_never_written_over(tmp_path: Path) -> None:
    place = stored(tmp_path)
    out = tmp_path / "x.json"
    out.write_text("mine")
    done = CliRunner().invoke(app, ["scenario", "from-run", str(place), "--out", str(out)])
    assert done.exit_code == 2
    assert out.read_text() == "mine"


async def test_a_scenario_from_a_run_is_held_again_with_its_check(tmp_path: Path) -> None:
    done = await runner(tmp_path, "slow", scenario=("restaurant_booking_complete",)).run()
    transcript = next((done.folder / "transcripts").iterdir())
    transcript.write_text(json.dumps(SAID))
    scenario = scenario_of(find(done.folder, runs=tmp_path, call=None, incident=None))
    slow = scenario.duplex.model_copy(update={"checks": ("response_latency.max <= 1s @ 100%",)})
    out = tmp_path / "again.json"
    put((scenario.model_copy(update={"duplex": slow}),), out)
    for factory, passed in (("slow", False), ("answers", True)):
        again = await runner(tmp_path, factory, data=out, scenario=()).run()
        _, _, verdict = judged(again.run)
        assert verdict is not None
        assert verdict.checks[1].passed is passed


def test_livekits_scenarios_keep_their_ids_and_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yaml"
    path.write_text(THEIRS)
    found = imported(path)
    late, towels = found.scenarios
    assert (late.id, towels.id) == ("SCN_late", "Towels")
    assert late.input.text == "Hi, I'll be late tonight."
    assert dict(late.simulation.known_facts) == {"booking_number": "H-2231", "arrival": "11 pm"}
    assert [item.commitment for item in late.simulation.agenda] == [
        "Say that you will be late.",
        "Ask whether the bar is open.",
    ]
    assert late.simulation.agenda[1].after == ("step_1",)
    assert late.expected.criteria == ("Notes the late arrival.", "Says when the bar closes.")
    assert late.tags == ("area=desk",)
    assert late.simulation.persona.description == "Tired, short answers."
    assert towels.input.text == "Ask for more towels."
    assert len(found.notes) == 2
    out = tmp_path / "hotel.json"
    put(found.scenarios, out)
    done = CliRunner().invoke(app, ["scenario", "import", str(path)])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["scenarios"][0]["id"] == "SCN_late"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenarios: []", "holds no scenario"),
        ("scenarios: [{label: a}]", "instructions"),
        ("scenarios: [{label: a, instructions: b, max_turns: 3}]", "max_turns"),
        ("[1, 2]", "valid"),
        ("scenarios: [{id: a, label: a, instructions: b}, {id: A, label: a, instructions: b}]",
         "twice"),
        ("scenarios: [{label: ' ', instructions: b}]", r"scenarios\[0\]: .*is blank"),
        ("scenarios: [{id: CON, label: a, instructions: b}]", "name of a device"),
    ],
)  # fmt: skip
def test_a_wrong_file_of_theirs_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        imported(path)


def test_a_person_is_asked_for_what_no_option_said() -> None:
    asked: list[str] = []
    replies = iter(
        ["Hello, a table please.", "A table.", "It is booked.", "name=Mia", "n=2", "", ""]
    )

    def ask(question: str) -> str:
        asked.append(question)
        return next(replies)

    scenario = compose(Answers(title="Table for two"), ask)
    assert scenario.id == "table_for_two"
    assert dict(scenario.simulation.known_facts) == {"name": "Mia", "n": 2}
    assert len(asked) == 7


def test_nobody_is_asked_without_a_terminal(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["scenario", "new", "--title", "x"])
    assert done.exit_code == 2
    assert "--opening is missing" in done.stderr
    options = ["--title", "x y", "--opening", "Hi.", "--goal", "g", "--answer", "a"]
    out = tmp_path / "new.json"
    more = ["--fact", "name=Mia", "--state", "booked=true", "--check", "response_latency <= 2s"]
    done = CliRunner().invoke(app, ["scenario", "new", *options, *more, "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    assert validate(out, APPLICATION).errors == []
    assert json.loads(out.read_text())["scenarios"][0]["expected"]["state"] == {"booked": True}


def test_a_check_that_names_nothing_is_found_by_validate(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    scenario = compose(
        Answers(title="x", opening="o", goal="g", answer="a", check=("loudness <= 5ms",)), None
    )
    put((scenario,), path)
    (error,) = validate(path, APPLICATION).errors
    assert 'metric "loudness" is unknown' in error
    assert "duplex.checks[0]" in error

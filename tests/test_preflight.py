"""What a call could not be held with is found before any session, and by validate too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duplex.application.model import Application
from duplex.application.restaurant import application as restaurant
from duplex.application.state import state_doubts, state_problems
from duplex.cli import app
from duplex.errors import InputError
from duplex.options import make
from duplex.preflight import validate
from duplex.scenario.load import inspect
from duplex.values import Json
from scenario_files import multi, single, write

RESTAURANT = "duplex.application.restaurant"


def duplex(*arguments: str) -> Result:
    keys = {"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None}
    return CliRunner().invoke(app, list(arguments), env=keys)


def starting(tmp_path: Path, **state: object) -> Path:
    return write(tmp_path / "in.json", multi() | {"application": {"initial_state": state}})


DAY = "a full slot as 2026-08-07T19:00 or a full day as 2026-08-07"
WRONG: dict[str, tuple[dict[str, object], str]] = {
    "no slot": ({"unavailable": ["7 aug"]}, f'unavailable[0] is "7 aug", want {DAY}'),
    "an hour alone": ({"unavailable": ["2026-08-07 19:00"]}, f"want {DAY}"),
    "no list": ({"unavailable": "2026-08-07"}, 'unavailable is "2026-08-07", want a list of full'),
    "no day": ({"today": "yesterday"}, 'today is "yesterday", want a day as 2026-08-07'),
    "no such day": ({"today": "2026-02-30"}, 'today is "2026-02-30", want a day'),
    "a number": ({"today": 20260807}, "today is 20260807, want a day"),
    "text for a number": ({"capacity": "12"}, 'capacity is "12", want a whole number of guests'),
    "half a guest": ({"capacity": 1.5}, "capacity is 1.5, want a whole number"),
    "yes for a number": ({"capacity": True}, "capacity is true, want a whole number"),
    "no rule": ({"large_party": {"size": 6}}, "large_party.last_seating: missing"),
    "no time": (
        {"large_party": {"size": 6, "last_seating": "late"}},
        'large_party.last_seating is "late", want a time as 19:30',
    ),
    "a deep one": (
        {"reservations": [{"reservation_id": "R-1", "party_size": "two"}]},
        'reservations[0].party_size is "two", want a whole number from 1',
    ),
    "no number": (
        {"reservations": [{"date": "2026-08-07"}]},
        "reservations[0].reservation_id: mis",
    ),
    "an odd step": ({"seating_every_minutes": 7}, "seating_every_minutes is 7, want 5, 10, 15"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_state_the_application_cannot_read_is_refused(name: str, tmp_path: Path) -> None:
    state, told = WRONG[name]
    path = starting(tmp_path, **state)
    for command in (["scenario", "validate", str(path)], ["run", "--data", str(path)]):
        done = duplex(*command)
        assert done.exit_code == 2, done.output
        [line] = [line for line in done.stderr.splitlines() if line.startswith("duplex: ")]
        place = f"scenario {path}: scenarios[0].application.initial_state."
        assert line.startswith(f"duplex: {place}"), line
        assert told in line


def test_a_state_it_can_read_passes_whatever_stands_beside_it() -> None:
    state: dict[str, Json] = {
        "today": "2026-08-01",
        "unavailable": ["2026-08-07", "2026-08-07T19:00"],
        "capacity": 0,
        "large_party": None,
        "reservations": [{"reservation_id": "R-1", "note": "by the window", "cancelled": False}],
        "authorized_reservation_ids": [],
        "seating_every_minutes": 30,
        "loyalty_level": {"anything": [1, 2]},
    }
    assert state_problems(restaurant, state, "s") == []
    assert state_doubts(restaurant, state, "s") == []


def test_a_name_that_was_mistyped_is_doubted(tmp_path: Path) -> None:
    found = validate(starting(tmp_path, unavailble=["2026-08-07"]), RESTAURANT)
    assert found.errors == []
    assert [line for line in found.warnings if "did you mean" in line] == [
        f"scenario {tmp_path / 'in.json'}: scenarios[0].application.initial_state.unavailble is "
        'nothing the application restaurant reads, did you mean "unavailable"?'
    ]


def test_every_application_has_a_day_and_its_lists_of_allowed_values_checked() -> None:
    plain = Application(
        name="plain",
        instructions="",
        greeting="",
        farewell="",
        slots=restaurant.slots,
        errands=restaurant.errands,
        procedures=restaurant.procedures,
        tools=restaurant.tools,
        today="2026-08-01",
        allowed_from={"reservation_id": "mine"},
    )
    assert state_problems(plain, {"today": "now", "mine": "R-1", "unavailable": 3}, "s") == [
        's.today is "now", want a day such as 2026-08-01',
        's.mine is "R-1", want a list of values',
    ]


def test_a_state_schema_is_checked_when_the_application_is_built() -> None:
    with pytest.raises(InputError, match=r"application odd: state_schema\.properties\.a\.oneOf"):
        Application(
            name="odd",
            instructions="",
            greeting="",
            farewell="",
            slots=restaurant.slots,
            errands=restaurant.errands,
            procedures=restaurant.procedures,
            tools=restaurant.tools,
            today="2026-08-01",
            state_schema={"type": "object", "properties": {"a": {"oneOf": []}}},
        )


@pytest.mark.parametrize("side", ["caller", "assistant"])
def test_instructions_no_session_takes_are_found_by_validate_and_run(
    side: str, tmp_path: Path
) -> None:
    long = "very " * 17_000
    request = {"text": long} if side == "caller" else {"text": "x", "context": {"summary": long}}
    path = write(tmp_path / "in.json", single(input=request))
    for command in (["scenario", "validate", str(path)], ["run", "--data", str(path)]):
        done = duplex(*command)
        assert done.exit_code == 2
        assert f"scenarios[0]: what the {side} would be told is about" in done.stderr
        assert "more than the 16384 allowed" in done.stderr


REFUSED = {
    "a voice that does not exist": (["--voice", "robin"], 'voice "robin": voice is not one of'),
    "a voice that may not be used": (["--voice", "nova"], "may not be used in live sessions; want"),
    "a caller's voice": (["--simulator-voice", "x"], 'simulator-voice "x": voice is not one of'),
    "a model of another kind": (["--model", "gpt-9"], 'model "gpt-9": model is not a live model'),
    "an empty folder": (["--out", ""], "--out is empty, want a value"),
    "an empty folder, joined": (["--out="], "--out is empty, want a value"),
    "an empty config": (["--config", ""], "--config is empty, want a value"),
    "a seed below zero": (["--seed", "-1"], "option seed: got -1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_no_call_can_be_held_with_are_refused_first(name: str, tmp_path: Path) -> None:
    arguments, told = REFUSED[name]
    out = [] if "--out" in arguments[0] else ["--out", str(tmp_path / "runs")]
    done = duplex("run", "--data", str(starting(tmp_path)), *out, *arguments)
    assert done.exit_code == 2, done.output
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_personas_voice_is_named_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "in.json", multi(persona={"voice": "robin"}))
    done = duplex("scenario", "validate", str(path))
    assert done.exit_code == 2
    assert 'scenarios[0].simulation_parameters.persona.voice "robin": voice is' in done.stderr
    assert "alloy, ash" in done.stderr
    mended = duplex("run", "--data", str(path), "--simulator-voice", "coral", "--scenario", "x")
    assert "robin" not in mended.stderr


def test_a_custom_voice_is_left_to_the_service(tmp_path: Path) -> None:
    path = write(tmp_path / "in.json", multi(persona={"voice": "voice_abc123"}))
    assert validate(path, RESTAURANT).errors == []


@pytest.mark.parametrize(
    "line",
    ["seed = true", 'seed = "8"', "seed = 8.0", "ticks = 1", 'concurrency = "2"', "model = 3"],
)
def test_a_config_converts_nothing(line: str, tmp_path: Path) -> None:
    config = tmp_path / "duplex.toml"
    config.write_text(f"[run]\n{line}\n", encoding="utf-8")
    done = duplex("run", "--config", str(config))
    assert done.exit_code == 2
    assert f"option {line.split()[0]}: got " in done.stderr


def test_a_config_still_takes_paths_lists_and_whole_seconds() -> None:
    options = make({"out": "x", "scenario": ["a"], "max_duration_seconds": 20, "data": "d"})
    assert (options.out, options.scenario, options.data) == (Path("x"), ("a",), Path("d"))
    with pytest.raises(InputError, match="it is empty, want a path"):
        make({"out": ""})


def test_the_local_server_refuses_a_seed_below_zero() -> None:
    done = duplex("local", "--seed", "-1")
    assert done.exit_code == 2
    assert done.stderr == "duplex: option seed: got -1; want a whole number from 0\n"


def test_a_whole_single_turn_scenario_is_doubted_by_nothing(tmp_path: Path) -> None:
    """Text of its own, its caller's facts and the steps of its path are all in order."""
    whole = multi() | {"interaction": "single_turn"}
    whole["expected"] = {"answer": "x", "golden_path": {"steps": ["asked", "looked", "told"]}}
    assert inspect(write(tmp_path / "in.json", whole)).warnings == []
    recorded = whole | {"input": {"text": "x", "recordings": [{"id": "r", "path": "r.wav"}]}}
    warnings = inspect(write(tmp_path / "in.json", recorded)).warnings
    assert [w.partition("]: ")[2] for w in warnings] == [
        "simulation_parameters are not used where a recording calls"
    ]


def test_validate_takes_the_application_a_file_is_meant_for(tmp_path: Path) -> None:
    tree = Path(__file__).parents[1]
    shop = str(tree / "docs/examples/bicycle_shop.py")
    file = tree / "docs/examples/bicycle_shop.scenarios.json"
    assert duplex("scenario", "validate", str(file), "--application", shop).exit_code == 0
    source = json.loads(file.read_text(encoding="utf-8"))
    source["scenarios"][0]["application"]["initial_state"] = {"closed": ["Sunday"]}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(source), encoding="utf-8")
    done = duplex("scenario", "validate", str(wrong), "--application", shop)
    assert done.exit_code == 2
    assert 'initial_state.closed[0] is "Sunday", want a day as 2026-03-12' in done.stderr

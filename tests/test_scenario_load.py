"""Scenario files load whole or are refused, before anything else happens."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from duplex.errors import InputError
from duplex.scenario import Recorded, inspect, load, validate
from scenario_files import item, multi, single, write

SHIPPED = Path(__file__).parent.parent / "scenarios"


def complaint(tmp_path: Path, *scenarios: Mapping[str, object], **more: object) -> str:
    """The single complaint about a file, without its name."""
    path = write(tmp_path / "f.json", *scenarios, **more)
    errors = validate(path)
    assert len(errors) == 1, errors
    return errors[0].removeprefix(f"scenario {path}: ")


def test_the_shipped_scenarios_load_without_a_warning() -> None:
    dataset = load(SHIPPED)
    assert [scenario.id for scenario in dataset.scenarios] == [
        "restaurant_backchannels",
        "restaurant_booking_complete",
        "restaurant_cancel_one",
        "restaurant_change_time",
        "restaurant_interruption",
        "restaurant_not_yours",
        "restaurant_second_thoughts",
        "restaurant_slot_taken",
    ]
    assert dataset.warnings == ()
    assert validate(SHIPPED) == []


def test_shipped_scenarios_reach_what_they_expect() -> None:
    """What the caller knows, the tools and the state expected tell one story."""
    for scenario in load(SHIPPED).scenarios:
        facts, expected = scenario.simulation.known_facts, scenario.expected
        if scenario.type not in ("booking", "availability"):
            continue
        booked = expected.tools.required[-1]
        assert booked.name == "create_reservation"
        assert {name: facts[name] for name in booked.arguments} == dict(booked.arguments)
        assert expected.state == {"reservation_created": True, **booked.arguments}
        slot = f"{booked.arguments['date']}T{booked.arguments['time']}"
        taken = scenario.application.initial_state.get("unavailable", [])
        assert isinstance(taken, list)
        assert slot not in taken


def test_json_and_yaml_of_the_same_scenario_are_the_same(tmp_path: Path) -> None:
    source = SHIPPED / "restaurant_slot_taken.json"
    as_yaml = tmp_path / "again.yaml"
    as_yaml.write_text(yaml.safe_dump(json.loads(source.read_text())))
    assert load(as_yaml).scenarios == load(source).scenarios


def test_a_single_turn_scenario_with_recordings_loads(tmp_path: Path) -> None:
    recording = {
        "id": "r",
        "path": "audio/r.wav",
        "condition": "packet_loss",
        "metadata": {"language": "en", "generation": {"seed": 41, "band": [300, 3400], "x": None}},
    }
    context = {"summary": "Known guest.", "history": [{"role": "user", "text": "Hi."}]}
    given = {"text": "A request.", "recordings": [recording], "context": context}
    path = write(tmp_path / "f.json", single(input=given))
    dataset = load(path)
    scenario = dataset.scenarios[0]
    with pytest.raises(InputError, match=r'recording "audio/r\.wav" is no file'):
        dataset.recording(scenario, scenario.input.recordings[0])
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio" / "r.wav").write_bytes(b"")
    place = dataset.recording(scenario, scenario.input.recordings[0])
    assert place == (tmp_path / "audio" / "r.wav").resolve()


def test_what_is_left_out_has_the_defaults_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"scenarios": [single(), multi("two", agenda=[item("i")])]}))
    one, two = load(path).scenarios
    assert (one.expected.delegation, one.expected.golden_path.turns) == ("optional", 0)
    assert (one.application.initial_state, one.tags, one.type) == ({}, (), None)
    assert one.simulation_parameters is None
    assert one.goal == "A request."
    thing = two.simulation.agenda[0]
    assert (thing.completion_basis, thing.wording_policy) == (
        "expression",
        "adapt_to_live_context",
    )
    assert (thing.required, thing.response_hint, thing.after) == (True, "", ())
    persona = two.persona
    assert (persona.voice, persona.interrupt_tendency, persona.backchannel_tendency) == (
        "coral",
        0.15,
        0.25,
    )


def test_steps_stand_for_turns_when_no_turns_are_written(tmp_path: Path) -> None:
    golden = {"golden_path": {"steps": ["a", "b", "c"]}}
    path = write(tmp_path / "f.json", single(expected={"answer": "x", **golden}))
    assert load(path).scenarios[0].expected.golden_path.expected_turns == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"title": 5}, "scenarios[0].title is the number 5, want text"),
        ({"title": " "}, 'scenarios[0].title " " is blank'),
        ({"tags": "x"}, 'scenarios[0].tags is text "x", want a list'),
        ({"input": None}, "scenarios[0].input is null, want an object"),
        ({"max_trun": 3}, "scenarios[0].max_trun is no known field, want one of application, "),
        ({"titel": "x"}, 'scenarios[0].titel is no known field, did you mean "title"?'),
        (
            {"expected": {"answer": "x", "golden_path": {"turn": 2}}},
            'scenarios[0].expected.golden_path.turn is no known field, did you mean "turns"?',
        ),
        (
            {"expected": {"answer": "x", "golden_path": {"turns": "7"}}},
            'scenarios[0].expected.golden_path.turns is text "7", want an integer',
        ),
        (
            {"expected": {"answer": "x", "golden_path": {"turns": True}}},
            "scenarios[0].expected.golden_path.turns is true, want an integer",
        ),
        (
            {"expected": {"answer": "x", "golden_path": {"turns": -1}}},
            "scenarios[0].expected.golden_path.turns is the number -1, want at least 0",
        ),
        (
            {"expected": {"answer": "x", "delegation": "forbiden"}},
            'scenarios[0].expected.delegation is text "forbiden", want "required", "forbidden" '
            'or "optional" (did you mean "forbidden"?)',
        ),
        ({"expected": {}}, "scenarios[0].expected.answer is missing"),
        (
            {"expected": {"answer": "x", "tools": {"required": [{"name": ""}]}}},
            'scenarios[0].expected.tools.required[0].name "" is blank',
        ),
        ({"id": "\u001b[31m"}, 'scenarios[0].id "\\u001b[31m" cannot name a folder'),
        (
            {"duplex": {"seeds": 1}},
            'scenarios[0].duplex.seeds is no known field, did you mean "seed"?',
        ),
    ],
)
def test_a_wrong_value_is_told_with_path_got_and_wanted(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    assert complaint(tmp_path, single() | change).startswith(told)


@pytest.mark.parametrize(
    ("simulation", "told"),
    [
        (
            {"known_facts": {"name": None}},
            'simulation_parameters.known_facts["name"] is not a string, number or boolean',
        ),
        (
            {"agenda": [item("a"), item("a")]},
            'simulation_parameters.agenda[1].id "a" repeats agenda[0].id',
        ),
        (
            {"agenda": [item("a"), item("b", facts=["nam"])]},
            'simulation_parameters.agenda[1].facts names "nam", want one of known_facts: "name"',
        ),
        (
            {"agenda": [item("a", after=["z"])]},
            'simulation_parameters.agenda[0].after names "z", want one of the ids of agenda: "a"',
        ),
        (
            {"agenda": [item("a", after=["b"]), item("b", after=["a"]), item("c")]},
            'simulation_parameters.agenda wait for each other in a circle: "a", "b"',
        ),
        (
            {"persona": {"interrupt_tendency": 1.5}},
            "simulation_parameters.persona.interrupt_tendency is the number 1.5, want at most 1",
        ),
    ],
)
def test_the_callers_side_must_hang_together(
    tmp_path: Path, simulation: dict[str, object], told: str
) -> None:
    known: dict[str, object] = {"known_facts": {"name": "Ann"}}
    scenario = multi() | {"simulation_parameters": known | simulation}
    assert complaint(tmp_path, scenario) == f"scenarios[0].{told}"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "steps is a list, want at least one entry"),
        ([{"id": "a", "kind": "tool"}], 'steps[0] has kind "tool" and names no tool'),
        (
            [{"id": "a", "kind": "state", "required": False, "critical": True}],
            "steps[0] is critical and not required, want both or neither",
        ),
        (
            [{"id": "a", "kind": "state", "after": ["a"]}],
            'steps wait for each other in a circle: "a"',
        ),
    ],
)
def test_a_procedure_must_hang_together(tmp_path: Path, steps: list[object], told: str) -> None:
    expected = {"answer": "x", "procedure": {"id": "p", "steps": steps}}
    message = complaint(tmp_path, single(expected=expected))
    assert message == f"scenarios[0].expected.procedure.{told}"


def test_a_procedure_may_be_written_in_any_order(tmp_path: Path) -> None:
    steps = [{"id": "b", "kind": "state", "after": ["a"]}, {"id": "a", "kind": "state"}]
    expected = {"answer": "x", "procedure": {"id": "p", "steps": steps}}
    assert validate(write(tmp_path / "f.json", single(expected=expected))) == []


@pytest.mark.parametrize("second", ["dup", "dup ", "Dup", " DUP"])
def test_ids_equal_but_for_case_and_space_are_refused_with_both_places(
    tmp_path: Path, second: str
) -> None:
    path = write(tmp_path / "f.json", single("a"), single("dup"), single(second))
    with pytest.raises(InputError) as caught:
        load(path)
    assert (
        f"scenario {path}: scenarios[2].id {json.dumps(second)} repeats scenarios[1].id"
        in str(caught.value).splitlines()
    )


def test_ids_are_distinct_over_all_files_of_a_folder(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", single("one"))
    second = write(tmp_path / "b.json", single("two"), single("ONE"))
    assert validate(tmp_path) == [
        f'scenario {second}: scenarios[1].id "ONE" repeats scenario {first}: scenarios[0].id'
    ]


def test_an_id_that_a_sample_of_another_would_get_is_refused(tmp_path: Path) -> None:
    message = complaint(tmp_path, single("one"), single("one.s2"))
    assert message == 'scenarios[1].id "one.s2" is what a sample of "one" would be called'
    assert validate(write(tmp_path / "g.json", single("two.s2"))) == []


@pytest.mark.parametrize(
    "unsafe",
    [
        "",
        ".",
        "..",
        ".hidden",
        "a/b",
        "a\\b",
        "../a",
        "a.",
        "a b",
        "a\n",
        "a\0",
        "é",
        "con",
        "NUL.txt",
        "Lpt1",
        "-x",
        "x" * 101,
    ],
)
def test_ids_that_cannot_name_a_folder_are_refused(tmp_path: Path, unsafe: str) -> None:
    assert complaint(tmp_path, single(unsafe)).startswith("scenarios[0].id ")


@pytest.mark.parametrize("safe", ["a", "A.b-c_1", "0", "x" * 100, "console"])
def test_ids_that_can_are_not(tmp_path: Path, safe: str) -> None:
    assert validate(write(tmp_path / "f.json", single(safe))) == []


def with_recording(path: str) -> dict[str, object]:
    recordings = [{"id": "r", "path": path}]
    return single(input={"text": "x", "recordings": recordings})


@pytest.mark.parametrize(
    "outside", ["../x.wav", "/etc/passwd", "a/../../x.wav", "~/x.wav", "..\\x.wav", "C:x", "."]
)
def test_a_recording_outside_the_folder_of_the_file_is_refused(
    tmp_path: Path, outside: str
) -> None:
    message = complaint(tmp_path, with_recording(outside))
    assert message.startswith(f"scenarios[0].input.recordings[0].path {json.dumps(outside)} leads")


def test_a_recording_that_links_outside_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.wav").write_bytes(b"")
    data = tmp_path / "data"
    data.mkdir()
    (data / "audio").symlink_to(secret)
    (data / "x.wav").symlink_to(secret / "x.wav")
    (data / "loop.wav").symlink_to(data / "loop.wav")
    for path in ("audio/x.wav", "x.wav"):
        assert "leads outside" in complaint(data, with_recording(path))
    (data / "y.wav").write_bytes(b"")
    (data / "inside.wav").symlink_to(data / "y.wav")
    dataset = load(write(data / "g.json", with_recording("inside.wav")))
    scenario = dataset.scenarios[0]
    found = dataset.recording(scenario, scenario.input.recordings[0])
    assert found == (data / "y.wav").resolve()
    with pytest.raises(InputError):
        dataset.recording(scenario, Recorded(id="r", path="../secret/x.wav"))


def test_recording_ids_are_distinct(tmp_path: Path) -> None:
    recordings = [{"id": "r", "path": "a.wav"}, {"id": "r", "path": "b.wav"}]
    message = complaint(tmp_path, single(input={"text": "x", "recordings": recordings}))
    assert message == 'scenarios[0].input.recordings[1].id "r" repeats recordings[0].id'


def test_a_folder_is_all_its_files_in_order_of_name(tmp_path: Path) -> None:
    write(tmp_path / "b.json", single("two"))
    (tmp_path / "a.yml").write_text(yaml.safe_dump({"scenarios": [single("one")]}))
    (tmp_path / ".hidden.json").write_text("broken")
    (tmp_path / "notes.txt").write_text("not a scenario")
    dataset = load(tmp_path)
    assert [scenario.id for scenario in dataset.scenarios] == ["one", "two"]
    assert dataset.sources == {"one": tmp_path / "a.yml", "two": tmp_path / "b.json"}


def test_one_broken_file_of_a_folder_is_enough_to_refuse_it(tmp_path: Path) -> None:
    write(tmp_path / "a.json", single("one"))
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(InputError, match=r"b\.json:1:2: not JSON"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "the document is a list, want an object"),
        ('"x"', 'the document is text "x", want an object'),
        ('{"scenarios": {}}', "scenarios is an object, want a list"),
        ('{"schema_version": "2.0"}', 'schema_version is text "2.0", want "1.0"'),
        ('{"scenarios": [3]}', "scenarios[0] is the number 3, want an object"),
        ('{"scenarios": []}', "holds no scenario"),
        ('{"scenario": []}', 'scenario is no known field, did you mean "scenarios"?'),
    ],
)
def test_a_document_of_another_shape_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    assert validate(path) == [f"scenario {path}: {told}"]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    missing = tmp_path / "scenarois.json"
    write(tmp_path / "scenarios.json", single())
    assert validate(missing) == [
        f'scenario {missing}: no such file, did you mean "scenarios.json"?'
    ]
    other = tmp_path / "f.toml"
    other.write_text("x")
    assert 'ends in ".toml", want .json, .yaml, .yml' in validate(other)[0]
    binary = tmp_path / "b.json"
    binary.write_bytes(b'{"a": "\xff"}')
    assert validate(binary) == [f"scenario {binary}: byte 7 is not UTF-8"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no file ending in" in validate(empty)[0]
    assert "no such file" in validate(tmp_path / "no" / "where.json")[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_without_permission_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "f.json", single())
    path.chmod(0)
    assert "cannot be read: permission denied" in validate(path)[0]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"scenarios": [single()]}), encoding="utf-8-sig")
    assert validate(path) == []


def test_a_long_list_of_faults_is_cut_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "f.json", *(single(f"s{index}", title=3) for index in range(30)))
    with pytest.raises(InputError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 10 more")


def test_scenarios_are_selected_by_id_in_the_order_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "f.json", single("book_table"), single("cancel"), single("book_room"))
    dataset = load(path)
    assert dataset.select([]) == dataset.scenarios
    chosen = dataset.select(["book_room", "cancel", "book_room"])
    assert [scenario.id for scenario in chosen] == ["book_room", "cancel"]
    with pytest.raises(InputError) as caught:
        dataset.select(["cancel", "Book_tabel"])
    assert str(caught.value) == (
        f'no scenario "Book_tabel" in {path}, nearest: book_table, book_room, cancel'
    )


def test_what_the_public_harness_refuses_is_a_warning(tmp_path: Path) -> None:
    path = write(
        tmp_path / "f.json",
        multi("simple"),
        multi("forbid") | {
            "expected": {
                "answer": "x",
                "delegation": "forbidden",
                "tools": {"required": [{"name": "f"}]},
                "golden_path": {"turns": 7, "delegations": 1},
            }
        },
        single("bare", interaction="multi_turn"),
        single("odd", expected={"answer": "x", "golden_path": {"turns": 4}}),
    )  # fmt: skip
    warnings = [line.removeprefix(f"scenario {path}: ") for line in inspect(path).warnings]
    assert warnings == [
        "scenarios[0]: simulation_parameters.agenda has fewer than two substantive items",
        "scenarios[0]: expected.golden_path.turns is 0, want 7 or more",
        "scenarios[0]: expected.golden_path.delegations is missing",
        "scenarios[1]: expected.tools.required cannot be met where delegation is forbidden",
        "scenarios[1]: simulation_parameters.agenda has fewer than two substantive items",
        "scenarios[1]: expected.golden_path.delegations is 1 though delegation is forbidden",
        "scenarios[2]: without simulation_parameters a caller knows nothing but its request",
        "scenarios[3]: expected.golden_path of a single_turn scenario has two turns",
    ]
    assert inspect(path).errors == []

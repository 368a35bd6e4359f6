"""Application code that leaves, breaks or is nonsense ends a tool call, never the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from duplex.api import run
from duplex.application.bookings import check_availability
from duplex.application.loading import load_application
from duplex.application.restaurant import application as restaurant
from duplex.application.steps import BROKE
from duplex.application.tools import State, Tool, Toolbox
from duplex.cli import app
from duplex.errors import InputError
from duplex.values import Json
from fake_engines import Parrot, speaking

TREE = Path(__file__).parents[1]
LEAVES = {
    "sys.exit(3)": "it left by sys.exit(3)",
    "sys.exit('no database')": "it left by sys.exit(no database)",
    "raise BaseException('bare')": "BaseException: bare",
    "raise GeneratorExit": "GeneratorExit",
    "1 / 0": "ZeroDivisionError: division by zero",
    "assert False, 'two\\nlines'": "AssertionError: two lines",
}


@pytest.mark.parametrize("line", LEAVES)
def test_an_application_that_leaves_while_it_is_loaded_is_one_sentence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "leaves.py"
    file.write_text(f"import sys\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_application(str(file))
    assert str(caught.value) == f"application {file}: running it failed: {LEAVES[line]}"
    done = CliRunner().invoke(app, ["run", "--application", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"application leaves: importing it failed: "):
        load_application("leaves:application")


@pytest.mark.parametrize("line", LEAVES)
def test_a_tool_that_leaves_is_a_failed_call_and_changes_nothing(line: str) -> None:
    def breaks(state: State) -> Json:
        state["touched"] = True
        exec(f"import sys\n{line}")
        return {}

    schema: dict[str, Json] = {"type": "object", "properties": {}}
    box = Toolbox([Tool(name="breaks", description="", parameters=schema, run=breaks)], {"a": 1})
    outcome = box.run("breaks", {})
    assert (outcome.status, outcome.error) == ("failed", LEAVES[line])
    assert outcome.broke
    assert box.state == {"a": 1}


def test_a_tool_that_is_interrupted_by_a_person_still_is() -> None:
    def interrupted(state: State) -> Json:
        raise KeyboardInterrupt

    schema: dict[str, Json] = {"type": "object", "properties": {}}
    box = Toolbox([Tool(name="t", description="", parameters=schema, run=interrupted)], {})
    with pytest.raises(KeyboardInterrupt):
        box.run("t", {})


def test_a_whole_call_goes_on_after_a_tool_that_calls_sys_exit(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(
        "import dataclasses, sys\n"
        "from duplex.application.restaurant import application as real\n"
        "def leave(state, **_): sys.exit(1)\n"
        "tools = tuple(dataclasses.replace(t, run=leave) for t in real.tools)\n"
        "application = dataclasses.replace(real, tools=tools)\n",
        encoding="utf-8",
    )
    with speaking(Parrot()) as parrot:
        finished = run(
            application=str(file),
            scenario=["restaurant_booking_complete"],
            data=TREE / "scenarios",
            out=tmp_path / "runs",
            clock="virtual",
            detector="rms",
        )
    [result] = finished.run.results
    assert result.status == "failed"
    assert result.error is None
    assert result.observability.tools.failed_count > 0
    [first, *_] = result.observability.tools.executed
    assert (first.name, first.status) == ("check_availability", "failed")
    assert any(BROKE in words for words in parrot.said)
    events = (finished.folder / "events" / "restaurant_booking_complete.jsonl").read_text("utf-8")
    assert "it left by sys.exit(1)" in events


@pytest.mark.parametrize(
    ("time", "free", "offered"),
    [
        ("20:21", False, ["20:15", "20:30"]),
        ("20:00", True, []),
        ("20:45", True, []),
        ("00:01", False, ["00:00", "00:15"]),
        ("23:59", False, ["23:45", "23:30"]),
    ],
)
def test_only_times_at_which_tables_are_given_can_be_booked(
    time: str, free: bool, offered: list[str]
) -> None:
    found = check_availability({}, "2026-08-07", time, 2)
    assert isinstance(found, dict)
    assert (found["available"], found["alternatives"]) == (free, offered)
    box = Toolbox(restaurant.tools, {})
    details: dict[str, Json] = {"guest_name": "A", "date": "2026-08-07", "time": time}
    made = box.run("create_reservation", {**details, "party_size": 2})
    assert (made.status == "completed") is free


def test_a_scenario_may_say_how_often_tables_are_given() -> None:
    found = check_availability({"seating_every_minutes": 30}, "2026-08-07", "19:15", 2)
    assert isinstance(found, dict)
    assert (found["available"], found["alternatives"]) == (False, ["19:30", "19:00"])
    full: State = {"unavailable": ["2026-08-07T19:00"]}
    beside = check_availability(full, "2026-08-07", "19:00", 2)
    assert isinstance(beside, dict)
    assert beside["alternatives"] == ["19:30", "18:30"]

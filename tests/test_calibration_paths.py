"""Planted conversations through whole calls: placement, the short form, one live call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import duplex
from duplex.calibration import command, live_path, speakers, virtual_path
from duplex.calibration.campaign import Options
from duplex.calibration.clips import RATE_HZ
from duplex.calibration.goals import Goal
from duplex.calibration.lines import through, uplink
from duplex.calibration.matching import Figures, Metric
from duplex.calibration.noise import Noises
from duplex.calibration.plan import Conversation, Scene, plan
from duplex.calibration.rows import Route, Row, added, condition_rows, short_rows
from duplex.calibration.stimuli import SharpTalker, Stimuli
from duplex.calibration.table import RowResult, Table, as_markdown, as_text
from duplex.calibration.virtual_path import Placement, placed, sent, shift_of
from duplex.cli import app
from duplex.errors import InputError, MissingExtra
from duplex.recording import Recording
from duplex.values import Side

SCENES = (Scene.REPLY, Scene.EARLY)


def conversation(scenes: tuple[Scene, ...] = SCENES, seed: int = 1) -> Conversation:
    talker = SharpTalker()
    return plan(talker, talker, np.random.default_rng(seed), scenes, (0.8,))


def row(route: Route = Route.VIRTUAL) -> Row:
    return Row(name="a row", stimuli=Stimuli.SHARP, route=route)


@pytest.fixture(scope="module")
def table() -> Table:
    return duplex.calibrate(short=True)


# -- the short form -------------------------------------------------------------


def test_in_virtual_time_every_sample_stands_where_it_was_planted(table: Table) -> None:
    assert table.placement.samples > 0
    assert table.placement.moved == 0


def test_edges_alone_and_in_the_call_agree_within_a_frame(table: Table) -> None:
    assert table.placement.edges > 100
    assert table.placement.apart is not None
    assert table.placement.apart <= RATE_HZ // 400


def test_no_goal_of_the_short_form_regresses(table: Table) -> None:
    wrong = [(key, str(v.goal), v.value) for key, v in table.missed if v.regressed]
    assert not wrong
    assert not table.regressed


def test_no_turn_is_missed_and_every_verdict_is_right(table: Table) -> None:
    for result in table.rows:
        for metric in (Metric.CALLER_TURN, Metric.YIELD, Metric.BACKCHANNEL, Metric.TIC):
            figures = result.figures[metric]
            assert (figures.missed, figures.false_alarms) == (0, 0), (result.row.key, metric)


def test_the_command_prints_strict_json_and_writes_both_files(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "performed", lambda wanted, say: table)
    out, page = tmp_path / "a.json", tmp_path / "a.md"
    arguments = ["calibrate", "--short", "--json", "--out", str(out), "--markdown", str(page)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads(out.read_text())
    assert printed["placement"]["exact"] is True
    assert printed["rows"][0]["metrics"]["response_latency"]["n"] > 0
    assert page.read_text().startswith("# The error of the ruler")
    assert page.read_text() == as_markdown(table)
    cells = [line for line in page.read_text().splitlines() if line.startswith("| virtual")]
    assert {line.replace("\\|", "").count("|") for line in cells} == {12}


# -- what must fail -------------------------------------------------------------


async def test_one_sample_out_of_place_is_noticed(tmp_path: Path) -> None:
    planted = conversation()
    random = np.random.default_rng(1)
    await virtual_path.hold(row(), planted, random, tmp_path, "call", edges=False)
    recording = Recording.load(tmp_path, "call")
    streams = sent(row(), planted, np.random.default_rng(1))
    assert placed(recording, streams, line=True).exact
    streams[Side.CALLER][RATE_HZ] += 1
    assert placed(recording, streams, line=True).moved == 2
    shifted = streams | {Side.CALLER: np.roll(streams[Side.CALLER], 1)}
    assert placed(recording, shifted, line=True).moved > RATE_HZ


def test_a_regression_of_placement_fails_whatever_the_goals_say() -> None:
    good = Placement(calls=1, samples=100, edges=4, apart=0)
    bad = [
        Placement(calls=1, samples=100, moved=1),
        Placement(calls=1, samples=100, apart=61),
        Placement(calls=1, samples=100, apart=None),
    ]
    figures = {Metric.LATENCY: Figures()}
    result = RowResult(row=row(), figures=figures, placement=good)
    assert not Table(rows=[result], placement=good, basis={}).regressed
    assert all(Table(rows=[result], placement=one, basis={}).regressed for one in bad)


@pytest.mark.parametrize(("short", "code"), [(True, 0), (False, 1)])
def test_a_missed_goal_exits_one_and_a_known_one_only_in_the_full_form(
    monkeypatch: pytest.MonkeyPatch, short: bool, code: int
) -> None:
    figures = Figures(n=1)
    figures.add(5.0)
    goal = Goal(metric=Metric.LATENCY, figure="bias_ms", limit=2, known=6)
    result = RowResult(
        row=replace(row(), goals=(goal,)),
        figures={Metric.LATENCY: figures},
        placement=Placement(calls=1, samples=100),
    )
    missing = Table(rows=[result], placement=result.placement, basis={})
    monkeypatch.setattr(command, "performed", lambda wanted, say: missing)
    quiet = Console(stderr=True, quiet=True)
    assert command.command(Options(short=short), console=quiet) == code


# -- other rows -----------------------------------------------------------------


async def test_a_bad_line_changes_what_was_heard_and_no_stem(tmp_path: Path) -> None:
    planted = conversation()
    noisy = replace(row(), uplink=added(Noises({}), "white", 0))
    held = await virtual_path.hold(
        noisy, planted, np.random.default_rng(1), tmp_path, "call", edges=False
    )
    recording = Recording.load(tmp_path, "call")
    assert held.placement.exact
    assert held.figures[Metric.LATENCY].missed == 0
    line = recording.conversation()[:, Side.CALLER]
    assert not np.array_equal(line, recording.source(Side.CALLER))


async def test_behind_a_playout_hold_turns_are_found_by_their_bits(tmp_path: Path) -> None:
    planted = conversation()
    held = await virtual_path.hold(
        row(Route.ARRIVAL), planted, np.random.default_rng(1), tmp_path, "call", edges=False
    )
    assert held.placement.exact
    figures = held.figures[Metric.LATENCY]
    assert figures.missed == 0
    assert max(np.abs(figures.errors)) < 30
    # Had the truth not moved with the hold, the error would be that of the hold itself.
    started = held.figures[Metric.ASSISTANT_START]
    assert max(np.abs(started.errors)) < 10


def test_bits_are_found_where_they_stand_and_nowhere_else() -> None:
    random = np.random.default_rng(1)
    stem = random.integers(-9, 9, 5_000).astype(np.int16)
    assert shift_of(stem, stem[1_300:1_540], 1_000) == 300
    assert shift_of(stem, stem[1_300:1_540] + np.int16(1), 1_000) is None


@pytest.mark.wall
async def test_a_live_call_is_held_over_a_socket_and_its_delay_comes_back(tmp_path: Path) -> None:
    planted = conversation((Scene.REPLY,))
    live = row(Route.LIVE)
    held, failed = await live_path.hold_all(
        live, [planted], np.random.default_rng(1), tmp_path, at_once=1
    )
    if failed:
        pytest.skip("this machine was too late for a call on the wall clock")
    assert held[0].placement.moved == 0
    figures = held[0].figures
    assert figures[Metric.LATENCY].missed == 0
    assert max(np.abs(figures[Metric.LATENCY].errors)) < 60
    assert figures[Metric.FIRST_AUDIO].missed == 0
    assert max(np.abs(figures[Metric.FIRST_AUDIO].errors)) < 200


# -- options --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"path": "sideways"}, "is not one of virtual, live, both"),
        ({"speakers": "anna"}, "name it with --speech DIR"),
        ({"short": True, "path": "live"}, "takes no speech, no condition and no live path"),
        (
            {"short": True, "speech": Path("clips")},
            "takes no speech, no condition and no live path",
        ),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(given: dict[str, object], says: str) -> None:
    arguments = [part for name, value in given.items() for part in _flag(name, value)]
    result = CliRunner().invoke(app, ["calibrate", *arguments])
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_condition_that_does_not_exist_is_refused_before_any_call() -> None:
    result = CliRunner().invoke(app, ["calibrate", "--path", "virtual", "--condition", "nowhere"])
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


@pytest.mark.parametrize("name", ["telephony", "noisy"])
async def test_a_condition_makes_a_row_whose_stem_stays_clean(tmp_path: Path, name: str) -> None:
    planted = conversation()
    line = uplink(name)
    _, heard_by_assistant = condition_rows(name, through(line), line)
    held = await virtual_path.hold(
        heard_by_assistant, planted, np.random.default_rng(1), tmp_path, "call", edges=False
    )
    assert held.placement.exact
    assert held.figures[Metric.LATENCY].missed == 0
    recording = Recording.load(tmp_path, "call")
    played = recording.conversation()[:, Side.CALLER]
    assert not np.array_equal(played, recording.source(Side.CALLER))


def test_a_condition_of_the_way_back_is_refused() -> None:
    with pytest.raises(InputError, match="uplink only"):
        uplink("downlink:telephony")


def _flag(name: str, value: object) -> list[str]:
    return [f"--{name}"] if value is True else [f"--{name}", str(value)]


def test_a_file_cannot_be_written_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, wanted a file"):
        command.command(Options(short=True), out=tmp_path, console=Console(quiet=True))


async def test_without_the_embedded_voices_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise MissingExtra("the voice is not installed")

    monkeypatch.setattr(speakers, "find_mouth", missing)
    with pytest.raises(MissingExtra, match="--speech DIR"):
        await speakers.found(None, ())


def test_text_names_every_row_and_says_where_there_is_no_goal(table: Table) -> None:
    text = as_text(table)
    for planned in short_rows(Noises({})):
        assert planned.key in text
    assert "no goal" in text
    assert "0 not in place" in text

"""``duplex grade``: a stored run graded again, with a judge, checks of one's own, or neither."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from booking_call import booking
from duplex.cli import app
from duplex.errors import InputError
from duplex.grading import Evidence
from duplex.judge_options import judge_options
from duplex.recording import Recording
from duplex.regrading import GradedRun, command, grade
from duplex.results import CallFigures, build_result, schema
from duplex.results.observed import Basis
from duplex.results.stored import load_results
from duplex.values import Json
from fake_models import in_turn, response, serving
from judge_fakes import Answer, part, replying
from viewer_runs import BOOKING, CUT_IN, add_call, refused, write_results

SCENARIOS = Path(__file__).parents[1] / "scenarios"
CHECKS = """
def fine(call):
    return True, "nothing to say"

def veto(call):
    return False, "it was not said thrice"

def broken(call):
    raise ValueError("no such table")

def silent(call):
    pass

def meddling(call):
    call.scenario.expected.state.clear()
    if call.final_state:
        call.final_state.clear()
    return call.duration_ms > 0 and len(call.turns) > 2, "looked at everything"
"""


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a booking that passed, one that failed, and one that does not count."""
    folder = tmp_path_factory.mktemp("runs") / "run_offline_1"
    folder.mkdir()
    results = []
    for call_id, lines in (("booking", BOOKING), ("cut_in", CUT_IN)):
        add_call(folder, call_id, lines, booked=call_id == "booking")
        result = build_result(
            booking(),
            Evidence.from_recording(Recording.load(folder, call_id)),
            CallFigures(timing={"turn_taking_score": 0.8}),
            basis=Basis(),
            conversation_audio=f"audio/{call_id}/conversation.wav",
        )
        results.append(result)
    write_results(folder, [*results, refused(folder, "refused")])
    _point_at(folder, SCENARIOS / "restaurant_booking_complete.json")
    return folder


def _point_at(folder: Path, dataset: Path) -> None:
    path = folder / "results.json"
    document = json.loads(path.read_text())
    document["run"]["dataset"] = str(dataset)
    path.write_text(json.dumps(document))


@pytest.fixture
def folder(_made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made, tmp_path / _made.name))


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    path = tmp_path / "checks.py"
    path.write_text(CHECKS)
    return path


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "graded" not in path.relative_to(folder).parts
    }


def first(done: GradedRun) -> schema.Result:
    return done.run.results[0]


def statuses(result: schema.Result) -> dict[str, tuple[str, bool]]:
    return {check.id: (check.status, check.required) for check in result.assessment.checks}


def run(folder: Path, **options: object) -> int:
    chosen = judge_options(options)
    console = Console(stderr=True, soft_wrap=True)
    return command(folder, chosen, data=None, name=None, as_json=False, console=console)


def test_the_same_inputs_give_the_same_checks_and_nothing_is_touched(folder: Path) -> None:
    before = digests(folder)
    done = grade(folder)
    assert digests(folder) == before
    assert [one.graded for one in done.calls] == [True, True, False]
    for one in done.calls:
        assert one.changed == ()
        assert one.now.status == one.was.status
        assert one.now.metrics == one.was.metrics
    assert load_results(done.folder / "results.json") == done.run
    assert done.folder.parent == folder / "graded"
    again = grade(folder)
    for now, then in zip(done.run.results, again.run.results, strict=True):
        assert now == then


def test_what_was_measured_is_carried_over(folder: Path) -> None:
    done = grade(folder)
    was = load_results(folder / "results.json").results
    for old, new in zip(was, done.run.results, strict=True):
        assert new.duplex["timing"] == old.duplex["timing"]
        assert new.artifacts == old.artifacts
    from_run = done.run.run.duplex["graded_from"]
    assert isinstance(from_run, dict)
    digest = hashlib.sha256((folder / "results.json").read_bytes()).hexdigest()
    assert from_run["results_sha256"] == digest


def test_a_judge_is_asked_about_calls_that_count_only(folder: Path) -> None:
    with serving(replying()) as fake:
        done = grade(folder, judge_url=fake.url, judge_model="m", name="judged")
    assert len(fake.asked) == 2
    assert first(done).assessment.source == "semantic_judge"
    assert statuses(first(done))["semantic_outcome"] == ("passed", True)
    assert first(done).metrics.task.semantic_quality.score == 1.0
    block = first(done).duplex["judge"]
    assert isinstance(block, dict)
    assert block["overall_score"] == pytest.approx(1 - 0.35 * 0.2)
    assert done.folder == folder / "graded" / "judged"
    assert [one.now.status for one in done.calls] == [one.was.status for one in done.calls]


def test_a_judge_fails_a_call_after_the_fact(folder: Path) -> None:
    def strict(answer: Answer) -> None:
        part(answer, "dimensions", "task_understanding").update(verdict="fail", score=0.25)

    with serving(replying(strict)) as fake:
        done = grade(folder, judge_url=fake.url, judge_model="m")
    assert first(done).status == "failed"
    assert done.calls[0].changed == ("semantic_outcome", "semantic_requirements")
    assert (done.run.summary.passed, done.run.summary.failed) == (0, 2)


def test_a_judge_that_fails_is_told_in_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(in_turn([response("I would rather not.")])) as fake:
        run(folder, judge_url=fake.url, judge_model="m")
    printed = capsys.readouterr()
    shown = printed.out
    assert f"judge: m at {fake.url[7:-3]}: 2 answers, 20 tokens in, 20 out" in printed.err
    assert "not assessed" in shown
    assert "no JSON object with a judgement" in shown


def test_a_key_that_a_judge_repeats_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUPLEX_JUDGE_API_KEY", "judge-key-123456")

    def leaking(answer: Answer) -> None:
        part(answer, "dimensions", "context_fidelity")["reasoning"] = "judge-key-123456"

    with serving(replying(leaking)) as fake:
        done = grade(folder, judge_url=fake.url, judge_model="m")
    assert {one.headers["authorization"] for one in fake.asked} == {"Bearer judge-key-123456"}
    assert "judge-key-123456" not in (done.folder / "results.json").read_text()


# -- checks of one's own ---------------------------------------------------------


def own(folder: Path, path: Path, *names: str) -> GradedRun:
    return grade(folder, check_function=[f"{path}:{name}" for name in names])


def test_a_check_of_ones_own_may_veto(folder: Path, checks: Path) -> None:
    done = own(folder, checks, "fine", "veto")
    assert first(done).status == "failed"
    assert statuses(first(done))["check_function:veto"] == ("failed", True)
    assert statuses(first(done))["check_function:fine"] == ("passed", True)
    assert "it was not said thrice" in first(done).assessment.rationale
    assert done.code == 1


def test_a_check_of_ones_own_rescues_nobody(folder: Path, checks: Path) -> None:
    done = own(folder, checks, "fine")
    failed = done.calls[1]
    assert (failed.was.status, failed.now.status) == ("failed", "failed")
    assert statuses(failed.now)["check_function:fine"] == ("passed", True)


@pytest.mark.parametrize(
    ("name", "why"), [("broken", "ValueError: no such table"), ("silent", "returned NoneType")]
)
def test_a_broken_check_is_not_assessed_and_never_passes_unseen(
    folder: Path, checks: Path, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    code = run(folder, check_function=[f"{checks}:{name}"])
    (place,) = (folder / "graded").iterdir()
    result = load_results(place / "results.json").results[0]
    assert result.status == "passed"
    assert statuses(result)[f"check_function:{name}"] == ("not_assessed", False)
    assert why in capsys.readouterr().out
    assert code == 1


def test_a_run_of_passed_calls_exits_one_for_a_broken_check(tmp_path: Path, checks: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    add_call(folder, "booking", BOOKING)
    result = build_result(
        booking(),
        Evidence.from_recording(Recording.load(folder, "booking")),
        CallFigures(),
        basis=Basis(),
        conversation_audio="audio/booking/conversation.wav",
    )
    write_results(folder, [result])
    _point_at(folder, SCENARIOS)
    assert run(folder) == 0
    assert run(folder, check_function=[f"{checks}:fine"]) == 0
    assert run(folder, check_function=[f"{checks}:broken"]) == 1


def test_a_check_gets_a_copy_and_can_change_nothing(folder: Path, checks: Path) -> None:
    done = own(folder, checks, "meddling", "fine")
    plain = grade(folder)
    assert statuses(first(done))["check_function:meddling"] == ("passed", True)
    assert first(done).duplex["procedure"] == first(plain).duplex["procedure"]
    assert statuses(first(done)).items() >= statuses(first(plain)).items()


def test_two_checks_of_one_name_are_told_apart(folder: Path, checks: Path) -> None:
    other = checks.with_name("more.py")
    other.write_text(CHECKS)
    names = [f"{checks}:fine", f"{other}:fine"]
    done = grade(folder, check_function=names)
    assert {f"check_function:{name}" for name in names} <= statuses(first(done)).keys()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("{path}:nothing", "has no 'nothing'"),
        ("{path}", "wanted module:function"),
        ("{path}.gone.py:fine", "no such file"),
        ("no_such_module:fine", "no module named"),
    ],
)
def test_a_check_that_is_not_there_is_refused_before_anything_is_graded(
    folder: Path, checks: Path, name: str, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        grade(folder, check_function=[name.format(path=checks)])
    assert not (folder / "graded").exists()


# -- what cannot be graded ---------------------------------------------------------


def test_calls_whose_scenario_is_gone_keep_their_grade(folder: Path) -> None:
    _point_at(folder, folder / "gone.json")
    with pytest.raises(InputError, match="its scenario is not there"):
        grade(folder)
    assert grade(folder, data=SCENARIOS).calls[0].graded


def test_a_call_without_events_keeps_its_grade(folder: Path) -> None:
    shutil.rmtree(folder / "audio" / "cut_in")
    (folder / "events" / "cut_in.jsonl").unlink()
    done = grade(folder)
    assert [one.graded for one in done.calls] == [True, False, False]
    assert done.calls[1].now.status == done.calls[1].was.status


def test_what_was_graded_again_is_not_graded_from_there(folder: Path) -> None:
    done = grade(folder, name="once")
    with pytest.raises(InputError, match="name the run itself"):
        grade(done.folder)
    with pytest.raises(InputError, match="exists already"):
        grade(folder, name="once")


def test_the_command_prints_a_table_or_json(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["grade", str(folder)])
    assert shown.exit_code == 1
    assert "1 of 3 calls passed, 1 failed, 1 could not be counted." in shown.stdout
    printed = CliRunner().invoke(app, ["grade", str(folder), "--json"])
    document: dict[str, Json] = json.loads(printed.stdout)
    calls = document["calls"]
    assert isinstance(calls, list)
    assert [one["is"] for one in calls if isinstance(one, dict)] == [
        "passed",
        "failed",
        "infrastructure_error",
    ]
    assert Path(str(document["results"])).exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["grade"], "want a run's folder to grade, or --agreement"),
        (["grade", "--agreement"], "name one with --judge-model"),
        (["grade", "RUN", "--agreement", "--judge-model", "m"], "takes no run"),
        (["grade", "RUN", "--cases", "x.jsonl"], "--cases is for --agreement"),
        (["grade", "RUN", "--judge-url", "http://127.0.0.1:1/v1"], "without judge-model"),
        (["grade", "RUN", "--judge-repetitions", "0", "--judge-model", "m"], "judge-repetitions"),
        (["grade", "nowhere"], "is no folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_two(
    folder: Path, arguments: list[str], complaint: str
) -> None:
    given = [str(folder) if one == "RUN" else one for one in arguments]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 2
    assert complaint in shown.stderr
    assert shown.stdout == ""

"""How far a judge agrees with people, measured with judges whose agreement is known."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duplex.cli import app
from duplex.errors import InputError
from duplex.grading.judging import decide, read_vote
from duplex.grading.judging.agreement import Agreement, Pair, Report, agreement, kappa
from duplex.grading.judging.judgement import Judgement
from duplex.grading.judging.labelled import OWN, Labelled, load_labelled
from duplex.grading.judging.rubric import CONCISENESS, DIMENSIONS, FLAGS, SCORES
from duplex.values import Json
from fake_models import Asked, Reply, error, in_turn, response, serving
from judge_cases import asked
from judge_fakes import Answer, part, praise, shown, turns

CASES = load_labelled()


def labelled(case: Labelled) -> Answer:
    """The answer of a judge that reads people's minds."""
    answer = praise(*shown(asked(case.case)))
    labels = case.labels
    for name, score in labels.dimensions.items():
        part(answer, "dimensions", name)["score"] = score
    part(answer, "dimensions", "task_understanding")["verdict"] = labels.outcome
    for index, verdict in enumerate(labels.requirements):
        part(answer, "requirements", index)["verdict"] = verdict
    answer["conciseness"] = [{"turn": one.turn, "score": one.score} for one in labels.conciseness]
    evidence = part(answer, "dimensions", "task_understanding")["evidence"]
    for name, present in labels.flags.items():
        part(answer, "flags", name).update(present=present, evidence=evidence if present else [])
    return answer


def guess(case: Labelled, seed: int) -> Answer:
    """The answer of a judge that throws dice."""
    dice = random.Random(f"{seed}:{case.id}")
    answer = labelled(case)
    for name in DIMENSIONS:
        part(answer, "dimensions", name)["score"] = dice.choice(SCORES)
    score = float(str(part(answer, "dimensions", "task_understanding")["score"]))
    part(answer, "dimensions", "task_understanding")["verdict"] = (
        "pass" if score > 0.5 or (score == 0.5 and dice.random() < 0.5) else "fail"
    )
    for index in range(len(case.criteria)):
        part(answer, "requirements", index)["verdict"] = dice.choice(["met", "not_met"])
    for index in range(len(case.labels.conciseness)):
        part(answer, "conciseness", index)["score"] = dice.choice(CONCISENESS)
    evidence = part(answer, "dimensions", "task_understanding")["evidence"]
    for name in FLAGS:
        part(answer, "flags", name).update(present=dice.random() < 0.5, evidence=evidence)
    return answer


def judged(answers: Sequence[Answer]) -> Report:
    judgements: list[Judgement] = [
        decide("m", case.case, [read_vote(json.dumps(answer), case.case)])
        for case, answer in zip(CASES, answers, strict=True)
    ]
    return agreement(CASES, judgements)


def named(report: Report) -> dict[str, Agreement]:
    return {part.name: part for part in report.parts}


# -- the set that comes with the package --------------------------------------------


def test_our_own_set_is_large_and_tries_every_verdict() -> None:
    assert len(CASES) >= 40
    assert {case.labels.outcome for case in CASES} == {"pass", "fail"}
    outcomes = [case.labels.outcome for case in CASES]
    assert 0.3 < outcomes.count("fail") / len(outcomes) < 0.7
    for name in FLAGS:
        assert any(case.labels.flags[name] for case in CASES), name
    for name in DIMENSIONS:
        scores = {case.labels.dimensions[name] for case in CASES}
        assert {0.0, 1.0} <= scores, name
    told = {one.score for case in CASES for one in case.labels.conciseness}
    assert told == set(CONCISENESS)
    assert sum(1 for case in CASES if "instruction" in str(case.turns)) >= 1
    assert len({case.about for case in CASES}) == len(CASES)


def test_a_label_is_never_shown_to_the_judge() -> None:
    wanted, record = shown(asked(CASES[0].case))
    assert set(record) == {"known_before_the_call", "state_before", "state_after", "conversation"}
    assert "labels" not in json.dumps([wanted, record])
    assert len(turns(record)) == len(CASES[0].turns)


# -- judges whose agreement is known -------------------------------------------------


def test_a_perfect_judge_agrees_wholly() -> None:
    report = judged([labelled(case) for case in CASES])
    assert report.not_assessed.numerator == 0
    assert (report.wrong_passes.numerator, report.wrong_fails.numerator) == (0, 0)
    for one in report.parts:
        assert one.decided == one.labels, one.name
        assert one.equal.value == 1.0, one.name
        assert one.kappa == pytest.approx(1.0), one.name
        assert one.kappa_ci95 is not None
        assert one.kappa_ci95[1] == pytest.approx(1.0)


def test_a_guessing_judge_agrees_by_chance() -> None:
    report = judged([guess(case, 1) for case in CASES])
    for one in report.parts:
        assert one.kappa is not None
        assert abs(one.kappa) < 0.4, (one.name, one.kappa)
    spans = [one.kappa_ci95 for one in report.parts if one.kappa_ci95 is not None]
    # Two in twenty may miss what is true of a judge that guesses.
    assert sum(low <= 0 <= high for low, high in spans) >= len(spans) - 2
    assert report.wrong_passes.numerator > 0
    assert report.wrong_fails.numerator > 0


def test_a_judge_that_always_passes_is_accurate_and_agrees_with_nobody() -> None:
    report = judged([praise(*shown(asked(case.case))) for case in CASES])
    outcome = named(report)["outcome"]
    assert outcome.equal.value == pytest.approx(27 / 48)
    assert outcome.kappa == pytest.approx(0.0)
    assert report.wrong_passes.value == 1.0
    assert named(report)["unnecessary_tool_calls"].equal.value == pytest.approx(42 / 48)
    assert named(report)["unnecessary_tool_calls"].kappa == pytest.approx(0.0)


def test_what_is_not_assessed_is_counted_aside() -> None:
    answers = [labelled(case) for case in CASES]
    for answer in answers[:12]:
        part(answer, "dimensions", "task_understanding")["score"] = None
    report = judged(answers)
    assert (report.not_assessed.numerator, report.not_assessed.denominator) == (12, 48)
    assert len(report.problems) == 12
    assert named(report)["outcome"].decided == 36
    assert named(report)["outcome"].equal.value == 1.0
    confusion = named(report)["outcome"].confusion
    assert sum(row.get("not_assessed", 0) for row in confusion.values()) == 12


# -- kappa ---------------------------------------------------------------------------


def pairs(table: dict[tuple[float | str, float | str], int]) -> list[Pair]:
    found = [key for key, count in table.items() for _ in range(count)]
    return [Pair(case=at, label=label, said=said) for at, (label, said) in enumerate(found)]


def test_kappa_is_cohens() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: 0.7 observed, 0.5 by chance.
    table: dict[tuple[float | str, float | str], int] = {
        ("yes", "yes"): 20,
        ("yes", "no"): 5,
        ("no", "yes"): 10,
        ("no", "no"): 15,
    }
    value, interval = kappa(pairs(table), 50, "s", weighted=False)
    assert value == pytest.approx(0.4)
    assert interval is not None
    assert interval[0] < 0.4 < interval[1]
    assert kappa(pairs(table), 50, "s", weighted=False)[1] == interval


def test_weighted_kappa_forgives_what_is_near() -> None:
    near: dict[tuple[float | str, float | str], int] = {(0.0, 0.0): 10, (1.0, 0.75): 10}
    far: dict[tuple[float | str, float | str], int] = {(0.0, 0.0): 10, (1.0, 0.25): 10}
    close, _ = kappa(pairs(near), 20, "s", weighted=True)
    distant, _ = kappa(pairs(far), 20, "s", weighted=True)
    assert close is not None
    assert distant is not None
    assert close == pytest.approx(1 - (0.5 * 0.0625) / (0.25 * (0.75**2 + 1 + 0.25**2 + 0)))
    assert 1 > close > distant > 0


@pytest.mark.parametrize("table", [{}, {("yes", "yes"): 9}], ids=["nothing", "one value"])
def test_kappa_of_nothing_to_tell_apart_is_not_known(
    table: dict[tuple[float | str, float | str], int],
) -> None:
    assert kappa(pairs(table), 9, "s", weighted=False) == (None, None)


# -- the command ---------------------------------------------------------------------


def small(path: Path, count: int = 4) -> Path:
    path.write_text("".join(OWN.read_text().splitlines(keepends=True)[:count]))
    return path


def perfect(asked: Asked) -> Reply:
    _, record = shown(asked)
    said = [one["text"] for one in turns(record)]
    case = next(one for one in CASES if [line.text for line in one.turns] == said)
    return response(json.dumps(labelled(case)))


def grade(url: str, *more: str) -> list[str]:
    return ["grade", "--agreement", "--judge-url", url, "--judge-model", "m", *more]


def test_the_command_measures_a_judge_over_http(tmp_path: Path) -> None:
    with serving(perfect) as fake:
        done = CliRunner().invoke(app, grade(fake.url, "--json"))
        few = CliRunner().invoke(app, grade(fake.url, "--cases", str(small(tmp_path / "c.jsonl"))))
    assert (done.exit_code, few.exit_code) == (0, 0)
    document: dict[str, Json] = json.loads(done.stdout)
    assert document["transcripts"] == len(CASES)
    outcome = part(document, "agreement", "outcome")
    assert (outcome["kappa"], part(outcome, "accuracy")["rate"]) == (1.0, 1.0)
    assert "4 transcripts; not assessed 0 of 4" in few.stdout
    assert "grounded_communication" in few.stdout


def test_a_broken_judge_is_measured_as_such(tmp_path: Path) -> None:
    cases = str(small(tmp_path / "c.jsonl"))
    with serving(in_turn([response("no idea")])) as fake:
        done = CliRunner().invoke(app, grade(fake.url, "--cases", cases, "--json"))
    assert done.exit_code == 2
    document = json.loads(done.stdout)
    assert document["not_assessed"]["rate"] == 1.0
    assert document["agreement"]["outcome"]["accuracy"]["rate"] is None
    assert document["agreement"]["outcome"]["kappa"] is None
    assert all("no JSON object" in one["why"] for one in document["problems"])


def test_a_judge_that_refuses_everything_is_told(tmp_path: Path) -> None:
    cases = str(small(tmp_path / "c.jsonl"))
    with serving(in_turn([error(403, "forbidden", "not you")])) as fake:
        done = CliRunner().invoke(app, grade(fake.url, "--cases", cases))
    assert done.exit_code == 2
    assert "not you" in done.stdout


def test_no_server_is_one_sentence_and_exit_two() -> None:
    with serving(perfect) as fake:
        url = fake.url
    done = CliRunner().invoke(app, grade(url))
    assert done.exit_code == 2
    assert "no server answers" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda line: "{", "is not json"),
        (lambda line: "[]", "should be a valid dictionary"),
        (lambda line: line.replace('"pass"', '"maybe"'), "labels.outcome"),
        (lambda line: line.replace('"turn": 2', '"turn": 9'), "not numbered"),
        (lambda line: line.replace('"outcome": "pass"', '"outcome": "fail"'), "outcome fail with"),
        (lambda line: f"{line}\n{line}", "is there already"),
        (lambda line: "", "holds no transcript"),
    ],
)
def test_a_labelled_set_is_checked_whole(tmp_path: Path, change: object, complaint: str) -> None:
    assert callable(change)
    path = tmp_path / "cases.jsonl"
    path.write_text(str(change(OWN.read_text().splitlines()[0])))
    with pytest.raises(InputError, match=complaint):
        load_labelled(path)

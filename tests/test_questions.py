"""Yes/no questions about a call: spelled, put to a judge, answered with quotes, counted."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import duplex
from duplex.errors import InputError
from duplex.exports.roark import report
from duplex.exports.subject import subject_of
from duplex.grading.judging import ask_questions, decide_answers, read_answers
from duplex.grading.judging.case import JudgeCase
from duplex.options import make
from duplex.questions import asked_about, read_question
from duplex.results import schema
from duplex.runner import Runner
from duplex.scenario import DuplexOptions, Question, load
from duplex.serve.launching import as_toml
from duplex.values import Json
from duplex.verdict.block import judged
from duplex.verdict.criteria import from_json, pinned
from duplex.verdict.incidents import incidents
from fake_engines import Parrot, speaking
from fake_models import Asked, Reply, Script, response, serving
from judge_cases import TABLE
from judge_fakes import quote, replying, shown

TREE = Path(__file__).parents[1]
NAME = Question(id="name", question="Did it ask for the name?", description="Under any wording.")
UPSELL = Question(id="upsell", question="Did it offer a menu?", expected="no", min_pass_rate=100)


@pytest.fixture(autouse=True)
def parrot() -> Iterator[Parrot]:
    with speaking(Parrot()) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "id", "expected", "share"),
    [
        ("Did it greet?", "did_it_greet", "yes", None),
        ("greets: Did it greet? = yes @ 95%", "greets", "yes", 95),
        ("Did it say: hang on? = no", "did_it_say_hang_on", "no", None),
        ("2 tables: one booked?", "q_2_tables_one_booked", "yes", None),
    ],
)
def test_a_question_is_spelled_on_one_line(
    text: str, id: str, expected: str, share: float | None
) -> None:
    found = read_question(text)
    assert (found.id, found.expected, found.min_pass_rate) == (id, expected, share)


@pytest.mark.parametrize(
    "text", ["", "no question", "Did it? = maybe", "Did it? @ 101%", f"{'long ' * 200}?"]
)
def test_what_is_no_question_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="question"):
        make({"question": [text]})


def test_one_id_is_one_question(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there twice"):
        make({"question": ["a: Is it?", "a: Was it?"]})
    booking = load(TREE / "scenarios").scenarios[0]
    scenario = booking.model_copy(update={"duplex": DuplexOptions(questions=(NAME,))})
    asked = asked_about(scenario, (NAME, UPSELL)).duplex.questions
    assert asked == (NAME, UPSELL)
    with pytest.raises(InputError, match="has another of this id"):
        asked_about(scenario, (NAME.model_copy(update={"expected": "no"}),))
    document = json.loads((TREE / "scenarios/restaurant_booking_complete.json").read_text())
    document["duplex"] = {"questions": [NAME.model_dump(), NAME.model_dump()]}
    (tmp_path / "one.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r'duplex\.questions holds id "name" twice'):
        load(tmp_path / "one.json")


def test_questions_are_pinned_as_checks_and_read_again() -> None:
    found = pinned((), questions={"a": [NAME], "b": [NAME]}, asked=[UPSELL], task_rate=100)
    told = {one.id: (one.min_pass_rate, one.inherited, one.scenarios) for one in found[1:]}
    assert told == {"question_upsell": (100, False, ()), "question_name": (80, True, ("a", "b"))}
    again = from_json([one.as_json() for one in found])
    assert [one.as_json() for one in again] == [one.as_json() for one in found]


def test_a_run_begun_over_http_keeps_its_questions() -> None:
    options = make({"question": [NAME.model_dump(), "upsell: A menu? = no"]})
    table = tomllib.loads(as_toml(options, "x", Path("runs")))["run"]
    assert make({"question": table["question"]}).question == options.question


CASE = JudgeCase(goal=TABLE.goal, answer=TABLE.answer, turns=TABLE.turns, questions=(NAME, UPSELL))
ASKED: list[Json] = [{"turn": 3, "quote": "Under what name?"}]


def answers(name: str = "yes", upsell: str = "no", **of_name: Json) -> str:
    entry: dict[str, Json] = {"number": 1, "reasoning": "It did.", "evidence": ASKED}
    other: dict[str, Json] = {"number": 2, "reasoning": "Nowhere.", "evidence": ASKED}
    return json.dumps(
        {"answers": [{**entry, "answer": name, **of_name}, {**other, "answer": upsell}]}
    )


def test_a_judge_is_asked_without_being_told_what_is_wanted() -> None:
    ask = ask_questions(CASE)
    first = str(ask.items[0])
    assert "Did it ask for the name?" in first
    assert "Under any wording." in first
    assert "expected" not in first
    assert "min_pass_rate" not in first


def test_what_most_answers_say_is_the_answer() -> None:
    casts = [read_answers(one, CASE) for one in (answers(), answers(), answers(name="no"))]
    name, upsell = decide_answers(CASE, casts)
    assert (name.ruling.value, upsell.ruling.value) == ("yes", "no")
    assert [one.quote for one in name.ruling.evidence] == ["Under what name?"]
    tied = decide_answers(CASE, [casts[0], casts[2]])
    assert tied[0].ruling.value is None
    assert "contradict" in tied[0].ruling.why


def test_who_cannot_tell_has_not_answered() -> None:
    told = read_answers(answers(name="cannot_tell", evidence=[]), CASE)
    assert decide_answers(CASE, [told])[0].ruling.why == "the judge could not tell from the call"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (answers(evidence=[{"turn": 3, "quote": "Your name please"}]), "misquoted"),
        (answers(evidence=[{"turn": 9, "quote": "name"}]), "misquoted"),
        (answers(evidence=[]), "unfounded"),
        (answers(reasoning="It never did. So the answer is no."), "contradiction"),
        (answers(number=2), "incomplete"),
        (answers(name="perhaps"), "unreadable"),
        ("yes and no", "unreadable"),
    ],
)
def test_an_answer_that_cannot_be_believed_decides_nothing(text: str, code: str) -> None:
    cast = read_answers(text, CASE)
    assert (cast.answers, cast.code) == (None, code)
    assert all(one.ruling.value is None for one in decide_answers(CASE, [cast]))


# -- whole calls ---------------------------------------------------------------


def judge(answer: Callable[[str], str]) -> Script:
    """A judge that praises every call and answers questions by their text."""
    praise = replying()

    def script(asked: Asked) -> Reply:
        wanted, record = shown(asked)
        questions = wanted.get("questions")
        if not isinstance(questions, list):
            return praise(asked)
        told: list[Json] = [
            {
                "number": one["number"],
                "reasoning": "So it went.",
                "evidence": quote(record),
                "answer": answer(str(one["question"])),
            }
            for one in questions
            if isinstance(one, dict)
        ]
        return response(json.dumps({"answers": told}))

    return script


def data(folder: Path) -> Path:
    document = json.loads((TREE / "scenarios/restaurant_booking_complete.json").read_text())
    document["scenarios"][0]["duplex"] = {"questions": [NAME.model_dump()]}
    path = folder / "booking.json"
    path.write_text(json.dumps(document))
    return path


def statuses(run: schema.Run) -> dict[str, tuple[str, bool]]:
    (result,) = run.results
    found = {one.id: (one.status, one.required) for one in result.assessment.checks}
    return {name: told for name, told in found.items() if name.startswith("question_")}


def failures(run: schema.Run) -> list[tuple[Json, Json]]:
    verdict = run.run.duplex["verdict"]
    assert isinstance(verdict, dict)
    found = verdict["failures"]
    assert isinstance(found, list)
    return [(one["kind"], one["check"]) for one in found if isinstance(one, dict)]


def test_questions_of_scenario_and_plan_are_answered_and_graded_again(tmp_path: Path) -> None:
    options: dict[str, object] = {
        "data": data(tmp_path),
        "clock": "virtual",
        "out": tmp_path / "runs",
        "question": ["upsell: Did it offer a menu? = no @ 100%"],
    }
    done = asyncio.run(Runner(make(options)).run())
    assert statuses(done.run) == dict.fromkeys(
        ("question_name", "question_upsell"), ("not_assessed", False)
    )
    assert done.run.results[0].status == "passed"
    assert failures(done.run) == [
        ("METRIC_NOT_EVALUATED", "question_upsell"),
        ("METRIC_NOT_EVALUATED", "question_name"),
    ]

    with serving(judge(lambda text: "yes")) as fake:
        graded = duplex.grade(
            done.folder, judge_url=fake.url, judge_model="j", question=["Was it polite?"]
        )
    assert statuses(graded.run) == {
        "question_name": ("passed", False),
        "question_upsell": ("failed", False),
        "question_was_it_polite": ("passed", False),
    }
    result = graded.run.results[0]
    assert result.status == "passed", "a question fails the run, never the call's own task"
    assert failures(graded.run) == [("METRIC_BELOW_MIN_PASS_RATE", "question_upsell")]
    told = result.duplex["checks"]
    assert isinstance(told, dict)
    name = told["question_name"]
    assert isinstance(name, dict)
    assert name["reason"] == "yes: So it went."
    block = result.duplex["judge"]
    assert isinstance(block, dict)
    assert block["questions_version"] == "duplex-questions-v1"

    cases, criteria, _ = judged(graded.run)
    (incident,) = incidents(cases, criteria)
    assert incident.sentence == "Did it offer a menu? (wanted: no) failed: yes: So it went."
    assert incident.start_ms is not None, "where the judge's quote stands"

    shape = json.dumps(report(subject_of(graded.run)))
    assert "Did it offer a menu? (wanted: no)" in shape


def test_a_run_with_a_judge_asks_while_it_is_held(tmp_path: Path) -> None:
    with serving(judge(lambda text: "cannot_tell" if "menu" in text else "yes")) as fake:
        options: dict[str, object] = {
            "data": data(tmp_path),
            "clock": "virtual",
            "out": tmp_path / "runs",
            "question": [UPSELL.model_dump()],
            "judge_url": fake.url,
            "judge_model": "j",
        }
        done = asyncio.run(Runner(make(options)).run())
    assert statuses(done.run) == {
        "question_name": ("passed", False),
        "question_upsell": ("not_assessed", False),
    }
    assert failures(done.run) == [("METRIC_NOT_EVALUATED", "question_upsell")]
    assert len(fake.asked) == 2


def test_a_private_value_in_a_question_is_written_and_sent_nowhere(tmp_path: Path) -> None:
    with serving(judge(lambda text: "yes")) as fake:
        options: dict[str, object] = {
            "data": data(tmp_path),
            "clock": "virtual",
            "out": tmp_path / "runs",
            "redact": ["guest_name"],
            "question": ["greets: Did it call the guest Maya?"],
            "judge_url": fake.url,
            "judge_model": "j",
        }
        done = asyncio.run(Runner(make(options)).run())
    assert statuses(done.run)["question_greets"] == ("passed", False)
    assert "Maya" not in json.dumps([one.body for one in fake.asked])
    texts = [one for one in done.folder.rglob("*") if one.suffix in (".json", ".jsonl", ".txt")]
    assert not [str(one) for one in texts if "Maya" in one.read_text()]

"""Calls judged by a model on loopback: what is graded, what a failing judge does, what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import duplex
from booking_call import booking, booking_call
from duplex.errors import InputError
from duplex.grading import Evidence
from duplex.grading.judging import JudgeCase, Judgement, case_of
from duplex.judging import judge_at
from duplex.models.client import ATTEMPTS
from duplex.models.limiter import Limiter
from duplex.options import make
from duplex.results import CallFigures, build_result, schema
from duplex.results.observed import Basis
from duplex.runner import Finished
from duplex.values import Json
from fake_engines import Parrot, speaking
from fake_models import Asked, Reply, Script, error, in_turn, response, serving
from judge_cases import TABLE, good
from judge_fakes import Answer, part, replying

SEMANTIC = ("semantic_outcome", "semantic_requirements")


@pytest.fixture(autouse=True)
def parrot() -> Iterator[Parrot]:
    with speaking(Parrot()) as made:
        yield made


def judged(out: Path, script: Script, **options: object) -> tuple[schema.Result, list[Asked]]:
    with serving(script) as fake:
        finished = hold(out, judge_url=fake.url, judge_model="judge-1", **options)
    (result,) = finished.run.results
    return result, fake.asked


def hold(out: Path, **options: object) -> Finished:
    return duplex.run(scenario=["restaurant_booking_complete"], clock="virtual", out=out, **options)


def semantic(result: schema.Result) -> list[tuple[str, bool]]:
    found = {check.id: (check.status, check.required) for check in result.assessment.checks}
    return [found[name] for name in SEMANTIC]


def block(result: schema.Result) -> dict[str, Json]:
    found = result.duplex["judge"]
    assert isinstance(found, dict)
    return found


def unknown(result: schema.Result) -> dict[str, Json]:
    found = result.duplex["unknown"]
    assert isinstance(found, dict)
    return found


def test_a_judge_grades_a_call_and_everything_it_said_is_kept(tmp_path: Path) -> None:
    result, asked = judged(tmp_path, replying(), judge_repetitions=3)
    assert (result.status, result.assessment.source) == ("passed", "semantic_judge")
    assert result.assessment.rationale == "As it should be."
    assert semantic(result) == [("passed", True)] * 2
    assert result.metrics.task.semantic_quality.score == 1.0
    ours = block(result)
    assert (ours["model"], ours["repetitions"], ours["usable_votes"]) == ("judge-1", 3, 3)
    assert ours["tokens"] == {"input_tokens": 30, "output_tokens": 30, "total_tokens": 60}
    votes = ours["votes"]
    assert isinstance(votes, list)
    assert len(votes) == len(asked) == 3
    assert ours["conciseness"] == ours["conversation_progression"] == 1.0
    assert isinstance(ours["overall_score"], float)
    assert not [
        at for at in unknown(result) if at.startswith(("/duplex/judge", "/metrics/task/sem"))
    ]


async def test_a_judge_fails_a_call_that_every_rule_passes() -> None:
    def strict(answer: Answer) -> None:
        part(answer, "requirements", 1).update(verdict="not_met", reasoning="It asked twice.")

    result = result_with(await judgement_of(replying(strict)))
    assert result.status == "failed"
    assert result.observability.completion.failed_checks == ["semantic_requirements"]
    assert "It asked twice." in result.assessment.rationale


def test_a_judge_rescues_no_call_that_a_rule_fails(tmp_path: Path) -> None:
    result, _ = judged(tmp_path, replying(), max_duration_seconds=20)
    assert result.status == "failed"
    assert semantic(result) == [("passed", True)] * 2
    assert "conversation_completed" in result.observability.completion.failed_checks


def invented(answer: Answer) -> None:
    part(answer, "going_well", 0).update(evidence=[{"turn": 1, "quote": "I never said this"}])


FAILURES: dict[str, tuple[Script, str]] = {
    "prose": (in_turn([response("yes")]), "no JSON object"),
    "nothing": (in_turn([response("")]), "is empty"),
    "misquoted": (replying(invented), "does not say"),
    "cut short": (in_turn([response("{", status="incomplete")]), "incomplete"),
    "refused": (in_turn([error(401, "invalid_api_key", "no such key")]), "no such key"),
    "broken": (in_turn([Reply(raw=b"<html>")]), "cannot be read"),
}


async def judgement_of(script: Script, repetitions: int = 1) -> Judgement:
    """What a judge on loopback makes of a booking that every rule passes."""
    evidence = Evidence.from_events(booking_call().events())
    with serving(script) as fake:
        judge = judge_at(fake.url, "m", repetitions=repetitions)
        try:
            return await judge.judge(case_of(booking(), evidence))
        finally:
            await judge.close()


def result_with(judgement: Judgement) -> schema.Result:
    evidence = Evidence.from_events(booking_call().events())
    figures = CallFigures(timing={"turn_taking_score": 0.5}, judgement=judgement)
    return build_result(booking(), evidence, figures, basis=Basis())


@pytest.mark.parametrize(("script", "why"), FAILURES.values(), ids=FAILURES)
async def test_a_judge_that_fails_gives_no_score_and_fails_nobody(script: Script, why: str) -> None:
    result = result_with(await judgement_of(script))
    assert (result.status, result.assessment.source) == ("passed", "deterministic")
    assert semantic(result) == [("not_assessed", False)] * 2
    quality = result.metrics.task.semantic_quality
    assert quality.score is None
    assert set(quality.dimensions.model_dump().values()) == {None}
    ours = block(result)
    assert why in str(ours["problem"])
    assert ours["overall_score"] is None
    for at in ("/metrics/task/semantic_quality/score", "/duplex/judge/overall_score"):
        assert why in str(unknown(result)[at])


async def test_votes_that_tie_decide_nothing() -> None:
    calls = iter(range(2))

    def torn(asked: Asked) -> Reply:
        def bend(answer: Answer) -> None:
            if next(calls):
                part(answer, "dimensions", "task_understanding").update(verdict="fail", score=0.5)

        return replying(bend)(asked)

    result = result_with(await judgement_of(torn, 2))
    assert semantic(result)[0] == ("not_assessed", False)
    assert result.status == "passed"
    checks = result.duplex["checks"]
    assert isinstance(checks, dict)
    assert "pass 1, fail 1" in str(checks["semantic_outcome"])


def test_nobody_is_asked_about_a_call_that_does_not_count(tmp_path: Path) -> None:
    agent = tmp_path / "silent.py"
    agent.write_text("def make(call):\n    return lambda heard, rate: None\n")
    result, asked = judged(tmp_path, replying(), assistant=f"{agent}:make", first_speaker="caller")
    assert result.status == "infrastructure_error"
    assert asked == []
    assert result.duplex["judge"] is None


def test_no_judge_wins_over_a_judge_that_is_named(tmp_path: Path) -> None:
    result, asked = judged(tmp_path, replying(), judge=False)
    assert asked == []
    assert semantic(result) == [("not_assessed", False)] * 2
    assert result.duplex["judge"] is None
    assert unknown(result)["/duplex/judge"] == "no judge was asked"


def test_a_judge_nobody_answers_for_is_refused_before_any_call(tmp_path: Path) -> None:
    with serving(replying()) as fake:
        url = fake.url
    with pytest.raises(InputError, match="judge-url: no server answers"):
        hold(tmp_path, judge_url=url, judge_model="judge-1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [{"judge_url": "http://127.0.0.1:1/v1"}, {"judge": True}, {"judge_repetitions": 3}],
    ids=str,
)
def test_a_judge_without_a_model_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="without judge-model"):
        make(options)


def test_a_judges_url_is_checked_as_any_other() -> None:
    with pytest.raises(InputError, match=r"judge-url http://example\.com/v1 would send"):
        make({"judge_url": "http://example.com/v1", "judge_model": "m"})


# -- the judge alone ------------------------------------------------------------


async def test_a_server_with_chat_completions_only_is_asked_there() -> None:
    def chat_only(asked: Asked) -> Reply:
        if asked.path.endswith("/responses"):
            return error(404, "not_found")
        return replying()(asked)

    with serving(chat_only) as fake:
        judge = judge_at(fake.url, "m")
        judgement = await judge.judge(TABLE)
        await judge.close()
    assert judgement.outcome.value == "pass"
    assert [one.path for one in fake.asked] == ["/v1/responses", "/v1/chat/completions"]
    shape = fake.asked[-1].body["response_format"]
    assert isinstance(shape, dict)
    assert shape["type"] == "json_schema"


async def test_a_server_without_schemas_is_asked_in_words_and_remembered() -> None:
    def plain(asked: Asked) -> Reply:
        if "text" in asked.body:
            return error(400, "unsupported", "text.format is not supported")
        return response(f"Here you are:\n```json\n{json.dumps(good())}\n```")

    with serving(plain) as fake:
        judge = judge_at(fake.url, "m")
        judgements = [await judge.judge(TABLE) for _ in range(2)]
        await judge.close()
    assert [one.outcome.value for one in judgements] == ["pass", "pass"]
    assert ["text" in one.body for one in fake.asked] == [True, False, False]


async def test_a_rate_limit_is_waited_out_and_told() -> None:
    busy = error(429, "rate_limit_exceeded", retry_after_ms="30")
    with serving(in_turn([busy, response(json.dumps(good()))])) as fake:
        judge = judge_at(fake.url, "m")
        judgement = await judge.judge(TABLE)
        await judge.close()
    assert judgement.outcome.value == "pass"
    assert judgement.casts[0].waited_seconds > 0


async def test_a_limit_that_never_ends_is_a_reason_and_no_verdict() -> None:
    busy = error(429, "rate_limit_exceeded", retry_after_ms="1")
    with serving(in_turn([busy])) as fake:
        judge = judge_at(fake.url, "m", repetitions=3, limiter=Limiter())
        judgement = await judge.judge(TABLE)
        await judge.close()
    assert judgement.outcome.value is None
    assert "429" in judgement.problem
    assert len(fake.asked) == 3 * ATTEMPTS


async def test_an_assistant_without_a_word_is_not_judged() -> None:
    with serving(replying()) as fake:
        judge = judge_at(fake.url, "m")
        judgement = await judge.judge(JudgeCase(goal="g", answer="a"))
        await judge.close()
    assert "said nothing" in judgement.problem
    assert fake.asked == []


def test_a_judges_own_key_goes_to_the_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DUPLEX_JUDGE_API_KEY", "judge-key-123456")
    monkeypatch.setenv("DUPLEX_BACKEND_API_KEY", "backend-key-123456")

    def leaking(answer: Answer) -> None:
        part(answer, "dimensions", "context_fidelity")["reasoning"] = "key judge-key-123456"

    result, asked = judged(tmp_path, replying(leaking))
    assert {one.headers["authorization"] for one in asked} == {"Bearer judge-key-123456"}
    written = next(tmp_path.glob("run_*/results.json")).read_text()
    assert "judge-key-123456" not in written
    assert result.status == "passed"

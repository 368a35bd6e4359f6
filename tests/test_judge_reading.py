"""A judge's reply is a vote, or says why it is none; it is never a guess."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.grading.judging import Cast, read_vote
from duplex.grading.judging.judgement import Vote
from duplex.grading.judging.reading import REPLY_LIMIT, occurs
from duplex.grading.judging.reply import Reply
from duplex.grading.judging.rubric import answer_schema
from duplex.values import Json
from judge_cases import TABLE, bent, good
from judge_fakes import Answer, part

GOOD = json.dumps(good())


def vote(text: str) -> Vote:
    cast = read_vote(text, TABLE)
    assert cast.vote is not None, cast.problem
    return cast.vote


def refused(text: str) -> Cast:
    cast = read_vote(text, TABLE)
    assert cast.vote is None
    assert cast.problem
    return cast


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here is what I think of {{the call}}: it went well.\n\n{GOOD}\nThat is all.",
        f"```\n{json.dumps(good(), indent=2)}\n```",
        f'<think>{{"draft": 1}}</think>{GOOD}',
        f"<think>{GOOD.replace('As it should be.', 'Or not?')}</think>\n{GOOD}",
    ],
    ids=["bare", "fenced", "prose", "fenced and indented", "thought before", "draft before"],
)
def test_json_is_found_however_it_is_wrapped(reply: str) -> None:
    """Mercor-Intelligence/archipelago#97: a fence is no failure of the agent."""
    assert vote(reply) == vote(GOOD)


def test_braces_inside_a_string_end_nothing() -> None:
    def braces(answer: Answer) -> None:
        part(answer, "dimensions", "context_fidelity")["reasoning"] = 'It said "}" and {"x": 1}.'

    assert vote(bent(braces)).dimensions["context_fidelity"].reasoning.endswith("1}.")


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("yes", "unreadable"),
        ("", "unreadable"),
        (" \n", "unreadable"),
        (GOOD[:-1] + ', // the end\n"x": 1}', "unreadable"),
        (GOOD[: len(GOOD) // 2], "unreadable"),
        ('{"score": 1}', "unreadable"),
        ("[" * 5_000 + "{" * 5_000, "unreadable"),
        ('{"a":' * 12_000, "unreadable"),
        (GOOD.replace('"score": 1', '"score": NaN', 1), "unreadable"),
        (GOOD + GOOD.replace("As it should be.", "Really."), "contradiction"),
    ],
)
def test_what_cannot_be_read_is_no_vote_and_is_kept(reply: str, code: str) -> None:
    """Mercor-Intelligence/archipelago#97: no verdict, no score, and the reply as it came."""
    cast = refused(reply)
    assert cast.code == code
    assert cast.reply == reply[:REPLY_LIMIT]


def test_the_same_judgement_told_twice_is_one() -> None:
    assert vote(f"{GOOD}\n{GOOD}") == vote(GOOD)


def bend(change: Callable[[Answer], object]) -> str:
    return bent(lambda answer: (change(answer), None)[1])


OTHER_SHAPES: dict[str, Callable[[Answer], object]] = {
    "score": lambda a: part(a, "dimensions", "context_fidelity").update(score=0.9),
    "text": lambda a: part(a, "dimensions", "context_fidelity").update(score="1"),
    "boolean": lambda a: part(a, "dimensions", "context_fidelity").update(score=True),
    "verdict": lambda a: part(a, "dimensions", "task_understanding").update(verdict="maybe"),
    "extra": lambda a: a.update(total=0.9),
    "missing": lambda a: part(a, "flags").pop("information_loss"),
    "turn score": lambda a: part(a, "conciseness", 0).update(score=0.25),
    "turn": lambda a: part(a, "conciseness", 0).update(turn="1"),
}


@pytest.mark.parametrize("change", OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_nothing_is_coerced_into_the_shape(change: Callable[[Answer], object]) -> None:
    cast = refused(bend(change))
    assert cast.code == "unreadable"
    assert "another shape" in cast.problem


CONTRADICTIONS: dict[str, Callable[[Answer], object]] = {
    "fail with a good score": lambda a: part(a, "dimensions", "task_understanding").update(
        verdict="fail", score=0.75
    ),
    "pass with a bad score": lambda a: part(a, "dimensions", "task_understanding").update(score=0),
    "verdict without a score": lambda a: part(a, "dimensions", "task_understanding").update(
        score=None
    ),
    "fail, and all criteria met": lambda a: part(a, "dimensions", "task_understanding").update(
        verdict="fail", score=0, reasoning="It was polite. All criteria met."
    ),
    "pass, and the goal was not reached": lambda a: part(
        a, "dimensions", "task_understanding"
    ).update(reasoning="Polite. The goal was not reached."),
    "not met, and satisfied": lambda a: part(a, "requirements", 0).update(
        verdict="not_met", reasoning="All the requirements were satisfied."
    ),
    "a turn scored twice": lambda a: _list(a, "conciseness").append({"turn": 1, "score": 0}),
}


def _list(answer: Answer, name: str) -> list[Json]:
    found = answer[name]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_an_answer_that_contradicts_itself_is_no_vote(change: Callable[[Answer], object]) -> None:
    """Toloka/tolokaforge#528: verdict and score, or verdict and reasoning, disagree."""
    assert refused(bend(change)).code == "contradiction"


@pytest.mark.parametrize(
    "reasoning",
    ["Not all criteria were met.", "All criteria were met except the name.", "It failed."],
)
def test_a_reasoning_that_denies_agrees_with_a_fail(reasoning: str) -> None:
    change: dict[str, Json] = {"verdict": "fail", "score": 0, "reasoning": reasoning}
    read = vote(bend(lambda a: part(a, "dimensions", "task_understanding").update(change)))
    assert read.outcome.value == "fail"


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_half_a_score_goes_with_either_verdict(verdict: str) -> None:
    change: dict[str, Json] = {"verdict": verdict, "score": 0.5}
    read = vote(bend(lambda a: part(a, "dimensions", "task_understanding").update(change)))
    assert (read.outcome.value, read.dimensions["task_understanding"].value) == (verdict, 0.5)


MISQUOTES: list[Json] = [
    {"turn": 6, "quote": "It is booked for Maya at eight."},
    {"turn": 3, "quote": "A table for two at seven"},
    {"turn": 0, "quote": "Maya"},
    {"turn": 7, "quote": "Maya"},
    {"turn": 4, "quote": ""},
    {"turn": 4, "quote": "..."},
]


@pytest.mark.parametrize("quote", MISQUOTES, ids=str)
@pytest.mark.parametrize(
    "place",
    [
        ("dimensions", "context_fidelity"),
        ("requirements", 0),
        ("flags", "information_loss"),
        ("going_well", 0),
    ],
    ids=str,
)
def test_words_that_were_never_said_void_the_answer(
    quote: Json, place: tuple[str | int, ...]
) -> None:
    cast = refused(bend(lambda a: part(a, *place).update(evidence=[quote])))
    assert cast.code == "misquoted"


@pytest.mark.parametrize(
    "place",
    [("dimensions", "task_understanding"), ("dimensions", "context_fidelity"), ("requirements", 1)],
    ids=str,
)
def test_praise_without_evidence_is_not_believed(place: tuple[str | int, ...]) -> None:
    cast = refused(bend(lambda a: part(a, *place).update(evidence=[])))
    assert cast.code == "unfounded"


def test_a_flag_needs_evidence_and_its_absence_none() -> None:
    assert refused(bend(lambda a: part(a, "flags", "information_loss").update(present=True))).code
    assert vote(GOOD).flags["information_loss"].value is False


@pytest.mark.parametrize(
    ("quote", "same"),
    [
        ("it's BOOKED   for maya", True),
        ('"It’s booked for Maya..."', True),
        ("...booked for Maya, at seven.", True),
        ("booked for Maya at seven", False),
        ("bookedfor Maya", False),
        ("It’s booked … at seven", False),
    ],
)
def test_a_quote_is_compared_letter_for_letter(quote: str, same: bool) -> None:
    assert occurs(quote, "It’s booked for Maya, at seven.") is same


REQUIREMENTS: dict[str, Callable[[Answer], object]] = {
    "one left out": lambda a: _list(a, "requirements").pop(),
    "one too many": lambda a: _list(a, "requirements").append(
        {**part(a, "requirements", 0), "number": 3}
    ),
    "one twice": lambda a: part(a, "requirements", 1).update(number=1),
    "a turn of the caller": lambda a: part(a, "conciseness", 0).update(turn=2),
}


@pytest.mark.parametrize("change", REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_what_was_asked_is_answered_and_nothing_else(change: Callable[[Answer], object]) -> None:
    assert refused(bend(change)).code == "incomplete"


def test_a_score_of_null_means_no_occasion_and_needs_no_evidence() -> None:
    read = vote(
        bend(lambda a: part(a, "dimensions", "context_fidelity").update(score=None, evidence=[]))
    )
    assert read.dimensions["context_fidelity"].value is None
    assert not read.dimensions["context_fidelity"].applies


def test_reasoning_is_asked_for_before_every_verdict() -> None:
    def walk(schema: Json) -> None:
        if isinstance(schema, list):
            for one in schema:
                walk(one)
        if not isinstance(schema, dict):
            return
        members = schema.get("properties")
        if isinstance(members, dict) and (
            decided := {"verdict", "score", "present"} & set(members)
        ):
            names = list(members)
            if "reasoning" in names:
                assert all(names.index("reasoning") < names.index(one) for one in decided)
        for one in schema.values():
            walk(one)

    walk(answer_schema())
    assert "reasoning" in json.dumps(answer_schema())


def test_the_asked_schema_and_the_read_shape_name_the_same_members() -> None:
    def names(schema: Json, defs: dict[str, Json]) -> Json:
        assert isinstance(schema, dict)
        if "$ref" in schema:
            return names(defs[str(schema["$ref"]).rpartition("/")[2]], defs)
        if schema.get("type") == "array":
            return [names(schema["items"], defs)]
        members = schema.get("properties")
        if isinstance(members, dict):
            return {name: names(one, defs) for name, one in members.items()}
        return None

    read = Reply.model_json_schema()
    assert names(answer_schema(), {}) == names(read, read["$defs"])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.integers(0, len(GOOD)), st.integers(0, len(GOOD)))
def test_whatever_is_written_into_a_reply_it_is_read_or_refused(
    text: str, start: int, end: int
) -> None:
    cast = read_vote(GOOD[:start] + text + GOOD[max(start, end) :], TABLE)
    assert (cast.vote is None) == bool(cast.problem)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(good())), _JSON)
def test_whatever_stands_in_a_place_of_the_answer_it_is_read_or_refused(
    name: str, value: Json
) -> None:
    cast = read_vote(json.dumps({**good(), name: value}), TABLE)
    assert (cast.vote is None) == bool(cast.problem)

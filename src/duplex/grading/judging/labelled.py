"""Transcripts with the grades a person gave them, to hold a judge against.

Read from JSON lines, ours in the package or a user's own; each is checked whole, and
its labels obey the rules a judge must obey. The judge never sees a label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from duplex.errors import InputError
from duplex.grading.judging.case import JudgeCase, Turn
from duplex.grading.judging.reply import Part, Score, TurnScore
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS
from duplex.inputs import read_text

OWN = Path(__file__).parents[2] / "data" / "judge_cases.jsonl"
"""The set that comes with the package."""
SET_BYTES = 16 << 20


class Line(Part):
    """One turn as it is written down."""

    turn: int
    who: Literal["caller", "assistant", "tool"]
    text: Annotated[str, Field(min_length=1)]


class Scored(Part):
    turn: int
    score: TurnScore


class Labels(Part):
    """What a right judge would say."""

    outcome: Literal["pass", "fail"]
    requirements: list[Literal["met", "not_met", "not_applicable"]]
    dimensions: dict[str, Score | None]
    conciseness: list[Scored]
    flags: dict[str, bool]


class Labelled(Part):
    """One transcript with its labels; ``about`` says what it tries."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[str, Field(min_length=1)]
    about: str = ""
    goal: str
    answer: str
    criteria: list[str] = Field(default_factory=list)
    known: str = ""
    expected_state: dict[str, JsonValue] = Field(default_factory=dict)
    state_before: JsonValue = None
    state_after: JsonValue = None
    tools: list[str] = Field(default_factory=list)
    prohibited: list[str] = Field(default_factory=list)
    turns: Annotated[list[Line], Field(min_length=1)]
    labels: Labels

    @model_validator(mode="after")
    def _labels_fit(self) -> Labelled:
        labels = self.labels
        if [one.turn for one in self.turns] != list(range(1, len(self.turns) + 1)):
            raise ValueError("turns are not numbered 1, 2, 3 …")
        if len(labels.requirements) != len(self.criteria):
            raise ValueError("requirements are not one for each of criteria")
        if set(labels.dimensions) != set(DIMENSIONS) or set(labels.flags) != set(FLAGS):
            raise ValueError(f"labels want {', '.join((*DIMENSIONS, *FLAGS))}")
        if [one.turn for one in labels.conciseness] != list(self.case.assistant_turns):
            raise ValueError("conciseness is not one for each turn of the assistant, in order")
        understood = labels.dimensions["task_understanding"]
        passed = labels.outcome == "pass"
        if understood is None or (understood < 0.5 if passed else understood > 0.5):
            raise ValueError(f"outcome {labels.outcome} with task_understanding {understood}")
        return self

    @property
    def case(self) -> JudgeCase:
        """The call as a judge is shown it."""
        return JudgeCase(
            goal=self.goal,
            answer=self.answer,
            criteria=tuple(self.criteria),
            background=self.known,
            expected_state=self.expected_state,
            initial_state=self.state_before,
            final_state=self.state_after,
            required_tools=tuple(self.tools),
            prohibited_tools=tuple(self.prohibited),
            turns=tuple(
                Turn(number=line.turn, who=line.who, text=line.text) for line in self.turns
            ),
        )


def load_labelled(path: Path = OWN) -> tuple[Labelled, ...]:
    """Read a labelled set; raises InputError for the first line that is wrong."""
    found: dict[str, Labelled] = {}
    lines = read_text(path, f"cases {path}", limit=SET_BYTES).splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        one = _read(line, f"cases {path}:{number}")
        if one.id in found:
            raise InputError(f'cases {path}:{number}: id "{one.id}" is there already')
        found[one.id] = one
    if not found:
        raise InputError(f"cases {path} holds no transcript")
    return tuple(found.values())


def _read(line: str, where: str) -> Labelled:
    try:
        document: Mapping[str, JsonValue] = json.loads(line)
        return Labelled.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(f"{where}: {f'{at}: ' if at else ''}{message}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: is not json: {str(error)[:120]}") from None

"""Who grades a run besides the rules, as far as options can say and be wrong.

A part of ``options.RunOptions``: a model as judge, how often it is asked, and a user's
own checks. Keys are never among them. ``judging.py`` builds the judge; a run without
one has its semantic checks ``not_assessed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict, ValidationError, model_validator

from duplex.errors import InputError
from duplex.model_options import Effort, ModelOptions
from duplex.models.place import check_url
from duplex.option_faults import option_fault
from duplex.questions import read_question
from duplex.scenario import Question
from duplex.values import Json

MOST_REPETITIONS = 15


def _spelled(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return read_question(value)
    except InputError as error:
        raise ValueError(str(error)) from None


Asked = Annotated[Question, BeforeValidator(_spelled)]


class JudgeOptions(ModelOptions):
    """The names are the flags' names."""

    judge: bool = True
    judge_url: str | None = None
    judge_model: str | None = Field(default=None, min_length=1)
    judge_reasoning_effort: Effort | None = None
    judge_repetitions: int = Field(default=1, ge=1, le=MOST_REPETITIONS)
    check_function: Annotated[tuple[str, ...], Strict(False)] = ()
    question: Annotated[tuple[Asked, ...], Strict(False)] = ()

    @model_validator(mode="after")
    def _judge_has_a_place(self) -> JudgeOptions:
        asked = {
            "judge_url",
            "judge_reasoning_effort",
            "judge_repetitions",
            *(["judge"] if self.judge else []),
        } & self.model_fields_set
        if asked and self.judge_model is None:
            name = min(asked).replace("_", "-")
            raise ValueError(f"{name} is given without judge-model, want both")
        try:
            if self.judge_url is not None:
                check_url("judge-url", self.judge_url, insecure=self.allow_plain_http)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _questions_differ(self) -> JudgeOptions:
        ids = [one.id for one in self.question]
        twice = next((id for at, id in enumerate(ids) if id in ids[:at]), None)
        if twice is not None:
            raise ValueError(f'question "{twice}" is there twice')
        return self

    @property
    def judged(self) -> bool:
        """Whether a model is asked about the calls."""
        return self.judge and self.judge_model is not None

    def graders(self) -> dict[str, Json]:
        """What a run says of those who grade it besides the rules."""
        own: dict[str, Json] = {}
        if self.check_function:
            own["check_functions"] = list(self.check_function)
        if self.question:
            own["questions"] = [one.model_dump(mode="json") for one in self.question]
        if not self.judged:
            return own
        asked: dict[str, Json] = {
            "judge_url": self.judge_url,
            "judge_model": self.judge_model,
            "judge_reasoning_effort": self.judge_reasoning_effort,
            "judge_repetitions": self.judge_repetitions,
        }
        return own | {name: value for name, value in asked.items() if value is not None}


def judge_options(values: Mapping[str, object]) -> JudgeOptions:
    """Validate option values; one sentence names the first that is wrong."""
    try:
        return JudgeOptions.model_validate(values)
    except ValidationError as error:
        raise option_fault(error) from None

"""Yes/no questions that a run is asked besides its scenarios' own: read, and put to its calls.

A question is ``[ID:] TEXT? [= yes|no] [@ SHARE%]``, or a table with the same fields. It
asks nobody: the judge answers, grading compares. The plan and ``duplex grade`` drive it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import ValidationError

from duplex.errors import InputError
from duplex.results import schema
from duplex.scenario import Question, Scenario
from duplex.scenario.options import DuplexOptions

_SPELLED = re.compile(
    r"\s*(?:(?P<id>[a-z][a-z0-9_]{0,63}):)?\s*(?P<text>[^?]*\?)\s*"
    r"(?:=\s*(?P<answer>yes|no))?\s*(?:@\s*(?P<share>\d+(?:\.\d+)?)\s*%)?\s*"
)
_WANTED = "want for example 'read_back: Did the assistant read the number back? = yes'"


def read_question(text: str) -> Question:
    """Read a question as a command line spells it; raises InputError for what is none."""
    found = _SPELLED.fullmatch(text)
    if found is None:
        raise InputError(f'question "{text[:120]}" is none; {_WANTED}')
    share = found["share"]
    try:
        return Question.model_validate(
            {
                "id": found["id"] or _named(found["text"]),
                "question": found["text"],
                "expected": found["answer"] or "yes",
                "min_pass_rate": None if share is None else float(share),
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f'question "{text[:120]}": {where}: {first["msg"].lower()}') from None


def asked_about(scenario: Scenario, questions: Sequence[Question]) -> Scenario:
    """A scenario whose calls are asked these questions and its own.

    Raises InputError when both have one id and are not one question.
    """
    if not questions:
        return scenario
    own = scenario.duplex.questions or ()
    known = {one.id: one for one in own}
    for one in questions:
        if known.get(one.id, one) != one:
            raise InputError(f"question {one.id}: scenario {scenario.id} has another of this id")
    more = tuple(one for one in questions if one.id not in known)
    duplex = DuplexOptions(questions=(*own, *more)).over(scenario.duplex)
    return scenario.model_copy(update={"duplex": duplex})


def asked_by(run: schema.Run) -> tuple[Question, ...]:
    """Questions that a run put to all its calls."""
    models = run.run.duplex.get("models")
    told = models.get("questions") if isinstance(models, dict) else None
    return tuple(map(Question.model_validate, told)) if isinstance(told, list) else ()


def _named(text: str) -> str:
    """An id of a question's own words."""
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:48].rstrip("_")
    return words if words[:1].isalpha() else f"q_{words}".rstrip("_")

"""A small call to judge, and answers about it, for tests without a server."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

from duplex.grading.judging import JudgeCase, Turn, ask_of
from duplex.protocols.responses import request
from duplex.values import Json
from fake_models import Asked
from judge_fakes import Answer, praise, shown

TABLE = JudgeCase(
    goal="Have a table for two at seven.",
    answer="The host books a table for two at seven and says so.",
    criteria=("The name is asked for.", "Nothing is booked twice."),
    expected_state={"booked": True},
    initial_state={},
    final_state={"booked": True},
    turns=(
        Turn(number=1, who="assistant", text="Good evening, how can I help?", start_ms=400),
        Turn(number=2, who="caller", text="A table for two at seven, please.", start_ms=2_000),
        Turn(number=3, who="assistant", text="Gladly. Under what name?", start_ms=5_000),
        Turn(number=4, who="caller", text="Maya.", start_ms=7_500),
        Turn(number=5, who="tool", text='book {"name":"Maya"} completed: null', start_ms=8_000),
        Turn(number=6, who="assistant", text="It’s booked for Maya, at seven.", start_ms=9_000),
    ),
)


def asked(case: JudgeCase = TABLE) -> Asked:
    """What a Responses server would be sent about ``case``."""
    body: dict[str, Json] = request(ask_of(case))
    return Asked("/v1/responses", {}, json.loads(json.dumps(body)))


def good(case: JudgeCase = TABLE) -> Answer:
    return praise(*shown(asked(case)))


def bent(change: Callable[[Answer], None], case: JudgeCase = TABLE) -> str:
    """A good answer after ``change``, as the judge would write it."""
    answer = copy.deepcopy(good(case))
    change(answer)
    return json.dumps(answer)

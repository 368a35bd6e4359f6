"""Calls between the embedded brains, held in words, as events that can be graded.

``graded`` is the whole way: a shipped scenario, an office that may do its work
wrongly, the call between them, and the grade it gets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from booking_call import Log
from duplex.application.model import Application
from duplex.briefing import caller_brief
from duplex.grading import Evidence, Grade, grade
from duplex.scenario import Scenario, load
from duplex.values import Action, Json, Side
from text_call import Ears, Slip, TextCall, hold_call

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def shipped(name: str) -> Scenario:
    (found,) = load(SCENARIOS).select([name])
    return found


def graded(
    scenario: Scenario,
    office: Application,
    *,
    seed: int = 7,
    ears: Ears = lambda who, text: text,
    slip: Slip | None = None,
) -> tuple[Grade, TextCall]:
    """Hold one call about ``scenario`` with ``office`` and grade it."""
    brief = caller_brief(scenario, "assistant")
    state = dict(scenario.application.initial_state)
    call = hold_call(office, brief, state, seed=seed, ears=ears, slip=slip)
    return grade(scenario, Evidence.from_events(events(scenario.id, call).events())), call


def events(name: str, call: TextCall) -> Log:
    """The call as the loop would have written it down."""
    log = Log(scenario_id=name)
    moments: list[tuple[int, Callable[[], Log]]] = []
    for spoken in call.spoken:
        moments.append((spoken[0], partial(_say, log, *spoken)))
    for at, happening in call.happened:
        fields: dict[str, Json] = {**happening.fields}
        moments.append((at, partial(log.add, at, Side.ASSISTANT, happening.type, **fields)))
    for index, (began, ended) in enumerate(call.delegated):
        moments.append((began, partial(_delegation, log, f"d{index + 1}", began, ended)))
    for _, write in sorted(moments, key=lambda moment: moment[0]):
        write()
    last = max(end for _, end, *_ in call.spoken)
    log.add(last, Side.CALLER, "caller.finished", outcome=call.outcome)
    return log.end(last + 2000)


def _say(log: Log, start: int, end: int, who: str, words: str, action: Action | None) -> Log:
    side = Side.CALLER if who == "caller" else Side.ASSISTANT
    return log.say(side, start, end, words, None if action is None else action.value)


def _delegation(log: Log, name: str, began: int, ended: int) -> Log:
    log.add(began, Side.ASSISTANT, "delegation.created", delegation_id=name, target="client")
    return log.add(ended, Side.ASSISTANT, "delegation.closed", delegation_id=name, ok=True)

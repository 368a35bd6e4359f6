"""One call as a judge is shown it: what was wanted, and what happened, in numbered turns.

Made from a scenario and its evidence alone. Lines of both sides and tool calls are one
list in order of time, so that whatever a judge claims can be pinned to a turn. Nothing
of it is an instruction: :func:`JudgeCase.record` is JSON, to be sent as data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from duplex.grading.evidence import Evidence, Spoken, ToolUse
from duplex.scenario import Question, Scenario
from duplex.values import Json

Who = Literal["caller", "assistant", "tool"]
RESULT_LIMIT = 2_000
"""Characters of one tool call that a judge is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One line, or one tool call as text; ``number`` counts from 1 over all of them."""

    number: int
    who: Who
    text: str
    start_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCase:
    """Everything a judge may look at.

    ``background`` is what the assistant knew before the call. States are None where the
    application reported none.
    """

    goal: str
    answer: str
    criteria: tuple[str, ...] = ()
    background: str = ""
    expected_state: Mapping[str, Json] = field(default_factory=dict)
    initial_state: Json = None
    final_state: Json = None
    required_tools: tuple[str, ...] = ()
    prohibited_tools: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    questions: tuple[Question, ...] = ()
    """What is asked besides; a request of its own (``questions.py``)."""

    @property
    def assistant_turns(self) -> tuple[int, ...]:
        return tuple(turn.number for turn in self.turns if turn.who == "assistant")

    def turn(self, number: int) -> Turn | None:
        return self.turns[number - 1] if 1 <= number <= len(self.turns) else None

    def wanted(self) -> dict[str, Json]:
        """What the call was about, as the scenario's author wrote it."""
        return {
            "goal_of_the_caller": self.goal,
            "right_outcome": self.answer,
            "requirements": [
                {"number": number, "text": text} for number, text in enumerate(self.criteria, 1)
            ],
            "expected_state": dict(self.expected_state),
            "expected_tools": list(self.required_tools),
            "prohibited_tools": list(self.prohibited_tools),
        }

    def record(self) -> dict[str, Json]:
        """What happened; all of it is data."""
        return {
            "known_before_the_call": self.background,
            "state_before": self.initial_state,
            "state_after": self.final_state,
            "conversation": [
                {"turn": turn.number, "who": turn.who, "text": turn.text} for turn in self.turns
            ],
        }


def case_of(scenario: Scenario, evidence: Evidence) -> JudgeCase:
    """Make the case of one call."""
    tools = scenario.expected.tools
    return JudgeCase(
        goal=scenario.goal,
        answer=scenario.expected.answer,
        criteria=scenario.expected.criteria,
        background=_background(scenario),
        expected_state=scenario.expected.state,
        initial_state=evidence.initial_state,
        final_state=evidence.final_state,
        required_tools=tuple(_wanted(one.name, one.arguments) for one in tools.required),
        prohibited_tools=tuple(_wanted(one.name, one.arguments) for one in tools.prohibited),
        turns=_turns(evidence),
        questions=scenario.duplex.questions or (),
    )


def compact(value: Json) -> str:
    """Write JSON on one line, as short as it goes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _turns(evidence: Evidence) -> tuple[Turn, ...]:
    entries: list[tuple[int, int, Who, str]] = [
        (line.start_ms, 0, _who(line), line.text.strip())
        for line in evidence.spoken
        if line.has_words
    ]
    entries += [(call.started_ms, 1, "tool", _told(call)) for call in evidence.tools]
    entries.sort(key=lambda entry: entry[:2])
    return tuple(
        Turn(number=number, who=who, text=text, start_ms=start_ms)
        for number, (start_ms, _, who, text) in enumerate(entries, 1)
    )


def _who(line: Spoken) -> Who:
    return "assistant" if line.side.label == "assistant" else "caller"


def _told(call: ToolUse) -> str:
    outcome = call.error if call.error is not None else compact(call.result)
    told = f"{call.name} {compact(dict(call.arguments))} {call.status}: {outcome}"
    return told if len(told) <= RESULT_LIMIT else told[:RESULT_LIMIT] + " …"


def _wanted(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{name} {compact(dict(arguments))}"


def _background(scenario: Scenario) -> str:
    context = scenario.input.context
    if context is None:
        return ""
    lines = [context.summary, *(f"{line.role}: {line.text}" for line in context.history)]
    return "\n".join(line for line in lines if line)

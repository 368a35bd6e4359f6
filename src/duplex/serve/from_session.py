"""A scenario of a call that was held, in LiveKit's words: from what was said, without a model.

What the call's own scenario says of goal, facts and expectations is kept where it is at
hand; the caller's lines are added in the order they were said. Without one nothing more is
expected than that the agent answers. Text only: nothing is measured or judged here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from duplex.exports.livekit_chat import Tool
from duplex.exports.livekit_ids import some
from duplex.exports.said import SaidLine
from duplex.scenario import Scenario
from duplex.scenario.model import Persona
from duplex.values import Json
from duplex.verdict.case import Case

_HEADING = re.compile(r"(?m)^\s*(?:#+\s*)?(?:persona|opening|facts|do|steps|reactions)\b[^:\n]*:")
_UNKNOWN = "The agent answers what the caller asks."
_LONGEST = 16_000


def scenario_json(
    id: str, case: Case, lines: Sequence[SaidLine], scenario: Scenario | None
) -> dict[str, Json]:
    """The message of a scenario; ``lines`` hold at least one of the caller's."""
    state = {} if scenario is None else scenario.application.initial_state
    return some(
        label=case.result.title,
        instructions="\n".join(_instructions(case, lines, scenario))[:_LONGEST],
        agentExpectations=_expected(scenario),
        tags=None if scenario is None else tags_json(scenario.tags),
        userdata=json.dumps(state, ensure_ascii=False) if state else None,
        id=id,
    )


def tags_json(tags: Sequence[str]) -> Json:
    return {name: value for name, _, value in (tag.partition("=") for tag in tags)}


def history(lines: Sequence[SaidLine], tools: Sequence[Tool]) -> list[Json]:
    """What a model is shown of the call: lines and tool calls in order of time."""
    told: list[tuple[float, Json]] = [
        (line.start_ms or 0.0, {"who": _who(line), "said": line.text.strip()})
        for line in lines
        if line.text.strip()
    ]
    told += [
        (
            tool.start_ms,
            {"who": "tool", "name": tool.call.name, "arguments": dict(tool.call.arguments)},
        )
        for tool in tools
    ]
    return [entry for _, entry in sorted(told, key=lambda one: one[0])]


def callers(lines: Sequence[SaidLine]) -> list[str]:
    """What the caller said when it was its turn, a line each."""
    turns = (one for one in lines if one.role == "user" and one.action != "BACKCHANNEL")
    said = (" ".join(line.text.split()) for line in turns)
    return [line for line in said if line]


def _who(line: SaidLine) -> str:
    return "caller" if line.role == "user" else "assistant"


def _instructions(
    case: Case, lines: Sequence[SaidLine], scenario: Scenario | None
) -> Iterator[str]:
    opening, *rest = callers(lines)
    goal = "" if scenario is None else _HEADING.split(scenario.goal, maxsplit=1)[0].strip()
    yield goal or f"You are the caller of a call that was recorded: {case.result.title}."
    persona = Persona() if scenario is None else scenario.persona
    if persona.description != Persona().description:
        yield f"PERSONA: {' '.join(persona.description.split())}"
    yield f"OPENING LINE: {opening}"
    facts = {} if scenario is None else scenario.simulation.known_facts
    if facts:
        yield "FACTS (tell them when asked):"
        yield from (f"- {name}: {value}" for name, value in facts.items())
    if rest:
        yield "DO, IN ORDER:"
        yield from (f"- Say: {line}" for line in rest)


def _expected(scenario: Scenario | None) -> str:
    if scenario is None:
        return _UNKNOWN
    expected = scenario.expected
    more = [one for one in expected.criteria if one not in expected.answer]
    return "\n".join((expected.answer, *more))

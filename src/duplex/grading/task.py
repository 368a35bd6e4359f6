"""The countable side of a task: tools matched, delegations, turns.

Pure counts over a scenario and its evidence, by contract 2.0. A count that
cannot be known is None; a verdict is made elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.grading.evidence import Evidence, ToolUse
from duplex.grading.matching import Pairing, call_mismatch, pair_calls
from duplex.scenario import ExpectedTool, Scenario
from duplex.values import Action, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """What was expected and what happened.

    ``lenient_matched`` counts matches if text that spells a number passed for it.
    ``unexpected`` counts completed calls no expectation was left for.
    """

    pairing: Pairing
    expected_tools: int
    actual_tools: int
    lenient_matched: int
    prohibited: tuple[ToolUse, ...]
    unexpected: int
    failed: int
    expected_delegations: int
    actual_delegations: int
    delegation_kept: bool
    expected_turns: int
    actual_turns: int

    @property
    def tool_accuracy(self) -> float:
        """Contract 2.0: matched over the larger of expected and actual; 0 for a prohibited call."""
        if self.prohibited:
            return 0.0
        most = max(self.expected_tools, self.actual_tools)
        return round(self.pairing.matched / most, 4) if most else 1.0


def count_task(scenario: Scenario, evidence: Evidence) -> TaskCounts:
    """Count tools, delegations and turns of one call."""
    expected = scenario.expected
    tools = expected.tools
    pairing = pair_calls(tools.required, evidence.tools)
    lenient = pair_calls(tools.required, evidence.tools, lenient=True)
    delegations = len(evidence.delegations(Side.ASSISTANT))
    golden = expected.golden_path.delegations
    return TaskCounts(
        pairing=pairing,
        expected_tools=len(tools.required),
        actual_tools=len(evidence.tools),
        lenient_matched=lenient.matched,
        prohibited=tuple(
            call for call in evidence.tools if any(_is(one, call) for one in tools.prohibited)
        ),
        unexpected=sum(evidence.tools[index].completed for index in pairing.extra),
        failed=sum(call.status == "failed" for call in evidence.tools),
        expected_delegations=int(expected.delegation == "required") if golden is None else golden,
        actual_delegations=delegations,
        delegation_kept=_policy_kept(expected.delegation, delegations),
        expected_turns=expected.golden_path.expected_turns,
        actual_turns=count_turns(evidence),
    )


def _is(prohibited: ExpectedTool, call: ToolUse) -> bool:
    return call_mismatch(prohibited.model_copy(update={"status": "any"}), call) is None


def _policy_kept(policy: str, count: int) -> bool:
    if policy == "required":
        return count > 0
    return policy != "forbidden" or count == 0


def count_turns(evidence: Evidence) -> int:
    """Count turns by contract 2.0.

    Substantive caller lines (neither backchannel nor closing), plus caller lines the
    assistant spoke after before the caller's next, plus the caller's closing lines.
    """
    caller = evidence.lines(Side.CALLER)
    starts = [line.start_ms for line in evidence.lines(Side.ASSISTANT)]
    substantive = sum(line.action not in (Action.BACKCHANNEL, Action.STOP) for line in caller)
    closings = sum(line.action is Action.STOP for line in caller)
    answered = 0
    for index, line in enumerate(caller):
        until = caller[index + 1].start_ms if index + 1 < len(caller) else None
        answered += any(
            line.start_ms <= start and (until is None or start < until) for start in starts
        )
    return substantive + answered + closings

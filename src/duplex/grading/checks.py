"""The checks behind a verdict, each a small function with its reason and evidence.

Deterministic ones first, then what a judge decided, then a user's own. A check that
does not apply is ``not_applicable``; one whose subject could not be observed, or that
a judge did not decide, is ``not_assessed`` and not required. Only a required check
that failed fails a call, and none makes good for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from duplex.grading.evidence import Evidence
from duplex.grading.judging import Judgement, Quoted, Ruling
from duplex.grading.matching import json_equal, state_satisfied
from duplex.grading.procedure import ProcedureGrade, grade_procedure, grounded_line
from duplex.grading.task import TaskCounts, count_task
from duplex.scenario import Question, Scenario
from duplex.values import Json, Side

Status = Literal["passed", "failed", "not_applicable", "not_assessed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition: how it went, why, and what shows it."""

    id: str
    status: Status
    required: bool
    reason: str
    evidence: Mapping[str, Json] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        return self.required and self.status == "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """A graded call: its checks, the counts and the procedure they rest on."""

    checks: tuple[Check, ...]
    counts: TaskCounts
    procedure: ProcedureGrade
    judgement: Judgement | None = None

    @property
    def source(self) -> Literal["deterministic", "semantic_judge"]:
        """Who had the last word: a judge that decided something, or the rules alone."""
        judged = self.judgement is not None and self.judgement.usable
        return "semantic_judge" if judged else "deterministic"

    @property
    def passed(self) -> bool:
        return not self.failed_checks

    @property
    def failed_checks(self) -> tuple[str, ...]:
        return tuple(check.id for check in self.checks if check.fails)

    @property
    def rationale(self) -> str:
        reasons = [check.reason for check in self.checks if check.fails]
        if reasons:
            return "; ".join(reasons)
        told = self.judgement.outcome.reasoning if self.judgement is not None else ""
        return told or "Every required check passed."


CHECKS = (
    "conversation_completed",
    "assistant_responded",
    "application_state",
    "delegation_policy",
    "authorized_actions",
    "critical_procedure",
    "tool_contract",
    "verified_state_change",
    "grounded_assistant_response",
    "semantic_outcome",
    "semantic_requirements",
)
"""Ids of the checks every call has; questions and a user's own come after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What every check looks at."""

    scenario: Scenario
    evidence: Evidence
    counts: TaskCounts
    procedure: ProcedureGrade


def grade(
    scenario: Scenario,
    evidence: Evidence,
    judgement: Judgement | None = None,
    own: Sequence[Check] = (),
) -> Grade:
    """Grade one call against its scenario.

    ``judgement`` is what a judge made of it, None where none was asked; ``own`` are the
    user's checks, already run.
    """
    counts = count_task(scenario, evidence)
    single = scenario.interaction == "single_turn"
    procedure = grade_procedure(None if single else scenario.expected.procedure, evidence)
    case = _Case(scenario=scenario, evidence=evidence, counts=counts, procedure=procedure)
    checks = (
        _conversation_completed(case),
        _assistant_responded(case),
        _application_state(case),
        _delegation_policy(case),
        _authorized_actions(case),
        _critical_procedure(case),
        _tool_contract(case),
        _verified_state_change(case),
        _grounded_assistant_response(case),
        _semantic_outcome(judgement),
        _semantic_requirements(judgement),
        *(_answered(one, judgement) for one in scenario.duplex.questions or ()),
        *own,
    )
    return Grade(checks=checks, counts=counts, procedure=procedure, judgement=judgement)


def _check(name: str, ok: bool, good: str, bad: str, **evidence: Json) -> Check:
    return Check(
        id=name,
        status="passed" if ok else "failed",
        required=True,
        reason=good if ok else bad,
        evidence=evidence,
    )


def _not_applicable(name: str, reason: str) -> Check:
    return Check(id=name, status="not_applicable", required=False, reason=reason)


def _unobserved(name: str) -> Check:
    return Check(
        id=name,
        status="not_assessed",
        required=False,
        reason="The application under test reported nothing that could show it.",
    )


def _unjudged(name: str, reason: str) -> Check:
    return Check(id=name, status="not_assessed", required=False, reason=reason)


def _conversation_completed(case: _Case) -> Check:
    reason = case.evidence.termination_reason
    return _check(
        "conversation_completed",
        reason == "response_completed",
        "The call came to its own end.",
        f"The call ended by {reason or 'breaking off'} before it was done.",
        termination_reason=reason,
    )


def _assistant_responded(case: _Case) -> Check:
    lines = case.evidence.lines(Side.ASSISTANT)
    return _check(
        "assistant_responded",
        case.evidence.was_heard(Side.ASSISTANT),
        "The assistant was heard.",
        "The assistant was never heard.",
        lines=len(lines),
        voiced_ms=(case.evidence.voiced_ms or {}).get(Side.ASSISTANT),
    )


def _application_state(case: _Case) -> Check:
    name, expected, evidence = "application_state", case.scenario.expected.state, case.evidence
    if not expected:
        return _not_applicable(name, "The scenario expects no state.")
    if not evidence.states:
        return _unobserved(name)
    return _check(
        name,
        state_satisfied(expected, evidence.final_state, evidence.initial_state),
        "The application's state is the expected one.",
        "The application's state is not the expected one.",
        expected=dict(expected),
        actual=evidence.final_state,
    )


def _delegation_policy(case: _Case) -> Check:
    name, policy = "delegation_policy", case.scenario.expected.delegation
    if not case.evidence.delegates:
        return _not_applicable(name, "The assistant's protocol has no delegation.")
    if policy == "optional":
        return _not_applicable(name, "The scenario leaves delegation open.")
    if not case.evidence.application_observed:
        return _unobserved(name)
    return _check(
        name,
        case.counts.delegation_kept,
        "Work was delegated as the scenario wants.",
        f"Delegation is {policy} and happened {case.counts.actual_delegations} times.",
        policy=policy,
        count=case.counts.actual_delegations,
    )


def _authorized_actions(case: _Case) -> Check:
    name, prohibited = "authorized_actions", case.counts.prohibited
    if not case.evidence.application_observed and case.scenario.expected.tools.prohibited:
        return _unobserved(name)
    return _check(
        name,
        not prohibited,
        "No prohibited tool call was made.",
        f"Prohibited tool calls were made: {', '.join(call.name for call in prohibited)}.",
        calls=[call.call_id for call in prohibited],
    )


def _critical_procedure(case: _Case) -> Check:
    name, procedure = "critical_procedure", case.procedure
    if not procedure.critical_steps:
        return _not_applicable(name, "The scenario names no critical step.")
    if not case.evidence.application_observed and procedure.critical_work:
        return _unobserved(name)
    failed = procedure.failed_critical
    return _check(
        name,
        not failed,
        "Every critical step was done, in order.",
        f"Critical steps were not done in order: {', '.join(failed)}.",
        steps=list(procedure.critical_steps),
        failed=list(failed),
    )


def _tool_contract(case: _Case) -> Check:
    name, counts = "tool_contract", case.counts
    if case.scenario.interaction != "single_turn":
        return _not_applicable(name, "Tool choice decides single-turn scenarios only.")
    if not case.evidence.application_observed and counts.expected_tools:
        return _unobserved(name)
    kept = counts.pairing.matched == counts.expected_tools
    tools = case.scenario.expected.tools.required
    unmet: dict[str, Json] = {
        f"required[{index}] {tools[index].name}": why for index, why in counts.pairing.unmet.items()
    }
    return _check(
        name,
        kept and counts.unexpected == 0 and counts.failed == 0,
        "The tools called are the expected ones.",
        f"Of {counts.expected_tools} expected tool calls {counts.pairing.matched} were made, "
        f"with {counts.unexpected} unexpected and {counts.failed} failed.",
        unmet=unmet,
        matched_leniently=counts.lenient_matched,
    )


def _verified_state_change(case: _Case) -> Check:
    name, evidence = "verified_state_change", case.evidence
    if not evidence.states and not evidence.delegates:
        return _unobserved(name)
    if not evidence.states:
        return _not_applicable(name, "No state was reported.")
    if json_equal(evidence.initial_state, evidence.final_state):
        return _not_applicable(name, "The application's state did not change.")
    completed = sum(call.completed for call in evidence.tools)
    return _check(
        name,
        completed > 0,
        "A completed tool call stands behind the change of state.",
        "The state changed without a completed tool call.",
        completed_tools=completed,
    )


def _grounded_assistant_response(case: _Case) -> Check:
    name, evidence = "grounded_assistant_response", case.evidence
    if not evidence.application_observed and not evidence.delegates:
        return _unobserved(name)
    ends = [call.ended_ms for call in evidence.tools if call.completed]
    if not ends:
        return _not_applicable(name, "No tool call was completed.")
    line = grounded_line(evidence)
    return _check(
        name,
        line is not None,
        "The assistant spoke after the last completed tool call.",
        "The assistant said nothing after the last completed tool call.",
        last_tool_ms=max(end or 0 for end in ends),
        line_start_ms=line.start_ms if line else None,
    )


def _semantic_outcome(judgement: Judgement | None) -> Check:
    name = "semantic_outcome"
    if judgement is None:
        return _unjudged(name, "No judge was asked whether the goal was reached.")
    ruling = judgement.outcome
    if ruling.value is None:
        return _unjudged(name, f"The judge decided nothing: {ruling.why}.")
    return _judged(name, ruling.value == "pass", ruling.reasoning, ruling.evidence)


def _semantic_requirements(judgement: Judgement | None) -> Check:
    name = "semantic_requirements"
    if judgement is None:
        return _unjudged(name, "No judge was asked about further requirements.")
    if not judgement.criteria:
        return _not_applicable(name, "The scenario names no further requirement.")
    ruled = list(zip(judgement.criteria, judgement.requirements, strict=True))
    missed = [(text, ruling) for text, ruling in ruled if ruling.value == "not_met"]
    if missed:
        told = "; ".join(f"{_unstopped(text)}: {ruling.reasoning}" for text, ruling in missed)
        return _judged(name, False, f"Not met: {told}", _quotes(missed))
    open_ones = [ruling for _, ruling in ruled if ruling.value is None]
    if open_ones:
        return _unjudged(name, f"The judge decided nothing: {open_ones[0].why}.")
    return _judged(name, True, "Every requirement that applies was met.", _quotes(ruled))


def _answered(question: Question, judgement: Judgement | None) -> Check:
    """Whether a question has the wanted answer; it is a check of the run and fails no call."""
    asked: dict[str, Json] = {"question": question.question, "expected": question.expected}
    ruling = None if judgement is None else judgement.answer(question.id)
    if ruling is None or ruling.value is None:
        told = "No judge was asked." if ruling is None else f"No answer: {ruling.why}."
        return replace(_unjudged(question.check, f"{question.question} {told}"), evidence=asked)
    judged = _judged(
        question.check,
        ruling.value == question.expected,
        f"{ruling.value}: {ruling.reasoning}" if ruling.reasoning else ruling.value,
        ruling.evidence,
    )
    evidence = {**asked, "answer": ruling.value, **judged.evidence}
    return replace(judged, required=False, evidence=evidence)


def _quotes(ruled: Sequence[tuple[str, Ruling[str]]]) -> list[Quoted]:
    return [quoted for _, ruling in ruled for quoted in ruling.evidence]


def _unstopped(text: str) -> str:
    return text.rstrip(".!? ")


def _judged(name: str, ok: bool, reason: str, evidence: Sequence[Quoted]) -> Check:
    return Check(
        id=name,
        status="passed" if ok else "failed",
        required=True,
        reason=reason or "The judge gave no reason.",
        evidence={"turns": [one.as_json() for one in evidence]},
    )

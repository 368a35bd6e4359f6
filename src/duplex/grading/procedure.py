"""A scenario's procedure against what happened: a partial order with reasons.

Each step is looked for on its own and must not come before the steps it follows.
Only critical steps decide a verdict; the rest is diagnosis. Steps are found in
words, tool calls and states; nothing here knows any application.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from duplex.grading.evidence import Evidence, Spoken, ToolUse
from duplex.grading.matching import json_equal, matched, mismatch, state_satisfied
from duplex.grading.wording import asks_for, mentions, refuses
from duplex.scenario import Procedure, Step
from duplex.values import Json, Side

_LAST = math.inf
"""Position of what holds only at the end of a call; nothing can come after it."""
_FIRST = -1.0
_WORK = frozenset({"tool", "state", "authorization", "correction", "grounded_confirmation"})
"""Kinds of steps that no word can show."""
_APART = 1e-6
"""Keeps calls that end in one millisecond in their order, far below :data:`_SAME_MS`."""
_SAME_MS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGrade:
    """One step: ``passed``, ``failed``, or ``not_applicable`` when optional and not seen.

    ``at_ms`` is where it happened; None when it did not, or holds at the end only.
    """

    step: Step
    status: str
    reason: str
    at_ms: int | None

    @property
    def passed(self) -> bool:
        return self.status == "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureGrade:
    """All steps, in the order of the file, and the verdict on the critical ones."""

    steps: tuple[StepGrade, ...] = ()
    critical_steps: tuple[str, ...] = ()
    failed_critical: tuple[str, ...] = ()

    @property
    def critical_work(self) -> bool:
        """Whether a critical step can only be seen in what the application reports."""
        return any(one.step.critical and one.step.kind in _WORK for one in self.steps)

    @property
    def failed_steps(self) -> tuple[str, ...]:
        return tuple(grade.step.id for grade in self.steps if grade.status == "failed")


def grade_procedure(procedure: Procedure | None, evidence: Evidence) -> ProcedureGrade:
    """Grade every step; a call without a procedure has none to fail."""
    if procedure is None:
        return ProcedureGrade()
    found = _Finder(evidence).places(procedure.steps)
    critical = [step for step in procedure.steps if step.critical]
    verdicts = _Walk(critical, procedure.steps, found).grades()
    return ProcedureGrade(
        steps=tuple(_Walk(procedure.steps, procedure.steps, found).grades()),
        critical_steps=tuple(step.id for step in critical),
        failed_critical=tuple(grade.step.id for grade in verdicts if not grade.passed),
    )


class _Walk:
    """Gives each step the earliest place that follows its predecessors.

    A predecessor that is not among the ``steps``, or is optional and did not happen,
    hands its own predecessors on: an order holds through what is left out. A tool call
    is one step's; of several it goes to one that leaves the others theirs.
    """

    def __init__(
        self, steps: Sequence[Step], every: Sequence[Step], found: Mapping[str, Sequence[float]]
    ) -> None:
        self._steps = steps
        self._among = {step.id: step for step in steps}
        self._every = {step.id: step for step in every}
        self._found = found
        self._placed: dict[str, float] = {}
        self._taken: set[float] = set()
        self._grades: dict[str, StepGrade] = {}

    def grades(self) -> list[StepGrade]:
        left = list(self._steps)
        while left:
            ready = [
                step
                for step in left
                if not set(self._before(step, self._among.keys())) - self._grades.keys()
            ]
            assert ready, "a scenario's steps never wait in a circle"
            for step in ready:
                self._grades[step.id] = self._grade(step)
            left = [step for step in left if step.id not in self._grades]
        return [self._grades[step.id] for step in self._steps]

    def _before(self, step: Step, among: Container[str]) -> list[str]:
        """The nearest steps of ``among`` that ``step`` comes after, through any others."""
        found: list[str] = []
        left, seen = list(step.after), set[str]()
        while left:
            name = left.pop(0)
            if name in seen:
                continue
            seen.add(name)
            if name in among:
                found.append(name)
            else:
                left += self._every[name].after
        return found

    def _grade(self, step: Step) -> StepGrade:
        needed = {name for name, one in self._among.items() if one.required}
        before = self._before(step, needed | self._placed.keys())
        unmet = [name for name in before if name not in self._placed]
        done = [name for name in before if name in self._placed]
        places = self._found[step.id]
        fitting = [place for place in places if self._fits(step, place, done)]
        free = [place for place in fitting if step.kind != "tool" or place not in self._taken]
        if not places:
            reason = "not observed"
        elif unmet:
            reason = f"not after {', '.join(unmet)}, not done"
        elif not fitting:
            reason = f"came before {', '.join(done)}"
        elif not free:
            reason = "its tool call is another step's"
        else:
            place = self._chosen(step, free)
            at_ms = int(place) if 0 <= place < _LAST else None
            return StepGrade(step=step, status="passed", reason="observed", at_ms=at_ms)
        status = "failed" if step.required else "not_applicable"
        return StepGrade(step=step, status=status, reason=reason, at_ms=None)

    def _fits(self, step: Step, place: float, done: Iterable[str]) -> bool:
        return all(_follows(step, place, self._among[name], self._placed[name]) for name in done)

    def _chosen(self, step: Step, free: Sequence[float]) -> float:
        """Take the earliest place; of tool calls the earliest that no other step then lacks."""
        place = free[0]
        if step.kind == "tool":
            others = [
                set(self._found[one.id]) - self._taken
                for one in self._steps
                if one.kind == "tool" and one.id != step.id and one.id not in self._grades
            ]
            most = matched(others)
            keeping = (one for one in free if matched([other - {one} for other in others]) == most)
            place = next(keeping, place)
            self._taken.add(place)
        self._placed[step.id] = place
        return place


def _follows(step: Step, place: float, before: Step, at: float) -> bool:
    """Whether ``place`` is no earlier than ``at``; one tool call is never two steps."""
    if step.kind == "tool" and before.kind == "tool":
        return place > at
    return place + _SAME_MS >= at


class _Finder:
    """Finds every place in a call where a step may have happened."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._caller = evidence.lines(Side.CALLER)
        self._assistant = evidence.lines(Side.ASSISTANT)
        self._completed = [call for call in evidence.tools if call.completed]
        self._changes = _state_changes(evidence)

    def places(self, steps: Iterable[Step]) -> dict[str, list[float]]:
        return {step.id: sorted(self._places(step)) for step in steps}

    def _places(self, step: Step) -> Iterable[float]:
        match step.kind:
            case "tool":
                return self._tool(step)
            case "clarification":
                return self._clarification(_named(step, "field"))
            case "correction":
                return self._correction(step)
            case "authorization":
                return self._authorization(step)
            case "state":
                return self._state(step)
            case "grounded_confirmation":
                return self._confirmation()
        return self._refusal(step)

    def _tool(self, step: Step) -> Iterable[float]:
        for index, call in enumerate(self._completed):
            same = call.name == step.tool
            if same and mismatch(dict(step.arguments), dict(call.arguments)) is None:
                ended_ms = call.started_ms if call.ended_ms is None else call.ended_ms
                yield ended_ms + index * _APART

    def _clarification(self, field: str) -> Iterable[float]:
        """A question counts only while nothing has been changed yet."""
        limit = min(self._changes, default=_LAST)
        for line in self._assistant:
            if line.start_ms <= limit and asks_for(line.text, field):
                yield float(line.start_ms)

    def _correction(self, step: Step) -> Iterable[float]:
        """The caller said the new value, and whatever was changed used it."""
        field, value = _named(step, "field"), step.arguments.get("value")
        used = [call.arguments[field] for call in self._changes.values() if field in call.arguments]
        if used and all(mismatch(value, one) is None for one in used):
            yield from self._said(value)

    def _authorization(self, step: Step) -> Iterable[float]:
        """Each ``…_id`` is, or is not, among the state's ``authorized_…_ids``."""
        wanted = step.arguments.get("authorized", True) is True
        initial = self._evidence.initial_state
        for name, value in step.arguments.items():
            if name != "authorized":
                listed = initial.get(f"authorized_{name}s") if isinstance(initial, dict) else None
                known = listed if isinstance(listed, list) else []
                if any(json_equal(value, one) for one in known) is not wanted:
                    return
        named = [value for name, value in step.arguments.items() if name != "authorized"]
        yield min((place for value in named for place in self._said(value)), default=_FIRST)

    def _state(self, step: Step) -> Iterable[float]:
        evidence = self._evidence
        if evidence.states and state_satisfied(
            step.arguments, evidence.final_state, evidence.initial_state
        ):
            yield _LAST

    def _confirmation(self) -> Iterable[float]:
        line = grounded_line(self._evidence)
        if line is not None and self._completed:
            yield float(line.start_ms)

    def _refusal(self, step: Step) -> Iterable[float]:
        """Enough refusals, and none of the refused calls was carried out."""
        tool = step.tool or _named(step, "tool")
        arguments: dict[str, Json] = {
            name: value
            for name, value in step.arguments.items()
            if name not in ("tool", "minimum_count")
        }
        for call in self._completed:
            if call.name == tool and mismatch(arguments, dict(call.arguments)) is None:
                return
        count = step.arguments.get("minimum_count", 1)
        needed = count if isinstance(count, int) and count > 0 else 1
        lines = [line for line in self._assistant if refuses(line.text)]
        if len(lines) >= needed:
            yield float(lines[needed - 1].start_ms)

    def _said(self, value: Json) -> Iterable[float]:
        for line in self._caller:
            if mentions(line.text, value):
                yield float(line.start_ms)


def grounded_line(evidence: Evidence) -> Spoken | None:
    """Return the first line the assistant began after its last completed tool call."""
    ends = [call.ended_ms or call.started_ms for call in evidence.tools if call.completed]
    latest = max(ends, default=0)
    return next(
        (
            line
            for line in evidence.lines(Side.ASSISTANT)
            if line.start_ms >= latest and line.has_words
        ),
        None,
    )


def _state_changes(evidence: Evidence) -> dict[int, ToolUse]:
    """Map the time of each change of state to the completed call it is owed to."""
    changes: dict[int, ToolUse] = {}
    calls = [call for call in evidence.tools if call.completed]
    for before, after in zip(evidence.states, evidence.states[1:], strict=False):
        if json_equal(before.state, after.state):
            continue
        begun = [call for call in calls if call.started_ms <= after.at_ms]
        if begun:
            changes[after.at_ms] = max(begun, key=lambda call: call.started_ms)
    return changes


def _named(step: Step, name: str) -> str:
    value = step.arguments.get(name)
    return value if isinstance(value, str) else ""

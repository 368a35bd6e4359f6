"""What a run is judged by: its checks, each with the share of calls that must pass.

A check is ``[NAME:] EXPRESSION OP NUMBER[ms|s|%] [@ SHARE%]``, or the name of a
yes/no metric alone. Checks are read when the run starts and pinned in its
folder; later edits do not change what it is judged by. Without ``@`` a check
needs the default share; the run's own task is judged by its samples' rule.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from duplex.errors import InputError
from duplex.grading.checks import CHECKS
from duplex.results import schema
from duplex.scenario import Question
from duplex.scenario.options import QUESTION
from duplex.values import Json
from duplex.verdict.case import CheckOutcome, Reading
from duplex.verdict.expression import Expression, parse
from duplex.verdict.readings import Unit, answered, read

V = TypeVar("V")
DEFAULT_MIN_PASS_RATE = 80.0
"""Per cent of graded calls that must pass a check that names no share of its own."""
TASK = "task_completed"
"""The check every run has: the call's own grade."""
MAX_NEVER_SPOKE_SHARE = 0.0
"""Per cent of test cases on which the agent may never speak while a run passes."""

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_WORDS = {"<=": "at_most", ">=": "at_least", "<": "below", ">": "above", "==": "is"}
_LIMIT = re.compile(r"(?P<number>-?\d+(\.\d+)?)\s*(?P<unit>ms|s|%)?")
_NAMED = re.compile(r"(?P<name>[^:<>=@]{1,100}):(?P<rest>.*)", re.DOTALL)
_SHARE = re.compile(r"(?P<rest>.*)@\s*(?P<share>\d+(\.\d+)?)\s*%\s*", re.DOTALL)
_COMPARED = re.compile(r"(?P<left>.*?)(?P<op><=|>=|==|<|>)(?P<right>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One check. ``op`` None: a yes/no metric, which must be true.

    ``limit`` is in the expression's own unit (ms, a share, or none). ``scenarios``
    are those whose calls it grades; empty for all.
    """

    id: str
    name: str
    text: str
    expression: Expression
    op: str | None = None
    limit: float = 1.0
    min_pass_rate: float = DEFAULT_MIN_PASS_RATE
    inherited: bool = True
    scenarios: tuple[str, ...] = ()

    def grade(self, result: schema.Result) -> CheckOutcome:
        """Grade one call; None where a metric of the check was not measured."""
        reading = self.expression.value(lambda name: read(name, result))
        said = answered(self.id, result) or self._said(reading)
        return CheckOutcome(id=self.id, passed=self._passed(reading), reading=reading, reason=said)

    def _passed(self, reading: Reading) -> bool | None:
        if self.op is None:
            return reading if isinstance(reading, bool) else None
        if reading is None or isinstance(reading, str):
            return None
        return _COMPARISONS[self.op](float(reading), self.limit)

    def _said(self, reading: Reading) -> str:
        if reading is None:
            return "it was not measured"
        if isinstance(reading, bool):
            return "yes" if reading else "no"
        return shown(float(reading), self.expression.unit) if not isinstance(reading, str) else ""

    def as_json(self) -> dict[str, Json]:
        """As it is pinned: what it says and what it needs."""
        return {
            "id": self.id,
            "name": self.name,
            "check": self.text,
            "min_pass_rate": self.min_pass_rate,
            "inherited": self.inherited,
            "scenarios": list(self.scenarios),
        }


def read_check(text: str) -> Criterion:
    """Read one check; raise InputError that says what is wrong with it."""
    rest, name, share = text.strip(), None, None
    text = rest if len(rest) <= 120 else f"{rest[:117]}..."
    if found := _SHARE.fullmatch(rest):
        rest, share = found["rest"].strip(), float(found["share"])
        if share > 100:
            raise InputError(f'check "{text}": {share:g}% of the calls, want at most 100%')
    if found := _NAMED.fullmatch(rest):
        name, rest = found["name"].strip(), found["rest"].strip()
    try:
        criterion = _criterion(rest)
    except InputError as error:
        raise InputError(f'check "{text}": {error}') from None
    if name:
        criterion = replace(criterion, name=name, id=_slug(name))
    if share is not None:
        criterion = replace(criterion, min_pass_rate=share, inherited=False)
    return replace(criterion, text=rest)


def _criterion(text: str) -> Criterion:
    compared = _COMPARED.fullmatch(text)
    if compared is None:
        expression = parse(text)
        only = expression.only
        if only is None or only.metric.output != "BOOLEAN":
            raise InputError(f'"{text}" has no limit, want for example {text} <= 1500ms')
        return Criterion(id=_slug(text), name=text, text=text, expression=expression)
    expression, op = parse(compared["left"]), compared["op"]
    if (only := expression.only) is not None and only.metric.output == "BOOLEAN":
        raise InputError(f"{only.text} is yes or no and takes no limit")
    limit = _limit(compared["right"].strip(), expression.unit)
    said = _exactly(limit, expression.unit)
    name = f"{expression.text} {op} {said}"
    id = _slug(_spoken(f"{expression.text} {_WORDS[op]} {said}"))
    return Criterion(id=id, name=name, text=text, expression=expression, op=op, limit=limit)


def _limit(text: str, unit: Unit) -> float:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise InputError(f'"{text}" is no limit, want a number with its unit')
    number, given = float(found["number"]), found["unit"]
    if not math.isfinite(number):
        raise InputError(f"a limit of {len(found['number'])} digits is none, want a number")
    if unit == "ms":
        if given not in ("ms", "s"):
            raise InputError(f'"{text}" has no unit of time, want ms or s')
        return number * 1000 if given == "s" else number
    if given in ("ms", "s"):
        raise InputError(f'"{text}" is a time, and what it limits is none')
    if given == "%":
        if unit != "share":
            raise InputError(f'"{text}" is a share, and what it limits is none')
        return number / 100
    if unit == "share" and abs(number) > 1:
        raise InputError(f'"{text}" is no share, want 0 to 1 or a per cent')
    return number


def _exactly(limit: float, unit: Unit) -> str:
    """A limit with its unit, whole: two that differ never read the same."""
    if unit == "ms":
        return f"{limit:.15g}ms"
    return f"{100 * limit:.12g}%" if unit == "share" else f"{limit:.15g}"


def shown(value: float, unit: Unit) -> str:
    """A value with its unit, as a person writes it."""
    if not math.isfinite(value):
        return "no number"
    if unit == "ms":
        return f"{value:.10g}ms" if value == round(value) else f"{value:.1f}ms"
    if unit == "share":
        return f"{round(value * 100, 1):g}%"
    return f"{round(value, 4):g}"


def _slug(text: str) -> str:
    """An id for a text; letters it cannot hold leave a short digest, so that they tell apart."""
    clean = re.sub(r"[^a-z0-9]+", "_", text.lower().replace("%", "pct")).strip("_")
    if clean and text.isascii():
        return clean
    return f"{clean or 'check'}_{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _spoken(text: str) -> str:
    """Arithmetic in words, so that a sum and a difference have ids of their own."""
    for sign, word in (("+", "plus"), ("-", "minus"), ("*", "times"), ("/", "by")):
        text = text.replace(sign, f" {word} ")
    return text


def task_check(min_pass_rate: float) -> Criterion:
    """The check of the call's own grade, which every run has."""
    return replace(read_check(TASK), min_pass_rate=min_pass_rate, inherited=False)


def pinned(
    texts: Iterable[str],
    own: Mapping[str, Iterable[str]] | None = None,
    *,
    questions: Mapping[str, Iterable[Question]] | None = None,
    asked: Iterable[Question] = (),
    task_rate: float = 100.0,
) -> tuple[Criterion, ...]:
    """All checks of a run: its task's, those asked for, then each scenario's ``own``.

    ``asked`` are questions about all calls, ``questions`` those of each scenario. Raises
    InputError for a check that cannot be read, was asked for twice, or names a check no
    call has. Where ``questions`` is None any question may be named.
    """
    asked = tuple(asked)
    found = {TASK: task_check(task_rate)}
    for text in texts:
        criterion = read_check(text)
        if criterion.id in found:
            raise InputError(f'check "{text}": {_twice(criterion, found[criterion.id])}')
        found[criterion.id] = criterion
    for one in asked:
        criterion = question_check(one)
        if criterion.id in found:
            raise InputError(f'question "{one.id}": its id is that of a check too')
        found[criterion.id] = criterion
    of_all = set(found)
    theirs = {scenario: [read_check(text) for text in texts] for scenario, texts in _items(own)}
    for scenario, ones in _items(questions):
        theirs.setdefault(scenario, []).extend(question_check(one) for one in ones)
    for scenario, criteria in theirs.items():
        for criterion in criteria:
            if criterion.id in of_all:
                continue
            known = found.setdefault(criterion.id, criterion)
            if known.as_json() | {"scenarios": []} != criterion.as_json() | {"scenarios": []}:
                what = f'check "{criterion.text}" of {scenario}'
                raise InputError(f"{what}: {known.scenarios[0]} has another")
            found[criterion.id] = replace(known, scenarios=(*known.scenarios, scenario))
    every = [*asked, *(one for _, ones in _items(questions) for one in ones)]
    named = None if questions is None else {one.check for one in every}
    for criterion in found.values():
        refuse_unheard(criterion, named)
    return tuple(found.values())


def refuse_unheard(criterion: Criterion, questions: Collection[str] | None = None) -> None:
    """Raise InputError if it names a check of the call that no call has.

    ``questions`` are the checks that questions make; None: any question's may be named.
    """
    for name in criterion.expression.names:
        head, _, id = name.partition(".")
        open_ended = questions is None and id.startswith(QUESTION)
        if head != "check" or open_ended or id in (known := [*CHECKS, *(questions or ())]):
            continue
        near = difflib.get_close_matches(id, known, n=3, cutoff=0.4)
        hint = f", nearest: {', '.join(near)}" if near else ""
        raise InputError(f'check "{criterion.text}": no call has a check "{id}"{hint}')


def _items(found: Mapping[str, Iterable[V]] | None) -> Iterable[tuple[str, Iterable[V]]]:
    return (found or {}).items()


def question_check(question: Question) -> Criterion:
    """The check that a call's answer to a question is the wanted one."""
    share = question.min_pass_rate
    return replace(
        read_check(f"check.{question.check}"),
        id=question.check,
        name=f"{question.question.strip()} (wanted: {question.expected})",
        min_pass_rate=DEFAULT_MIN_PASS_RATE if share is None else share,
        inherited=share is None,
    )


def _twice(criterion: Criterion, other: Criterion) -> str:
    if criterion.id == TASK:
        return "every run has it, its share is --pass-rate"
    if criterion.expression.text != other.expression.text or criterion.limit != other.limit:
        return f'its id {criterion.id} is that of "{other.name}" too, want another name'
    return "it is there twice"


def from_json(stored: Iterable[Mapping[str, Json]]) -> tuple[Criterion, ...]:
    """Read pinned checks again as :meth:`Criterion.as_json` wrote them."""
    found = []
    for entry in stored:
        share, text, scenarios = (entry.get(k) for k in ("min_pass_rate", "check", "scenarios"))
        if not isinstance(share, int | float) or not isinstance(text, str):
            raise InputError("pinned check has no expression or no min_pass_rate")
        if not 0 <= share <= 100:
            raise InputError(f'pinned check "{text}": min_pass_rate is {share}, want 0 to 100')
        criterion = read_check(text)
        found.append(
            replace(
                criterion,
                id=str(entry.get("id") or criterion.id),
                name=str(entry.get("name") or criterion.name),
                min_pass_rate=float(share),
                inherited=entry.get("inherited") is True,
                scenarios=tuple(map(str, scenarios)) if isinstance(scenarios, list) else (),
            )
        )
    return tuple(found)


def grade(
    criteria: Iterable[Criterion], scenario: str, result: schema.Result
) -> tuple[CheckOutcome, ...]:
    """Grade one call on every check that is for its scenario."""
    return tuple(
        one.grade(result) for one in criteria if not one.scenarios or scenario in one.scenarios
    )

"""A run: all its results, what they sum to, its exit code and how it is told.

Sums and sentences only, made from results that exist. It never grades and never
prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from duplex.counting import counted
from duplex.grading.own_checks import PREFIX, is_broken
from duplex.results import schema
from duplex.results.stored import member
from duplex.results.unknown import explain
from duplex.values import Json

_CONFIGURATION = {
    "/configuration": "this run has no such part",
}

COLUMNS = ("scenario", "status", "answered", "response", "tools", "duration", "why")
"""Headings of :func:`rows`, one for each field of :class:`Row`."""

NONE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call, as a line of a table; every cell is ready to show."""

    scenario: str
    status: str
    answered: str
    response: str
    tools: str
    duration: str
    why: str

    def cells(self) -> tuple[str, ...]:
        return (
            self.scenario,
            self.status,
            self.answered,
            self.response,
            self.tools,
            self.duration,
            self.why,
        )


def build_run(
    results: Sequence[schema.Result],
    *,
    run_id: str,
    execution_mode: Literal["live", "offline"],
    dataset: str,
    configuration: schema.Configuration,
    duplex: Mapping[str, Json] | None = None,
    unknown: Mapping[str, str] | None = None,
) -> schema.Run:
    """Put results together; ``unknown`` adds reasons by pointer into ``run``."""
    modes = sorted({result.observability.interaction.mode for result in results})
    info = schema.RunInfo(
        id=run_id,
        execution_mode=execution_mode,
        interaction=modes[0] if len(modes) == 1 else "mixed" if modes else "multi_turn",
        dataset=dataset,
        configuration=configuration,
    )
    reasons = _CONFIGURATION | dict(unknown or {})
    ours: dict[str, Json] = dict(duplex or {})
    ours["unknown"] = explain(info.model_dump(exclude={"duplex"}), reasons)
    statuses = [result.status for result in results]
    return schema.Run(
        run=info.model_copy(update={"duplex": ours}),
        summary=schema.Summary(
            total=len(results),
            passed=statuses.count("passed"),
            failed=statuses.count("failed"),
            infrastructure_errors=statuses.count("infrastructure_error"),
        ),
        results=list(results),
    )


def exit_code(run: schema.Run) -> int:
    """0: the run passed its verdict. 2: no call could be held. 1: everything between.

    A run without a verdict passes when every call did. An assistant that never spoke was
    reached, so it counts as 1. So does a check of the user's own that could not tell: a
    call must not pass unseen.
    """
    if not run.results or all(_not_held(result) for result in run.results):
        return 2
    if any(map(broken_checks, run.results)):
        return 1
    verdict = run.run.duplex.get("verdict")
    if isinstance(verdict, dict):
        return 0 if verdict.get("passed") is True else 1
    return 0 if all(result.status == "passed" for result in run.results) else 1


def broken_checks(result: schema.Result) -> tuple[str, ...]:
    """Checks of the user's own that could not tell."""
    found = result.assessment.checks
    return tuple(check.id for check in found if is_broken(check.id, check.status))


def _not_held(result: schema.Result) -> bool:
    never_spoke = result.duplex.get("outcome") == "never_spoke"
    return result.status == "infrastructure_error" and not never_spoke


def headline(run: schema.Run) -> str:
    """Say in one sentence what came out."""
    summary = run.summary
    if summary.total == 1 and run.results:
        return _one_call(run.results[0])
    parts = [f"{summary.passed} of {counted(summary.total, 'call')} passed"]
    if summary.failed:
        parts.append(f"{summary.failed} failed")
    if summary.infrastructure_errors:
        parts.append(f"{summary.infrastructure_errors} could not be counted")
    return ", ".join(parts) + "."


def _one_call(result: schema.Result) -> str:
    if result.error is not None:
        return f"{result.scenario_id} does not count: {result.error.message}."
    verdict = "passed" if result.status == "passed" else "failed"
    told = f"{result.scenario_id} {verdict}"
    answered = _answered(result)
    if answered is not None and answered[1]:
        told += f": {answered[0]} of {counted(answered[1], 'caller turn')} answered"
        told += f", {_response(result)}" if _response(result) != NONE else ""
    if result.status == "failed":
        told += f" ({', '.join(result.observability.completion.failed_checks)})"
    if work_unseen(result):
        told += "; nobody could tell whether the task was done"
    return f"{told}."


_WORK = ("application_state", "critical_procedure", "tool_contract", "semantic_outcome")


def work_unseen(result: schema.Result) -> bool:
    """Whether a call passed though no state, judge or check of the user's could show its work."""
    found = {check.id: check.status for check in result.assessment.checks}
    showing = [told for name, told in found.items() if name in _WORK or name.startswith(PREFIX)]
    unjudged = found.get("semantic_outcome") == "not_assessed"
    return result.status == "passed" and unjudged and "passed" not in showing


def rows(run: schema.Run) -> tuple[Row, ...]:
    """Return one row a call, in the order of the results."""
    return tuple(_row(result, samples=_samples(run, result)) for result in run.results)


def _samples(run: schema.Run, result: schema.Result) -> int:
    return sum(one.scenario_id == result.scenario_id for one in run.results)


def _row(result: schema.Result, *, samples: int) -> Row:
    counted = _answered(result)
    duration = result.duplex.get("duration_ms")
    case = result.duplex.get("case")
    name = str(case.get("call_id")) if isinstance(case, dict) else result.scenario_id
    if not isinstance(case, dict) and samples > 1:
        name += f" #{result.duplex.get('sample')}"
    answered = NONE if counted is None else f"{counted[0]}/{counted[1]}"
    return Row(
        scenario=name,
        status=result.status.replace("_", " "),
        answered=answered,
        response=_response(result),
        tools=_tools(result),
        duration=f"{duration / 1000:.1f} s" if isinstance(duration, int) else NONE,
        why=_why(result),
    )


def _answered(result: schema.Result) -> tuple[int, int] | None:
    """Answered and answerable caller turns, from the block the latency comes from."""
    timing = result.duplex.get("timing")
    rate = timing.get("response_rate") if isinstance(timing, dict) else None
    if isinstance(rate, dict):
        answered, asked = rate.get("numerator"), rate.get("denominator")
        if isinstance(answered, int) and isinstance(asked, int):
            return answered, asked
    counted = result.metrics.audio.response_opportunities
    if counted.response_total is None or counted.response_count is None:
        return None
    return counted.response_count, counted.response_total


def _response(result: schema.Result) -> str:
    """Tell the median of the timing block; the contract's mean where there is no block.

    Never the one beside the other's answers: contract 2.0 takes any sound for voice. A
    reply after the deadline has a latency and is no answer, so such ones are named.
    """
    timing = result.duplex.get("timing")
    if isinstance(timing, dict):
        median = member(timing, "response_latency").get("p50")
        late = member(timing, "ledger").get("late")
        told = f"{median:.0f} ms median" if isinstance(median, (int, float)) else NONE
        return f"{told}, {late} late" if late and told != NONE else told
    mean = result.metrics.audio.response_latency_ms
    return NONE if mean is None else f"{mean:.0f} ms mean"


def _tools(result: schema.Result) -> str:
    """Matched of expected calls; nothing where the agent told of no work at all."""
    tools = result.observability.tools
    found = {check.id: check.status for check in result.assessment.checks}
    if not tools.executed and found.get("verified_state_change") == "not_assessed":
        return NONE
    return f"{tools.matched_count}/{tools.expected_count}"


def _why(result: schema.Result) -> str:
    if result.error is not None:
        return f"{result.error.stage}: {result.error.message}"
    failed = [_reasoned(result, it) for it in result.observability.completion.failed_checks]
    return "; ".join([*([", ".join(failed)] if failed else []), *_untold(result)])


def _reasoned(result: schema.Result, name: str) -> str:
    """A check's name, and its reason where one is told, as part of a sentence."""
    reason = str(member(member(result.duplex, "checks"), name).get("reason") or "").rstrip(".")
    return f"{name} ({reason[0].lower()}{reason[1:]})" if reason else name


def _untold(result: schema.Result) -> list[str]:
    """What was asked about the call and nobody could tell: never a reason to fail it."""
    checks = result.duplex.get("checks")
    told = []
    for name in broken_checks(result):
        check = checks.get(name) if isinstance(checks, dict) else None
        reason = check.get("reason") if isinstance(check, dict) else None
        told.append(str(reason or f"{name} could not tell"))
    judge = result.duplex.get("judge")
    if isinstance(judge, dict) and judge.get("problem"):
        told.append(f"not judged: {judge['problem']}")
    return told

"""The verdict over a run: sums, checks against their shares, and every way to fail.

By the rules of seed-style run reports: a run passes when it ended, every test
case was graded, the agent spoke, and every check reached its share of calls.
Shares are per cent, 0 to 100. The score is the mean of the checks' pass rates,
is for reading only, and nothing is judged against it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from duplex.verdict.case import Case, RunCases, graded
from duplex.verdict.criteria import MAX_NEVER_SPOKE_SHARE, TASK, Criterion
from duplex.verdict.sampling import needed, pass_at_k, pass_hat_k

FailureKind = Literal[
    "RUN_NOT_COMPLETED",
    "INCOMPLETE_COVERAGE",
    "AGENT_NEVER_SPOKE",
    "METRIC_NOT_EVALUATED",
    "METRIC_BELOW_MIN_PASS_RATE",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Calls by what became of them; rates in per cent, None when nothing was graded."""

    total: int
    counted: int
    completed: int
    evaluated: int
    passed: int
    failed: int
    call_pass_rate: float | None
    score: float | None
    check_pass_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Attempts against test cases; they differ only where silent calls were retried."""

    test_cases: int
    attempts: int
    silent: int
    retries: int
    still_silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTally:
    """How one check did over the run."""

    criterion: Criterion
    passed_calls: int
    evaluated_calls: int

    @property
    def pass_rate(self) -> float | None:
        return percent(self.passed_calls, self.evaluated_calls)

    @property
    def passed(self) -> bool:
        rate = self.pass_rate
        return rate is not None and rate >= self.criterion.min_pass_rate - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One reason a run failed. Only the fields of its kind are set."""

    kind: FailureKind
    sentence: str
    status: str | None = None
    evaluated_calls: int | None = None
    expected_calls: int | None = None
    never_spoke_calls: int | None = None
    total_calls: int | None = None
    max_share: float | None = None
    agent: str | None = None
    silent_attempts: int | None = None
    criterion: Criterion | None = None
    pass_rate: float | None = None
    min_pass_rate: float | None = None
    scenario: str | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioTally:
    """The samples of one scenario (in one arm) whose task was graded, and the rule for them."""

    scenario: str
    arm: str | None
    samples: int
    evaluated: int
    passed_samples: int
    needed: int

    @property
    def passed(self) -> bool:
        return self.passed_samples >= self.needed

    def pass_at(self, k: int) -> float | None:
        """Chance that any of ``k`` graded samples passes."""
        return pass_at_k(self.evaluated, self.passed_samples, k)

    def pass_hat(self, k: int) -> float | None:
        """Chance that all of ``k`` graded samples pass."""
        return pass_hat_k(self.evaluated, self.passed_samples, k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the run passed, and every criterion it missed."""

    score: float | None
    checks: tuple[CheckTally, ...]
    failures: tuple[Failure, ...]
    scenarios: tuple[ScenarioTally, ...]

    @property
    def passed(self) -> bool:
        return not self.failures


def percent(part: int, whole: int) -> float | None:
    """``part`` of ``whole`` in per cent; None of nothing."""
    return 100 * part / whole if whole else None


def summarise(cases: Sequence[Case], criteria: Sequence[Criterion]) -> Summary:
    """Sum up attempts, retries included."""
    counted = [case for case in cases if case.counted]
    evaluated = [case for case in counted if case.evaluated]
    passed = sum(case.passed is True for case in evaluated)
    tallies = [graded(counted, one.id) for one in criteria]
    return Summary(
        total=len(cases),
        counted=len(counted),
        completed=len(counted),
        evaluated=len(evaluated),
        passed=passed,
        failed=len(evaluated) - passed,
        call_pass_rate=percent(passed, len(evaluated)),
        score=score(counted, criteria),
        check_pass_rate=percent(sum(p for p, _ in tallies), sum(n for _, n in tallies)),
    )


def score(cases: Iterable[Case], criteria: Sequence[Criterion]) -> float | None:
    """Mean over the checks of each one's pass rate; None when nothing was graded."""
    cases = tuple(cases)
    rates = [percent(*graded(cases, one.id)) for one in criteria]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def attempts(run: RunCases) -> Attempts:
    silent = [case for case in run.cases if case.outcome == "never_spoke"]
    return Attempts(
        test_cases=run.expected,
        attempts=sum(case.outcome != "not_run" or case.attempt > 1 for case in run.cases),
        silent=len(silent),
        retries=sum(case.attempt > 1 for case in run.cases),
        still_silent=sum(case.final for case in silent),
    )


def judge(run: RunCases, criteria: Sequence[Criterion], *, pass_rate: float = 1.0) -> Verdict:
    """Judge a run that is over by the criteria pinned when it began."""
    tallies = []
    for one in criteria:
        passed, evaluated = graded(run.final, one.id)
        tallies.append(CheckTally(criterion=one, passed_calls=passed, evaluated_calls=evaluated))
    scenarios = scenario_tallies(run.final, pass_rate)
    return Verdict(
        score=score(run.final, criteria),
        checks=tuple(tallies),
        failures=(
            *_unfinished(run),
            *_silence(run),
            *_missed(tallies),
            *_samples(scenarios, tallies),
        ),
        scenarios=scenarios,
    )


def scenario_tallies(cases: Sequence[Case], pass_rate: float) -> tuple[ScenarioTally, ...]:
    """Every scenario's samples, apart for each arm of a sweep."""
    groups: dict[tuple[str, str | None], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.scenario, case.arm.key if case.arm else None].append(case)
    return tuple(
        ScenarioTally(
            scenario=scenario,
            arm=arm,
            samples=len(group),
            evaluated=graded(group, TASK)[1],
            passed_samples=graded(group, TASK)[0],
            needed=needed(len(group), pass_rate),
        )
        for (scenario, arm), group in groups.items()
    )


def _unfinished(run: RunCases) -> Iterable[Failure]:
    if run.status != "completed":
        yield Failure(
            kind="RUN_NOT_COMPLETED",
            status=run.status,
            sentence=f"the run was not completed: {run.status.replace('_', ' ')}",
        )
    evaluated = sum(case.evaluated for case in run.final)
    # A test case the agent never spoke on has a failure of its own.
    silent = sum(case.outcome == "never_spoke" for case in run.final)
    if evaluated + silent < run.expected:
        yield Failure(
            kind="INCOMPLETE_COVERAGE",
            evaluated_calls=evaluated,
            expected_calls=run.expected,
            sentence=f"{evaluated} of {run.expected} test cases could be graded",
        )


def _silence(run: RunCases) -> Iterable[Failure]:
    reached = [case for case in run.final if case.outcome in ("counted", "never_spoke")]
    never = [case for case in reached if case.outcome == "never_spoke"]
    if not never or 100 * len(never) <= MAX_NEVER_SPOKE_SHARE * len(reached):
        return
    agents = {case.agent for case in run.final}
    yield Failure(
        kind="AGENT_NEVER_SPOKE",
        never_spoke_calls=len(never),
        total_calls=len(reached),
        max_share=MAX_NEVER_SPOKE_SHARE,
        agent=next(iter(agents)) if len(agents) == 1 else None,
        silent_attempts=sum(case.outcome == "never_spoke" for case in run.cases),
        sentence=f"the agent never spoke on {len(never)} of {len(reached)} test cases",
    )


def _missed(tallies: Iterable[CheckTally]) -> Iterable[Failure]:
    for tally in tallies:
        one = tally.criterion
        if tally.pass_rate is None:
            yield Failure(
                kind="METRIC_NOT_EVALUATED",
                criterion=one,
                sentence=f"{one.name} could be graded on no call",
            )
        elif not tally.passed:
            yield Failure(
                kind="METRIC_BELOW_MIN_PASS_RATE",
                criterion=one,
                pass_rate=tally.pass_rate,
                min_pass_rate=one.min_pass_rate,
                sentence=f"{one.name} passed on {tally.passed_calls} of "
                f"{tally.evaluated_calls} calls ({tally.pass_rate:.1f} %), "
                f"wanted {one.min_pass_rate:.4g} %",
            )


def _samples(
    scenarios: Iterable[ScenarioTally], tallies: Iterable[CheckTally]
) -> Iterable[Failure]:
    """Scenarios too few of whose samples passed, where the run's task check hides them."""
    task = next((one for one in tallies if one.criterion.id == TASK), None)
    if task is None or not task.passed:
        return
    for one in scenarios:
        if one.passed or not one.evaluated:
            continue
        where = f"{one.scenario} ({one.arm})" if one.arm else one.scenario
        yield Failure(
            kind="METRIC_BELOW_MIN_PASS_RATE",
            criterion=task.criterion,
            scenario=one.scenario,
            arm=one.arm,
            pass_rate=percent(one.passed_samples, one.evaluated),
            min_pass_rate=100 * one.needed / one.samples,
            sentence=f"{where} passed {one.passed_samples} of {one.samples} samples, "
            f"wanted {one.needed}",
        )

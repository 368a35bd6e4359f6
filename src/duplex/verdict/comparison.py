"""Two runs beside each other: every check and every timing, with what could be seen.

Calls are paired where scenario, sample, seed and condition are the same, which
means the same words and the same noise; then the tests are paired ones. Every
difference has an interval, a p-value and that p-value corrected over all of the
comparison (Benjamini and Hochberg 1995). Two rulers are never compared silently.
Shares here go from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from duplex.counting import counted
from duplex.errors import InputError
from duplex.metrics.differences import Difference, differences
from duplex.verdict.attribution import benjamini_hochberg
from duplex.verdict.case import Case, RunCases
from duplex.verdict.criteria import Criterion
from duplex.verdict.pairing import ALPHA, Shares, shares
from duplex.verdict.readings import METRICS, turn_readings
from duplex.verdict.verdict import score

TIMINGS = (
    "response_latency",
    "first_audio_latency",
    "assistant_own_latency",
    "time_to_yield",
)
"""Compared over the turns of all calls, in mean, median and p95."""
PER_CALL = ("greeting_latency", "turn_taking_score")
"""One value a call, compared in the mean; ratios are pooled elsewhere and never averaged."""

Direction = Literal["better", "worse", "no difference seen", "not compared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDelta:
    """One check in both runs; ``tested`` is what the test ran on, the pairs where there are any.

    A side is None where that run did not grade it.
    """

    id: str
    name: str
    current_rate: float | None
    baseline_rate: float | None
    tested: Shares | None
    adjusted_p: float | None = None
    why: str | None = None

    @property
    def label(self) -> str:
        return self.name

    @property
    def delta(self) -> float | None:
        if self.current_rate is None or self.baseline_rate is None:
            return None
        return self.current_rate - self.baseline_rate

    @property
    def direction(self) -> Direction:
        return _direction(self.delta, self.adjusted_p, higher_is_better=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingDelta:
    """One statistic of one metric in both runs; ``paired`` says how calls were drawn."""

    metric: str
    difference: Difference
    paired: bool
    calls: int
    baseline_calls: int
    adjusted_p: float | None = None

    @property
    def label(self) -> str:
        return f"{self.metric}.{self.difference.stat}"

    @property
    def direction(self) -> Direction:
        better = METRICS[self.metric].goal == "higher"
        return _direction(self.difference.delta, self.adjusted_p, higher_is_better=better)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Current against baseline; scores and pass rates in per cent."""

    current: RunCases
    baseline: RunCases
    source: Literal["PREVIOUS_RUN", "REQUESTED"]
    pairs: int
    unpaired: int
    unpaired_baseline: int
    current_score: float | None
    baseline_score: float | None
    current_pass_rate: float | None
    baseline_pass_rate: float | None
    checks: tuple[CheckDelta, ...]
    timings: tuple[TimingDelta, ...]
    caveats: tuple[str, ...]

    @property
    def deltas(self) -> tuple[CheckDelta | TimingDelta, ...]:
        """Every check, then every timing."""
        return (*self.checks, *self.timings)

    @property
    def worse(self) -> bool:
        """Whether anything is significantly worse."""
        return any(one.direction == "worse" for one in self.deltas)

    @property
    def nothing_seen(self) -> str:
        """The sentence for no significant change: too few calls to see any is no sameness."""
        timed = any(one.difference.detectable is not None for one in self.timings)
        seeing = any(one.tested and one.tested.detectable is not None for one in self.checks)
        return (
            "No difference was seen." if timed or seeing else "Too few calls to see a difference."
        )


def compare(
    current: RunCases,
    baseline: RunCases,
    criteria: Sequence[Criterion],
    baseline_criteria: Sequence[Criterion],
    *,
    source: Literal["PREVIOUS_RUN", "REQUESTED"] = "REQUESTED",
    across_rulers: bool = False,
) -> Comparison:
    """Compare two runs. Raises InputError when they were measured with different rulers.

    ``across_rulers`` compares them all the same: their tasks, and no timing.
    """
    same = _one_ruler(current, baseline)
    if not same and not across_rulers:
        raise InputError(
            f"{current.run_id} and {baseline.run_id} were measured by different versions, "
            "detectors or policies; measure one again (duplex remeasure), or compare all but "
            "timing with --across-rulers"
        )
    mine, theirs = _counted(current), _counted(baseline)
    pairs, ours, others = _paired(mine, theirs)
    checks = _checks(criteria, baseline_criteria, pairs, ours, others, same)
    timings = _timings(current, baseline, pairs, ours, others) if same else ()
    checks, timings = _corrected(checks, timings)
    return Comparison(
        current=current,
        baseline=baseline,
        source=source,
        pairs=len(pairs),
        unpaired=len(ours),
        unpaired_baseline=len(others),
        current_score=score(mine, criteria),
        baseline_score=score(theirs, baseline_criteria),
        current_pass_rate=_pass_rate(mine),
        baseline_pass_rate=_pass_rate(theirs),
        checks=checks,
        timings=timings,
        caveats=tuple(_caveats(pairs, ours, others, checks, timings, same)),
    )


def _one_ruler(current: RunCases, baseline: RunCases) -> bool:
    return len({*current.rulers, *baseline.rulers}) <= 1


def _counted(run: RunCases) -> list[Case]:
    return [case for case in run.final if case.counted]


def _paired(
    mine: Sequence[Case], theirs: Sequence[Case]
) -> tuple[list[tuple[Case, Case]], list[Case], list[Case]]:
    """Calls that belong together, and the rest of either side; never one call twice."""
    waiting: dict[tuple[str, str, int, int], list[Case]] = {}
    for case in theirs:
        waiting.setdefault(case.pairs_with, []).append(case)
    pairs, alone = [], []
    for case in mine:
        partners = waiting.get(case.pairs_with)
        if partners:
            pairs.append((case, partners.pop(0)))
        else:
            alone.append(case)
    return pairs, alone, [case for left in waiting.values() for case in left]


def _pass_rate(cases: Sequence[Case]) -> float | None:
    said = [case.passed for case in cases if case.passed is not None]
    return 100 * sum(said) / len(said) if said else None


def _checks(
    criteria: Sequence[Criterion],
    baseline: Sequence[Criterion],
    pairs: Sequence[tuple[Case, Case]],
    ours: Sequence[Case],
    others: Sequence[Case],
    same: bool,
) -> tuple[CheckDelta, ...]:
    """Every check of either run."""
    mine, theirs = ({one.id: one for one in side} for side in (criteria, baseline))
    found = []
    for id in {**mine, **theirs}:
        here, there = mine.get(id), theirs.get(id)
        either = here or there
        assert either is not None, id
        now = _said(id, [case for case, _ in pairs] + list(ours)) if here else []
        then = _said(id, [case for _, case in pairs] + list(others)) if there else []
        why = None
        if here is None or there is None:
            why = f"only {'this run' if here else 'the baseline'} was judged by it"
        elif here.text != there.text:
            why = "the two runs mean different things by it"
        elif not same and here.id != "task_completed":
            why = "the two runs were measured by different rulers"
        found.append(
            CheckDelta(
                id=id,
                name=either.name,
                current_rate=_rate(now),
                baseline_rate=_rate(then),
                tested=None if why else _tested(id, pairs, now, then),
                why=why,
            )
        )
    return tuple(found)


def _said(id: str, cases: Sequence[Case]) -> list[bool]:
    outcomes = [case.check(id) for case in cases]
    return [one.passed for one in outcomes if one is not None and one.passed is not None]


def _rate(said: Sequence[bool]) -> float | None:
    return sum(said) / len(said) if said else None


def _tested(
    id: str, pairs: Sequence[tuple[Case, Case]], now: Sequence[bool], then: Sequence[bool]
) -> Shares | None:
    """What is tested: the pairs where they are most of the calls, else both sides whole."""
    both = []
    for mine, other in pairs:
        here, there = mine.check(id), other.check(id)
        if here and there and here.passed is not None and there.passed is not None:
            both.append((here.passed, there.passed))
    if not now or not then:
        return None
    if 2 * len(both) >= max(len(now), len(then)):
        return shares(both)
    return shares((), now, then)


def _timings(
    current: RunCases,
    baseline: RunCases,
    pairs: Sequence[tuple[Case, Case]],
    ours: Sequence[Case],
    others: Sequence[Case],
) -> tuple[TimingDelta, ...]:
    paired = 2 * len(pairs) >= max(len(pairs) + len(ours), len(pairs) + len(others), 1)
    mine = [case for case, _ in pairs] + ([] if paired else list(ours))
    theirs = [case for _, case in pairs] + ([] if paired else list(others))
    found = []
    for metric in (*TIMINGS, *PER_CALL):
        read = _reader(metric)
        now, then = [read(case) for case in mine], [read(case) for case in theirs]
        if not any(now) and not any(then):
            continue
        seed = f"{current.run_id} {baseline.run_id} {metric}"
        stats = differences(now, then, paired=paired, seed=seed)
        wanted = stats if metric in TIMINGS else stats[:1]
        found += [
            TimingDelta(
                metric=metric,
                difference=one,
                paired=paired,
                calls=sum(map(bool, now)),
                baseline_calls=sum(map(bool, then)),
            )
            for one in wanted
        ]
    return tuple(found)


def _reader(metric: str) -> Callable[[Case], tuple[float, ...]]:
    return lambda case: turn_readings(metric, case.result)


def _corrected(
    checks: tuple[CheckDelta, ...], timings: tuple[TimingDelta, ...]
) -> tuple[tuple[CheckDelta, ...], tuple[TimingDelta, ...]]:
    """Adjust every p-value of the comparison together."""
    p = [one.tested.p if one.tested else None for one in checks]
    p += [one.difference.p for one in timings]
    known = [value for value in p if value is not None]
    adjusted = iter(benjamini_hochberg(known))
    told = [None if value is None else next(adjusted) for value in p]
    return (
        tuple(replace(one, adjusted_p=q) for one, q in zip(checks, told, strict=False)),
        tuple(replace(o, adjusted_p=q) for o, q in zip(timings, told[len(checks) :], strict=True)),
    )


def _direction(delta: float | None, p: float | None, *, higher_is_better: bool) -> Direction:
    if delta is None or p is None:
        return "not compared"
    if p > ALPHA or delta == 0:
        return "no difference seen"
    return "better" if (delta > 0) == higher_is_better else "worse"


def _caveats(
    pairs: Sequence[tuple[Case, Case]],
    ours: Sequence[Case],
    others: Sequence[Case],
    checks: Sequence[CheckDelta],
    timings: Sequence[TimingDelta],
    same: bool,
) -> list[str]:
    """Plain sentences on what this comparison could not see."""
    found = []
    if not pairs:
        found.append(
            "No call of the two runs shares scenario, seed and condition, so calls were compared "
            "without pairs and differences between scenarios blur the result."
        )
    elif ours or others:
        found.append(
            f"{counted(len(ours), 'call')} of this run and {len(others)} of the baseline have no "
            "pair; they are in the rates and not in the paired tests."
        )
    if not same:
        found.append("The runs were measured by different rulers: no timing was compared.")
    task = next((one for one in checks if one.tested is not None), None)
    if task is not None and task.tested is not None:
        found.append(_seen(task.name, task.tested))
    latency = next((one for one in timings if one.metric == "response_latency"), None)
    if latency is not None and latency.difference.detectable is not None:
        found.append(
            f"A change of the mean response latency of {_roughly(latency.difference.detectable)} "
            "would have been seen four times in five; smaller ones may exist and go unseen."
        )
    elif latency is not None and latency.difference.p is not None:
        found.append(
            "With so few calls no change of the response latency, however large, could have been "
            "detected."
        )
    tested = [one.adjusted_p for one in checks] + [one.adjusted_p for one in timings]
    if not any(p is not None for p in tested):
        found.append("Nothing could be tested, which does not mean that nothing changed.")
    return found


def _roughly(ms: float) -> str:
    return f"roughly {ms:.0f} ms" if ms >= 1 else "less than 1 ms"


def _seen(name: str, tested: Shares) -> str:
    gap = tested.detectable
    calls = counted(tested.graded, "call")
    if tested.paired:
        calls = f"{counted(tested.pairs, 'pair')} of calls"
    if gap is None:
        return f"With {calls}, no loss on {name}, however large, could have been detected."
    return (
        f"With {calls}, {name} would have had to fail roughly {100 * gap:.0f} points more often "
        "to be reliably flagged; smaller losses may exist and go unseen."
    )

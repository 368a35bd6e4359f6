"""Which values of a swept property the failures concentrate on, and what could be seen.

Each value is compared with all other values together, by a one-sided Fisher
exact test for every check; all comparisons of a run are corrected together by
Benjamini and Hochberg (1995). Silence is tested the same way as a family of its
own. A value is called worse only when its corrected p-value says so. Works on
any table of calls; runs and ``duplex attribute`` drive it. Shares in per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from duplex.results.outcome import Outcome
from duplex.verdict.detectable import detectable_gap
from duplex.verdict.verdict import percent

MIN_ARM_CALLS = 5
"""Counted calls a value needs before it is compared, and verdicts before a check of it is."""
FALSE_DISCOVERY_RATE = 0.1
FOUND_UNATTRIBUTED = 20.0
"""Per cent of failures overall at which a check without a standout value is still an issue."""

Attribution = Literal["PROPERTY_ATTRIBUTABLE", "FOUND_UNATTRIBUTED", "WITHIN_NOISE"]
_ORDER: tuple[Attribution, ...] = (
    "PROPERTY_ATTRIBUTABLE",
    "FOUND_UNATTRIBUTED",
    "WITHIN_NOISE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCall:
    """One attempt of a sweep: at which value, what became of it, and its checks.

    ``checks`` maps the id of a check that graded it to whether it passed.
    """

    value: str
    outcome: Outcome
    checks: dict[str, bool] = field(default_factory=dict)
    retry: bool = False

    @property
    def attempted(self) -> bool:
        return self.outcome != "not_run"

    @property
    def counted(self) -> bool:
        return self.outcome == "counted" and bool(self.checks)

    @property
    def silent(self) -> bool:
        return self.outcome == "never_spoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptValue:
    """A value as the sweep names it: ``key`` is its identity, ``label`` is for people."""

    key: str
    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    of: SweptValue
    baseline: bool
    attempted: int
    counted: int
    silent: int
    retries: int
    testable: bool
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorseValue:
    """A value that failed a check significantly more often than all others together."""

    of: SweptValue
    failed: int
    evaluated: int
    failure_rate: float
    rest_failure_rate: float
    adjusted_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAttribution:
    check: str
    attribution: Attribution
    failed: int
    evaluated: int
    worse: tuple[WorseValue, ...]

    @property
    def failure_rate(self) -> float | None:
        return percent(self.failed, self.evaluated)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentValue:
    """A value on which the agent never spoke significantly more often than on the others."""

    of: SweptValue
    silent: int
    attempted: int
    retries: int
    rest_silent: int
    rest_attempted: int
    adjusted_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All that a sweep can say of its values, and what it could not see."""

    values: tuple[ArmFigures, ...]
    checks: tuple[CheckAttribution, ...]
    tested: int
    minimum_detectable_gap: float | None
    caveats: tuple[str, ...]
    never_spoke: tuple[SilentValue, ...]

    @property
    def testable(self) -> int:
        return sum(value.testable for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One value on one check: its failures and verdicts against all others'."""

    of: SweptValue
    failed: int
    evaluated: int
    rest_failed: int
    rest_evaluated: int

    @property
    def p(self) -> float:
        """Chance of so many failures at this value if none were worse (one-sided Fisher)."""
        from scipy.stats import hypergeom

        total = self.evaluated + self.rest_evaluated
        failures = self.failed + self.rest_failed
        return min(1.0, float(hypergeom.sf(self.failed - 1, total, failures, self.evaluated)))


def attribute(
    values: Sequence[SweptValue], calls: Sequence[SweptCall], checks: Sequence[str]
) -> Sweep:
    """Analyse a sweep; the first of ``values`` is the baseline."""
    arms = tuple(_figures(at, value, calls, checks) for at, value in enumerate(values))
    testable = [arm.of for arm in arms if arm.testable]
    pairs = [(check, pair) for check in checks for pair in _pairs(check, testable, calls)]
    adjusted = benjamini_hochberg([pair.p for _, pair in pairs])
    tested = [(check, pair, p) for (check, pair), p in zip(pairs, adjusted, strict=True)]
    found = [_attributed(check, calls, tested) for check in checks]
    gap = _gap(arms)
    return Sweep(
        values=arms,
        checks=tuple(sorted(found, key=lambda one: _ORDER.index(one.attribution))),
        tested=len(pairs),
        minimum_detectable_gap=gap,
        caveats=caveats(arms, len(pairs), gap),
        never_spoke=_silent(arms),
    )


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family, in the order given."""
    if not p:
        return []
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(np.asarray(p), method="bh")]


def _figures(
    at: int, value: SweptValue, calls: Sequence[SweptCall], checks: Sequence[str]
) -> ArmFigures:
    own = [call for call in calls if call.value == value.key]
    counted = [call for call in own if call.counted]
    rates = []
    for check in checks:
        said = [call.checks[check] for call in counted if check in call.checks]
        if said:
            rates.append(100 * sum(said) / len(said))
    return ArmFigures(
        of=value,
        baseline=at == 0,
        attempted=sum(call.attempted for call in own),
        counted=len(counted),
        silent=sum(call.silent for call in own),
        retries=sum(call.retry for call in own),
        testable=len(counted) >= MIN_ARM_CALLS,
        score=sum(rates) / len(rates) if rates else None,
    )


def _pairs(check: str, testable: Sequence[SweptValue], calls: Sequence[SweptCall]) -> list[_Pair]:
    """Every comparison that can be made on a check: enough verdicts here, and some elsewhere."""
    said = [
        (call.value, call.checks[check]) for call in calls if call.counted and check in call.checks
    ]
    found = []
    for value in testable:
        own = [passed for key, passed in said if key == value.key]
        rest = [passed for key, passed in said if key != value.key]
        if len(own) >= MIN_ARM_CALLS and rest:
            found.append(
                _Pair(
                    of=value,
                    failed=len(own) - sum(own),
                    evaluated=len(own),
                    rest_failed=len(rest) - sum(rest),
                    rest_evaluated=len(rest),
                )
            )
    return found


def _attributed(
    check: str, calls: Sequence[SweptCall], tested: Sequence[tuple[str, _Pair, float]]
) -> CheckAttribution:
    said = [call.checks[check] for call in calls if call.counted and check in call.checks]
    failed = len(said) - sum(said)
    worse = [
        WorseValue(
            of=pair.of,
            failed=pair.failed,
            evaluated=pair.evaluated,
            failure_rate=100 * pair.failed / pair.evaluated,
            rest_failure_rate=100 * pair.rest_failed / pair.rest_evaluated,
            adjusted_p=p,
        )
        for name, pair, p in tested
        if name == check and p <= FALSE_DISCOVERY_RATE and pair.failed
    ]
    attribution: Attribution = "WITHIN_NOISE"
    if worse:
        attribution = "PROPERTY_ATTRIBUTABLE"
    elif said and 100 * failed / len(said) >= FOUND_UNATTRIBUTED:
        attribution = "FOUND_UNATTRIBUTED"
    return CheckAttribution(
        check=check,
        attribution=attribution,
        failed=failed,
        evaluated=len(said),
        worse=tuple(sorted(worse, key=lambda one: one.adjusted_p)),
    )


def _silent(arms: Sequence[ArmFigures]) -> tuple[SilentValue, ...]:
    """Values the agent was silent on; a family of its own, over attempts."""
    everywhere = sum(arm.silent for arm in arms)
    if not everywhere:
        return ()
    attempted = sum(arm.attempted for arm in arms)
    pairs = [
        _Pair(
            of=arm.of,
            failed=arm.silent,
            evaluated=arm.attempted,
            rest_failed=everywhere - arm.silent,
            rest_evaluated=attempted - arm.attempted,
        )
        for arm in arms
        if arm.attempted >= MIN_ARM_CALLS and attempted > arm.attempted
    ]
    retries = {arm.of.key: arm.retries for arm in arms}
    adjusted = benjamini_hochberg([pair.p for pair in pairs])
    found = [
        SilentValue(
            of=pair.of,
            silent=pair.failed,
            attempted=pair.evaluated,
            retries=retries[pair.of.key],
            rest_silent=pair.rest_failed,
            rest_attempted=pair.rest_evaluated,
            adjusted_p=p,
        )
        for pair, p in zip(pairs, adjusted, strict=True)
        if p <= FALSE_DISCOVERY_RATE and pair.failed
    ]
    return tuple(sorted(found, key=lambda one: one.adjusted_p))


def _gap(arms: Sequence[ArmFigures]) -> float | None:
    """The smallest gap that any testable value could have been flagged for."""
    counted = sum(arm.counted for arm in arms)
    gaps = [
        detectable_gap(arm.counted, counted - arm.counted, alpha=FALSE_DISCOVERY_RATE)
        for arm in arms
        if arm.testable and counted > arm.counted
    ]
    known = [gap for gap in gaps if gap is not None]
    return min(known) if known else None


def caveats(arms: Sequence[ArmFigures], tested: int, gap: float | None) -> tuple[str, ...]:
    """Plain sentences on what a sweep could not see."""
    found = [
        f"{arm.of.label} had fewer than {MIN_ARM_CALLS} counted calls ({arm.counted}), "
        "so it is shown but not compared."
        for arm in arms
        if not arm.testable
    ]
    if not tested:
        found.append(
            "No comparison could be made: nothing was tested, which does not mean that no value "
            "did worse."
        )
    elif gap is None:
        found.append("No difference, however large, could have been detected at this size.")
    else:
        sizes = sorted({arm.counted for arm in arms if arm.testable})
        each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        found.append(
            f"With {each} calls per value, only large differences can be detected: a value would "
            f"need to fail roughly {gap:.0f} points more often than the rest to be reliably "
            "flagged. Smaller effects may exist and go unseen."
        )
    silent = sum(arm.silent for arm in arms)
    if silent:
        calls = "call" if silent == 1 else "calls"
        found.append(
            f"The agent never spoke on {silent} {calls}; they are in no check, and are compared "
            "apart."
        )
    return tuple(found)

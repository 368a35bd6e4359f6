"""The verdict of a run as it stands in ``results.json``, below ``run.duplex``.

Our own names, shares in per cent. ``criteria`` are those pinned in the plan;
everything else is computed from the results beside it, so the block can be
rebuilt from the file at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from duplex.results import schema
from duplex.values import Json
from duplex.verdict import gather
from duplex.verdict.attribution_json import sweep_json
from duplex.verdict.case import RunCases
from duplex.verdict.criteria import Criterion
from duplex.verdict.sweeps import sweep_of
from duplex.verdict.verdict import (
    Attempts,
    CheckTally,
    Failure,
    ScenarioTally,
    Summary,
    Verdict,
    attempts,
    judge,
    summarise,
)

_KS = (1, 2, 4, 8)


def judged(run: schema.Run) -> tuple[RunCases, tuple[Criterion, ...], Verdict | None]:
    """A run's cases, its pinned checks, and its verdict once it is over."""
    cases, checks = gather.gather(run), gather.pinned_of(run)
    verdict = judge(cases, checks, pass_rate=gather.pass_rate_of(run)) if cases.over else None
    return cases, checks, verdict


def blocks(run: schema.Run) -> dict[str, Json]:
    """``summary``, ``attempts``, ``verdict`` and ``sweep`` of a run; null until it is over."""
    cases, checks, verdict = judged(run)
    sweep = sweep_of(cases, checks)
    return {
        "summary": summary_json(summarise(cases.cases, checks)),
        "attempts": attempts_json(attempts(cases)),
        "verdict": None if verdict is None else verdict_json(verdict),
        "sweep": None if sweep is None else sweep_json(sweep, {c.id: c.name for c in checks}),
    }


def summary_json(summary: Summary) -> dict[str, Json]:
    return _rounded(asdict(summary))


def attempts_json(found: Attempts) -> dict[str, Json]:
    return dict(asdict(found))


def verdict_json(verdict: Verdict) -> dict[str, Json]:
    return {
        "passed": verdict.passed,
        "score": _share(verdict.score),
        "checks": [_check(tally) for tally in verdict.checks],
        "failures": [_failure(failure) for failure in verdict.failures],
        "scenarios": [_scenario(tally) for tally in verdict.scenarios],
    }


def _check(tally: CheckTally) -> Json:
    return {
        **tally.criterion.as_json(),
        "passed": tally.passed,
        "pass_rate": _share(tally.pass_rate),
        "passed_calls": tally.passed_calls,
        "evaluated_calls": tally.evaluated_calls,
    }


def _failure(failure: Failure) -> Json:
    """Only what its kind has."""
    fields = {
        name: value
        for name, value in (
            ("status", failure.status),
            ("evaluated_calls", failure.evaluated_calls),
            ("expected_calls", failure.expected_calls),
            ("never_spoke_calls", failure.never_spoke_calls),
            ("total_calls", failure.total_calls),
            ("max_share", failure.max_share),
            ("agent", failure.agent),
            ("silent_attempts", failure.silent_attempts),
            ("check", None if failure.criterion is None else failure.criterion.id),
            ("pass_rate", _share(failure.pass_rate)),
            ("min_pass_rate", _share(failure.min_pass_rate)),
            ("scenario", failure.scenario),
            ("arm", failure.arm),
        )
        if value is not None
    }
    return {"kind": failure.kind, "sentence": failure.sentence, **fields}


def _scenario(tally: ScenarioTally) -> Json:
    ks: Sequence[int] = [k for k in _KS if k <= tally.evaluated]
    return {
        "scenario": tally.scenario,
        "arm": tally.arm,
        "passed": tally.passed,
        "samples": tally.samples,
        "evaluated": tally.evaluated,
        "passed_samples": tally.passed_samples,
        "needed": tally.needed,
        "pass_at": {str(k): _six(tally.pass_at(k)) for k in ks},
        "pass_hat": {str(k): _six(tally.pass_hat(k)) for k in ks},
    }


def _rounded(values: dict[str, int | float | None]) -> dict[str, Json]:
    return {name: _share(v) if isinstance(v, float) else v for name, v in values.items()}


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _six(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

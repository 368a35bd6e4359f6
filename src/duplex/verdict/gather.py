"""A run's results read as cases: the one door from ``results.json`` to every verdict.

What the runner wrote beside each result (``duplex.case``) and the run
(``duplex.plan``) says which test case it belongs to. A run from before there was
a plan is read as one sample of each scenario, judged by its task alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import get_args

from duplex.errors import InputError
from duplex.results import schema
from duplex.results.outcome import Outcome
from duplex.values import Json
from duplex.verdict import criteria as criteria_of
from duplex.verdict.case import Arm, Case, RunCases, RunStatus
from duplex.verdict.criteria import Criterion
from duplex.verdict.ids import stable_id

_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}
_STATUSES: dict[str, RunStatus] = {status: status for status in get_args(RunStatus)}


def pinned_of(run: schema.Run) -> tuple[Criterion, ...]:
    """The checks pinned when the run began."""
    stored = plan_of(run).get("criteria")
    if not isinstance(stored, list) or not stored:
        return criteria_of.pinned(())
    return criteria_of.from_json(entry for entry in stored if isinstance(entry, dict))


def plan_of(run: schema.Run) -> Mapping[str, Json]:
    plan = run.run.duplex.get("plan")
    return plan if isinstance(plan, dict) else {}


def pass_rate_of(run: schema.Run) -> float:
    """The share of a scenario's samples that must pass."""
    rate = plan_of(run).get("pass_rate")
    if rate is None:
        return 1.0
    if not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise InputError(f"results: the plan's pass_rate is {rate}, want more than 0 and at most 1")
    return float(rate)


def gather(run: schema.Run) -> RunCases:
    """Read a run as cases, each graded by the pinned checks."""
    checks = pinned_of(run)
    plan = plan_of(run)
    cases = tuple(_case(result, run, checks) for result in run.results)
    sweep = plan.get("sweep")
    swept = sweep if isinstance(sweep, dict) else {}
    arms = swept.get("arms")
    expected = plan.get("expected")
    return RunCases(
        run_id=run.run.id,
        plan_id=str(plan.get("id") or _plan_id(run)),
        plan_name=_text(plan.get("name")),
        status=_STATUSES.get(str(plan.get("status")), "completed"),
        created_at=_moment(plan.get("created_at")) or _stamp(run.run.id),
        started_at=_moment(plan.get("started_at")),
        ended_at=_moment(plan.get("ended_at")),
        expected=max(expected, 0) if isinstance(expected, int) else len(cases),
        cases=cases,
        run=run,
        swept=_text(swept.get("property")),
        arms=tuple(_arm(arm) for arm in arms if isinstance(arm, dict))
        if isinstance(arms, list)
        else (),
        rulers=tuple(sorted({ruler for case in cases if (ruler := ruler_of(case.result))})),
        ci=_words(plan.get("ci")),
    )


def ruler_of(result: schema.Result) -> str | None:
    """Version, detector and policy a call was measured with, as one text; None unmeasured."""
    timing = result.duplex.get("timing")
    if not isinstance(timing, dict):
        return None
    parts = [timing.get(name) for name in ("timing_version", "detector", "policy")]
    return json.dumps([*parts, result.metrics.audio.response_deadline_ms], sort_keys=True)


def _case(result: schema.Result, run: schema.Run, checks: tuple[Criterion, ...]) -> Case:
    told = result.duplex.get("case")
    about = told if isinstance(told, dict) else {}
    outcome = _outcome(result)
    arm = about.get("arm")
    sample = result.duplex.get("sample")
    seed = about.get("seed")
    attempt = about.get("attempt")
    configuration = run.run.configuration
    return Case(
        call_id=_text(about.get("call_id")) or result.scenario_id,
        scenario=result.scenario_id,
        sample=sample if isinstance(sample, int) else 1,
        attempt=attempt if isinstance(attempt, int) else 1,
        arm=_arm(arm) if isinstance(arm, dict) else None,
        seed=seed if isinstance(seed, int) else configuration.seed,
        condition=_text(about.get("condition")) or configuration.audio_condition,
        persona=_text(about.get("persona")) or "default",
        agent=_text(about.get("agent")) or str(configuration.model or configuration.assistant_mode),
        outcome=outcome,
        final=about.get("final") is not False,
        result=result,
        checks=criteria_of.grade(checks, result.scenario_id, result)
        if outcome == "counted"
        else (),
        started_at=_moment(about.get("started_at")),
        ended_at=_moment(about.get("ended_at")),
    )


def _outcome(result: schema.Result) -> Outcome:
    said = _OUTCOMES.get(str(result.duplex.get("outcome")))
    if said is not None:
        return said
    return "invalidated" if result.status == "infrastructure_error" else "counted"


def _arm(stored: Mapping[str, Json]) -> Arm:
    key, value = _text(stored.get("key")), _text(stored.get("value"))
    if key is None or value is None:
        raise InputError("results: an arm of the sweep has no key or no value")
    return Arm(
        key=key,
        value=value,
        label=_text(stored.get("label")) or value,
        baseline=stored.get("baseline") is True,
    )


def _plan_id(run: schema.Run) -> str:
    """The plan of a run that was held without one: its dataset and scenarios."""
    return stable_id("plan", run.run.dataset, *sorted({one.scenario_id for one in run.results}))


def _stamp(run_id: str) -> str:
    """When a run was made, by its folder's name; empty where that does not say."""
    parts = run_id.split("_")
    digits = [part for part in parts if part.isdigit()]
    if len(digits) < 2 or len(digits[-2]) != 8 or len(digits[-1]) != 6:
        return ""
    day, time = digits[-2], digits[-1]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _moment(value: Json) -> str | None:
    """A moment as runs write it; None for a text that is none."""
    text = _text(value)
    try:
        return text if text and datetime.fromisoformat(text.replace("Z", "+00:00")) else None
    except ValueError:
        return None


def _words(value: Json) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(name): said for name, said in value.items() if isinstance(said, str)}

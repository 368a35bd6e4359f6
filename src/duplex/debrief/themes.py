"""Failures of a run put together: by what happened, on which check, where and under what.

Clusters the incidents of the calls that count; says how common each is, where it
concentrates, how it stands against a baseline, and which part of the agent the
numbers point to. It guesses nothing: no number, no channel.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from duplex.counting import counted
from duplex.debrief.values import Channel, Impact, Lifecycle, Prevalence, Span, Theme
from duplex.verdict.attribution import Sweep
from duplex.verdict.case import Case, RunCases
from duplex.verdict.criteria import TASK, Criterion
from duplex.verdict.incidents import Incident, Kind, Severity, incidents
from duplex.verdict.readings import find, read

WIDESPREAD = 0.5
"""Share of the calls that count from which a theme is widespread."""
RECURRING = 2
"""Calls from which it is recurring."""
IMPROVING = 0.75
"""Of the baseline's share of calls, below which it is improving."""
MISHEARD = 0.10
"""Word errors beyond those of the other calls that point at the agent's ears."""

_TITLES: dict[Kind, str] = {
    "missed_turn": "The caller was left without an answer",
    "slow_reply": "Replies came slowly",
    "talk_over": "The assistant spoke over the caller",
    "false_yield": "The assistant reacted to sounds that ask for nothing",
    "no_yield": "The assistant did not let itself be interrupted",
    "awkward_silence": "Long silences while a reply was owed",
    "failed_check": "Check failed",
}
_TURN_TAKING: tuple[Kind, ...] = ("talk_over", "false_yield", "no_yield")
_RANK: dict[Severity, int] = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}

Key = tuple[Kind, str]


def themes(
    run: RunCases,
    criteria: Sequence[Criterion],
    *,
    sweep: Sweep | None = None,
    baseline: RunCases | None = None,
    baseline_criteria: Sequence[Criterion] = (),
) -> tuple[Theme, ...]:
    """The themes of a run, gravest and most common first; fixed ones last."""
    now = _clusters(run, criteria)
    then = {} if baseline is None else _clusters(baseline, baseline_criteria)
    cases = {case.call_id: case for case in run.final if case.counted}
    before = 0 if baseline is None else sum(case.counted for case in baseline.final)
    found = [
        _theme(key, now.get(key, ()), then.get(key, ()), cases, before, sweep, criteria)
        for key in {**now, **then}
    ]
    return tuple(
        sorted(found, key=lambda one: (not one.affected, _RANK[one.severity], -one.affected))
    )


def _clusters(run: RunCases, criteria: Sequence[Criterion]) -> dict[Key, list[Incident]]:
    found: dict[Key, list[Incident]] = defaultdict(list)
    for one in incidents(run, criteria):
        found[one.kind, one.check].append(one)
    return dict(found)


def _theme(
    key: Key,
    now: Sequence[Incident],
    then: Sequence[Incident],
    cases: Mapping[str, Case],
    before: int,
    sweep: Sweep | None,
    criteria: Sequence[Criterion],
) -> Theme:
    kind, check = key
    calls = tuple(dict.fromkeys(one.call_id for one in now))
    was = len({one.call_id for one in then})
    total = len(cases)
    prevalence = _prevalence(len(calls), total)
    severity = (now or then)[0].severity
    if prevalence == "WIDESPREAD" and severity != "HIGH":
        severity = "HIGH" if severity == "MEDIUM" else "MEDIUM"
    lifecycle = _lifecycle(len(calls), total, was, before) if before else None
    channel = _channel(kind, [cases[id] for id in calls], cases)
    return Theme(
        slug=_slug(kind, check),
        title=_title(kind, check),
        severity=severity,
        impact=_impact(kind, severity, check, criteria),
        prevalence=prevalence,
        lifecycle=lifecycle,
        affected=len(calls),
        total=total,
        checks=_names(check, criteria),
        channel=channel,
        analysis=_analysis(now, calls, cases, sweep, lifecycle, was, before, criteria),
        call_ids=calls,
        spans=tuple(
            Span(call_id=o.call_id, start_ms=o.start_ms, end_ms=o.end_ms, incident=o.id)
            for o in now
        ),
    )


def _slug(kind: Kind, check: str) -> str:
    text = kind if kind != "failed_check" else f"{kind}-{check}"
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _title(kind: Kind, check: str) -> str:
    if kind != "failed_check":
        return _TITLES[kind]
    return f"{_TITLES[kind]}: {check.removeprefix('check.').replace('_', ' ')}"


def _names(check: str, criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """The run's own checks that this theme is about; the task's if it names no other."""
    own = [one.name for one in criteria if one.text == check]
    return tuple(own) or ((criteria[0].name,) if check.startswith("check.") else ())


def _prevalence(calls: int, total: int) -> Prevalence:
    if total and calls / total >= WIDESPREAD and calls >= RECURRING:
        return "WIDESPREAD"
    return "RECURRING" if calls >= RECURRING else "ISOLATED"


def _impact(kind: Kind, severity: Severity, check: str, criteria: Sequence[Criterion]) -> Impact:
    """What it costs: a check the run is judged by costs the verdict."""
    judged = kind == "failed_check" or any(one.text == check for one in criteria)
    return "CRITICAL" if judged and severity == "HIGH" else severity


def _lifecycle(calls: int, total: int, was: int, before: int) -> Lifecycle:
    if not was:
        return "NEW"
    if not calls:
        return "FIXED"
    return "IMPROVING" if calls / max(total, 1) < IMPROVING * was / before else "PERSISTENT"


def _channel(kind: Kind, affected: Sequence[Case], cases: Mapping[str, Case]) -> Channel | None:
    """Which part of the agent the numbers point to."""
    if not affected:
        return None
    ids = {case.call_id for case in affected}
    here = word_errors(affected)
    elsewhere = word_errors([case for id, case in cases.items() if id not in ids])
    if here is not None and here - (elsewhere or 0.0) >= MISHEARD:
        return "STT"
    if kind in _TURN_TAKING:
        return "VOICE_CONFIG"
    if kind in ("slow_reply", "awkward_silence"):
        own = _median(affected, "assistant_own_latency")
        heard = _median(affected, "response_latency")
        if own is not None and heard:
            return "SPEECH_MODEL" if own / heard >= 0.5 else "INFRA"
    return None


def word_errors(cases: Sequence[Case]) -> float | None:
    """Words the assistant misheard, of all words said to it in these calls; None untold."""
    wrong, said = 0, 0
    for case in cases:
        numerator = read(find("word_error_rate.assistant.numerator"), case.result)
        denominator = read(find("word_error_rate.assistant.denominator"), case.result)
        if isinstance(numerator, int | float) and isinstance(denominator, int | float):
            wrong, said = wrong + int(numerator), said + int(denominator)
    return wrong / said if said else None


def _median(cases: Sequence[Case], metric: str) -> float | None:
    values = sorted(
        float(value)
        for case in cases
        if isinstance(value := read(find(metric), case.result), int | float)
    )
    return values[len(values) // 2] if values else None


def _analysis(
    now: Sequence[Incident],
    calls: Sequence[str],
    cases: Mapping[str, Case],
    sweep: Sweep | None,
    lifecycle: Lifecycle | None,
    was: int,
    before: int,
    criteria: Sequence[Criterion],
) -> str:
    """What the numbers say of a theme, in plain sentences."""
    if not now:
        return f"It was in {was} of {before} calls of the baseline and in none of this run."
    parts = [f"In {len(calls)} of {len(cases)} calls, {counted(len(now), 'time')} in all."]
    parts += _concentrated("scenario", [cases[id].scenario for id in calls], cases, "scenario")
    parts += _concentrated("condition", [cases[id].condition for id in calls], cases, "condition")
    parts += _where_in_the_call(now)
    errors = word_errors([cases[id] for id in calls])
    if errors is not None:
        parts.append(f"In these calls the assistant misheard {100 * errors:.0f} % of the words.")
    if sweep is not None:
        parts += _blamed(now[0].check, [cases[id] for id in calls], sweep, criteria)
    if lifecycle is not None and was:
        parts.append(f"In the baseline it was in {was} of {before} calls.")
    example = next((one for one in now if one.start_ms is not None), now[0])
    parts.append(f"For example in {example.call_id}{_at(example)}: {example.sentence.rstrip('.')}.")
    return " ".join(parts)


def _concentrated(
    what: str, values: Sequence[str], cases: Mapping[str, Case], field: str
) -> list[str]:
    """Say where all of it lies, if the run had other places to lie in."""
    every = {str(getattr(case, field)) for case in cases.values()}
    only = set(values)
    if len(every) > 1 and len(only) == 1 and len(values) > 1:
        return [f"All of them in {what} {next(iter(only))}."]
    if len(every) > 2 and len(values) > 2:
        ((most, times),) = Counter(values).most_common(1)
        if times / len(values) >= 0.6:
            return [f"{times} of them in {what} {most}."]
    return []


def _where_in_the_call(now: Sequence[Incident]) -> list[str]:
    times = sorted(one.start_ms for one in now if one.start_ms is not None)
    if len(times) < 3:
        return []
    return [f"They lie between {times[0] / 1000:.0f} s and {times[-1] / 1000:.0f} s of the call."]


def _blamed(
    check: str, calls: Sequence[Case], sweep: Sweep, criteria: Sequence[Criterion]
) -> list[str]:
    """What a sweep says of the run's check that these calls failed, if most lie at that value."""
    names = {one.id: one.name for one in criteria}
    about = next((one.id for one in criteria if one.text == check), None)
    if about is None and check.startswith("check."):
        about = TASK
    worse = next((found.worse for found in sweep.checks if found.check == about), ())
    for worst in worse[:1]:
        here = sum(case.arm is not None and case.arm.key == worst.of.key for case in calls)
        if about is not None and 2 * here > len(calls):
            return [
                f"{worst.of.label} failed {names.get(about, about)} in "
                f"{worst.failure_rate:.0f} % of calls against "
                f"{worst.rest_failure_rate:.0f} % elsewhere (corrected p = {worst.adjusted_p:.2g})."
            ]
    return []


def _at(one: Incident) -> str:
    return "" if one.start_ms is None else f" at {one.start_ms / 1000:.1f} s"

"""A debrief written from the numbers of a run: no model, no guess, no adjective alone.

Takes cases, verdict, sweep and comparison as they stand and puts them into
sentences; every claim names its calls and where to listen. The same run always
gives the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duplex.counting import counted
from duplex.debrief.themes import themes as themes_of
from duplex.debrief.values import (
    Channel,
    Debrief,
    Finding,
    Lifecycle,
    Recommendation,
    Theme,
    Trend,
    TrendRow,
)
from duplex.verdict.attribution import Sweep
from duplex.verdict.case import RunCases
from duplex.verdict.comparison import CheckDelta, Comparison
from duplex.verdict.criteria import Criterion
from duplex.verdict.readings import find, read
from duplex.verdict.sweeps import sweep_of
from duplex.verdict.verdict import CheckTally, Verdict, summarise

QUICK_MS = 1_500.0
"""Median reply at or below which a call's replies were quick."""

_ADVICE: dict[Channel | None, str] = {
    "STT": "The assistant mishears its callers in these calls: try its speech recognition on the "
    "spans listed, and ask back instead of guessing.",
    "VOICE_CONFIG": "Look at turn detection: thresholds for the end of a turn and for being "
    "interrupted, on the spans listed.",
    "SPEECH_MODEL": "Most of the wait is the assistant's own: look at what it does between the end "
    "of the turn and its first sound.",
    "INFRA": "Most of the wait lies outside the assistant: look at transport and playout.",
    "PROMPT": "Look at the instructions.",
    "LLM_MODEL": "Look at the model.",
    "EXTERNAL": "Look at what the assistant depends on.",
    None: "The numbers do not tell the cause: listen to the spans listed.",
}


def write(
    run: RunCases,
    criteria: Sequence[Criterion],
    verdict: Verdict,
    *,
    comparison: Comparison | None = None,
    baseline_criteria: Sequence[Criterion] = (),
) -> Debrief:
    """Write the debrief of a run that is over."""
    sweep = sweep_of(run, criteria)
    found = themes_of(
        run,
        criteria,
        sweep=sweep,
        baseline=None if comparison is None else comparison.baseline,
        baseline_criteria=baseline_criteria,
    )
    live = [theme for theme in found if theme.affected]
    return Debrief(
        passed=verdict.passed,
        summary=_summary(verdict, live),
        paragraphs=tuple(_paragraphs(run, criteria, verdict, sweep, comparison)),
        sections=tuple(_sections(sweep, comparison)),
        findings=tuple(_findings(live, sweep, run, criteria)),
        went_well=tuple(_went_well(run, verdict)),
        themes=found,
        recommendations=tuple(_recommendations(live)),
        trend=None if comparison is None else _trend(comparison),
    )


def _summary(verdict: Verdict, themes: Sequence[Theme]) -> str:
    if verdict.passed:
        checks = counted(len(verdict.checks), "check")
        rest = f" {counted(len(themes), 'theme')} to look at all the same." if themes else ""
        return f"Passed: every test case was graded and {checks} reached the share wanted.{rest}"
    reasons = "; ".join(failure.sentence for failure in verdict.failures)
    return f"Not passed: {reasons}."


def _paragraphs(
    run: RunCases,
    criteria: Sequence[Criterion],
    verdict: Verdict,
    sweep: Sweep | None,
    comparison: Comparison | None,
) -> Iterator[str]:
    summary = summarise(run.final, criteria)
    told = f"{summary.passed} of {counted(summary.evaluated, 'graded call')} passed every check"
    lost = summary.total - summary.evaluated
    if lost:
        told += f"; {lost} more could not be graded"
    if verdict.score is not None:
        told += f". The score, the mean of the checks' pass rates, is {verdict.score:.1f}"
    yield f"{told}."
    if (replies := _replies(run)) is not None:
        yield replies
    if sweep is not None:
        yield _swept(sweep, run, criteria)
    if comparison is not None:
        yield _against(comparison)


def _replies(run: RunCases) -> str | None:
    cases = [case for case in run.final if case.counted]
    medians = sorted(
        float(value)
        for case in cases
        if isinstance(value := read(find("response_latency.p50"), case.result), int | float)
    )
    if not medians:
        return None
    if len(medians) == 1:
        return f"The median reply came after {medians[0]:.0f} ms."
    middle = medians[len(medians) // 2]
    told = f"Half of the {counted(len(medians), 'call')} had a median reply within {middle:.0f} ms"
    return f"{told}; the slowest call's was {medians[-1]:.0f} ms."


def _swept(sweep: Sweep, run: RunCases, criteria: Sequence[Criterion]) -> str:
    names = {one.id: one.name for one in criteria}
    blamed = [
        f"{worse.of.label} fails {names.get(check.check, check.check)} more often than the rest "
        f"({worse.failure_rate:.0f} % of {counted(worse.evaluated, 'call')} against "
        f"{worse.rest_failure_rate:.0f} %, corrected p = {worse.adjusted_p:.2g})"
        for check in sweep.checks
        for worse in check.worse
    ]
    silent = [
        f"on {value.of.label} the agent never spoke in {value.silent} of "
        f"{counted(value.attempted, 'call')} (corrected p = {value.adjusted_p:.2g})"
        for value in sweep.never_spoke
    ]
    if blamed or silent:
        return f"Over {run.swept}: {'; '.join((*blamed, *silent))}."
    gap = sweep.minimum_detectable_gap
    if not sweep.tested or gap is None:
        return f"Over {run.swept}: nothing could be compared."
    return (
        f"Over {run.swept}: no value fails significantly more often than the others. A gap of "
        f"less than roughly {gap:.0f} points could not have been seen with this many calls."
    )


def _against(comparison: Comparison) -> str:
    changes = [
        f"{one.label} is {one.direction}"
        for one in comparison.deltas
        if one.direction in ("worse", "better")
    ]
    told = "; ".join(changes) + "." if changes else comparison.nothing_seen
    return f"Against {comparison.baseline.run_id}: {told[0].lower()}{told[1:]}"


def _sections(sweep: Sweep | None, comparison: Comparison | None) -> Iterator[tuple[str, str]]:
    if sweep is not None and sweep.caveats:
        yield "What this run could not see", " ".join(sweep.caveats)
    if comparison is not None and comparison.caveats:
        yield "What the comparison could not see", " ".join(comparison.caveats)


def _findings(
    themes: Sequence[Theme], sweep: Sweep | None, run: RunCases, criteria: Sequence[Criterion]
) -> Iterator[Finding]:
    if sweep is not None:
        names = {one.id: one.name for one in criteria}
        for check in sweep.checks:
            for worse in check.worse:
                calls = tuple(
                    case.call_id
                    for case in run.final
                    if case.arm is not None
                    and case.arm.key == worse.of.key
                    and (said := case.check(check.check)) is not None
                    and said.passed is False
                )
                yield Finding(
                    title=f"{worse.of.label} fails {names.get(check.check, check.check)}",
                    body=f"{worse.failed} of {worse.evaluated} calls at this value failed, "
                    f"against {worse.rest_failure_rate:.0f} % of all others (corrected "
                    f"p = {worse.adjusted_p:.2g}).",
                    call_ids=calls,
                )
    for theme in themes:
        yield Finding(
            title=theme.title, body=theme.analysis, call_ids=theme.call_ids, spans=theme.spans
        )


def _went_well(run: RunCases, verdict: Verdict) -> Iterator[Finding]:
    graded = [case for case in run.final if case.counted]
    for tally in verdict.checks:
        if tally.passed and tally.evaluated_calls and tally.passed_calls == tally.evaluated_calls:
            yield Finding(
                title=f"{tally.criterion.name} held",
                body=_held(tally),
                call_ids=tuple(
                    case.call_id
                    for case in graded
                    if (said := case.check(tally.criterion.id)) is not None and said.passed
                ),
            )
    quick = [
        case.call_id
        for case in graded
        if isinstance(value := read(find("response_latency.p50"), case.result), int | float)
        and value <= QUICK_MS
    ]
    if quick:
        yield Finding(
            title="Replies came quickly",
            body=f"In {len(quick)} of {counted(len(graded), 'call')} half of the replies came "
            f"within {QUICK_MS / 1000:.1f} s.",
            call_ids=tuple(quick),
        )
    yielding = [
        case.call_id for case in graded if read(find("yield_rate.rate"), case.result) == 1.0
    ]
    if yielding:
        yield Finding(
            title="The assistant let itself be interrupted",
            body=f"In {counted(len(yielding), 'call')} it stopped at every barge-in.",
            call_ids=tuple(yielding),
        )


def _held(tally: CheckTally) -> str:
    return f"It passed on every one of {counted(tally.evaluated_calls, 'graded call')}."


def _recommendations(themes: Sequence[Theme]) -> Iterator[Recommendation]:
    """One for each part of the agent that themes point to, the gravest first."""
    groups: dict[Channel | None, list[Theme]] = {}
    for theme in themes:
        groups.setdefault(theme.channel, []).append(theme)
    for order, (channel, group) in enumerate(groups.items(), start=1):
        titles = ", ".join(theme.title[:1].lower() + theme.title[1:] for theme in group)
        yield Recommendation(
            order=order,
            title=f"Mend: {titles}",
            body=_ADVICE[channel],
            severity=group[0].severity,
            channel=channel,
            themes=tuple(theme.slug for theme in group),
        )


def _trend(comparison: Comparison) -> Trend:
    return Trend(
        baseline=comparison.baseline.run_id,
        rows=tuple(
            TrendRow(
                check=check.name,
                previous=_percent(check.baseline_rate),
                current=_percent(check.current_rate),
                lifecycle=_lifecycle(check),
            )
            for check in comparison.checks
        ),
    )


def _lifecycle(check: CheckDelta) -> Lifecycle | None:
    now, then = check.current_rate, check.baseline_rate
    if now is None or then is None or (now == 1 and then == 1):
        return None
    if now == 1:
        return "FIXED"
    if then == 1:
        return "NEW"
    return "IMPROVING" if now > then else "PERSISTENT"


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)

"""The verdict of a run for people: checks against their shares, what failed, what it means.

Pure formatting of the blocks beside the results; a run of one call without checks
of its own says nothing more than its call does.
"""

from __future__ import annotations

from collections.abc import Iterator

from duplex.counting import counted
from duplex.debrief import Debrief, write
from duplex.report.markdown import cell, section, table
from duplex.results import schema
from duplex.verdict.block import judged
from duplex.verdict.case import RunCases
from duplex.verdict.verdict import CheckTally, ScenarioTally, Verdict

_CHECKS = ("check", "passed", "share", "wanted", "")
_SCENARIOS = ("scenario", "passed", "needed", "")


def verdict_lines(run: schema.Run) -> Iterator[str]:
    """Lines below the table of calls: the verdict, and a debrief where there is much to say."""
    cases, criteria, verdict = judged(run)
    if verdict is None or (len(cases.cases) <= 1 and len(criteria) <= 1):
        return
    yield f"verdict: {'passed' if verdict.passed else 'failed'}{_score(verdict)}"
    for tally in verdict.checks:
        yield f"check: {_told(tally)}"
    for failure in verdict.failures:
        yield f"failed: {failure.sentence}"
    if any(case.evaluated for case in cases.final):
        yield from _debriefed(write(cases, criteria, verdict), cases)


def verdict_markdown(run: schema.Run) -> list[str]:
    """The verdict as sections of a Markdown page; empty for a run without one."""
    cases, _, verdict = judged(run)
    if verdict is None:
        return []
    lines = [f"**{'Passed' if verdict.passed else 'Failed'}**{_score(verdict)}", ""]
    lines += [f"- {cell(failure.sentence)}" for failure in verdict.failures]
    lines += [""] if verdict.failures else []
    lines += section("Checks", table(_CHECKS, [_check_row(tally) for tally in verdict.checks]))
    if len(cases.cases) > len(verdict.scenarios):
        rows = [_scenario_row(tally) for tally in verdict.scenarios]
        lines += section("Scenarios", table(_SCENARIOS, rows))
    return lines


def _debriefed(found: Debrief, cases: RunCases) -> Iterator[str]:
    """What a run of many calls or of a sweep means."""
    if cases.swept is None and len(cases.final) < 4:
        return
    for paragraph in found.paragraphs:
        yield f"debrief: {paragraph}"
    for heading, body in found.sections:
        yield f"debrief: {heading}: {body}"


def _score(verdict: Verdict) -> str:
    return "" if verdict.score is None else f", score {verdict.score:.1f}"


def _told(tally: CheckTally) -> str:
    mark = "passed" if tally.passed else "failed"
    rate = tally.pass_rate
    share = "" if rate is None else f" ({rate:.1f} %)"
    calls = counted(tally.evaluated_calls, "call")
    wanted = f"wanted {tally.criterion.min_pass_rate:.4g} %"
    return f"{tally.criterion.name} {mark}, {tally.passed_calls} of {calls}{share}, {wanted}"


def _check_row(tally: CheckTally) -> tuple[str, ...]:
    rate = tally.pass_rate
    return (
        tally.criterion.name,
        f"{tally.passed_calls}/{tally.evaluated_calls}",
        "–" if rate is None else f"{rate:.1f} %",
        f"{tally.criterion.min_pass_rate:.4g} %",
        "passed" if tally.passed else "failed",
    )


def _scenario_row(tally: ScenarioTally) -> tuple[str, ...]:
    return (
        tally.scenario if tally.arm is None else f"{tally.scenario} ({tally.arm})",
        f"{tally.passed_samples}/{tally.samples}",
        str(tally.needed),
        "passed" if tally.passed else "failed",
    )

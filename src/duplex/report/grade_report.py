"""A run before and after it was graded again: a line a call, and what changed.

Formats only. What a judge or a check could not tell stands beside the verdict, never
in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duplex.grading.own_checks import PREFIX
from duplex.results import schema
from duplex.results.regraded import Regraded
from duplex.results.run import headline
from duplex.results.stored import member
from duplex.scenario.options import QUESTION
from duplex.screen import plain
from duplex.values import Json

NONE = "–"
_COLUMNS = ("scenario", "was", "is", "judge", "score", "changed")


def sentence(run: schema.Run, calls: Sequence[Regraded]) -> str:
    """What came out, and how many calls have another verdict."""
    moved = sum(one.was.status != one.now.status for one in calls)
    graded = sum(one.graded for one in calls)
    return f"{headline(run)} {graded} of {len(calls)} graded again, {moved} with another verdict."


def as_text(run: schema.Run, calls: Sequence[Regraded]) -> str:
    """The sentence, the table, and below it why."""
    return "\n".join(plain(line).rstrip() for line in _lines(run, calls))


def as_json(one: Regraded) -> dict[str, Json]:
    """One call for a machine."""
    checks = {check.id: check.status for check in one.now.assessment.checks}
    return {
        "scenario": one.now.scenario_id,
        "sample": one.now.duplex.get("sample"),
        "was": one.was.status,
        "is": one.now.status,
        "graded": one.graded,
        "why": one.why or None,
        "checks": {name: str(status) for name, status in checks.items()},
        "changed": list(one.changed),
        "semantic_quality": one.now.metrics.task.semantic_quality.score,
        "overall_score": member(one.now.duplex, "judge").get("overall_score"),
    }


def _lines(run: schema.Run, calls: Sequence[Regraded]) -> Iterator[str]:
    yield sentence(run, calls)
    rows = [_COLUMNS, *map(_row, calls)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    for one in calls:
        yield from _reasons(one)


def _row(one: Regraded) -> tuple[str, ...]:
    score = one.now.metrics.task.semantic_quality.score
    return (
        _name(one),
        one.was.status.replace("_", " "),
        one.now.status.replace("_", " ") if one.graded else "not graded again",
        _judged(one),
        NONE if score is None else f"{score:g}",
        ", ".join(one.changed) or NONE,
    )


def _name(one: Regraded) -> str:
    sample = one.now.duplex.get("sample")
    return f"{one.now.scenario_id} #{sample}" if sample not in (None, 1) else one.now.scenario_id


def _judged(one: Regraded) -> str:
    judge = member(one.now.duplex, "judge")
    if not one.graded or not judge:
        return NONE
    verdict = member(judge, "outcome").get("verdict")
    return str(verdict) if verdict is not None else "not assessed"


def _reasons(one: Regraded) -> Iterator[str]:
    if not one.graded:
        yield f"{_name(one)}: not graded again: {one.why}"
        return
    reasons, judged = member(one.now.duplex, "checks"), member(one.now.duplex, "judge")
    for check in one.now.assessment.checks:
        asked = check.id.startswith((PREFIX, QUESTION)) or (judged and check.id in _ASKED)
        if check.status == "failed" or (asked and check.status == "not_assessed"):
            why = member(reasons, check.id).get("reason")
            yield f"{_name(one)}: {check.id} {check.status.replace('_', ' ')}: {why}"


_ASKED = ("semantic_outcome", "semantic_requirements")

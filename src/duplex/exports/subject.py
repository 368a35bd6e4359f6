"""What every export is made from: a run judged, debriefed and perhaps compared.

One value, made once from ``results.json`` and handed to each shape; no shape reads
a file for its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.debrief import Debrief, write
from duplex.results import schema
from duplex.verdict.block import judged
from duplex.verdict.case import RunCases
from duplex.verdict.comparison import Comparison, compare
from duplex.verdict.criteria import Criterion
from duplex.verdict.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """``number`` is the run's place among its folder's, None where nobody counted.

    ``verdict`` and ``debrief`` are None until the run is over; a debrief also when
    no call was graded.
    """

    run: RunCases
    criteria: tuple[Criterion, ...]
    verdict: Verdict | None
    debrief: Debrief | None
    comparison: Comparison | None = None
    number: int | None = None


def subject_of(
    run: schema.Run, baseline: schema.Run | None = None, *, number: int | None = None
) -> Subject:
    """Judge and debrief a run. Raises InputError when it cannot be compared with ``baseline``."""
    cases, criteria, verdict = judged(run)
    comparison: Comparison | None = None
    theirs: tuple[Criterion, ...] = ()
    if baseline is not None:
        then, theirs, _ = judged(baseline)
        comparison = compare(cases, then, criteria, theirs)
    evaluated = any(case.evaluated for case in cases.final)
    return Subject(
        run=cases,
        criteria=criteria,
        verdict=verdict,
        debrief=write(cases, criteria, verdict, comparison=comparison, baseline_criteria=theirs)
        if verdict is not None and evaluated
        else None,
        comparison=comparison,
        number=number,
    )

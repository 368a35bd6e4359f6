"""``duplex grade --agreement``: a judge on transcripts that people have graded.

It asks the judge about every transcript, a few at a time, and prints how far the two
agree. Transcripts are judged exactly as calls are. Nothing is written but to stdout.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from duplex.errors import InputError
from duplex.grading.judging import JUDGE_VERSION, Judgement
from duplex.grading.judging.agreement import Report, agreement
from duplex.grading.judging.labelled import OWN, Labelled, load_labelled
from duplex.judge_options import JudgeOptions
from duplex.judging import Graders
from duplex.report import agreement_report
from duplex.screen import plain
from duplex.values import Json

SIDE_BY_SIDE = 4
"""Transcripts that a judge is asked about at once."""


async def judge_all(
    graders: Graders, cases: Sequence[Labelled], console: Console | None = None
) -> list[Judgement]:
    """Judge every transcript, in order of the cases; raises InputError without a server."""
    gate = asyncio.Semaphore(SIDE_BY_SIDE)
    done = 0

    async def one(case: Labelled) -> Judgement:
        nonlocal done
        async with gate:
            judgement = await graders.judge(case.case)
        done += 1
        if console is not None:
            told = judgement.outcome.value or f"not assessed: {judgement.outcome.why}"
            console.print(plain(f"{done} of {len(cases)}: {case.id}: {told}"))
        return judgement

    try:
        await graders.open()
        return list(await asyncio.gather(*map(one, cases)))
    finally:
        await graders.close()
        if console is not None and graders.used is not None:
            console.print(plain(f"judge: {graders.used}"))


def measure_agreement(
    options: JudgeOptions, cases: Path | None = None, console: Console | None = None
) -> Report:
    """Hold a judge against a labelled set, the package's own by default."""
    if not options.judged:
        raise InputError("agreement wants a judge to ask, name one with --judge-model")
    labelled = load_labelled(cases or OWN)
    judgements = asyncio.run(judge_all(Graders(options), labelled, console))
    return agreement(labelled, judgements)


def command(options: JudgeOptions, *, cases: Path | None, as_json: bool, console: Console) -> int:
    """Print the agreement; return the exit code. Raises DuplexError."""
    report = measure_agreement(options, cases, console)
    if as_json:
        document: dict[str, Json] = {
            "judge": options.graders(),
            "judge_version": JUDGE_VERSION,
            "cases": str(cases or OWN.name),
            **report.as_json(),
        }
        print(json.dumps(document, allow_nan=False))
    else:
        print(agreement_report.as_text(report))
    # A judge that told of nothing could not be measured.
    return 2 if report.not_assessed.numerator == report.transcripts else 0

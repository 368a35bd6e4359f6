"""``duplex grade RUN``: a stored run graded again, beside the grades it had.

Same recording and scenario, same checks. Nothing of the run is touched: the new
results lie in ``RUN/graded/NAME/results.json``. What was measured is carried over as
it was; a call that did not count, left no events, or whose scenario is gone keeps its
grade, and says why.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from duplex import scenario as scenarios
from duplex.about_run import versions
from duplex.clock import utc_now
from duplex.discretion import hidden_again
from duplex.errors import InputError
from duplex.grading import Check, Evidence
from duplex.grading.judging import JUDGE_VERSION, Judgement, case_of
from duplex.grading.own_checks import OwnCheck, checked_call, run_own
from duplex.inputs import is_file
from duplex.judge_options import JudgeOptions, judge_options
from duplex.judging import Graders
from duplex.questions import asked_about, asked_by
from duplex.recording import Recording
from duplex.report import grade_report
from duplex.results import schema
from duplex.results.regraded import Regraded, kept, regraded
from duplex.results.run import exit_code
from duplex.results.stored import (
    GRADED,
    REMEASURED,
    call_id,
    load_results,
    member,
    new_place,
    scenarios_of,
)
from duplex.run_folder import RunFolder
from duplex.scenario import Scenario
from duplex.screen import plain
from duplex.secret_values import environment_secrets
from duplex.values import Json
from duplex.verdict.block import blocks
from duplex.verdict.criteria import question_check

_FOLLOWS = frozenset({"verdict", "debrief", "comparison"})
"""Entries of ``run.duplex`` that follow from the grades of its calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """A run that was graded again: its new results, where they are, and each call's change."""

    run: schema.Run
    calls: tuple[Regraded, ...]
    folder: Path

    @property
    def code(self) -> int:
        return exit_code(self.run)


def grade(
    run_dir: str | Path,
    *,
    data: str | Path | None = None,
    name: str | None = None,
    console: Console | None = None,
    **options: object,
) -> GradedRun:
    """Grade a run again and write ``RUN/graded/NAME/results.json``.

    ``data`` is where its scenarios are, if not where the run had them; ``options`` are
    those of :class:`~duplex.judge_options.JudgeOptions`. Not inside a running event loop.

    Raises:
        InputError: no run of schema 2.0 is there, an option cannot be used, no call can
            be graded, or ``name`` is taken.
    """
    return _grade(run_dir, judge_options(options), data, name, console)


def _grade(
    run_dir: str | Path,
    options: JudgeOptions,
    data: str | Path | None,
    name: str | None,
    console: Console | None,
) -> GradedRun:
    folder = _folder(Path(run_dir))
    run = load_results(folder.results)
    if not run.results:
        raise InputError(f"run folder {folder.path} lists no call")
    place = new_place(folder, GRADED, name)
    found = (
        {one.id: one for one in scenarios.load(data).scenarios}
        if data is not None
        else scenarios_of(run)
    )
    asked = tuple({one.id: one for one in (*asked_by(run), *options.question)}.values())
    found = {id: asked_about(one, asked) for id, one in found.items()}
    found = hidden_again(run, found)
    calls = asyncio.run(_all(folder, run, found, Graders(options), console))
    if not any(one.graded for one in calls):
        raise InputError(f"no call of {folder.path} can be graded again: {calls[0].why}")
    written = _run(run, calls, folder, options)
    secretive = RunFolder(folder.path, secrets=environment_secrets())
    secretive.write_json(place / "results.json", written.model_dump(mode="json"))
    return GradedRun(run=written, calls=tuple(calls), folder=place)


async def _all(
    folder: RunFolder,
    run: schema.Run,
    found: Mapping[str, Scenario],
    graders: Graders,
    console: Console | None,
) -> list[Regraded]:
    calls = []
    try:
        await graders.open()
        for number, result in enumerate(run.results, start=1):
            if console is not None and graders.judges:
                shown = f"grading {result.scenario_id} ({number} of {len(run.results)})"
                console.print(plain(shown))
            calls.append(await _call(folder, result, found.get(result.scenario_id), graders))
    finally:
        await graders.close()
    if console is not None and graders.used is not None:
        console.print(plain(f"judge: {graders.used}"))
    return calls


async def _call(
    folder: RunFolder, result: schema.Result, scenario: Scenario | None, graders: Graders
) -> Regraded:
    """Grade one call, or keep its grade and say why."""
    if result.status == "infrastructure_error":
        why = result.error.message if result.error is not None else "nobody said why"
        return kept(result, f"it does not count: {why}")
    if scenario is None:
        return kept(result, "its scenario is not there; name its file with --data")
    try:
        recording = Recording.load(folder.path, call_id(folder.path, result))
    except InputError as error:
        return kept(result, str(error).replace(f"{folder.path}/", ""))
    evidence = Evidence.from_recording(recording)
    judgement: Judgement | None = None
    if graders.judges:
        judgement = await graders.judge(case_of(scenario, evidence))
    own = _own(graders.own, scenario, evidence, result)
    return regraded(result, scenario, evidence, judgement, own)


def _own(
    checks: Sequence[OwnCheck], scenario: Scenario, evidence: Evidence, result: schema.Result
) -> tuple[Check, ...]:
    timing = member(result.duplex, "timing") or None
    return run_own(checks, checked_call(scenario, evidence, timing))


def command(
    run_dir: Path,
    options: JudgeOptions,
    *,
    data: Path | None,
    name: str | None,
    as_json: bool,
    console: Console,
) -> int:
    """Grade again and print the calls; return the exit code. Raises DuplexError."""
    done = _grade(run_dir, options, data, name, console)
    path = done.folder / "results.json"
    if as_json:
        document: dict[str, Json] = {
            "run": done.run.run.id,
            "results": str(path),
            "sentence": grade_report.sentence(done.run, done.calls),
            "calls": [grade_report.as_json(one) for one in done.calls],
        }
        print(json.dumps(document, allow_nan=False))
    else:
        print(grade_report.as_text(done.run, done.calls))
    print(plain(f"results: {path}"), file=sys.stderr)
    return done.code


def _folder(path: Path) -> RunFolder:
    if is_file(path):
        path = path.parent
    if path.resolve().parent.name in (GRADED, REMEASURED):
        raise InputError(f"{path} was made of another run, name the run itself")
    return RunFolder.open(path)


def _plan(run: schema.Run, options: JudgeOptions) -> dict[str, Json]:
    """The run's plan, with a check for every question that is asked now."""
    plan = dict(member(run.run.duplex, "plan"))
    pinned = plan.get("criteria")
    stored = pinned if isinstance(pinned, list) else []
    criteria: dict[str, Json] = {str(one["id"]): one for one in stored if isinstance(one, dict)}
    for one in options.question:
        criteria[one.check] = question_check(one).as_json()
    return plan | {"criteria": list(criteria.values())}


def _run(
    run: schema.Run, calls: Sequence[Regraded], folder: RunFolder, options: JudgeOptions
) -> schema.Run:
    """The run's results with the new grades; its id and its settings are the old ones."""
    # What a run means as a whole follows from grades that may be others now.
    ours: dict[str, Json] = {
        **{name: value for name, value in run.run.duplex.items() if name not in _FOLLOWS},
        "graded_from": {
            "run": run.run.id,
            "results_sha256": hashlib.sha256(folder.results.read_bytes()).hexdigest(),
            "versions": dict(member(run.run.duplex, "versions")),
        },
        "graded": {
            "at": utc_now(),
            "judge_version": JUDGE_VERSION if options.judged else None,
            **options.graders(),
            "versions": dict(versions()),
            "calls": len(calls),
            "graded": sum(one.graded for one in calls),
        },
    }
    results = [one.now for one in calls]
    statuses = [one.status for one in results]
    graded = run.model_copy(
        update={
            "run": run.run.model_copy(update={"duplex": ours}),
            "results": results,
            "summary": schema.Summary(
                total=len(results),
                passed=statuses.count("passed"),
                failed=statuses.count("failed"),
                infrastructure_errors=statuses.count("infrastructure_error"),
            ),
        }
    )
    if isinstance(run.run.duplex.get("verdict"), dict):
        ours["plan"] = _plan(run, options)
        ours.update(blocks(graded))
    return graded

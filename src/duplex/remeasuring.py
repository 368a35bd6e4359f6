"""``duplex remeasure``: an old run under another detector, policy or version.

Holds no call and touches nothing that the run left: the new results lie beside
the old, in a folder of their own. It decides nothing about numbers; results do
that call by call. stdout is data, stderr is talk.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from rich.console import Console

from duplex import silero
from duplex.about_run import versions
from duplex.clock import utc_now
from duplex.detect import DETECTORS, SILERO, segments
from duplex.discretion import hidden_again
from duplex.errors import InputError
from duplex.inputs import exists, is_file
from duplex.metrics.pooling import pool
from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy
from duplex.report import remeasure_report
from duplex.results import schema
from duplex.results.remeasured import Remeasured, remeasure_call
from duplex.results.stored import REMEASURED, load_results, member, new_place, scenarios_of
from duplex.run_folder import RunFolder
from duplex.screen import paper, plain
from duplex.values import Json
from duplex.wording import Wording

COMPUTED, INCOMPLETE, COULD_NOT = 0, 1, 2
_LONGEST_MS = 600_000
_AT_LEAST_ONE = frozenset({"response_deadline_ms", "panel_tick_ms"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemeasuredRun:
    """A run that was measured again: its calls before and after, and where that lies."""

    run: schema.Run
    calls: tuple[Remeasured, ...]
    folder: Path

    @property
    def code(self) -> int:
        """0: all calls that were held could be measured; 2: none could; 1: between."""
        done = sum(one.measured for one in self.calls)
        wanted = sum(one.measured or one.held for one in self.calls)
        return COULD_NOT if not done else COMPUTED if done == wanted else INCOMPLETE


def remeasure(
    run_dir: str | Path,
    *,
    detector: str | None = None,
    response_deadline_ms: int | None = None,
    policy: Mapping[str, int] | None = None,
    name: str | None = None,
    words: bool = False,
    ears_model: Path | None = None,
    console: Console | None = None,
) -> RemeasuredRun:
    """Measure a run again and write ``RUN/remeasured/NAME/results.json``.

    What is not given stays as the run had it. ``policy`` are fields of
    :class:`~duplex.metrics.timing_policy.TimingPolicy` that are to differ. ``words``
    lets the embedded ears hear both stems; not inside a running event loop.

    Raises:
        InputError: no run of schema 2.0 is there, an option cannot be used, no call
            could be measured, or ``name`` is taken.
        MissingExtra: an extra that is asked for is not installed.
    """
    changes = checked(policy or {}, response_deadline_ms)
    if detector is not None and detector not in DETECTORS:
        raise InputError(f'detector "{detector}" is not one of {", ".join(DETECTORS)}')
    if detector == SILERO:
        # Whether the extra is there is known before any work; without a sample nothing is heard.
        segments(np.zeros(0, np.int16), silero.RATE_HZ, SILERO)
    folder = _folder(Path(run_dir))
    if not exists(folder.results) and exists(folder.path / "events"):
        raise InputError(
            f"run folder {folder.path} has no results.json, so there is nothing to compare with; "
            f"duplex measure {folder.path} measures its calls"
        )
    run = load_results(folder.results)
    if not run.results:
        raise InputError(f"run folder {folder.path} lists no call")
    place = new_place(folder, REMEASURED, name)
    found = hidden_again(run, scenarios_of(run))
    ears = Wording(ears=True, model=ears_model).of_call if words else None
    calls = []
    for number, result in enumerate(run.results, start=1):
        shown = f"measuring {plain(result.scenario_id)} ({number} of {len(run.results)})"
        live = console is not None and console.is_terminal
        with console.status(shown) if console is not None and live else nullcontext():
            known = found.get(result.scenario_id)
            calls.append(remeasure_call(folder.path, result, detector, changes, known, ears))
    if not any(one.measured for one in calls):
        raise InputError(f"no call of {folder.path} can be measured again: {calls[0].why}")
    written = _run(run, calls, folder, detector, changes)
    folder.write_json(place / "results.json", written.model_dump(mode="json"))
    return RemeasuredRun(run=written, calls=tuple(calls), folder=place)


def command(
    run_dir: Path,
    *,
    detector: str | None,
    response_deadline_ms: int | None,
    policy: Sequence[str],
    name: str | None,
    words: bool = False,
    ears_model: Path | None = None,
    as_json: bool,
    markdown: bool,
    console: Console,
) -> int:
    """Measure again and print before and after; return the exit code. Raises DuplexError."""
    if as_json and markdown:
        raise InputError("--json and --markdown exclude each other")
    done = remeasure(
        run_dir,
        detector=detector,
        response_deadline_ms=response_deadline_ms,
        policy=parsed(policy),
        name=name,
        words=words,
        ears_model=ears_model,
        console=console,
    )
    for one in done.calls:
        if not one.measured and one.held:
            told = f"duplex: {one.was.scenario_id}: not measured again: {one.why}"
            print(plain(told), file=sys.stderr)
    path = done.folder / "results.json"
    if as_json:
        document = {
            "run": done.run.run.id,
            "results": str(path),
            "sentence": remeasure_report.sentence(done.calls),
            "calls": remeasure_report.as_json(done.calls),
        }
        print(json.dumps(document, allow_nan=False))
    elif markdown:
        print(remeasure_report.as_markdown(done.calls), end="")
    else:
        out = paper()
        out.print(remeasure_report.as_text(done.calls))
    print(plain(f"results: {path}"), file=sys.stderr)
    return done.code


def parsed(items: Sequence[str]) -> dict[str, int]:
    """``NAME=VALUE`` pairs of the command line as numbers."""
    found: dict[str, int] = {}
    for item in items:
        name, _, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if not value.strip().isdecimal():
            raise InputError(f'policy "{item}" is not NAME=VALUE with a whole number')
        if name in found:
            raise InputError(f"policy {name} is given twice")
        found[name] = int(value)
    return found


def checked(policy: Mapping[str, int], response_deadline_ms: int | None) -> dict[str, int]:
    """What of the policy is to differ; raises InputError for what no policy has."""
    names = [field.name for field in fields(TimingPolicy)]
    changes = dict(policy)
    if response_deadline_ms is not None:
        if "response_deadline_ms" in changes:
            raise InputError("the response deadline is given twice")
        changes["response_deadline_ms"] = response_deadline_ms
    for name, value in changes.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f", did you mean {near[0]}" if near else f" ({', '.join(names)})"
            raise InputError(f"policy {name} does not exist{hint}")
        least = int(name in _AT_LEAST_ONE)
        if not least <= value <= _LONGEST_MS:
            raise InputError(f"policy {name} is {value}, wanted {least} to {_LONGEST_MS}")
    return changes


def _folder(path: Path) -> RunFolder:
    if is_file(path):
        path = path.parent
    if path.resolve().parent.name == REMEASURED:
        raise InputError(f"{path} was measured again already, name the run itself")
    return RunFolder.open(path)


def _run(
    run: schema.Run,
    calls: Sequence[Remeasured],
    folder: RunFolder,
    detector: str | None,
    changes: Mapping[str, int],
) -> schema.Run:
    """The run's results with the new figures; id and summary are the old ones."""
    changed: dict[str, Json] = {"policy": dict(changes)}
    if detector is not None:
        changed["detector"] = detector
    ours: dict[str, Json] = {
        **run.run.duplex,
        "remeasured_from": {
            "run": run.run.id,
            "results_sha256": hashlib.sha256(folder.results.read_bytes()).hexdigest(),
            "versions": dict(member(run.run.duplex, "versions")),
        },
        "remeasured": {
            "at": utc_now(),
            "timing_version": TIMING_VERSION,
            "changed": changed,
            "versions": dict(versions()),
            "calls": len(calls),
            "measured": sum(one.measured for one in calls),
        },
    }
    if isinstance(run.run.duplex.get("timing"), dict):
        blocks = [block for one in calls if (block := one.now.duplex.get("timing")) is not None]
        ours["timing"] = pool(blocks, seed=run.run.id)
    configuration = run.run.configuration
    if "response_deadline_ms" in changes:
        update = {"response_deadline_ms": changes["response_deadline_ms"]}
        configuration = configuration.model_copy(update=update)
    info = run.run.model_copy(update={"duplex": ours, "configuration": configuration})
    return run.model_copy(update={"run": info, "results": [one.now for one in calls]})

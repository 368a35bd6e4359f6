"""``duplex scenario from-run``: a recorded call, or one moment of it, as a scenario.

What the call was held with is kept (the scenario it came from, its seed, its
line), what its caller said becomes a script at the same pauses, and an incident
brings the check that it fails: the new scenario fails today and passes once the
incident is gone. A call whose scenario is not at hand is written from its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex.errors import InputError
from duplex.exports.said import SaidLine, said_in
from duplex.grading.own_checks import PREFIX
from duplex.questions import asked_about, asked_by
from duplex.results.stored import load_results, scenarios_of
from duplex.scenario import Expected, Input, Scenario, ScriptLine
from duplex.scenario.options import DuplexOptions
from duplex.scenario_files import put
from duplex.store import find_run
from duplex.values import Action
from duplex.verdict.block import judged
from duplex.verdict.case import Case
from duplex.verdict.criteria import read_check
from duplex.verdict.incidents import Incident, incidents

_LONGEST = 100
_OVER = {"INTERRUPT": Action.INTERRUPT, "BACKCHANNEL": Action.BACKCHANNEL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The call a scenario is made of, and the moment of it, if one was named."""

    folder: Path
    case: Case
    incident: Incident | None
    scenario: Scenario | None


def command(
    run: Path, *, runs: Path, call: str | None, incident: str | None, out: Path | None
) -> str:
    """Write the scenario (to stdout without ``out``); return what to do with it.

    Raises InputError when there is no such run, call or incident.
    """
    source = find(run, runs=runs, call=call, incident=incident)
    put((scenario_of(source),), out)
    if out is None:
        return ""
    named = _function(source.incident)
    own = f", --check-function MODULE:{named}" if named else ""
    return (
        f"{out}: hold it with duplex run --data {out} --caller scripted{own} "
        "and the options that chose your assistant"
    )


def find(run: Path, *, runs: Path, call: str | None, incident: str | None) -> Source:
    """Find the call that is meant: by an incident, by its id, or the only one there is."""
    folder = find_run(run, runs)
    results = load_results(folder / "results.json")
    cases, criteria, _ = judged(results)
    held = [case for case in cases.cases if case.outcome != "not_run"]
    moment = None
    if incident is not None:
        known = {one.id: one for one in incidents(cases, criteria)}
        if incident not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"run {folder.name} has no incident {incident}, it has: {listed}")
        moment = known[incident]
        call = moment.call_id
    if call is None and len(held) == 1:
        call = held[0].call_id
    found = next((case for case in held if case.call_id == call), None)
    if found is None:
        listed = ", ".join(case.call_id for case in held) or "none"
        asked = "want --call or --incident" if call is None else f"it has no call {call}"
        raise InputError(f"run {folder.name}: {asked}; calls: {listed}")
    own = scenarios_of(results).get(found.scenario)
    if own is not None:
        own = asked_about(own, asked_by(results))
    return Source(folder=folder, case=found, incident=moment, scenario=own)


def _function(incident: Incident | None) -> str | None:
    """Name of the user's own check that failed: it fails the call itself, wherever it is given."""
    own = f"check.{PREFIX}"
    if incident is None or not incident.check.startswith(own):
        return None
    return incident.check.removeprefix(own)


def _checks(known: Sequence[str], incident: Incident | None) -> tuple[str, ...]:
    """A scenario's checks with the one an incident fails, in the place of its like."""
    if incident is None or _function(incident):
        return tuple(known)
    pinned = read_check(f"{incident.check} @ 100%")
    others = [text for text in known if read_check(text).id != pinned.id]
    return (*others, f"{incident.check} @ 100%")


def scenario_of(source: Source) -> Scenario:
    """The scenario that brings the call, or its moment, back."""
    case = source.case
    lines = said_in(source.folder, case.call_id)
    script = script_of(lines)
    if not script:
        raise InputError(f"call {case.call_id}: nobody knows what its caller said")
    base = source.scenario or _from_words(case, script)
    checks = _checks(base.duplex.checks or (), source.incident)
    options = base.duplex.model_copy(
        update={
            "seed": case.seed,
            "conditions": () if case.condition == "clean" else (case.condition,),
            "first_speaker": "caller" if lines[0].role == "user" else "assistant",
            "script": script,
            "checks": checks or None,
        }
    )
    name = source.incident.id if source.incident is not None else "again"
    title = base.title
    if source.incident is not None:
        title = f"{title}: {source.incident.sentence}"
    return base.model_copy(update={"id": _id(case, name), "title": title[:200], "duplex": options})


def script_of(lines: Sequence[SaidLine]) -> tuple[ScriptLine, ...]:
    """What the caller said, each line at the pause it left after the assistant's."""
    found = []
    heard = 0.0
    begun: float | None = None
    for line in lines:
        start, end = line.start_ms or 0.0, line.end_ms or 0.0
        if line.role != "user":
            heard, begun = max(heard, end), start
            continue
        if not line.text.strip():
            continue
        over = _OVER.get(line.action or "")
        if over is not None and begun is not None and start < heard:
            found.append(
                ScriptLine(text=line.text.strip(), into_ms=round(start - begun), action=over)
            )
            continue
        found.append(ScriptLine(text=line.text.strip(), pause_ms=max(0, round(start - heard))))
    return tuple(found)


def _from_words(case: Case, script: Sequence[ScriptLine]) -> Scenario:
    """A scenario of a call whose own is not at hand: what was said, and no more expected."""
    return Scenario(
        id=_id(case, "again"),
        title=case.result.title,
        interaction="multi_turn",
        input=Input(text=script[0].text),
        expected=Expected(answer="The assistant answers what the caller asks."),
        duplex=DuplexOptions(),
    )


def _id(case: Case, name: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{case.call_id}_{name}").strip("_")
    return clean[:_LONGEST]

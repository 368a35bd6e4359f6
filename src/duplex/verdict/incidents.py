"""Everything that went wrong in a call, each with a place on its timeline and a stable id.

Read from the timing block and the checks as they stand. An id is made of what and
where it is (scenario, arm, sample, kind, time), so the same incident of the same
run always has the same one, and a scenario can be made of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from duplex.results import schema
from duplex.values import Json
from duplex.verdict.case import Case, RunCases
from duplex.verdict.criteria import TASK, Criterion

SLOW_MS = 2_750.0
"""A reply later than this is slow (EVA v0.2 calls it late)."""

Kind = Literal[
    "missed_turn",
    "slow_reply",
    "talk_over",
    "false_yield",
    "no_yield",
    "awkward_silence",
    "failed_check",
]
Severity = Literal["HIGH", "MEDIUM", "LOW"]
_SEVERITY: dict[Kind, Severity] = {
    "missed_turn": "HIGH",
    "slow_reply": "MEDIUM",
    "talk_over": "MEDIUM",
    "false_yield": "LOW",
    "no_yield": "MEDIUM",
    "awkward_silence": "MEDIUM",
    "failed_check": "HIGH",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing that went wrong. ``check`` is a check that fails on this call for it.

    ``start_ms`` and ``end_ms`` are None for what has no place in the audio.
    """

    id: str
    kind: Kind
    call_id: str
    scenario: str
    severity: Severity
    sentence: str
    check: str
    start_ms: float | None = None
    end_ms: float | None = None


def incidents(run: RunCases, criteria: Sequence[Criterion]) -> tuple[Incident, ...]:
    """All incidents of the calls that count, by call and time."""
    names = {one.id: one for one in criteria}
    found = [one for case in run.final if case.counted for one in of_case(case, names)]
    return tuple(found)


def of_case(case: Case, criteria: Mapping[str, Criterion]) -> list[Incident]:
    """The incidents of one call, in order of time; those without a time come last."""
    timing = case.result.duplex.get("timing")
    block = timing if isinstance(timing, dict) else {}
    found = [
        *_turns(case, block),
        *_sounds(case, block),
        *_silences(case, block),
        *_checks(case, criteria),
    ]
    return sorted(found, key=lambda one: (one.start_ms is None, one.start_ms or 0.0))


def _turns(case: Case, block: Mapping[str, Json]) -> Iterator[Incident]:
    for turn in _objects(block.get("turns")):
        start, end = _number(turn.get("start_ms")), _number(turn.get("end_ms"))
        latency = _number(turn.get("response_latency_ms"))
        if latency is not None and start is not None and latency > SLOW_MS:
            yield _made(
                case,
                "slow_reply",
                (start - latency, start),
                f"the assistant took {latency / 1000:.1f} s to answer",
                f"response_latency.max <= {SLOW_MS:.0f}ms",
            )
        if turn.get("side") == "caller":
            yield from _caller_turn(case, turn, start, end)


def _caller_turn(
    case: Case, turn: Mapping[str, Json], start: float | None, end: float | None
) -> Iterator[Incident]:
    outcome, span = turn.get("outcome"), (start, end)
    if outcome in ("unanswered", "late"):
        said = "was answered too late" if outcome == "late" else "was never answered"
        why = f" ({turn['why']})" if isinstance(turn.get("why"), str) else ""
        check = "unanswered_turns <= 0"
        yield _made(case, "missed_turn", span, f"what the caller said {said}{why}", check)
    cut_ins = turn.get("cut_ins")
    if isinstance(cut_ins, int) and cut_ins:
        times = "once" if cut_ins == 1 else f"{cut_ins} times"
        said = f"the assistant began to speak inside the caller's turn {times}"
        yield _made(case, "talk_over", span, said, "eot_misprediction <= 0")
    if turn.get("barge_in") is True and turn.get("yielded") is False:
        said = "the assistant did not stop when the caller cut in"
        yield _made(case, "no_yield", span, said, "yield_rate >= 100%")


def _sounds(case: Case, block: Mapping[str, Json]) -> Iterator[Incident]:
    for name in ("backchannels", "sounds"):
        for sound in _objects(block.get(name)):
            if sound.get("error") is not True:
                continue
            kind = str(sound.get("kind") or "backchannel")
            stopped = sound.get("assistant_speaking") is True
            did = "stopped at" if stopped else "answered"
            metric = "false_yield.count <= 0" if stopped else f"selectivity.{kind} >= 100%"
            span = (_number(sound.get("start_ms")), _number(sound.get("end_ms")))
            said = f"the assistant {did} a {kind.replace('_', ' ')} of the caller's"
            yield _made(case, "false_yield", span, said, metric)


def _silences(case: Case, block: Mapping[str, Json]) -> Iterator[Incident]:
    silence = block.get("awkward_silence")
    spans = silence.get("spans") if isinstance(silence, dict) else None
    for span in _objects(spans):
        start, end = _number(span.get("start_ms")), _number(span.get("end_ms"))
        if start is None or end is None:
            continue
        said = f"nobody spoke for {(end - start) / 1000:.1f} s while a reply was owed"
        yield _made(case, "awkward_silence", (start, end), said, "awkward_silence <= 0")


def _checks(case: Case, criteria: Mapping[str, Criterion]) -> Iterator[Incident]:
    for outcome in case.checks:
        criterion = criteria.get(outcome.id)
        if outcome.passed is not False or criterion is None:
            continue
        if outcome.id != TASK:
            said = f"{criterion.name} failed: {outcome.reason}"
            made = _made(case, "failed_check", (None, None), said, criterion.text)
            # Where a judge quotes may be another place each time, so no id is made of it.
            yield replace(made, start_ms=_quoted_at(case.result, outcome.id))
            continue
        for id, why in failed_checks(case.result):
            said = f"{id.replace('_', ' ')}: {why}" if why else f"{id.replace('_', ' ')} failed"
            yield _made(case, "failed_check", (None, None), said, f"check.{id}", detail=id)


def _quoted_at(result: schema.Result, check: str) -> float | None:
    """Where the first turn begins that shows the answer to a question; None without one."""
    told = result.duplex.get("checks")
    entry = told.get(check) if isinstance(told, dict) else None
    evidence = entry.get("evidence") if isinstance(entry, dict) else None
    turns = evidence.get("turns") if isinstance(evidence, dict) else None
    for turn in turns if isinstance(turns, list) else ():
        start = turn.get("start_ms") if isinstance(turn, dict) else None
        if isinstance(start, int | float):
            return float(start)
    return None


def failed_checks(result: schema.Result) -> list[tuple[str, str]]:
    """The required checks of a call's own grade that failed, each with its reason."""
    told = result.duplex.get("checks")
    reasons = told if isinstance(told, dict) else {}
    found = []
    for check in result.assessment.checks:
        if check.status == "failed" and check.required:
            entry = reasons.get(check.id)
            reason = entry.get("reason") if isinstance(entry, dict) else None
            found.append((check.id, reason if isinstance(reason, str) else ""))
    return found


def _made(
    case: Case,
    kind: Kind,
    span: tuple[float | None, float | None],
    sentence: str,
    check: str,
    *,
    detail: str = "",
) -> Incident:
    start, end = span
    place = "" if start is None else f"{start:.3f}"
    parts = (*map(str, case.test_case), case.condition, str(case.seed), kind, place)
    digest = hashlib.sha256("\0".join((*parts, detail or check)).encode()).hexdigest()
    return Incident(
        id=f"{kind.replace('_', '-')}-{digest[:8]}",
        kind=kind,
        call_id=case.call_id,
        scenario=case.scenario,
        severity=_SEVERITY[kind],
        sentence=sentence,
        check=check,
        start_ms=start,
        end_ms=end,
    )


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

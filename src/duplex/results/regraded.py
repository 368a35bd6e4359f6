"""One call's result graded again: new grades in the place of the old, what was measured as it was.

Pure. The grade follows from scenario and events as it did when the call was held, so
the same inputs give the same checks. A call whose grade cannot be made again keeps it.
``regrading.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duplex.grading import Check, Evidence
from duplex.grading.judging import Judgement
from duplex.results import schema
from duplex.results.build import CallFigures, build_result
from duplex.results.observed import Basis
from duplex.results.stored import member
from duplex.scenario import Scenario
from duplex.values import Json

_GRADED = (
    "/metrics/task",
    "/assessment",
    "/observability",
    "/validity",
    "/error",
    "/duplex/judge",
)
"""What a grade decides; every other null keeps its old reason."""
_OURS = ("checks", "procedure", "terms", "judge", "outcome", "whose_fault")
"""Entries of ``duplex`` that a grade writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regraded:
    """One call before and after; ``why`` says why it could not be graded again."""

    was: schema.Result
    now: schema.Result
    graded: bool
    why: str = ""

    @property
    def changed(self) -> tuple[str, ...]:
        """Checks whose status is another one, or that are new or gone."""
        was = {check.id: check.status for check in self.was.assessment.checks}
        now = {check.id: check.status for check in self.now.assessment.checks}
        return tuple(name for name in dict.fromkeys((*was, *now)) if was.get(name) != now.get(name))


def kept(result: schema.Result, why: str) -> Regraded:
    """A call that keeps its grade."""
    ours: dict[str, Json] = {**result.duplex, "graded_from": {"graded": False, "why": why}}
    return Regraded(was=result, now=_with(result, ours), graded=False, why=why)


def regraded(
    result: schema.Result,
    scenario: Scenario,
    evidence: Evidence,
    judgement: Judgement | None,
    own: Sequence[Check] = (),
) -> Regraded:
    """Grade one call again from what it left."""
    timing = member(result.duplex, "timing") or None
    built = build_result(
        scenario,
        evidence,
        CallFigures(
            response_deadline_ms=result.metrics.audio.response_deadline_ms,
            timing=timing,
            judgement=judgement,
            own=own,
        ),
        basis=_basis(result),
        conversation_audio=result.artifacts.conversation_audio,
        conversation_transcript=result.artifacts.conversation_transcript,
    )
    ours: dict[str, Json] = {
        **result.duplex,
        **{name: built.duplex[name] for name in _OURS if name in built.duplex},
        "unknown": _unknown(result, built),
        "graded_from": {"graded": True, "status": result.status},
    }
    now = built.model_copy(
        update={
            "title": result.title,
            "metrics": result.metrics.model_copy(update={"task": built.metrics.task}),
            # How far the caller came was seen once, and is no grade.
            "observability": built.observability.model_copy(
                update={"agenda": result.observability.agenda}
            ),
            "duplex": ours,
        }
    )
    return Regraded(was=result, now=now, graded=True)


def _basis(result: schema.Result) -> Basis:
    """Who held the call, as its result says."""
    seen = result.observability
    return Basis(
        audio_source=seen.interaction.audio_source,
        caller_mode=seen.interaction.caller_mode,
        attribution=seen.interaction.attribution,
        validity_scope=result.validity.scope,
        completion_policy=seen.completion.policy,
        caller_tells_agenda=seen.agenda.completed is not None,
    )


def _unknown(result: schema.Result, built: schema.Result) -> dict[str, Json]:
    """Reasons of what was carried over stay; those of the grade are new."""
    kept = {
        pointer: why
        for pointer, why in member(result.duplex, "unknown").items()
        if not pointer.startswith(_GRADED)
    }
    found = {
        pointer: why
        for pointer, why in member(built.duplex, "unknown").items()
        if pointer.startswith(_GRADED)
    }
    return {**kept, **found}


def _with(result: schema.Result, ours: dict[str, Json]) -> schema.Result:
    return result.model_copy(update={"duplex": ours})

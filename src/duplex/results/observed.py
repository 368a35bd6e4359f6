"""What was seen of a call, and whether its caller was sound: two blocks of a result.

Only observations: agenda progress is what was seen of it (``agenda.py``), counts are
of recorded lines and calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from duplex.grading import Evidence, Grade
from duplex.results import schema
from duplex.results.agenda import agenda_seen
from duplex.results.outcome import Failing, caller_trouble
from duplex.scenario import Scenario
from duplex.values import Action, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Who held a call, in the words of the contract; the defaults are a local run's."""

    audio_source: str = "dual_local"
    caller_mode: str = "local"
    attribution: str = "caller_intent"
    validity_scope: str = "local_caller"
    completion_policy: str = "verified_state_and_closing"
    caller_tells_agenda: bool = True
    no_tokens: str = "no backend response reported its tokens"


def observability(
    scenario: Scenario,
    evidence: Evidence,
    graded: Grade,
    basis: Basis,
    failing: Failing | None,
) -> schema.Observability:
    """Build the block from what was recorded."""
    return schema.Observability(
        agenda=_agenda(scenario, evidence, basis),
        interaction=_interaction(scenario, evidence, basis),
        tools=schema.Tools(
            executed=[
                schema.Executed(
                    name=call.name,
                    status=call.status,
                    arguments=dict(call.arguments),
                    call_id=call.call_id,
                )
                for call in evidence.tools
            ],
            expected_count=graded.counts.expected_tools,
            matched_count=graded.counts.pairing.matched,
            unexpected_completed_count=graded.counts.unexpected,
            failed_count=graded.counts.failed,
        ),
        completion=schema.Completion(
            termination_reason=evidence.termination_reason,
            policy=evidence.policy or basis.completion_policy,
            passed=graded.passed if failing is None else None,
            source=graded.source,
            rationale=graded.rationale if failing is None else failing.rationale,
            failed_checks=list(graded.failed_checks),
            failed_procedure_steps=list(graded.procedure.failed_steps),
        ),
    )


def _agenda(scenario: Scenario, evidence: Evidence, basis: Basis) -> schema.AgendaSeen:
    seen = agenda_seen(scenario, evidence, follows=basis.caller_tells_agenda)
    total = len(scenario.simulation.agenda)
    if seen is None:
        return schema.AgendaSeen(
            total=total, completed=None, skipped=None, bypassed=None, pending_required=None
        )
    ids = {
        status: [one.item.id for one in seen if one.status == status]
        for status in ("completed", "skipped", "bypassed")
    }
    pending = [one.item.id for one in seen if one.status == "pending" and one.item.required]
    return schema.AgendaSeen(total=total, pending_required=pending, **ids)


def _interaction(scenario: Scenario, evidence: Evidence, basis: Basis) -> schema.Interaction:
    caller = evidence.lines(Side.CALLER)
    actions = Counter(line.action for line in caller if line.action is not None)
    return schema.Interaction(
        mode=scenario.interaction,
        audio_source=basis.audio_source,
        caller_mode=basis.caller_mode,
        caller_actions={str(action): actions[action] for action in Action if actions[action]},
        attribution=basis.attribution,
        assistant_turns=len(evidence.lines(Side.ASSISTANT)),
        caller_turns=len(caller),
        delegations=len(evidence.delegations(Side.ASSISTANT)),
    )


def validity(evidence: Evidence, basis: Basis) -> schema.Validity:
    """Judge the caller's side only; eligibility also needs a call that counts.

    Reasons beyond the contract's three are ours: what broke at our end of the call.
    """
    local = basis.validity_scope == "local_caller"
    unexpected = [
        handoff.delegation_id
        for handoff in evidence.delegations(Side.CALLER)
        if local or handoff.target != "responses"
    ]
    reason: str | None = None
    if unexpected:
        reason = "unsupported_caller_delegation"
    elif Side.CALLER in evidence.failed_runs:
        reason = "caller_backend_failed"
    elif Side.CALLER in evidence.open_runs and evidence.termination_reason == "duration_limit":
        reason = "caller_backend_pending"
    else:
        reason = caller_trouble(evidence)
    return schema.Validity(
        scope=basis.validity_scope,
        status="valid" if reason is None else "invalid",
        target_metrics_eligible=reason is None,
        reason=reason,
        unexpected_delegation_count=len(unexpected),
        delegation_ids=unexpected,
    )

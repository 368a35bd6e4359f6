"""Results of made-up calls, as a runner would ask for them."""

from __future__ import annotations

from booking_call import Log, booking
from duplex.grading import Evidence
from duplex.metrics.contract import ContractMetrics, Label, LabelledTimeline, contract_metrics
from duplex.results import (
    Basis,
    CallFigures,
    Configuration,
    Result,
    Run,
    build_result,
    build_run,
)
from duplex.scenario import Scenario
from duplex.values import Side

CONFIGURATION = Configuration(
    model="local",
    backend_model=None,
    assistant_mode="client",
    assistant_endpoint="",
    voice="cedar",
    first_speaker="assistant",
    simulator_model="local",
    simulator_voice="coral",
    simulator_backend_model=None,
    simulator_backend_reasoning_effort=None,
    semantic_drain=False,
    completion_model=None,
    completion_timeout_seconds=None,
    concurrency=1,
    audio_condition="clean",
    audio_realism={},
    tick_ms=200,
    response_deadline_ms=5000,
    seed=7,
)


def audio(log: Log) -> ContractMetrics:
    """Contract figures of a call whose lines are voiced from end to end."""
    evidence = Evidence.from_events(log.events())
    labels = {
        side: [
            Label(
                start_ms=line.start_ms,
                end_ms=line.end_ms,
                action=line.action or "",
                voiced=((line.start_ms, line.end_ms),),
            )
            for line in evidence.lines(side)
        ]
        for side in Side
    }
    return contract_metrics(
        LabelledTimeline(
            caller_turns=labels[Side.CALLER],
            assistant_turns=labels[Side.ASSISTANT],
            observation_end_ms=evidence.duration_ms,
        )
    )


def result_of(
    log: Log,
    *,
    scenario: Scenario | None = None,
    figures: CallFigures | None = None,
    basis: Basis | None = None,
    sample: int = 1,
) -> Result:
    return build_result(
        scenario or booking(),
        Evidence.from_events(log.events()),
        figures or CallFigures(audio=audio(log)),
        basis=basis or Basis(),
        conversation_audio="audio/x/conversation.wav",
        conversation_transcript="audio/x/conversation.transcript.txt",
        sample=sample,
    )


def run_of(*results: Result) -> Run:
    return build_run(
        results,
        run_id="run_offline_20260801_000000_abcd",
        execution_mode="offline",
        dataset="scenarios",
        configuration=CONFIGURATION,
    )

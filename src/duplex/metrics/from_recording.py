"""From a recording to contract 2.0: voice from the WAVs, labels and work from the events.

Voice is the contract's rule 1, exactly as the core's ``rms`` detector decides
it: 20 ms windows of the session-rate source signal, integers only. Nothing
here knows a transport or reporting tick. Results and ``measure`` drive it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from duplex.metrics.contract import (
    METRICS_VERSION,
    ContractMetrics,
    Label,
    LabelledTimeline,
    Settings,
    contract_metrics,
)
from duplex.metrics.intervals import Runs, merge
from duplex.metrics.labels import widened, with_actions
from duplex.metrics.work import (
    CallEnded,
    CallStarted,
    Closed,
    Opened,
    RunEnded,
    RunStarted,
    WorkEvent,
)
from duplex.recording import Recording, extract
from duplex.values import Event, Json, Side, Utterance
from duplex.wavfile import Pcm

VOICED_RMS = 220
WINDOWS_PER_SECOND = 50
_WINDOWS_AT_ONCE = 4096


def voiced_runs(pcm: Pcm, rate_hz: int) -> Runs:
    """Voiced runs of an int16 signal of shape (n,), in samples.

    A window of 20 ms is voiced when its RMS is at least 220, that is when its
    sum of squares is at least ``220² · length``; a last short window is judged
    by its own length. Voiced windows that touch are one run.
    """
    window = rate_hz // WINDOWS_PER_SECOND
    assert window > 0, rate_hz
    spans = []
    for first in range(0, len(pcm), window * _WINDOWS_AT_ONCE):
        part = pcm[first : first + window * _WINDOWS_AT_ONCE].astype(np.int64)
        starts = np.arange(0, len(part), window)
        lengths = np.minimum(len(part) - starts, window)
        energy = np.add.reduceat(part * part, starts)
        voiced = energy >= VOICED_RMS * VOICED_RMS * lengths
        for at, length in zip(starts[voiced].tolist(), lengths[voiced].tolist(), strict=True):
            spans.append((first + at, first + at + length))
    return merge(spans)


def timeline_of(recording: Recording, settings: Settings | None = None) -> LabelledTimeline:
    """The contract's view of a call."""
    rate_hz = recording.rate_hz
    caller = voiced_runs(recording.source(Side.CALLER), rate_hz)
    assistant = voiced_runs(recording.source(Side.ASSISTANT), rate_hz)
    asked = widened(recording.spoken_by(Side.CALLER), caller, rate_hz)
    return LabelledTimeline(
        caller_turns=_labels(
            recording,
            with_actions(
                asked,
                caller,
                assistant,
                closed_by_words=extract.closed_by_words(recording.events),
            ),
        ),
        assistant_turns=_labels(
            recording, widened(recording.spoken_by(Side.ASSISTANT), assistant, rate_hz)
        ),
        caller_other_voiced=_in_ms(recording, caller),
        assistant_other_voiced=_in_ms(recording, assistant),
        work_events=work_events(recording),
        observation_end_ms=recording.duration_ms,
        settings=settings or Settings(),
    )


def contract_of(recording: Recording, settings: Settings | None = None) -> ContractMetrics:
    """Contract 2.0 of a recorded call."""
    return contract_metrics(timeline_of(recording, settings))


def audio_block(metrics: ContractMetrics, settings: Settings | None = None) -> dict[str, Json]:
    """``metrics.audio`` of results.json (schema 2.0), with its names and order."""
    deadline = (settings or Settings()).response_deadline_ms
    return {
        "response_rate": metrics.response_rate,
        "response_latency_ms": metrics.response_latency_ms,
        "interruption_rate": metrics.interruption_rate,
        "speaking_duration_ms": {
            "cumulative": metrics.speaking_duration_ms.cumulative,
            "maximum": metrics.speaking_duration_ms.maximum,
        },
        "floor_hold_silence_ms": {
            "cumulative": metrics.floor_hold_silence_ms.cumulative,
            "maximum": metrics.floor_hold_silence_ms.maximum,
        },
        "metrics_version": METRICS_VERSION,
        "response_deadline_ms": deadline,
        "response_opportunities": dict(dataclasses.asdict(metrics.response_opportunities)),
        "response_exclusion_reasons": dict(metrics.response_exclusion_reasons),
    }


def work_events(recording: Recording) -> tuple[WorkEvent, ...]:
    """The delegated work of a call in the contract's form."""
    return tuple(_work(recording))


def _in_ms(recording: Recording, runs: Runs) -> Runs:
    return merge((recording.ms(start), recording.ms(end)) for start, end in runs)


def _labels(recording: Recording, utterances: Sequence[Utterance]) -> tuple[Label, ...]:
    return tuple(
        Label(
            start_ms=recording.ms(item.span.start),
            end_ms=recording.ms(item.span.end),
            action=item.action.value if item.action is not None else "",
        )
        for item in utterances
    )


def _work(recording: Recording) -> Iterator[WorkEvent]:
    has_runs = any(event.type == "run.started" for event in recording.events)
    # Where no runs are seen none can follow up, so a call must not owe one.
    nobody = "" if has_runs else "(nobody)"
    owner_of = {call.call_id: call.delegation_id or nobody for call in recording.tool_calls}
    for event in recording.events:
        if event.side is Side.CALLER:
            # A caller's own backend is no work done for the caller.
            continue
        t_ms = recording.ms(event.at)
        match event.type:
            case "delegation.created":
                # Without run events a managed delegation is known by its own two ends.
                managed = _text(event, "target") == "responses" and has_runs
                yield Opened(
                    t_ms=t_ms,
                    kind="managed" if managed else "client",
                    id=_text(event, "delegation_id"),
                )
            case "delegation.closed":
                yield Closed(t_ms=t_ms, id=_text(event, "delegation_id"))
            case "run.started":
                yield RunStarted(
                    t_ms=t_ms,
                    run=_text(event, "run_id"),
                    id=_text(event, "delegation_id"),
                    prev=_text(event, "previous_run_id"),
                )
            case "run.ended":
                yield _run_ended(t_ms, event)
            case "tool.started":
                call = _text(event, "call_id")
                yield CallStarted(t_ms=t_ms, call=call, id=owner_of.get(call, nobody))
            case "tool.ended":
                call = _text(event, "call_id")
                yield CallEnded(t_ms=t_ms, call=call, id=owner_of.get(call, nobody))


def _run_ended(t_ms: int, event: Event) -> RunEnded:
    run = _text(event, "run_id")
    match _text(event, "outcome"):
        case "ok" | "completed":
            return RunEnded(t_ms=t_ms, run=run, outcome="ok")
        case "incomplete":
            return RunEnded(t_ms=t_ms, run=run, outcome="incomplete")
        case _:
            return RunEnded(t_ms=t_ms, run=run, outcome="failed")


def _text(event: Event, name: str) -> str:
    value = event.fields.get(name)
    return value if isinstance(value, str) else ""

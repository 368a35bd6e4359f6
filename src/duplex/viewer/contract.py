"""Rows of contract 2.0, of the task and of what a call was held with.

Names are the results file's; what they mean is said here in one sentence each.
The figures stand in the file; none is made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import Reasons, clean, compact, members, number, text
from duplex.viewer.rows import Row, label, not_known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    pointer: str
    name: str
    unit: str
    meaning: str = ""


def _field(pointer: str, name: str, unit: str, meaning: str = "") -> _Field:
    return _Field(pointer=pointer, name=name, unit=unit, meaning=meaning)


_SOURCE = "contract 2.0"
_AUDIO = (
    _field("response_rate", "response rate", "share",
           "Caller turns answered by the deadline, out of those answered or missed."),
    _field("response_latency_ms", "response latency", "ms",
           "Mean over answered turns, from the end of the caller's voice to the next assistant "
           "voice, in 20 ms steps."),
    _field("interruption_rate", "interruption rate", "",
           "Times the assistant began inside a caller turn, divided by response opportunities; "
           "it can exceed 1."),
    _field("speaking_duration_ms/cumulative", "assistant speech", "ms",
           "Length of everything the assistant said."),
    _field("speaking_duration_ms/maximum", "longest speech", "ms",
           "Most voice inside one assistant line."),
    _field("floor_hold_silence_ms/cumulative", "silence while working", "ms",
           "Time in which delegated work was open and neither side spoke."),
    _field("floor_hold_silence_ms/maximum", "longest silence while working", "ms",
           "The longest stretch of it."),
    _field("response_opportunities/response_total", "response opportunities", "",
           "Turns answered plus turns missed."),
    _field("response_opportunities/response_late_count", "late replies", "",
           "Missed turns that were answered after the deadline."),
    _field("response_opportunities/response_excluded_count", "excluded turns", "",
           "Backchannels, closings, and turns that ended while the assistant spoke."),
)  # fmt: skip
_TASK = (
    _field("task/task_completed", "task completed", "", "Every required check passed."),
    _field("task/semantic_quality/score", "semantic quality", "",
           "Mean of the judged dimensions, 0 to 1."),
    _field("task/tool_accuracy", "tool accuracy", "share",
           "Expected tool calls made, out of the larger of expected and made; 0 after a "
           "prohibited call."),
    _field("task/tool_calls/actual", "tool calls", "", "Tools the application ran."),
    _field("task/tool_calls/expected", "tool calls expected", ""),
    _field("task/delegations/actual", "delegations", "", "Times the assistant handed work over."),
    _field("task/delegations/expected", "delegations expected", ""),
    _field("task/turns/actual", "turns", ""),
    _field("task/turns/expected", "turns expected", ""),
    _field("consumption/frontend/audio_duration_ms", "session audio used", "ms",
           "As the assistant's session counted it last."),
    _field("consumption/backend/total_tokens", "backend tokens", "",
           "Each backend response counted once."),
)  # fmt: skip


def audio_rows(audio: Mapping[str, Json], reasons: Reasons) -> list[Row]:
    """``metrics.audio``; pointers of ``reasons`` are relative to the result."""
    rows = [_row(field, audio, reasons, "/metrics/audio/") for field in _AUDIO]
    excluded = members(audio.get("response_exclusion_reasons"))
    told = [f"{label(name)}: {say.whole(count)}" for name, count in excluded.items()]
    if told:
        rows.append(Row(name="excluded because", value="; ".join(told), source=_SOURCE))
    return rows


def task_rows(metrics: Mapping[str, Json], reasons: Reasons) -> list[Row]:
    return [_row(field, metrics, reasons, "/metrics/") for field in _TASK]


def basis_rows(
    run: Mapping[str, Json], result: Mapping[str, Json], timing: Mapping[str, Json]
) -> list[Row]:
    """Whose clock, live or simulated, which detector, who told what."""
    ours, set_up = members(run.get("duplex")), members(run.get("configuration"))
    interaction = members(members(result.get("observability")).get("interaction"))
    clock = {"wall": "wall clock, live", "virtual": "virtual clock, simulated"}
    mode = text(ours.get("clock")) or ""
    found: dict[str, Json] = {
        "clock": clock.get(mode) or text(run.get("execution_mode")),
        "timing detector": _detector(timing),
        "live detector": ours.get("detector"),
        "timing version": timing.get("timing_version"),
        "contract version": set_up.get("metrics_version"),
        "assistant": set_up.get("model"),
        "caller": interaction.get("caller_mode"),
        "audio": interaction.get("audio_source"),
        "turn labels": interaction.get("attribution"),
        "audio condition": set_up.get("audio_condition"),
        "response deadline (ms)": set_up.get("response_deadline_ms"),
        "transport tick (ms)": ours.get("transport_ms"),
        "seed": set_up.get("seed"),
        "sample": members(result.get("duplex")).get("sample"),
    }
    rows = []
    for name, value in found.items():
        told = compact(value) if number(value) is not None else text(value)
        rows.append(Row(name=name, value=told) if told else not_known(name, "the run does not say"))
    return rows


def _detector(timing: Mapping[str, Json]) -> str | None:
    name = text(timing.get("detector"))
    return None if name is None else f"{name} detector"


def _row(field: _Field, document: Mapping[str, Json], reasons: Reasons, above: str) -> Row:
    value: Json = dict(document)
    for part in field.pointer.split("/"):
        value = members(value).get(part)
    if isinstance(value, bool):
        told: str | None = "yes" if value else "no"
    else:
        found = number(value)
        told = None if found is None else say.in_unit(found, field.unit)
    if told is None:
        return not_known(field.name, reasons.why(above + field.pointer), field.meaning, _SOURCE)
    return Row(
        name=field.name,
        value=clean(told),
        exact=compact(value),
        meaning=field.meaning,
        source=_SOURCE,
    )

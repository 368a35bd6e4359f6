"""Rows of contract 2.0, of the task and of what a call was held with.

Figures stand in the results file and meanings in the definitions of metrics;
neither is made here.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.metrics.contract_definitions import (
    AUDIO_DEFINITIONS,
    CONTRACT_DEFINITIONS,
    TASK_DEFINITIONS,
)
from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import Reasons, clean, compact, members, number, text
from duplex.viewer.rows import Row, label, not_known

_NAMES = {
    "audio/response_rate": "response rate",
    "audio/response_latency_ms": "response latency",
    "audio/interruption_rate": "interruption rate",
    "audio/speaking_duration_ms/cumulative": "assistant speech",
    "audio/speaking_duration_ms/maximum": "longest speech",
    "audio/floor_hold_silence_ms/cumulative": "silence while working",
    "audio/floor_hold_silence_ms/maximum": "longest silence while working",
    "audio/response_opportunities/response_total": "response opportunities",
    "audio/response_opportunities/response_late_count": "late replies",
    "audio/response_opportunities/response_excluded_count": "excluded turns",
    "task/task_completed": "task completed",
    "task/semantic_quality/score": "semantic quality",
    "task/tool_accuracy": "tool accuracy",
    "task/tool_calls/actual": "tool calls",
    "task/tool_calls/expected": "tool calls expected",
    "task/delegations/actual": "delegations",
    "task/delegations/expected": "delegations expected",
    "task/turns/actual": "turns",
    "task/turns/expected": "turns expected",
    "consumption/frontend/audio_duration_ms": "session audio used",
    "consumption/backend/total_tokens": "backend tokens",
}
"""What rows are called; what the names mean is for the definitions to say."""


def audio_rows(metrics: Mapping[str, Json], reasons: Reasons) -> list[Row]:
    """``metrics.audio``; pointers of ``reasons`` are relative to the result."""
    rows = [_row(pointer, metrics, reasons) for pointer in AUDIO_DEFINITIONS]
    audio = members(metrics.get("audio"))
    excluded = members(audio.get("response_exclusion_reasons"))
    told = [f"{label(name)}: {say.whole(count)}" for name, count in excluded.items()]
    if told:
        rows.append(Row(name="excluded because", value="; ".join(told), source="contract 2.0"))
    return rows


def task_rows(metrics: Mapping[str, Json], reasons: Reasons) -> list[Row]:
    return [_row(pointer, metrics, reasons) for pointer in TASK_DEFINITIONS]


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


def _row(pointer: str, metrics: Mapping[str, Json], reasons: Reasons) -> Row:
    definition, name = CONTRACT_DEFINITIONS[pointer], _NAMES[pointer]
    value: Json = dict(metrics)
    for part in pointer.split("/"):
        value = members(value).get(part)
    if isinstance(value, bool):
        told: str | None = "yes" if value else "no"
    else:
        found = number(value)
        told = None if found is None else say.in_unit(found, definition.unit)
    if told is None:
        why = reasons.why(f"/metrics/{pointer}")
        return not_known(name, why, definition.sentence, definition.source)
    return Row(
        name=name,
        value=clean(told),
        exact=compact(value),
        meaning=definition.sentence,
        source=definition.source,
    )

"""What each name of contract 2.0 and of the task means, in which unit, and whence.

Keys are JSON pointers below ``metrics`` of a result. Faces take their words from
here. The digest covers the table and the settings; a test pins it per version,
so neither a meaning nor a setting changes without a bump.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json

from duplex.metrics.contract import METRICS_VERSION, Settings
from duplex.metrics.definitions import Definition


def _define(unit: str, sentence: str) -> Definition:
    return Definition(unit=unit, sentence=sentence, source="contract 2.0")


AUDIO_DEFINITIONS: dict[str, Definition] = {
    "audio/response_rate": _define(
        "share", "Caller turns answered by the deadline, out of those answered or missed."
    ),
    "audio/response_latency_ms": _define(
        "ms",
        "Mean over answered turns, from the end of the caller's voice to the next assistant "
        "voice, in 20 ms steps.",
    ),
    "audio/interruption_rate": _define(
        "",
        "Times the assistant began inside a caller turn, divided by response opportunities; it "
        "can exceed 1.",
    ),
    "audio/speaking_duration_ms/cumulative": _define(
        "ms", "Length of everything the assistant said."
    ),
    "audio/speaking_duration_ms/maximum": _define("ms", "Most voice inside one assistant line."),
    "audio/floor_hold_silence_ms/cumulative": _define(
        "ms", "Time in which delegated work was open and neither side spoke."
    ),
    "audio/floor_hold_silence_ms/maximum": _define(
        "ms", "The longest stretch in which delegated work was open and neither side spoke."
    ),
    "audio/response_opportunities/response_total": _define("", "Turns answered plus turns missed."),
    "audio/response_opportunities/response_late_count": _define(
        "", "Missed turns that were answered after the deadline."
    ),
    "audio/response_opportunities/response_excluded_count": _define(
        "", "Backchannels, closings, and turns that ended while the assistant spoke."
    ),
}
TASK_DEFINITIONS: dict[str, Definition] = {
    "task/task_completed": _define("", "Every required check passed."),
    "task/semantic_quality/score": _define("", "Mean of the judged dimensions, 0 to 1."),
    "task/tool_accuracy": _define(
        "share",
        "Expected tool calls made, out of the larger of expected and made; 0 after a prohibited "
        "call.",
    ),
    "task/tool_calls/actual": _define("", "Tools the application ran."),
    "task/tool_calls/expected": _define("", "Tool calls that the scenario requires."),
    "task/delegations/actual": _define("", "Times the assistant handed work over."),
    "task/delegations/expected": _define(
        "", "Times the scenario wants work handed over: its golden path's, else one if required."
    ),
    "task/turns/actual": _define(
        "",
        "Caller turns that ask for something, turns that were followed by the assistant before "
        "the caller's next, and closings, added up.",
    ),
    "task/turns/expected": _define("", "The same on the scenario's golden path."),
    "consumption/frontend/audio_duration_ms": _define(
        "ms", "As the assistant's session counted it last."
    ),
    "consumption/backend/total_tokens": _define("", "Each backend response counted once."),
}
CONTRACT_DEFINITIONS = AUDIO_DEFINITIONS | TASK_DEFINITIONS


def contract_digest(settings: Settings | None = None) -> str:
    """SHA-256 of version, definitions and settings."""
    content = {
        "version": METRICS_VERSION,
        "definitions": {
            name: [entry.unit, entry.sentence, entry.source]
            for name, entry in CONTRACT_DEFINITIONS.items()
        },
        "settings": dataclasses.asdict(settings or Settings()),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

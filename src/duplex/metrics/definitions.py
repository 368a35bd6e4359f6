"""One table: what each name of the timing block means, in which unit, and whence.

Docs, the viewer and the tables people read take their words from here, so a
number and its meaning cannot part. The digest covers the table and the policy;
a test pins it per version, so neither changes without a bump.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What one name means. ``source`` says whose definition it is."""

    unit: str
    sentence: str
    source: str


def _define(unit: str, sentence: str, source: str = "duplex") -> Definition:
    return Definition(unit=unit, sentence=sentence, source=source)


DEFINITIONS: dict[str, Definition] = {
    "floor": _define(
        "ms", "Time in which only the caller, only the assistant, both or nobody speaks."
    ),
    "floor_share": _define("share", "The four parts of the floor divided by the call's length."),
    "response_latency": _define(
        "ms",
        "Start of an assistant turn minus the end of the caller's last voice before it, as heard; "
        "negative when the assistant starts at most 1 s before the end of the turn it answers and "
        "keeps the floor.",
        "floor-transfer offset (LiveKit), frontier rule (voxprobe)",
    ),
    "response_rate": _define(
        "rate", "Caller turns answered by the deadline divided by those answered, late or not."
    ),
    "first_byte_latency": _define(
        "ms",
        "Arrival of the reply's first byte minus the moment the caller's last sample was delivered "
        "to the assistant.",
    ),
    "first_audio_latency": _define(
        "ms",
        "Arrival of the reply's first non-silent sample minus the moment the caller's last sample "
        "was delivered to the assistant.",
        "time to first audio (voicebench)",
    ),
    "relay": _define(
        "ms",
        "Part of the heard latency that is ours (playout hold, tick wait, transport, line); "
        "the rest is the assistant's own.",
    ),
    "greeting_latency": _define(
        "ms", "Start of the call to the first assistant speech when the assistant speaks first."
    ),
    "time_to_yield": _define(
        "ms",
        "Start of a caller barge-in to the end of the assistant speech that began before it; "
        "speech that resumes within 600 ms while the caller speaks never stopped.",
        "callback-voice",
    ),
    "yield_rate": _define(
        "rate", "Barge-ins after which the assistant stopped within 2 s, out of all barge-ins."
    ),
    "false_yield": _define(
        "count, rate",
        "The assistant stops within 1 s of the start of a backchannel, tic or side speech and "
        "stays quiet for 600 ms, or within 1 s of its own echo, to go on by itself later though "
        "the caller made no sound and no tool is known to have been at work.",
        "callback-voice",
    ),
    "selectivity": _define(
        "rate",
        "One minus the error rate per kind of sound; an error is to stop within 1 s while "
        "speaking or, for tics and side speech, to answer within 2 s while silent; right "
        "non-reactions count as opportunities.",
        "tau2-bench, with its undercounting mended",
    ),
    "eot_misprediction": _define(
        "count",
        "Assistant starts inside a caller turn after which the caller kept the floor for 300 ms "
        "or more.",
        "LiveKit",
    ),
    "agent_interruption": _define("rate", "End-of-turn mispredictions divided by caller turns."),
    "overlap_ratio": _define(
        "ratio", "Time in which both speak divided by the time in which anybody does.", "LiveKit"
    ),
    "overlap_ratio_sum": _define(
        "ratio", "Time in which both speak divided by the sum of both sides' speech.", "LiveKit"
    ),
    "awkward_silence": _define(
        "count, ms", "Mutual silences of 3 s or more while a reply is owed.", "voxprobe"
    ),
    "unanswered_turns": _define(
        "count",
        "Caller turns without a reply by the deadline, late ones included; a call that ends "
        "before the deadline censors its last turn.",
        "contract 2.0",
    ),
    "talk_ratio": _define("ratio", "Assistant speech divided by caller speech.", "Cekura"),
    "talk_share": _define(
        "share", "Speech of each side divided by the call's length.", "Amazon Connect"
    ),
    "turn_taking_score": _define(
        "0-1",
        "Mean over caller turns of piecewise scores for latency, cut-ins and yields; 0 for a turn "
        "without a reply and for a call whose last request was never answered.",
        "ServiceNow EVA v0.2",
    ),
    "tick_panel": _define(
        "s, rate", "The eight interaction quantities at 200 ms ticks.", "tau2-bench 1.1"
    ),
    "clock": _define(
        "ppm, count, ms, samples",
        "The instrument's own account: drift, late ticks, underruns inside speech, idle padding, "
        "discarded audio, how much of an interrupted reply was heard.",
    ),
    "ledger": _define(
        "count",
        "Caller turns by what became of them, one that went unanswered because the provider failed "
        "being excluded; answered, late, unanswered, censored and excluded sum to attempted.",
    ),
    "turns": _define(
        "",
        "Segments of one side joined across pauses in which the other side did not take the floor.",
    ),
    "backchannels": _define(
        "",
        "Speech of at most 1 s and two words inside the other side's turn, or what the caller "
        "labelled so.",
        "Full-Duplex-Bench",
    ),
    "sounds": _define("", "Tics and side speech of the caller, and how the assistant took them."),
    "segments": _define("", "Voice from its first to its last audible sample, per side."),
}


def digest(policy: TimingPolicy | None = None) -> str:
    """SHA-256 of version, definitions and policy."""
    content = {
        "version": TIMING_VERSION,
        "definitions": {
            name: [entry.unit, entry.sentence, entry.source] for name, entry in DEFINITIONS.items()
        },
        "policy": (policy or TimingPolicy()).as_json(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

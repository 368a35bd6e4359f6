"""LiveKit's groups of metrics, of a job and of a run: counts, pools and means over turns.

A ratio is always its pooled numerator over its pooled denominator, a percentile is of
type 7 over the assistant's turns, and a group is of one call or of all that count by the
same rule. What was not measured is not there; scores are missing for a call that does
not count. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.exports.livekit_ids import inside, number, objects, some, unsigned
from duplex.metrics.stats import percentile
from duplex.values import Json
from duplex.verdict.case import Case

_EARS = {"stt": "assistant", "tts": "caller"}
"""Who heard the words of a group."""
_WORDS = (
    ("words", "wer", "denominator"),
    ("wordErrors", "wer", "numerator"),
    ("chars", "cer", "denominator"),
    ("charErrors", "cer", "numerator"),
    ("entitiesUttered", "entity_recognition", "denominator"),
    ("entitiesRecognized", "entity_recognition", "numerator"),
    ("entitiesAcquiredUttered", "entity_recall", "denominator"),
    ("entitiesAcquiredRecognized", "entity_recall", "numerator"),
)
_RATIOS = {
    "wer": ("wordErrors", "words"),
    "cer": ("charErrors", "chars"),
    "entityRecognition": ("entitiesRecognized", "entitiesUttered"),
    "entityRecall": ("entitiesAcquiredRecognized", "entitiesAcquiredUttered"),
    "overlapRatio": ("overlapSpeechMs", "totalSpeechMs"),
}
_MEANS = {
    "stt": {"sttDelayMs": "sttDelayMs"},
    "llm": {"ttftMs": "llmTtftMs", "ttfsMs": "llmTtfsMs"},
    "tts": {"ttfbMs": "ttsTtfbMs"},
    "conversation": {"timeToYieldMs": "timeToYieldMs", "e2eLatencyMs": "e2eLatencyMs"},
}
"""Of each group: the mean, and the member of the turns it is of."""
_FLAGS = {
    "unnecessaryToolCalls": "unnecessary_tool_calls",
    "informationLoss": "information_loss",
    "redundantStatements": "redundant_statements",
    "poorQuestionQuality": "poor_question_quality",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the groups of one call are made of: its rows, and counts by group."""

    turns: Sequence[Mapping[str, Json]]
    counts: Mapping[str, Mapping[str, int]]
    score: float | None


def measured(case: Case, turns: Sequence[Mapping[str, Json]], *, scored: bool) -> Measured:
    """Take from a call's result what groups pool."""
    told = inside(case.result.duplex, "timing", "turn_taking_score")
    return Measured(
        turns=turns,
        counts={
            "stt": _heard(case, "stt"),
            "tts": _heard(case, "tts"),
            "conversation": _conversation(case),
        },
        score=number(told) if scored else None,
    )


def groups(calls: Sequence[Measured]) -> dict[str, Json]:
    """``stt``, ``llm``, ``tts`` and ``conversation`` over these calls, where anything is known."""
    found: dict[str, Json] = {}
    for name, means in _MEANS.items():
        counts = _summed([call.counts.get(name, {}) for call in calls])
        group: dict[str, Json] = dict(counts)
        for ratio, (part, whole) in _RATIOS.items():
            if part in counts and counts.get(whole):
                group[ratio] = round(counts[part] / counts[whole], 6)
        for mean, member in means.items():
            group |= some(**{mean: unsigned(_mean(_values(calls, member)))})
        if name == "conversation":
            group |= _spread(calls)
            score = _mean([call.score for call in calls if call.score is not None])
            group |= some(turnTakingScore=None if score is None else round(score, 6))
        found |= some(**{name: group})
    return found


def judged(case: Case) -> dict[str, Json]:
    """What a judge made of a call that counts; nothing where none could be used."""
    block = case.result.duplex.get("judge")
    if not isinstance(block, dict) or not block.get("usable_votes"):
        return {}
    flags: dict[str, Json] = {
        name: inside(block, "flags", ours, "present") for name, ours in _FLAGS.items()
    }
    return some(
        judgeModel=block.get("model"),
        overallScore=number(block.get("overall_score")),
        conciseness=number(block.get("conciseness")),
        conversationProgression=number(block.get("conversation_progression")),
        **{name: said for name, said in flags.items() if isinstance(said, bool)},
    )


def over_jobs(jobs: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Means over the jobs' metrics that have a judged score."""
    found: dict[str, Json] = {}
    for name in ("overallScore", "conciseness", "conversationProgression"):
        mean = _mean([value for job in jobs if (value := number(job.get(name))) is not None])
        found |= some(**{name: None if mean is None else round(mean, 6)})
    return found


def _heard(case: Case, group: str) -> dict[str, int]:
    """Words and key values as the other side heard them."""
    counts: dict[str, int] = {}
    for name, block, part in _WORDS:
        value = inside(case.result.duplex, "words", "heard_by", _EARS[group], block, part)
        if isinstance(value, int) and not isinstance(value, bool):
            counts[name] = value
    return counts


def _conversation(case: Case) -> dict[str, int]:
    timing = inside(case.result.duplex, "timing")
    if not isinstance(timing, dict):
        return {}
    floor = {part: number(inside(timing, "floor", f"{part}_ms")) for part in _FLOOR}
    voices = [ms for ms in floor.values() if ms is not None]
    sounds = objects(timing.get("backchannels"))
    told = {
        "eotMispredictionCount": number(timing.get("eot_misprediction")),
        "overlapSpeechMs": floor["overlap"],
        "totalSpeechMs": math.fsum(voices) if len(voices) == len(floor) else None,
        "awkwardSilenceCount": number(inside(timing, "awkward_silence", "count")),
        "unansweredTurns": number(inside(timing, "unanswered_turns", "count")),
        "falseInterruptionCount": number(inside(timing, "false_yield", "count")),
        "backchannelCount": float(sum(one.get("side") == "caller" for one in sounds))
        if "backchannels" in timing
        else None,
    }
    return {name: round(value) for name, value in told.items() if value is not None}


_FLOOR = ("caller", "assistant", "overlap")


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def _spread(calls: Sequence[Measured]) -> dict[str, Json]:
    """Heard latency over all assistant turns of the calls."""
    ordered = sorted(_values(calls, "heardE2eLatencyMs"))
    if not ordered:
        return {}
    return {f"heardE2eLatencyP{q}Ms": round(percentile(ordered, q)) for q in (50, 95, 99)}


def _values(calls: Sequence[Measured], member: str) -> list[float]:
    every = [number(turn.get(member)) for call in calls for turn in call.turns]
    return [value for value in every if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

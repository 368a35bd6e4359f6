"""Contract 2.0: the audio metrics of one call from its labelled timeline.

A pure function of integers: label bounds, voiced runs, work events and the
settings, all in milliseconds, all ranges half-open. It reads no file, knows no
reporting tick and must stay field for field what the contract says, also where
duplex measures the same thing better elsewhere. ``timeline.py`` feeds it from
files, ``from_recording.py`` from calls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from duplex.metrics.intervals import (
    Run,
    Runs,
    clip,
    intersect,
    longest,
    merge,
    run_over,
    run_reaching,
    starts_from,
    subtract,
    total,
)
from duplex.metrics.work import WorkEvent, active_work, bounds_observation

METRICS_VERSION = "2.0"

Outcome = str
"""``answered``, ``missed``, ``censored`` or ``excluded``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What somebody says is one utterance; ``action`` is "" when unknown."""

    start_ms: int
    end_ms: int
    action: str = ""
    voiced: Runs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The policy figures of the contract, in milliseconds."""

    response_deadline_ms: int = 5000
    yield_window_ms: int = 2000
    backchannel_window_ms: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTimeline:
    """All that the contract looks at; order inside the sequences is free."""

    caller_turns: Sequence[Label]
    assistant_turns: Sequence[Label]
    observation_end_ms: int
    caller_other_voiced: Sequence[Run] = ()
    assistant_other_voiced: Sequence[Run] = ()
    work_events: Sequence[WorkEvent] = ()
    settings: Settings = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """What became of one caller turn; None where it does not apply."""

    start_ms: int
    end_ms: int
    window_end_ms: int
    action: str
    outcome: Outcome
    why: str | None
    deadline_at_ms: int | None
    observed_latency_ms: int | None
    caller_voiced_ms: int
    assistant_voiced_in_window_ms: int
    overlap_ms: int
    caller_interrupts: bool
    yielded: bool | None
    yield_latency_ms: int | None
    assistant_cut_in_starts_ms: tuple[int, ...]
    backchannel_ok: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opportunities:
    """How the caller turns divide."""

    caller_turn_count: int
    response_eligible_count: int
    response_censored_count: int
    response_excluded_count: int
    response_late_count: int
    response_total: int
    response_count: int
    no_response_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A sum and its largest part, in milliseconds."""

    cumulative: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractMetrics:
    """Every figure of the contract; rates are None when nothing counts."""

    effective_end_ms: int
    delegation_active_ms: Runs
    response_rate: float | None
    response_latency_ms: float | None
    response_latency_mean_s: float | None
    interruption_rate: float | None
    yield_rate: float | None
    yield_latency_mean_s: float | None
    selectivity_backchannel: float | None
    speaking_duration_ms: Extent
    floor_hold_silence_ms: Extent
    floor_hold_intervals_ms: Runs
    response_latencies_ms: tuple[int, ...]
    late_response_latencies_ms: tuple[int, ...]
    yield_latencies_ms: tuple[int, ...]
    response_exclusion_reasons: dict[str, int]
    response_opportunities: Opportunities
    yield_total: int
    yield_count: int
    no_yield_count: int
    backchannel_total: int
    backchannel_correct_count: int
    backchannel_error_count: int
    agent_interrupts_count: int
    per_turn: tuple[TurnRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A caller turn: first to last caller voice inside a label."""

    start: int
    end: int
    action: str
    voiced: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """The timeline with voice united and its end known."""

    caller: Runs
    assistant: Runs
    turns: tuple[_Turn, ...]
    end: int
    settings: Settings


def contract_metrics(timeline: LabelledTimeline) -> ContractMetrics:
    """Compute contract 2.0; the rules stand beside the steps below."""
    scene = _scene(timeline)
    records = _records(scene)
    active = active_work(timeline.work_events, scene.end)
    holds = subtract(active, merge(scene.caller + scene.assistant))
    opportunities = _opportunities(records)
    answered = _latencies(records, "answered")
    barge_ins = [r for r in records if r.yielded is not None]
    yields = tuple(r.yield_latency_ms for r in barge_ins if r.yield_latency_ms is not None)
    kept = sum(r.yielded is True for r in barge_ins)
    backchannels = [r.backchannel_ok for r in records if r.backchannel_ok is not None]
    cut_ins = {start for r in records for start in r.assistant_cut_in_starts_ms}
    return ContractMetrics(
        effective_end_ms=scene.end,
        delegation_active_ms=active,
        response_rate=_rate(opportunities.response_count, opportunities.response_total),
        response_latency_ms=_mean(answered, 3),
        response_latency_mean_s=_mean(answered, 4, per=1000),
        interruption_rate=_rate(len(cut_ins), opportunities.response_total),
        yield_rate=_rate(kept, len(barge_ins)),
        yield_latency_mean_s=_mean(yields, 4, per=1000),
        selectivity_backchannel=_rate(sum(backchannels), len(backchannels)),
        speaking_duration_ms=_speaking(scene.assistant, timeline.assistant_turns),
        floor_hold_silence_ms=Extent(cumulative=total(holds), maximum=longest(holds)),
        floor_hold_intervals_ms=holds,
        response_latencies_ms=answered,
        late_response_latencies_ms=_latencies(records, "missed"),
        yield_latencies_ms=yields,
        response_exclusion_reasons=dict(
            Counter(r.why for r in records if r.outcome == "excluded" and r.why is not None)
        ),
        response_opportunities=opportunities,
        yield_total=len(barge_ins),
        yield_count=kept,
        no_yield_count=len(barge_ins) - kept,
        backchannel_total=len(backchannels),
        backchannel_correct_count=sum(backchannels),
        backchannel_error_count=len(backchannels) - sum(backchannels),
        agent_interrupts_count=len(cut_ins),
        per_turn=records,
    )


def _scene(timeline: LabelledTimeline) -> _Scene:
    caller = _voice(timeline.caller_turns, timeline.caller_other_voiced)
    assistant = _voice(timeline.assistant_turns, timeline.assistant_other_voiced)
    end = max(
        timeline.observation_end_ms,
        *(runs[-1][1] for runs in (caller, assistant) if runs),
        *(label.end_ms for label in timeline.assistant_turns),
        *(label.start_ms for label in timeline.caller_turns),
        *(event.t_ms for event in timeline.work_events if bounds_observation(event)),
        0,
    )
    return _Scene(
        caller=caller,
        assistant=assistant,
        turns=_turns(caller, timeline.caller_turns),
        end=end,
        settings=timeline.settings,
    )


def _voice(labels: Sequence[Label], other: Sequence[Run]) -> Runs:
    return merge([*other, *(run for label in labels for run in label.voiced)])


def _turns(caller: Runs, labels: Sequence[Label]) -> tuple[_Turn, ...]:
    if not labels:
        return tuple(_Turn(start=s, end=e, action="", voiced=((s, e),)) for s, e in caller)
    turns = []
    for label in sorted(labels, key=lambda lab: (lab.start_ms, lab.end_ms)):
        voiced = clip(caller, label.start_ms, label.end_ms)
        if voiced:
            start, end = voiced[0][0], voiced[-1][1]
            turns.append(_Turn(start=start, end=end, action=label.action, voiced=voiced))
    return tuple(turns)


def _records(scene: _Scene) -> tuple[TurnRecord, ...]:
    reasons = [_exclusion(turn, scene.assistant) for turn in scene.turns]
    # Turns are in label order, and clipping one voice to labels keeps starts in order.
    eligible = [turn.start for turn, reason in zip(scene.turns, reasons, strict=True) if not reason]
    records = []
    for index, turn in enumerate(scene.turns):
        later = bisect_left(eligible, turn.end)
        following = eligible[later] if later < len(eligible) else None
        records.append(_record(scene, index, reasons[index], following))
    return tuple(records)


def _exclusion(turn: _Turn, assistant: Runs) -> str | None:
    if turn.action == "BACKCHANNEL":
        return "backchannel"
    if turn.action == "STOP":
        return "caller_closing"
    if run_reaching(assistant, turn.end) is not None:
        return "assistant_active_at_request_end"
    return None


def _record(scene: _Scene, index: int, reason: str | None, following: int | None) -> TurnRecord:
    turn = scene.turns[index]
    last = index + 1 == len(scene.turns)
    window_end = scene.end if last else max(turn.end, scene.turns[index + 1].start)
    deadline = turn.end + scene.settings.response_deadline_ms
    if reason is None:
        outcome, why, latency = _response(scene, turn, following)
    else:
        outcome, why, latency = "excluded", reason, None
    over = _barged_into(turn, scene.assistant)
    interrupts = over is not None and turn.action != "BACKCHANNEL"
    yield_ms = over[1] - turn.start if over is not None and interrupts else None
    yielded = None if yield_ms is None else yield_ms <= scene.settings.yield_window_ms
    return TurnRecord(
        start_ms=turn.start,
        end_ms=turn.end,
        window_end_ms=window_end,
        action=turn.action,
        outcome=outcome,
        why=why,
        deadline_at_ms=deadline if reason is None else None,
        observed_latency_ms=latency,
        caller_voiced_ms=total(turn.voiced),
        assistant_voiced_in_window_ms=total(clip(scene.assistant, turn.start, window_end)),
        overlap_ms=total(intersect(turn.voiced, scene.assistant)),
        caller_interrupts=interrupts,
        yielded=yielded,
        yield_latency_ms=yield_ms if yielded else None,
        assistant_cut_in_starts_ms=_cut_ins(turn, scene.assistant),
        backchannel_ok=_backchannel_ok(turn, over, scene.settings),
    )


def _response(
    scene: _Scene, turn: _Turn, following: int | None
) -> tuple[Outcome, str | None, int | None]:
    """Outcome, why it was missed, and the latency of the response if any."""
    deadline = turn.end + scene.settings.response_deadline_ms
    index = starts_from(scene.assistant, turn.end)
    start = scene.assistant[index][0] if index < len(scene.assistant) else None
    if start is not None and following is not None and start > following:
        start = None
    latency = None if start is None else start - turn.end
    if start is not None and start <= deadline:
        return "answered", None, latency
    if following is not None and following < deadline:
        return "missed", "next_turn", latency
    if scene.end >= deadline:
        return "missed", "deadline", latency
    return "censored", None, latency


def _barged_into(turn: _Turn, assistant: Runs) -> Run | None:
    """The assistant run that the turn's start cuts into."""
    if turn.action == "STOP":
        return None
    if turn.action == "INTERRUPT":
        return run_reaching(assistant, turn.start)
    return run_over(assistant, turn.start)


def _backchannel_ok(turn: _Turn, over: Run | None, settings: Settings) -> bool | None:
    if over is None or turn.action != "BACKCHANNEL":
        return None
    return over[1] > turn.end or over[1] >= turn.start + settings.backchannel_window_ms


def _cut_ins(turn: _Turn, assistant: Runs) -> tuple[int, ...]:
    if turn.action in ("BACKCHANNEL", "STOP"):
        return ()
    found: list[int] = []
    for start, end in turn.voiced:
        first, past = starts_from(assistant, start), starts_from(assistant, end)
        found.extend(run[0] for run in assistant[first:past])
    return tuple(found)


def _opportunities(records: Sequence[TurnRecord]) -> Opportunities:
    count = Counter(record.outcome for record in records)
    scored = count["answered"] + count["missed"]
    return Opportunities(
        caller_turn_count=len(records),
        response_eligible_count=scored + count["censored"],
        response_censored_count=count["censored"],
        response_excluded_count=count["excluded"],
        response_late_count=len(_latencies(records, "missed")),
        response_total=scored,
        response_count=count["answered"],
        no_response_count=count["missed"],
    )


def _speaking(assistant: Runs, labels: Sequence[Label]) -> Extent:
    inside = [total(clip(assistant, label.start_ms, label.end_ms)) for label in labels]
    maximum = max(inside) if inside else longest(assistant)
    return Extent(cumulative=total(assistant), maximum=maximum)


def _latencies(records: Sequence[TurnRecord], outcome: Outcome) -> tuple[int, ...]:
    return tuple(
        record.observed_latency_ms
        for record in records
        if record.outcome == outcome and record.observed_latency_ms is not None
    )


def _rate(count: int, of: int) -> float | None:
    return round(count / of, 4) if of else None


def _mean(values: Sequence[int], digits: int, *, per: int = 1) -> float | None:
    return round(sum(values) / len(values) / per, digits) if values else None

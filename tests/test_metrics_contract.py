"""Contract 2.0 on known timelines, and one rule at a time."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.metrics.contract import (
    ContractMetrics,
    Label,
    LabelledTimeline,
    Settings,
    contract_metrics,
)
from duplex.metrics.intervals import Run
from duplex.metrics.timeline import measure_file, read_timelines
from duplex.metrics.work import Opened, RunEnded, WorkEvent

DATA = Path(__file__).parent / "data"


def say(start: int, end: int, action: str = "SPEAK", voiced: list[Run] | None = None) -> Label:
    runs = ((start, end),) if voiced is None else tuple(voiced)
    return Label(start_ms=start, end_ms=end, action=action, voiced=runs)


def measure(
    caller: list[Label],
    assistant: list[Run],
    *,
    end: int = 30_000,
    labels: list[Label] | None = None,
    work: list[WorkEvent] | None = None,
    policy: Settings | None = None,
    other: list[Run] | None = None,
) -> ContractMetrics:
    return contract_metrics(
        LabelledTimeline(
            caller_turns=caller,
            assistant_turns=labels or [],
            assistant_other_voiced=assistant,
            caller_other_voiced=other or [],
            work_events=work or [],
            observation_end_ms=end,
            settings=policy or Settings(),
        )
    )


@pytest.mark.parametrize("name", ["contract-2.0.jsonl", "recorded-call.jsonl"])
def test_every_known_timeline_gives_every_expected_value(name: str) -> None:
    expected = {}
    for line in (DATA / name).read_text().splitlines():
        item = json.loads(line)
        expected[item["id"]] = item["expected"]
    assert expected
    for measured in measure_file(DATA / name):
        identity = measured["id"]
        assert json.loads(json.dumps(measured["metrics"])) == expected.pop(identity), identity
    assert not expected


@pytest.mark.parametrize("seed", range(3))
def test_order_of_labels_and_runs_does_not_matter(seed: int) -> None:
    rng = random.Random(seed)
    for identity, timeline in read_timelines(DATA / "contract-2.0.jsonl"):
        shuffled = replace(
            timeline,
            caller_turns=rng.sample(timeline.caller_turns, len(timeline.caller_turns)),
            assistant_turns=rng.sample(timeline.assistant_turns, len(timeline.assistant_turns)),
            work_events=_shuffle_keeping_ties(timeline.work_events, rng),
        )
        assert contract_metrics(shuffled) == contract_metrics(timeline), identity


def _shuffle_keeping_ties(events: object, rng: random.Random) -> list[WorkEvent]:
    assert isinstance(events, list)
    by_time: dict[int, list[WorkEvent]] = {}
    for event in events:
        by_time.setdefault(event.t_ms, []).append(event)
    groups = list(by_time.values())
    rng.shuffle(groups)
    return [event for group in groups for event in group]


@pytest.mark.parametrize("bin_ms", [7, 20, 137, 200])
def test_voice_reported_in_bins_gives_the_same_metrics(bin_ms: int) -> None:
    for identity, timeline in read_timelines(DATA / "contract-2.0.jsonl"):
        binned = replace(
            timeline,
            caller_turns=[
                replace(t, voiced=tuple(_cut(t.voiced, bin_ms))) for t in timeline.caller_turns
            ],
            assistant_turns=[
                replace(t, voiced=tuple(_cut(t.voiced, bin_ms))) for t in timeline.assistant_turns
            ],
            caller_other_voiced=_cut(timeline.caller_other_voiced, bin_ms),
            assistant_other_voiced=_cut(timeline.assistant_other_voiced, bin_ms),
        )
        assert contract_metrics(binned) == contract_metrics(timeline), identity


def _cut(runs: object, bin_ms: int) -> list[Run]:
    assert isinstance(runs, list | tuple)
    pieces = []
    for start, end in runs:
        edges = [start, *range((start // bin_ms + 1) * bin_ms, end, bin_ms), end]
        pieces += list(itertools.pairwise(edges))
    return pieces


def test_an_empty_timeline_counts_nothing_and_has_no_rates() -> None:
    metrics = measure([], [], end=0)
    assert metrics.effective_end_ms == 0
    assert metrics.response_rate is None
    assert metrics.response_latency_ms is None
    assert metrics.response_latency_mean_s is None
    assert metrics.interruption_rate is None
    assert metrics.yield_rate is None
    assert metrics.selectivity_backchannel is None
    assert metrics.speaking_duration_ms.maximum == 0
    assert metrics.per_turn == ()


def test_a_label_without_caller_voice_is_no_turn() -> None:
    metrics = measure([say(0, 500, voiced=[]), say(1000, 1500)], [(2000, 3000)])
    assert [turn.start_ms for turn in metrics.per_turn] == [1000]


def test_a_turn_takes_any_caller_voice_inside_its_label() -> None:
    metrics = measure(
        [say(1000, 2000, voiced=[])], [(3000, 4000)], other=[(500, 1200), (1800, 1900)]
    )
    turn = metrics.per_turn[0]
    assert (turn.start_ms, turn.end_ms, turn.caller_voiced_ms) == (1000, 1900, 300)


def test_without_labels_each_voiced_run_is_a_turn() -> None:
    metrics = measure([], [(3000, 4000)], other=[(0, 500), (500, 700), (701, 900)])
    assert [(t.start_ms, t.end_ms, t.action) for t in metrics.per_turn] == [
        (0, 700, ""),
        (701, 900, ""),
    ]


@pytest.mark.parametrize(
    ("late_by", "outcome"), [(0, "answered"), (1, "missed")], ids=["at it", "1 ms past it"]
)
def test_a_response_counts_up_to_and_at_the_deadline(late_by: int, outcome: str) -> None:
    start = 1000 + 5000 + late_by
    metrics = measure([say(0, 1000)], [(start, start + 500)])
    assert metrics.per_turn[0].outcome == outcome
    assert metrics.per_turn[0].observed_latency_ms == 5000 + late_by
    assert metrics.response_opportunities.response_late_count == late_by
    assert metrics.late_response_latencies_ms == ((5001,) if late_by else ())


def test_a_response_may_start_with_the_next_turn_but_not_after_it() -> None:
    at = measure([say(0, 1000), say(2000, 3000)], [(2000, 2500)])
    after = measure([say(0, 1000), say(2000, 3000)], [(2001, 2500)])
    assert at.per_turn[0].outcome == "answered"
    assert (after.per_turn[0].outcome, after.per_turn[0].why) == ("missed", "next_turn")
    assert after.per_turn[0].observed_latency_ms is None


def test_a_next_turn_exactly_at_the_deadline_leaves_the_deadline_as_reason() -> None:
    before = measure([say(0, 1000), say(5999, 7000)], [])
    at = measure([say(0, 1000), say(6000, 7000)], [])
    assert before.per_turn[0].why == "next_turn"
    assert at.per_turn[0].why == "deadline"


@pytest.mark.parametrize(("end", "outcome"), [(5999, "censored"), (6000, "missed")])
def test_an_end_before_the_deadline_censors(end: int, outcome: str) -> None:
    metrics = measure([say(0, 1000)], [], end=end)
    assert metrics.per_turn[0].outcome == outcome
    assert metrics.response_opportunities.response_eligible_count == 1
    assert metrics.response_rate == (None if outcome == "censored" else 0.0)


def test_an_excluded_turn_is_nobodys_next_turn() -> None:
    turns = [say(0, 1000), say(2000, 2200, "BACKCHANNEL"), say(3000, 4000, "STOP")]
    metrics = measure(turns, [(4500, 5000)])
    assert metrics.per_turn[0].outcome == "answered"
    assert metrics.response_exclusion_reasons == {"backchannel": 1, "caller_closing": 1}
    assert metrics.per_turn[0].window_end_ms == 2000


@pytest.mark.parametrize(
    ("run", "excluded"),
    [((500, 1000), True), ((500, 999), False), ((1000, 1500), False), ((999, 1500), True)],
)
def test_an_assistant_speaking_at_the_turns_end_excludes_it(run: Run, excluded: bool) -> None:
    metrics = measure([say(0, 1000)], [run])
    assert (metrics.per_turn[0].why == "assistant_active_at_request_end") is excluded


def test_cut_ins_count_distinct_starts_inside_caller_voice() -> None:
    turns = [say(0, 3000, voiced=[(0, 1000), (2000, 3000)]), say(500, 3000)]
    metrics = measure(turns, [(0, 100), (1000, 1100), (1500, 1600), (2000, 2100)])
    assert metrics.per_turn[0].assistant_cut_in_starts_ms == (0, 1000, 1500, 2000)
    assert metrics.agent_interrupts_count == 4
    silent = measure([say(0, 3000, voiced=[(0, 1000), (2000, 3000)])], [(1000, 1100), (1500, 1600)])
    assert silent.per_turn[0].assistant_cut_in_starts_ms == ()


@pytest.mark.parametrize("action", ["BACKCHANNEL", "STOP"])
def test_cut_ins_into_backchannels_and_closings_do_not_count(action: str) -> None:
    metrics = measure([say(0, 1000, action)], [(500, 600)])
    assert metrics.agent_interrupts_count == 0


def test_the_interruption_rate_can_exceed_one() -> None:
    metrics = measure([say(0, 1000)], [(100, 200), (300, 400), (2000, 3000)])
    assert metrics.interruption_rate == 2.0


@pytest.mark.parametrize(("run_end", "yielded"), [(3000, True), (3001, False)])
def test_a_yield_is_within_the_window_of_the_barge_in(run_end: int, yielded: bool) -> None:
    metrics = measure([say(1000, 9000)], [(0, run_end)])
    turn = metrics.per_turn[0]
    assert (turn.caller_interrupts, turn.yielded) == (True, yielded)
    assert metrics.yield_latencies_ms == ((2000,) if yielded else ())
    assert (metrics.yield_count, metrics.no_yield_count) == (yielded, not yielded)
    assert metrics.yield_latency_mean_s == (2.0 if yielded else None)


@pytest.mark.parametrize(
    ("action", "run", "barges"),
    [
        ("SPEAK", (0, 1000), False),
        ("INTERRUPT", (0, 1000), True),
        ("INTERRUPT", (0, 999), False),
        ("INTERRUPT", (1000, 1500), False),
        ("SPEAK", (1000, 1500), False),
        ("SPEAK", (0, 1001), True),
        ("STOP", (0, 1500), False),
        ("", (0, 1500), True),
    ],
)
def test_who_barges_in(action: str, run: Run, barges: bool) -> None:
    metrics = measure([say(1000, 2000, action)], [run])
    assert metrics.per_turn[0].caller_interrupts is barges
    assert metrics.yield_total == barges


@pytest.mark.parametrize(
    ("run_end", "went_well"), [(1400, False), (1401, True), (1399, False), (2000, True)]
)
def test_a_backchannel_goes_well_when_the_assistant_outlasts_it(
    run_end: int, went_well: bool
) -> None:
    metrics = measure([say(1000, 1400, "BACKCHANNEL")], [(0, run_end)])
    assert metrics.per_turn[0].backchannel_ok is went_well
    assert metrics.selectivity_backchannel == float(went_well)
    assert metrics.yield_total == 0
    assert metrics.per_turn[0].caller_interrupts is False


@pytest.mark.parametrize(("run_end", "went_well"), [(2000, True), (1999, False)])
def test_a_long_backchannel_goes_well_when_the_window_is_reached(
    run_end: int, went_well: bool
) -> None:
    metrics = measure([say(1000, 2500, "BACKCHANNEL")], [(0, run_end)])
    assert metrics.per_turn[0].backchannel_ok is went_well


def test_a_backchannel_into_silence_is_not_judged() -> None:
    metrics = measure([say(1000, 1400, "BACKCHANNEL")], [(0, 1000)])
    assert metrics.per_turn[0].backchannel_ok is None
    assert metrics.backchannel_total == 0


def test_speaking_is_the_union_and_the_most_inside_one_label() -> None:
    labels = [say(0, 1000, voiced=[(0, 600)]), say(900, 3000, voiced=[(500, 1000), (2000, 2500)])]
    metrics = measure([], [], labels=labels)
    assert metrics.speaking_duration_ms.cumulative == 1500
    assert metrics.speaking_duration_ms.maximum == 1000
    unlabelled = measure([], [(0, 700), (700, 900), (1000, 1500)])
    assert unlabelled.speaking_duration_ms.maximum == 900


def test_floor_hold_is_open_work_minus_all_voice() -> None:
    work: list[WorkEvent] = [Opened(t_ms=1000, kind="client", id="d")]
    metrics = measure([say(0, 1500)], [(2000, 3000)], work=work, end=5000)
    assert metrics.floor_hold_intervals_ms == ((1500, 2000), (3000, 5000))
    assert metrics.floor_hold_silence_ms.cumulative == 2500
    assert metrics.floor_hold_silence_ms.maximum == 2000


def test_the_end_is_the_latest_of_all_that_was_observed() -> None:
    late_label = Label(start_ms=7000, end_ms=9000)
    assert measure([late_label], [], end=100).effective_end_ms == 7000
    assert measure([], [], labels=[late_label], end=100).effective_end_ms == 9000
    assert measure([], [(0, 800)], end=100).effective_end_ms == 800
    assert measure([], [], other=[(0, 900)], end=100).effective_end_ms == 900
    ended = RunEnded(t_ms=5000, run="r", outcome="ok")
    assert measure([], [], work=[ended], end=100).effective_end_ms == 5000
    cut = RunEnded(t_ms=5000, run="r", outcome="incomplete")
    assert measure([], [], work=[cut], end=100).effective_end_ms == 100


def test_means_and_rates_are_rounded_as_the_contract_says() -> None:
    turns = [say(0, 1000), say(10_000, 11_000), say(20_000, 21_000)]
    metrics = measure(turns, [(2000, 2500), (12_000, 12_500), (22_001, 22_500)])
    assert metrics.response_latency_ms == 1000.333
    assert metrics.response_latency_mean_s == 1.0003
    missed = measure(turns, [(2000, 2500)], end=60_000)
    assert missed.response_rate == 0.3333


def test_windows_of_overlapping_turns_reach_the_turns_own_end() -> None:
    metrics = measure([say(0, 2000), say(1000, 3000, voiced=[])], [(1500, 1600)])
    assert metrics.per_turn[0].window_end_ms == 2000
    assert metrics.per_turn[0].assistant_voiced_in_window_ms == 100


run_lists = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 60)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=8,
)
actions = st.sampled_from(["", "OPENING", "SPEAK", "CORRECT", "INTERRUPT", "BACKCHANNEL", "STOP"])


@settings(max_examples=200, deadline=None)
@given(
    bounds=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90), actions), max_size=6),
    caller=run_lists,
    assistant=run_lists,
    end=st.integers(0, 400),
    deadline=st.integers(0, 100),
)
def test_counts_always_add_up(
    bounds: list[tuple[int, int, str]],
    caller: list[Run],
    assistant: list[Run],
    end: int,
    deadline: int,
) -> None:
    labels = [say(start, start + long, action, voiced=[]) for start, long, action in bounds]
    metrics = measure(
        labels, assistant, other=caller, end=end, policy=Settings(response_deadline_ms=deadline)
    )
    count = metrics.response_opportunities
    assert count.response_total == count.response_count + count.no_response_count
    assert count.response_eligible_count == count.response_total + count.response_censored_count
    assert count.caller_turn_count == count.response_eligible_count + count.response_excluded_count
    assert sum(metrics.response_exclusion_reasons.values()) == count.response_excluded_count
    assert metrics.yield_total == metrics.yield_count + metrics.no_yield_count
    assert metrics.effective_end_ms >= end
    assert all(0 <= latency <= deadline for latency in metrics.response_latencies_ms)
    _check_responses_against_brute_force(metrics, assistant, deadline)


def _check_responses_against_brute_force(
    metrics: ContractMetrics, assistant: list[Run], deadline: int
) -> None:
    """The answered turns, found again millisecond by millisecond."""
    voiced = {ms for start, end in assistant for ms in range(start, end)}
    starts = sorted(ms for ms in voiced if ms - 1 not in voiced)
    turns = metrics.per_turn
    for index, turn in enumerate(turns):
        if turn.outcome == "excluded":
            continue
        later = [
            t.start_ms
            for t in turns[index + 1 :]
            if t.outcome != "excluded" and t.start_ms >= turn.end_ms
        ]
        limit = min(later, default=10**9)
        found = [s - turn.end_ms for s in starts if turn.end_ms <= s <= limit]
        assert turn.observed_latency_ms == (found[0] if found else None)
        assert (turn.outcome == "answered") is bool(found and found[0] <= deadline)

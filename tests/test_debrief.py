"""The debrief: what it claims follows from the numbers, and every claim has its calls."""

from __future__ import annotations

import re

from duplex.debrief import Debrief, write
from duplex.results import Result, Run
from duplex.verdict.block import judged
from duplex.verdict.comparison import compare
from duplex.verdict.criteria import read_check
from duplex.verdict.incidents import incidents
from verdict_runs import arms, call, run


def debrief(made: Run, baseline: Run | None = None) -> Debrief:
    cases, checks, verdict = judged(made)
    assert verdict is not None
    if baseline is None:
        return write(cases, checks, verdict)
    then, other, _ = judged(baseline)
    found = compare(cases, then, checks, other)
    return write(cases, checks, verdict, comparison=found, baseline_criteria=other)


def noisy_sweep(levels: int = 8) -> Run:
    quiet, loud = arms("20", "0")
    held = [
        call(arm=loud, sample=n, passed=n < 2, condition="noisy,snr=0")
        for n in range(1, levels + 1)
    ]
    held += [call(arm=quiet, sample=n, condition="noisy,snr=20") for n in range(1, levels + 1)]
    return run(*held, arms=(quiet, loud))


def turns(**caller: object) -> Result:
    """A call with one caller turn of this kind."""
    turn = {"side": "caller", "start_ms": 2000.0, "end_ms": 3000.0, **caller}
    return call(turns=[turn])  # type: ignore[list-item]


def test_a_sweep_is_blamed_on_its_value_with_a_corrected_p_and_its_calls() -> None:
    found = debrief(noisy_sweep())
    told = " ".join(found.paragraphs)
    assert "noisy.snr 0 fails task_completed more often than the rest" in told
    assert re.search(r"corrected p = 0\.00\d+", told)
    assert len(found.findings[0].call_ids) == 7
    assert not found.passed


def failing(check: str, **more: object) -> Result:
    """A call that failed this one check of its grade."""
    made = call(passed=False, **more)  # type: ignore[arg-type]
    checks = [
        one.model_copy(update={"status": "failed"}) if one.id == check else one
        for one in made.assessment.checks
    ]
    assessment = made.assessment.model_copy(update={"checks": checks})
    return made.model_copy(update={"assessment": assessment})


def test_a_theme_says_that_the_value_failed_the_task_and_only_of_calls_at_that_value() -> None:
    loud, quiet = arms("0", "20")
    held = [failing("application_state", arm=loud, sample=n) for n in range(1, 9)]
    held += [call(arm=quiet, sample=n) for n in range(1, 8)]
    held.append(failing("delegation_policy", arm=quiet, sample=8))
    state, delegation = debrief(run(*held, arms=(quiet, loud))).themes
    assert "noisy.snr 0 failed task_completed in 100 % of calls against 12 %" in state.analysis
    assert delegation.affected == 1
    assert "corrected p" not in delegation.analysis


def test_a_theme_of_a_check_of_the_run_has_the_share_of_that_check() -> None:
    loud, quiet = arms("0", "20")
    held = [call(arm=loud, sample=n, latencies=(2000.0,)) for n in range(1, 8)]
    held += [call(arm=loud, sample=8), *(call(arm=quiet, sample=n) for n in range(1, 9))]
    made = run(*held, arms=(quiet, loud), checks=["response_latency.p95 <= 1500ms"])
    (theme,) = debrief(made).themes
    assert "0 failed response_latency.p95 <= 1500ms in 88 % of calls against" in theme.analysis


def test_a_sweep_of_nothing_says_that_nothing_could_be_seen_and_why() -> None:
    one, other = arms("20", "21")
    held = [call(arm=arm, sample=n) for arm in (one, other) for n in range(1, 9)]
    found = debrief(run(*held, arms=(one, other)))
    told = " ".join(found.paragraphs)
    assert "no value fails significantly more often" in told
    assert "could not have been seen" in told
    assert any("46 points" in text for _, text in found.sections)


def test_themes_join_calls_and_every_span_is_an_incident_of_the_run() -> None:
    slow = [call(sample=n, latencies=(1000.0, 4000.0)) for n in (1, 2, 3)]
    made = run(*slow, call(sample=4))
    (theme,) = debrief(made).themes
    cases, checks, _ = judged(made)
    known = {one.id for one in incidents(cases, checks)}
    assert (theme.slug, theme.affected, theme.total) == ("slow-reply", 3, 4)
    assert theme.prevalence == "WIDESPREAD"
    assert {span.incident for span in theme.spans} == known
    assert {span.call_id for span in theme.spans} == set(theme.call_ids)


def test_one_call_alone_is_isolated_and_a_few_recur() -> None:
    def with_slow(count: int) -> str:
        slow = [call(sample=n, latencies=(4000.0,)) for n in range(1, count + 1)]
        fine = [call(sample=n) for n in range(count + 1, 9)]
        return debrief(run(*slow, *fine)).themes[0].prevalence

    assert (with_slow(1), with_slow(2), with_slow(5)) == ("ISOLATED", "RECURRING", "WIDESPREAD")


def test_a_theme_lives_through_the_runs() -> None:
    def slow(count: int) -> Run:
        return run(
            *[call(sample=n, latencies=(4000.0 if n <= count else 1000.0,)) for n in range(1, 9)]
        )

    def lifecycle(now: int, then: int) -> str | None:
        return debrief(slow(now), slow(then)).themes[0].lifecycle

    assert lifecycle(4, 0) == "NEW"
    assert lifecycle(4, 4) == "PERSISTENT"
    assert lifecycle(2, 6) == "IMPROVING"
    assert lifecycle(0, 4) == "FIXED"


def test_what_went_well_is_said_too() -> None:
    found = debrief(run(call(), call(sample=2)))
    assert found.passed
    assert [one.title for one in found.went_well] == [
        "task_completed held",
        "Replies came quickly",
    ]


def test_no_text_claims_a_number_that_the_run_has_not(
    # Every figure of a theme's text is one of its counts, times or rates.
) -> None:
    (theme,) = debrief(run(*[call(sample=n, latencies=(4000.0,)) for n in (1, 2)])).themes
    figures = {
        float(text) for text in re.findall(r"\d+\.?\d*", re.sub(r"\.s\d", "", theme.analysis))
    }
    assert figures <= {2.0, 4.0}


def test_every_incident_carries_a_check_that_fails_on_its_own_call() -> None:
    made = run(
        turns(outcome="unanswered", why="nobody answered", cut_ins=2, barge_in=True, yielded=False)
    )
    cases, checks, _ = judged(made)
    found = incidents(cases, checks)
    assert {one.kind for one in found} == {"missed_turn", "talk_over", "no_yield"}
    for one in found:
        assert read_check(one.check).id


def test_incidents_keep_their_ids_and_none_is_shared() -> None:
    made = noisy_sweep()
    cases, checks, _ = judged(made)
    again, more, _ = judged(noisy_sweep())
    first, second = incidents(cases, checks), incidents(again, more)
    assert [one.id for one in first] == [one.id for one in second]
    assert len({one.id for one in first}) == len(first)

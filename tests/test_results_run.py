"""A run sums its calls, decides the exit code and tells what came out."""

from __future__ import annotations

import pytest

from booking_call import Log, booking_call
from duplex.report.run_report import short, unseen_work
from duplex.results import COLUMNS, CallFigures, Result, exit_code, headline, rows
from duplex.values import Json, Side
from results_support import audio, result_of, run_of

PASSED = result_of(booking_call())
FAILED = result_of(booking_call().state(21000, {}))


def broken(stage: str) -> Result:
    fields: dict[str, Json] = {"stage": stage, "code": "x", "message": "it broke", "fatal": True}
    log = Log().add(0, Side.ASSISTANT, "fault", **fields).end(0, "error")
    return result_of(log, figures=CallFigures())


REFUSED = broken("assistant_connection")
NEVER_SPOKE = broken("assistant_opening")


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([PASSED], 0),
        ([PASSED, PASSED], 0),
        ([PASSED, FAILED], 1),
        ([FAILED], 1),
        ([PASSED, REFUSED], 1),
        ([FAILED, REFUSED], 1),
        ([REFUSED], 2),
        ([REFUSED, broken("transport")], 2),
        ([NEVER_SPOKE], 1),
        ([NEVER_SPOKE, REFUSED], 1),
        ([PASSED, NEVER_SPOKE], 1),
        ([], 2),
    ],
)
def test_the_exit_code_says_whether_all_passed_or_none_could_be_held(
    results: list[Result], code: int
) -> None:
    assert exit_code(run_of(*results)) == code


def test_the_summary_counts_each_call_once() -> None:
    summary = run_of(PASSED, FAILED, REFUSED, NEVER_SPOKE).summary
    assert summary.model_dump() == {
        "total": 4,
        "passed": 1,
        "failed": 1,
        "infrastructure_errors": 2,
    }


def test_the_headline_is_one_sentence_with_the_numbers() -> None:
    assert headline(run_of(PASSED)) == (
        "restaurant_booking_complete passed: 3 of 3 caller turns answered, 1333 ms mean."
    )
    assert headline(run_of(FAILED)).endswith("(application_state).")
    assert headline(run_of(REFUSED)) == "restaurant_booking_complete does not count: it broke."
    assert headline(run_of(PASSED, FAILED, REFUSED)) == (
        "1 of 3 calls passed, 1 failed, 1 could not be counted."
    )
    assert headline(run_of(PASSED, PASSED)) == "2 of 2 calls passed."
    assert headline(run_of()) == "0 of 0 calls passed."
    cut = run_of(PASSED).model_copy(update={"results": []})
    assert headline(cut) == "1 of 1 call passed."


def test_the_timing_block_is_told_before_the_contract() -> None:
    figures = CallFigures(
        audio=audio(booking_call()), timing={"response_latency": {"p50": 901.4, "n": 3}}
    )
    run = run_of(result_of(booking_call(), figures=figures))
    assert "901 ms median" in headline(run)
    assert rows(run)[0].response == "901 ms median"


def test_a_median_is_told_with_the_late_replies_in_it() -> None:
    timing: dict[str, Json] = {
        "response_latency": {"p50": 901.4, "n": 3},
        "response_rate": {"numerator": 2, "denominator": 3},
        "ledger": {"late": 1},
    }
    run = run_of(result_of(booking_call(), figures=CallFigures(timing=timing)))
    assert "2 of 3 caller turns answered, 901 ms median, 1 late" in headline(run)
    assert (rows(run)[0].answered, rows(run)[0].response) == ("2/3", "901 ms median, 1 late")


def test_no_latency_of_one_ruler_stands_beside_answers_of_the_other() -> None:
    """Tones are voice to contract 2.0 and none to the timing block."""
    timing: dict[str, Json] = {
        "response_latency": {"p50": None, "n": 0},
        "response_rate": {"numerator": 0, "denominator": 3},
    }
    figures = CallFigures(audio=audio(booking_call()), timing=timing)
    run = run_of(result_of(booking_call(), figures=figures))
    assert run.results[0].metrics.audio.response_latency_ms is not None
    assert (rows(run)[0].answered, rows(run)[0].response) == ("0/3", "–")
    assert "mean" not in headline(run)


def test_every_call_is_a_row_of_ready_cells() -> None:
    run = run_of(PASSED, REFUSED)
    table = [row.cells() for row in rows(run)]
    assert all(len(cells) == len(COLUMNS) for cells in table)
    assert table == [
        (
            "restaurant_booking_complete #1",
            "passed",
            "3/3",
            "1333 ms mean",
            "2/2",
            "22.0 s",
            "",
        ),
        (
            "restaurant_booking_complete #1",
            "infrastructure error",
            "–",
            "–",
            "0/2",
            "0.0 s",
            "assistant_connection: it broke",
        ),
    ]
    assert rows(run_of(FAILED))[0].why == (
        "application_state (the application's state is not the expected one)"
    )


def test_a_run_of_both_kinds_of_scenario_is_mixed() -> None:
    single = PASSED.model_copy(
        update={
            "observability": PASSED.observability.model_copy(
                update={
                    "interaction": PASSED.observability.interaction.model_copy(
                        update={"mode": "single_turn"}
                    )
                }
            )
        }
    )
    assert run_of(PASSED, single).run.interaction == "mixed"
    assert run_of(single).run.interaction == "single_turn"
    assert run_of().run.interaction == "multi_turn"


def test_a_pass_whose_work_nobody_saw_says_so() -> None:
    """An agent that told of no tools and no state, unjudged, may have done nothing at all."""
    unseen = ("application_state", "semantic_outcome", "verified_state_change")
    assessment = PASSED.assessment
    checks = [
        check.model_copy(update={"status": "not_assessed", "required": False})
        if check.id in unseen
        else check
        for check in assessment.checks
    ]
    tools = PASSED.observability.tools.model_copy(update={"executed": []})
    blind = PASSED.model_copy(
        update={
            "assessment": assessment.model_copy(update={"checks": checks}),
            "observability": PASSED.observability.model_copy(update={"tools": tools}),
        }
    )
    assert headline(run_of(blind)).endswith("; nobody could tell whether the task was done.")
    assert rows(run_of(blind))[0].tools == "–"
    (line,) = unseen_work(run_of(blind, PASSED))
    assert "in 1 of 2 calls" in line
    assert line in short(run_of(blind, PASSED))

    own = checks[0].model_copy(update={"id": "check_function:polite", "status": "passed"})
    assessed = assessment.model_copy(update={"checks": [*checks, own]})
    assert unseen_work(run_of(blind.model_copy(update={"assessment": assessed}), PASSED)) == ()
    assert "nobody" not in headline(run_of(PASSED))

"""A run and its limits for people: every form opens alike, and unmeasured is never 0 or met."""

from __future__ import annotations

from pathlib import Path

import pytest

from duplex.report import run_report
from duplex.report.limits import UNMEASURED, limits
from duplex.report.markdown import cell, table
from duplex.results import schema
from duplex.results.stored import load_results
from duplex.values import Json
from duplex.viewer.call import call_page
from test_remeasuring import run_folder
from timing_scenes import measured
from verdict_runs import call
from verdict_runs import run as run_of_calls


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("runs") / "run_offline_1")


@pytest.fixture(scope="module")
def run(folder: Path) -> schema.Run:
    return load_results(folder / "results.json")


# -- limits --------------------------------------------------------------------


def test_every_limit_has_what_was_wanted_measured_and_how_often() -> None:
    block = measured([(1.0, 2.0), (5.0, 6.0)], [(2.6, 4.0), (6.8, 8.0)], 15.0)
    rows = {row.name: row for row in limits(block.as_json())}
    answered = rows["answered"]
    assert answered.cells() == ("answered", "all within 5 s", "2 of 2", "2", "", "met")
    assert rows["cut in on the caller"].cells()[1:] == ("none", "0", "2", "", "met")


def test_a_limit_that_was_missed_is_not_met() -> None:
    block = measured([(1.0, 2.0), (12.0, 13.0)], [(14.0, 15.0)], 25.0)
    rows = {row.name: row for row in limits(block.as_json())}
    assert rows["answered"].measured == "1 of 2"
    assert rows["answered"].met is False


def test_what_was_not_measured_is_neither_zero_nor_met() -> None:
    for row in limits(measured([], [], 5.0).as_json()):
        assert row.met is None, row.name
        assert row.measured == UNMEASURED
        assert row.n is None
        assert row.why, row.name


def test_nothing_is_met_where_nothing_can_be_trusted() -> None:
    block = measured([(1.0, 2.0)], [(2.6, 4.0)], 15.0)
    assert {row.met for row in limits(block.as_json(), "no speech of the caller was found")} == {
        None
    }


@pytest.mark.parametrize(
    "block", [{}, {"ledger": None}, {"response_rate": {"numerator": True}}, {"policy": []}]
)
def test_a_damaged_block_is_unmeasured(block: dict[str, Json]) -> None:
    assert {row.met for row in limits(block)} == {None}


# -- a run ---------------------------------------------------------------------


def test_the_short_form_sums_turns_and_says_which_calls_were_not_measured(run: schema.Run) -> None:
    ledger, words, basis = run_report.short(run)
    assert ledger.startswith("ledger: caller turns ")
    assert ledger.endswith("1 of 3 calls not measured")
    assert words == f"words: {UNMEASURED}, nobody told what was said or what was heard"
    assert basis.startswith("basis: virtual time, condition clean, ")
    assert "detector edge, timing 1.0, deadline 5 s" in basis


def test_a_run_without_any_timing_is_not_zero_turns(run: schema.Run) -> None:
    unheld = run.model_copy(update={"results": [run.results[2]]})
    assert run_report.ledger(unheld) == f"ledger: {UNMEASURED}"


def test_words_are_summed_over_calls(run: schema.Run) -> None:
    def heard(wrong: int, said: int) -> schema.Result:
        wer: dict[str, Json] = {"rate": wrong / said, "numerator": wrong, "denominator": said}
        words: dict[str, Json] = {"heard_by": {"assistant": {"wer": wer}}}
        ours = {**run.results[0].duplex, "words": words}
        return run.results[0].model_copy(update={"duplex": ours})

    both = run.model_copy(update={"results": [heard(1, 10), heard(2, 40)]})
    assert run_report.words(both) == (
        "words: 3 errors in 50 caller words, as the assistant heard them"
    )


def test_markdown_opens_with_the_sentence_then_calls_and_ends_with_the_basis(
    run: schema.Run,
) -> None:
    page = run_report.as_markdown(run)
    lines = page.splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].endswith(".")
    order = [page.index(f"## {name}") for name in ("Calls", "booking", "cut\\_in", "Basis")]
    assert order == sorted(order)
    assert "| check | limit | measured | n | ± |  |" in page
    assert "Timing: not measured, " in page


def test_markdown_stays_text_whatever_stands_in_the_results(run: schema.Run) -> None:
    hostile = "<script>|`x`|</script> [a](javascript:b) **c**\n# d"
    one = run.results[0].model_copy(update={"scenario_id": hostile, "title": hostile})
    page = run_report.as_markdown(run.model_copy(update={"results": [one]}))
    assert "<script>" not in page
    assert "\n# d" not in page
    assert "](javascript" not in page.replace("\\](", "")


def test_a_table_without_rows_is_no_table() -> None:
    assert table(("a", "b"), []) == []
    assert cell("a\n\tb \x1b[1m") == "a b \\[1m"


def test_the_viewer_shows_the_same_limits(folder: Path, run: schema.Run) -> None:
    view = call_page(folder, run, 0).view
    timing = run.results[0].duplex["timing"]
    assert isinstance(timing, dict)
    assert view["limits"] == [
        {"cells": list(row.cells()), "met": row.met} for row in limits(timing)
    ]
    assert call_page(folder, run, 2).view["limits"] == []


def test_a_page_of_a_thousand_calls_fits_a_pipeline_and_says_what_it_left_out() -> None:
    calls = [call(sample=n, passed=n % 4 > 0) for n in range(1, 1001)]
    page = run_report.as_markdown(run_of_calls(*calls, task_rate=0))
    assert len(page.encode()) < 400_000
    left_out = "Of 1000 calls, 750 that passed are not listed; the first 40 of these follow."
    assert left_out in page
    assert page.count("\n## booking.s") == 40
    assert "## booking.s4\n" in page
    assert "## booking.s5\n" not in page


def test_a_page_of_few_calls_tells_each_under_its_own_id() -> None:
    page = run_report.as_markdown(run_of_calls(*(call(sample=n) for n in range(1, 41))))
    assert [f"## booking.s{n}\n" in page for n in range(1, 41)] == [True] * 40
    assert "not listed" not in page

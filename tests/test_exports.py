"""JUnit, tables, pages and Inspect logs of a run: whole, harmless and true to its results."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from duplex.exports.inspect_log import inspect_log
from duplex.exports.junit import junit
from duplex.exports.moments_svg import moments_svg
from duplex.exports.subject import Subject, subject_of
from duplex.exports.summary import summary, worst
from duplex.exports.table import table
from duplex.publishing import publish
from duplex.results import Run
from duplex.values import Json
from verdict_runs import arms, call, run

NASTY = "=cmd|' /C calc'!A0 <script>alert(1)</script> ]]> \x1b[31m \x00 | `x`"


def nasty() -> Run:
    """A run whose every name is trouble somewhere."""
    return run(
        call(),
        call(scenario="bad", passed=False, persona=NASTY, agent=NASTY),
        call(scenario="lost", outcome="invalidated"),
        call(scenario="unheld", outcome="not_run"),
        call(scenario="slow", latencies=(900.0, 4000.0)),
        checks=["Fast | *b*: response_latency.p50 <= 1s"],
    )


def subject(made: Run | None = None) -> Subject:
    return subject_of(made or nasty())


def test_junit_counts_what_the_run_counts() -> None:
    root = ET.fromstring(junit(subject()).encode())
    assert (root.get("tests"), root.get("errors"), root.get("skipped")) == ("6", "1", "1")
    failures = root.findall(".//failure")
    assert int(str(root.get("failures"))) == len(failures)
    names = {case.get("name") for case in root.iter("testcase")}
    assert {"booking.s1", "bad.s1", "lost.s1", "unheld.s1", "slow.s1", "run"} == names
    verdict = root.find("testsuite[@name='verdict']/testcase/failure")
    assert verdict is not None
    assert "wanted" in str(verdict.get("message"))


def test_junit_of_a_passed_run_has_no_failure() -> None:
    root = ET.fromstring(junit(subject(run(call()))).encode())
    assert root.get("failures") == "0"


def test_junit_keeps_arms_apart() -> None:
    quiet, loud = arms("20", "0")
    made = run(call(arm=quiet), call(arm=loud), arms=(quiet, loud))
    root = ET.fromstring(junit(subject(made)).encode())
    assert [one.get("name") for one in root][:2] == ["booking noisy.snr=20", "booking noisy.snr=0"]


def test_a_table_has_a_row_for_every_call_and_no_cell_that_runs() -> None:
    rows = list(csv.DictReader(io.StringIO(table(subject()))))
    assert [row["call"] for row in rows][:2] == ["booking.s1", "bad.s1"]
    assert rows[0]["response_latency"] == "1200"
    assert rows[0]["check: task_completed"] == "true"
    assert rows[2]["response_latency"] == ""
    for row in rows:
        assert not [cell for cell in row.values() if cell[:1] in ("=", "+", "@")]


def test_a_page_holds_nothing_that_becomes_markup() -> None:
    page = summary(subject())
    assert "<script" not in page
    assert "\x1b" not in page
    assert "## Worst moments" in page
    assert "## Themes" in page
    assert page.index("## Themes") < page.index("## Calls")


def test_a_page_says_what_went_well() -> None:
    good = subject_of(run(*[call(sample=n) for n in range(1, 6)]))
    assert good.debrief is not None
    assert len(good.debrief.went_well) >= 1
    well = summary(good).split("## Went well\n\n", 1)[1].split("\n\n", 1)[0]
    assert well.count("- ") >= len(good.debrief.went_well)
    assert "held" in well


def test_a_page_of_a_comparison_says_what_is_worse() -> None:
    slow = run(*[call(sample=n, latencies=(1500.0 + n, 1600.0)) for n in range(1, 9)])
    base = run(*[call(sample=n, latencies=(1000.0 + n, 1100.0)) for n in range(1, 9)])
    page = summary(subject_of(slow, base))
    assert "response\\_latency.mean | worse" in page


def test_the_drawing_is_well_formed_and_shows_both_sides() -> None:
    segments: list[Json] = [
        {"side": "caller", "start_ms": 0.0, "end_ms": 900.0},
        {"side": "assistant", "start_ms": 4000.0, "end_ms": 5000.0},
    ]
    made = run(call(scenario="<&>", latencies=(800.0, 3500.0), segments=segments))
    found = subject(made)
    drawing = moments_svg(found, worst(found, placed=True))
    assert drawing is not None
    root = ET.fromstring(drawing)
    titles = {one.text for one in root.iter("{http://www.w3.org/2000/svg}title")}
    assert {"caller", "assistant"} <= titles
    assert moments_svg(subject(run(call())), ()) is None


def test_an_inspect_log_has_samples_with_their_scores(tmp_path: Path) -> None:
    log = inspect_log(subject(), tmp_path)
    json.dumps(log, allow_nan=False)
    samples = log["samples"]
    assert isinstance(samples, list)
    assert len(samples) == 5
    first = samples[0]
    assert isinstance(first, dict)
    assert isinstance(first["scores"], dict)
    assert isinstance(first["scores"]["task_completed"], dict)
    assert first["scores"]["task_completed"]["value"] == "C"
    assert log["status"] == "success"


def test_a_finished_run_leaves_report_junit_and_debrief(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    publish(nasty(), tmp_path)
    ET.fromstring((tmp_path / "junit.xml").read_text())
    assert "moments.svg" in (tmp_path / "report.md").read_text()
    debrief = json.loads((tmp_path / "debrief.json").read_text())
    spans = debrief["duplex"]["spans"]
    assert spans["slow-reply"][0]["call_id"] == "slow.s1"
    assert step.read_text().startswith("before\n#")


def test_what_cannot_be_published_costs_no_run(tmp_path: Path) -> None:
    publish(nasty(), tmp_path / "report.md" / "no")
    (tmp_path / "file").write_text("")
    publish(nasty(), tmp_path / "file")

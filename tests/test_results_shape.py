"""Results have the shape of schema 2.0, field by field, and are strict JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from booking_call import Log, booking_call
from duplex.errors import DuplexError
from duplex.results import CallFigures, Configuration, build_run, read_run, to_json
from duplex.results.unknown import UNTOLD, explain, nulls
from duplex.values import Json, Side
from results_support import CONFIGURATION, audio, result_of, run_of

FIELDS = Path(__file__).parent / "data" / "results-2.0-fields.txt"
OPEN = {"caller_actions", "audio_realism", "arguments", "response_exclusion_reasons"}
KINDS = {dict: "object", list: "list", str: "text", bool: "boolean", int: "number", float: "number"}


def shape(value: Json, at: str = "", key: str = "") -> list[tuple[str, str]]:
    """List every field with its kind, in order, without what duplex adds."""
    found = [(at or "/", KINDS.get(type(value), "null"))]
    if isinstance(value, dict) and key not in OPEN:
        for name, child in value.items():
            if name != "duplex":
                found += shape(child, f"{at}/{name}", name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        found += shape(value[0], f"{at}/*", key)
    return found


def published() -> list[tuple[str, str]]:
    lines = (line.split(" ") for line in FIELDS.read_text().splitlines())
    return [(path, kind) for path, kind in lines]


def test_every_field_of_schema_2_0_is_there_in_order_with_its_kind() -> None:
    got = shape(json.loads(to_json(run_of(result_of(booking_call())))))
    wanted = published()
    assert [path for path, _ in got] == [path for path, _ in wanted]
    for (path, kind), (_, expected) in zip(got, wanted, strict=True):
        assert kind == expected or "null" in (kind, expected), path


def test_a_call_that_never_began_has_the_same_fields() -> None:
    log = Log()
    fault: dict[str, Json] = {"stage": "assistant_connection", "code": "401", "message": "no"}
    log.add(0, Side.ASSISTANT, "fault", fatal=True, **fault).end(0, "error")
    result = result_of(log, figures=CallFigures())
    got = {path for path, _ in shape(json.loads(to_json(run_of(result))))}
    lists_of_nothing = ("/results/*/observability/tools/executed/*",)
    missing = {path for path, _ in published()} - got
    assert {path for path in missing if not path.startswith(lists_of_nothing)} == set()
    assert got - {path for path, _ in published()} == {
        "/results/*/error/stage",
        "/results/*/error/message",
    }


def test_every_null_has_a_reason_and_none_is_the_last_resort() -> None:
    for result in (result_of(booking_call()), result_of(Log().end(0), figures=CallFigures())):
        unknown = result.duplex["unknown"]
        assert isinstance(unknown, dict)
        whole = json.loads(to_json(result))
        del whole["duplex"]
        meant = {"/error", "/validity/reason"}
        assert set(nulls(whole)) - meant == set(unknown) - {"/duplex/timing", "/duplex/judge"}
        assert UNTOLD not in unknown.values()


def test_the_configuration_of_a_run_explains_its_nulls() -> None:
    run = run_of(result_of(booking_call()))
    assert run.run.duplex["unknown"] == {
        f"/configuration/{name}": "this run has no such part"
        for name, value in CONFIGURATION
        if value is None
    }


def test_a_null_passed_to_a_tool_is_no_unknown() -> None:
    log = Log().tool(1000, "c1", "f", {"seating": None}).end(2000)
    unknown = result_of(log).duplex["unknown"]
    assert isinstance(unknown, dict)
    assert not any("arguments" in pointer for pointer in unknown)


def test_reasons_hold_for_what_is_below_them_and_the_longest_wins() -> None:
    value: Json = {"a": {"b": None, "c/d": [None]}, "e": None, "f": None}
    reasons = {"/a": "one", "/a/c~1d": "two"}
    assert explain(value, reasons, frozenset({"/f"})) == {
        "/a/b": "one",
        "/a/c~1d/0": "two",
        "/e": UNTOLD,
    }


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_lacks_is_ever_written(broken: float) -> None:
    result = result_of(booking_call(), figures=CallFigures(timing={"p50": [broken]}))
    with pytest.raises(DuplexError, match="not finite"):
        to_json(run_of(result))
    with pytest.raises(ValidationError):
        Configuration.model_validate({**dict(CONFIGURATION), "completion_timeout_seconds": broken})


def test_what_is_written_reads_back_the_same() -> None:
    run = run_of(result_of(booking_call()))
    text = to_json(run)
    assert read_run(text) == run
    assert to_json(read_run(text)) == text
    with pytest.raises(DuplexError, match=r"schema 2\.0"):
        read_run(text.replace('"scenario_id"', '"scenario"'))
    with pytest.raises(DuplexError):
        read_run("{}")


def test_a_results_file_cut_short_or_of_another_kind_is_one_sentence_with_its_place() -> None:
    with pytest.raises(DuplexError) as cut:
        read_run('{"schema_version": "2.0", "assist')
    with pytest.raises(DuplexError, match=r"schema 2\.0: run: Field required"):
        read_run("{}")
    assert "line 1 column" in str(cut.value)
    assert "\n" not in str(cut.value)
    assert "pydantic" not in str(cut.value)


def test_our_additions_stand_under_duplex_only() -> None:
    timing: dict[str, Json] = {"response_latency": {"p50": 900.0}}
    figures = CallFigures(
        audio=audio(booking_call()),
        timing=timing,
        extra={"speed": 3.5},
        unknown={"/metrics/consumption": "a rule-based backend uses no tokens"},
    )
    result = result_of(booking_call(), figures=figures, sample=2)
    ours = result.duplex
    assert list(ours) == [
        "sample",
        "outcome",
        "whose_fault",
        "duration_ms",
        "caller_finished",
        "timing",
        "checks",
        "procedure",
        "faults",
        "speed",
        "terms",
        "judge",
        "unknown",
    ]
    assert (ours["sample"], ours["timing"], ours["speed"]) == (2, timing, 3.5)
    unknown = ours["unknown"]
    assert isinstance(unknown, dict)
    assert "/duplex/timing" not in unknown
    run = build_run(
        [result],
        run_id="r",
        execution_mode="live",
        dataset="d",
        configuration=CONFIGURATION,
        duplex={"speed": {"call": 3.5}},
    )
    assert run.run.duplex["speed"] == {"call": 3.5}

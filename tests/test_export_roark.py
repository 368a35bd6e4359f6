"""The Roark shape: every published field there, typed, and nothing else; mutants are caught."""

from __future__ import annotations

import copy
import inspect
import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel as PydanticModel
from roark_analytics import BaseModel
from roark_analytics.types import simulation_run_plan_job_get_results_response as published

from duplex.exports.roark import report
from duplex.exports.subject import subject_of
from duplex.results import Run
from verdict_runs import arms, call, run

Document = dict[str, typing.Any]


def full() -> Document:
    """A report in which every branch of the shape is filled."""
    quiet, loud = arms("20", "0")
    held = [
        call(arm=loud, sample=n, passed=n < 2, condition="noisy,snr=0", latencies=(1500.0, 3500.0))
        for n in range(1, 9)
    ]
    held += [call(arm=quiet, sample=n, condition="noisy,snr=20") for n in range(1, 9)]
    held += [call(outcome="never_spoke", scenario=f"s{n}", arm=loud, sample=n) for n in range(1, 9)]
    held += [call(scenario="r", arm=quiet, outcome="never_spoke", final=False)]
    held += [call(scenario="r", arm=quiet, attempt=2)]
    made = run(*held, arms=(quiet, loud), checks=["response_latency.p95 <= 1500ms"])
    before = run(*[call(sample=n, arm=quiet, condition="noisy,snr=20") for n in range(1, 9)])
    return document(made, before)


def document(made: Run, before: Run | None = None) -> Document:
    loaded: Document = json.loads(
        json.dumps(report(subject_of(made, before, number=3)), allow_nan=False)
    )
    return loaded


def problems(value: typing.Any, kind: typing.Any, at: str = "") -> Iterator[str]:
    """Where a value differs from a model of the published client, strictly.

    The client itself checks nothing: it keeps unknown fields and lets others be missing.
    """
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        yield from problems(value, typing.get_args(kind)[0], at)
    elif origin in (typing.Union, types.UnionType):
        tries = [list(problems(value, one, at)) for one in typing.get_args(kind)]
        if all(tries):
            yield min(tries, key=len)[0]
    elif origin is typing.Literal:
        if value not in typing.get_args(kind):
            yield f"{at}: {value!r} is not among {typing.get_args(kind)}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{at}: no list"
        else:
            for index, one in enumerate(value):
                yield from problems(one, typing.get_args(kind)[0], f"{at}/{index}")
    elif inspect.isclass(kind) and issubclass(kind, PydanticModel):
        yield from _object(value, kind, at)
    elif kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{at}: {value!r} is no number"
    elif kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            yield f"{at}: {value!r} is no whole number"
    elif kind is type(None):
        if value is not None:
            yield f"{at}: {value!r} is not null"
    elif inspect.isclass(kind) and kind.__name__ == "datetime":
        if not isinstance(value, str):
            yield f"{at}: {value!r} is no time"
    elif not isinstance(value, kind):
        yield f"{at}: {value!r} is no {kind.__name__}"


def _object(value: typing.Any, kind: type[PydanticModel], at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: no object"
        return
    known = {(field.alias or name): field for name, field in kind.model_fields.items()}
    for name in value.keys() - known.keys():
        if (at, name) != ("/data", "duplex"):
            yield f"{at}/{name}: not published"
    for name, field in known.items():
        if name not in value:
            yield f"{at}/{name}: missing"
        else:
            yield from problems(value[name], field.annotation, f"{at}/{name}")


def differences(found: Document) -> list[str]:
    return list(problems(found, published.SimulationRunPlanJobGetResultsResponse))


def test_the_whole_report_is_the_published_shape_and_nothing_more() -> None:
    assert differences(full()) == []


def test_a_plain_run_too() -> None:
    assert differences(document(run(call()))) == []


def test_a_run_in_progress_has_null_where_the_shape_says_null() -> None:
    found = document(run(call(), status="running", expected=4, ended_at=None))
    assert differences(found) == []
    for name in ("verdict", "sweepAttribution", "debrief", "comparison"):
        assert found["data"][name] is None
    assert found["data"]["run"]["status"] == "RUNNING_SIMULATIONS"
    assert found["data"]["run"]["durationMs"] is None


def test_the_published_client_reads_it() -> None:
    parsed = published.SimulationRunPlanJobGetResultsResponse.model_validate(full())
    assert isinstance(parsed, BaseModel)
    assert parsed.data.verdict is not None
    kinds = [failure.type for failure in parsed.data.verdict.failures]
    assert kinds == [
        "AGENT_NEVER_SPOKE",
        "METRIC_BELOW_MIN_PASS_RATE",
        "METRIC_BELOW_MIN_PASS_RATE",
    ]


def leaves(value: typing.Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield (*path, name)
            yield from leaves(one, (*path, name))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


def short(value: typing.Any) -> typing.Any:
    """A document whose lists have one entry at most."""
    if isinstance(value, dict):
        return {name: short(one) for name, one in value.items()}
    return [short(value[0])] if isinstance(value, list) and value else value


@pytest.mark.parametrize("change", ["drop", "mistype"])
def test_a_field_that_is_dropped_or_mistyped_is_caught(change: str) -> None:
    whole = short(full())
    assert differences(whole) == []
    missed = []
    for path in leaves(whole):
        if "duplex" in path:
            continue
        mutant = copy.deepcopy(whole)
        holder: typing.Any = mutant
        for part in path[:-1]:
            holder = holder[part]
        if change == "drop":
            del holder[path[-1]]
        else:
            holder[path[-1]] = [{"no": object}]
        if not differences(mutant):
            missed.append(path)
    assert missed == []


def test_the_statuses_of_calls_and_their_retries() -> None:
    found = full()["data"]["calls"]
    retried = next(one for one in found if one["attemptNumber"] == 2)
    first = next(
        one for one in found if one["simulationJobId"] == retried["retryOfSimulationJobId"]
    )
    assert (first["status"], first["counted"], first["passed"]) == ("INVALIDATED", False, None)
    assert (retried["status"], retried["counted"], retried["passed"]) == ("COMPLETED", True, True)


def test_the_sums_agree_with_the_calls() -> None:
    data = full()["data"]
    calls = data["calls"]
    assert data["summary"]["totalCalls"] == len(calls)
    assert data["summary"]["countedCalls"] == sum(one["counted"] for one in calls)
    assert data["summary"]["passedCalls"] == sum(one["passed"] is True for one in calls)
    assert data["verdict"]["score"] == data["summary"]["score"]
    checks = [metric for metric in data["metrics"] if metric["isCheck"]]
    assert data["metrics"][: len(checks)] == checks
    by_agent = data["breakdowns"]["byAgent"]
    assert sum(group["calls"] for group in by_agent) == data["summary"]["countedCalls"]


def test_the_command_prints_the_whole_or_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from duplex import exporting
    from duplex.errors import InputError
    from duplex.results.schema import to_json

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "results.json").write_text(to_json(run(call())))
    exporting.command(Path("a"), "roark", runs=tmp_path, compare_to=None, out=None)
    assert differences(json.loads(capsys.readouterr().out)) == []
    for name, shape in (("a", "word"), ("b", "roark")):
        with pytest.raises(InputError):
            exporting.command(Path(name), shape, runs=tmp_path, compare_to=None, out=None)
        assert capsys.readouterr().out == ""

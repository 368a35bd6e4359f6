"""Every published field of both shapes is filled in some run, or listed with the reason."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel
from roark_analytics.types import simulation_run_plan_job_get_results_response as published

import livekit_runs
import livekit_shape
from duplex.exports.livekit import report
from duplex.exports.subject import subject_of
from duplex.exports.unfilled import UNFILLED
from duplex.values import Json
from test_export_roark import document, full
from verdict_runs import arms, call, run

DOCS = Path(__file__).parents[1] / "docs" / "exports.md"


def covered(path: str, listed: Iterable[str]) -> bool:
    """Whether a field is listed, or lies below one that is."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[]")) for one in listed)


def unaccounted(shape: str, there: set[str], filled: set[str]) -> list[str]:
    """Fields that are neither filled nor listed, and lines of the list that are untrue."""
    listed = UNFILLED[shape]
    missing = [path for path in there - filled if not covered(path, listed)]
    untrue = [path for path in listed if path in filled or path not in there]
    return sorted(missing + untrue)


# -- roark -----------------------------------------------------------------------------


def roark_fields(kind: typing.Any, at: str = "") -> Iterator[str]:
    origin = typing.get_origin(kind)
    if origin in (typing.Annotated, list):
        below = "[]" if origin is list else ""
        yield from roark_fields(typing.get_args(kind)[0], f"{at}{below}")
    elif origin in (typing.Union, types.UnionType):
        for one in typing.get_args(kind):
            yield from roark_fields(one, at)
    elif inspect.isclass(kind) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            path = f"{at}.{field.alias or name}".removeprefix(".")
            yield path
            yield from roark_fields(field.annotation, path)


def roark_filled(value: Json, at: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from roark_filled(one, f"{at}[]")
    elif isinstance(value, dict):
        for name, one in value.items():
            path = f"{at}.{name}".removeprefix(".")
            if one not in (None, "", [], {}):
                yield path
            yield from roark_filled(one, path)


@cache
def roark_documents() -> list[Json]:
    """Runs that fill, together, whatever can be filled."""
    turn: Json = {
        "side": "caller",
        "start_ms": 0.0,
        "end_ms": 900.0,
        "barge_in": True,
        "yielded": False,
    }
    stubborn = run(call(turns=[turn]))
    return [full(), document(run(call(), status="cancelled", expected=3)), document(stubborn)]


def test_every_field_of_roark_is_filled_or_listed() -> None:
    there = set(roark_fields(published.SimulationRunPlanJobGetResultsResponse))
    filled = {path for one in roark_documents() for path in roark_filled(one)}
    assert unaccounted("roark", there, filled) == []


def test_a_field_of_roark_that_is_never_filled_any_more_is_noticed() -> None:
    there = set(roark_fields(published.SimulationRunPlanJobGetResultsResponse))
    filled = {path for one in roark_documents() for path in roark_filled(one)}
    for path in sorted(there & filled):
        gone = {one for one in filled if one != path}
        assert unaccounted("roark", there, gone) == [path]


# -- livekit ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def livekit(tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """A run with everything in it, one of a sweep, and one that was stopped."""
    folder = tmp_path_factory.mktemp("runs") / "run_offline_20260801_000000_abcd"
    quiet, loud = arms("20", "0")
    others = [
        run(call(arm=quiet), call(arm=loud), arms=(quiet, loud)),
        run(call(), status="cancelled", expected=3),
    ]
    made: list[Json] = [report(livekit_runs.subject(folder), folder)]
    made += [report(subject_of(one), folder) for one in others]
    return [typing.cast(Json, json.loads(json.dumps(one, allow_nan=False))) for one in made]


def test_every_field_of_livekit_is_filled_or_listed(livekit: list[Json]) -> None:
    filled = {path for one in livekit for path in livekit_shape.filled(one)}
    assert unaccounted("livekit", livekit_shape.published(), filled) == []


def test_nothing_but_published_fields_of_their_types_is_there(livekit: list[Json]) -> None:
    assert [livekit_shape.differences(one) for one in livekit] == [[]] * len(livekit)


def test_a_field_that_is_dropped_is_caught(livekit: list[Json]) -> None:
    whole, there = livekit[0], livekit_shape.published()
    always = livekit_shape.filled(whole)
    rest = {path for one in livekit[1:] for path in livekit_shape.filled(one)} - always
    for path in sorted(always):
        mutant = livekit_shape.filled(livekit_shape.without(whole, path)) | rest
        assert path in unaccounted("livekit", there, mutant)


def test_a_field_of_another_kind_is_caught(livekit: list[Json]) -> None:
    whole = livekit[0]
    missed = [
        path
        for path in sorted(livekit_shape.filled(whole))
        if not livekit_shape.differences(livekit_shape.wrong(whole, path))
    ]
    assert missed == []


@pytest.mark.parametrize("value", [None, {}, []])
def test_what_is_not_known_may_not_be_written_as_nothing(livekit: list[Json], value: Json) -> None:
    whole = livekit[0]
    assert isinstance(whole, dict)
    assert isinstance(whole["run"], dict)
    mutant = {**whole, "run": {**whole["run"], "metrics": value}}
    assert livekit_shape.differences(mutant)


# -- the page --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", sorted(UNFILLED))
def test_the_page_lists_the_same_fields_with_the_same_reasons(shape: str) -> None:
    _, _, section = DOCS.read_text(encoding="utf-8").partition(f"### Never filled: `{shape}`")
    rows = []
    for line in section.splitlines()[1:]:
        if line.startswith("#"):
            break
        if line.startswith("| `"):
            path, reason = line.strip("| ").split(" | ")
            rows.append((path.strip("`"), reason))
    assert rows == list(UNFILLED[shape].items())

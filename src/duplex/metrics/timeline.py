"""Labelled timelines in files: strict in, metrics out.

A JSONL file holds one timeline a line, ``{"id", "input", …}``; a file that is
one JSON object of that form is read as well. Whatever is wrong is said with
file, line and JSON path before any number is given for that line; nothing is
repaired. ``duplex measure --timeline`` drives it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duplex.errors import InputError
from duplex.inputs import read_bytes
from duplex.metrics.contract import (
    ContractMetrics,
    Label,
    LabelledTimeline,
    Settings,
    contract_metrics,
)
from duplex.metrics.intervals import Run
from duplex.metrics.work import (
    CallEnded,
    CallStarted,
    Closed,
    Opened,
    RunEnded,
    RunStarted,
    WorkEvent,
)
from duplex.values import Json

Ms = Annotated[int, Field(ge=0)]
ActionName = Literal["", "OPENING", "SPEAK", "CORRECT", "INTERRUPT", "BACKCHANNEL", "STOP"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Ranged(_Strict):
    start_ms: Ms
    end_ms: Ms
    voiced: list[tuple[Ms, Ms]] = []

    @model_validator(mode="after")
    def _ordered(self) -> _Ranged:
        if self.end_ms < self.start_ms:
            raise ValueError(f"end_ms {self.end_ms} is before start_ms {self.start_ms}")
        _check_runs("voiced", self.voiced)
        return self


class _CallerTurn(_Ranged):
    action: ActionName = ""


class _Timed(_Strict):
    t_ms: Ms


class _Open(_Timed):
    ev: Literal["open"]
    kind: Literal["client", "managed"]
    id: str
    run: str = ""

    def value(self) -> WorkEvent:
        return Opened(t_ms=self.t_ms, kind=self.kind, id=self.id, run=self.run)


class _Close(_Timed):
    ev: Literal["close"]
    id: str
    ok: bool = True

    def value(self) -> WorkEvent:
        return Closed(t_ms=self.t_ms, id=self.id)


class _RunStart(_Timed):
    ev: Literal["run_start"]
    run: str
    id: str = ""
    prev: str = ""

    def value(self) -> WorkEvent:
        return RunStarted(t_ms=self.t_ms, run=self.run, id=self.id, prev=self.prev)


class _RunEnd(_Timed):
    ev: Literal["run_end"]
    run: str
    outcome: Literal["ok", "failed", "incomplete"]

    def value(self) -> WorkEvent:
        return RunEnded(t_ms=self.t_ms, run=self.run, outcome=self.outcome)


class _Call(_Timed):
    ev: Literal["call_start", "call_end"]
    call: str
    run: str = ""
    id: str = ""
    name: str = ""
    ok: bool = True

    def value(self) -> WorkEvent:
        kind = CallStarted if self.ev == "call_start" else CallEnded
        return kind(t_ms=self.t_ms, call=self.call, run=self.run, id=self.id)


_Event = Annotated[_Open | _Close | _RunStart | _RunEnd | _Call, Field(discriminator="ev")]


class _Input(_Strict):
    caller_turns: list[_CallerTurn]
    assistant_turns: list[_Ranged]
    caller_other_voiced: list[tuple[Ms, Ms]] = []
    assistant_other_voiced: list[tuple[Ms, Ms]] = []
    work_events: list[_Event] = []
    observation_end_ms: Ms
    response_deadline_ms: Ms = 5000
    yield_window_ms: Ms = 2000
    backchannel_window_ms: Ms = 1000

    @model_validator(mode="after")
    def _ordered(self) -> _Input:
        _check_runs("caller_other_voiced", self.caller_other_voiced)
        _check_runs("assistant_other_voiced", self.assistant_other_voiced)
        return self

    def value(self) -> LabelledTimeline:
        return LabelledTimeline(
            caller_turns=[_label(turn, turn.action) for turn in self.caller_turns],
            assistant_turns=[_label(turn, "") for turn in self.assistant_turns],
            caller_other_voiced=self.caller_other_voiced,
            assistant_other_voiced=self.assistant_other_voiced,
            work_events=[event.value() for event in self.work_events],
            observation_end_ms=self.observation_end_ms,
            settings=Settings(
                response_deadline_ms=self.response_deadline_ms,
                yield_window_ms=self.yield_window_ms,
                backchannel_window_ms=self.backchannel_window_ms,
            ),
        )


class _Line(BaseModel):
    """One timeline; what stands beside ``id`` and ``input`` is not read."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)
    id: str
    input: _Input


def measure_file(path: str | Path) -> Iterator[dict[str, Json]]:
    """Yield ``{"id", "metrics"}`` for every timeline of a file, in order.

    Raises InputError naming ``file:line`` and the JSON path of what is wrong.
    """
    for identity, timeline in read_timelines(path):
        yield {"id": identity, "metrics": metrics_json(contract_metrics(timeline))}


def read_timelines(path: str | Path) -> Iterator[tuple[str, LabelledTimeline]]:
    """Yield ``(id, timeline)`` for every line of a file that is not blank."""
    path = Path(path)
    data = read_bytes(path, f"timeline {path}").removeprefix(b"\xef\xbb\xbf")
    lines = [data] if _is_one_document(data) else data.split(b"\n")
    if not data.strip():
        raise InputError(f"timeline {path}: is empty, wanted one JSON object a line")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            parsed = _parse(line, f"timeline {path}:{number}")
            yield parsed.id, parsed.input.value()


def metrics_json(metrics: ContractMetrics) -> dict[str, Json]:
    """The metrics as strict JSON under the contract's names."""
    plain = _plain(metrics)
    assert isinstance(plain, dict)
    return plain


def _is_one_document(data: bytes) -> bool:
    """Whether this is one JSON object over several lines instead of JSONL."""
    first, _, rest = data.strip().partition(b"\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except ValueError:
        try:
            return isinstance(json.loads(data), dict)
        except (ValueError, RecursionError):
            return False
    return False


def _parse(line: bytes, where: str) -> _Line:
    try:
        return _Line.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
    path = _json_path(problem["loc"])
    message = problem["msg"].rstrip(".").removeprefix("Value error, ")
    message = message.replace("Invalid JSON: ", "is no JSON: ").replace(
        "at line 1 column", "at column"
    )
    shown = problem["type"] not in ("json_invalid", "missing", "value_error")
    got = _got(problem["input"]) if shown else ""
    at = f" {path}" if path else ""
    raise InputError(f"{where}:{at} {message[:1].lower()}{message[1:]}{got}")


def _got(value: object) -> str:
    text = repr(value)
    return f", got {text if len(text) <= 60 else text[:57] + '...'}"


def _json_path(loc: tuple[int | str, ...]) -> str:
    """``("input", "work_events", 3, "run_end", "run")`` → ``input.work_events[3].run``."""
    path = ""
    for index, part in enumerate(loc):
        if isinstance(part, int):
            path += f"[{part}]"
        elif not (index and loc[index - 2 : index - 1] == ("work_events",)):
            path += f".{part}" if path else part
    return path


def _check_runs(name: str, runs: list[tuple[int, int]]) -> None:
    for index, (start, end) in enumerate(runs):
        if end < start:
            raise ValueError(f"{name}[{index}] ends at {end}, before its start {start}")


def _label(turn: _Ranged, action: str) -> Label:
    voiced: tuple[Run, ...] = tuple(turn.voiced)
    return Label(start_ms=turn.start_ms, end_ms=turn.end_ms, action=action, voiced=voiced)


_SCALARS = (str, int, float, type(None))


def _plain(value: object) -> Json:
    """The value with everything inside it, in one walk: a long call has thousands of records."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    kind: type = type(value)
    return {name: _plain(getattr(value, name)) for name in _names(kind)}


@cache
def _names(record: type) -> tuple[str, ...]:
    assert dataclasses.is_dataclass(record), record
    return tuple(field.name for field in dataclasses.fields(record))

"""Names of metrics a check may use, and how each is read from a call's result.

A name is ``NAME`` or ``NAME.STAT``; the table below is all there is, so a name
that is wrong is refused before the first call. Values come from the result as
it stands: nothing is computed here and what is null there is None here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from duplex.errors import InputError
from duplex.results import schema
from duplex.scenario.options import QUESTION
from duplex.values import Json
from duplex.verdict.case import Reading

OutputType = Literal["COUNT", "NUMERIC", "BOOLEAN", "OFFSET"]
Unit = Literal["ms", "share", ""]
Goal = Literal["lower", "higher", "neutral"]

_SPREAD = ("mean", "p50", "p95", "p99", "min", "max", "n")
_RATE = ("rate", "numerator", "denominator")
_CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One name: where its value stands in a result, its unit and which way is better.

    ``stats`` are the members a name may end in, the first taken when none is named.
    ``per_turn`` names the member of the timing block's turns that pools it, and
    ``where`` the member that must be true for a turn to have one.
    """

    name: str
    pointer: str
    unit: Unit
    output: OutputType
    goal: Goal
    stats: tuple[str, ...] = ()
    per_turn: str | None = None
    where: str | None = None

    def unit_of(self, stat: str | None) -> Unit:
        counts = stat in ("n", "numerator", "denominator", "count")
        return "" if counts else self.unit


def _spread(
    name: str,
    goal: Goal = "lower",
    *,
    at: str = "",
    turn: str | None = None,
    where: str | None = None,
) -> Metric:
    output: OutputType = "OFFSET" if name == "response_latency" else "NUMERIC"
    return Metric(
        name=name,
        pointer=f"timing/{at or name}",
        unit="ms",
        output=output,
        goal=goal,
        stats=("p50", *(stat for stat in _SPREAD if stat != "p50")),
        per_turn=turn,
        where=where,
    )


def _rate(name: str, goal: Goal, *, at: str = "", extra: tuple[str, ...] = ()) -> Metric:
    where = f"timing/{at or name}"
    return Metric(
        name=name, pointer=where, unit="share", output="NUMERIC", goal=goal, stats=_RATE + extra
    )


def _one(
    name: str,
    unit: Unit = "",
    goal: Goal = "lower",
    *,
    at: str = "",
    output: OutputType = "NUMERIC",
    stats: tuple[str, ...] = (),
) -> Metric:
    where = at or f"timing/{name}"
    return Metric(name=name, pointer=where, unit=unit, output=output, goal=goal, stats=stats)


def _metrics() -> Iterator[Metric]:
    yield _one("task_completed", "", "higher", at="metrics/task/task_completed", output="BOOLEAN")
    yield _spread("response_latency", turn="response_latency_ms")
    yield _spread("first_byte_latency", turn="first_byte_latency_ms")
    yield _spread("first_audio_latency", turn="first_audio_latency_ms")
    yield _spread("assistant_own_latency", at="relay/assistant_own_ms", turn="assistant_own_ms")
    yield _spread("relay", "neutral", at="relay/total_ms", turn="relay_ms")
    yield _spread("time_to_yield", turn="stop_after_ms", where="yielded")
    yield _one("greeting_latency", "ms")
    yield _rate("response_rate", "higher")
    yield _rate("yield_rate", "higher")
    yield _rate("false_yield", "lower", extra=("count",))
    yield _rate("agent_interruption", "lower")
    for kind in ("backchannel", "vocal_tic", "non_directed"):
        yield _rate(f"selectivity.{kind}", "higher", at=f"selectivity/{kind}")
    yield _one("eot_misprediction", output="COUNT")
    yield _one("overlap_ratio", "share")
    yield _one("overlap_ratio_sum", "share")
    yield _one("talk_ratio", goal="neutral")
    for side in ("caller", "assistant"):
        yield _one(f"talk_share.{side}", "share", "neutral", at=f"timing/talk_share/{side}")
    for part in ("caller", "assistant", "overlap", "silence"):
        where = f"timing/floor/{part}_ms"
        yield _one(f"floor.{part}", "ms", "neutral", at=where)
        yield _one(f"floor_share.{part}", "share", "neutral", at=f"timing/floor_share/{part}")
    yield _one("awkward_silence", output="COUNT", at="timing/awkward_silence/count")
    yield _one("awkward_silence.ms", "ms", at="timing/awkward_silence/ms")
    yield _one("awkward_silence.longest", "ms", at="timing/awkward_silence/longest_ms")
    for part in ("count", "never", "late", "censored"):
        name = "unanswered_turns" if part == "count" else f"unanswered_turns.{part}"
        yield _one(name, output="COUNT", at=f"timing/unanswered_turns/{part}")
    for part in ("attempted", "answered", "late", "unanswered", "censored", "excluded"):
        yield _one(f"ledger.{part}", goal="neutral", output="COUNT")
    yield _one("turn_taking_score", goal="higher")
    yield _one("duration", "ms", "neutral", at="duration_ms")
    yield from _task()
    yield from _words()


def _task() -> Iterator[Metric]:
    for name, goal in (("tool_accuracy", "higher"), ("delegation_accuracy", "higher")):
        yield _one(name, "share", _goal(goal), at=f"metrics/task/{name}")
    for name in ("tool_calls", "delegations", "turns"):
        yield _one(name, goal="neutral", output="COUNT", at=f"metrics/task/{name}/actual")
    yield _one("semantic_quality", "share", "higher", at="metrics/task/semantic_quality/score")
    for name in schema.Dimensions.model_fields:
        where = f"metrics/task/semantic_quality/dimensions/{name}"
        yield _one(f"semantic_quality.{name}", "share", "higher", at=where)
    yield _one("contract.response_rate", "share", "higher", at="metrics/audio/response_rate")
    yield _one("contract.response_latency", "ms", at="metrics/audio/response_latency_ms")
    yield _one("contract.interruption_rate", at="metrics/audio/interruption_rate")
    for name in ("speaking_duration", "floor_hold_silence"):
        for part in ("cumulative", "maximum"):
            where = f"metrics/audio/{name}_ms/{part}"
            yield _one(f"contract.{name}.{part}", "ms", "neutral", at=where)
    where = "metrics/consumption/backend/total_tokens"
    yield _one("backend_tokens", output="COUNT", at=where)


def _words() -> Iterator[Metric]:
    for who in ("assistant", "caller"):
        where = f"words/heard_by/{who}/wer"
        yield Metric(
            name=f"word_error_rate.{who}",
            pointer=where,
            unit="share",
            output="NUMERIC",
            goal="lower",
            stats=_RATE,
        )


def _goal(text: str) -> Goal:
    return "higher" if text == "higher" else "lower"


METRICS: dict[str, Metric] = {metric.name: metric for metric in _metrics()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name as a check spells it, known to exist."""

    text: str
    metric: Metric
    stat: str | None = None

    @property
    def unit(self) -> Unit:
        return self.metric.unit_of(self.stat)


def find(text: str) -> Name:
    """Look a name up; raise InputError that names the nearest ones."""
    if text in METRICS:
        metric = METRICS[text]
        return Name(text=text, metric=metric, stat=metric.stats[0] if metric.stats else None)
    head, _, stat = text.rpartition(".")
    if head in METRICS and stat in METRICS[head].stats:
        return Name(text=text, metric=METRICS[head], stat=stat)
    if head == _CHECK and re.fullmatch(r"[a-z][a-z0-9_]*", stat):
        own = Metric(name=text, pointer=text, unit="", output="BOOLEAN", goal="higher")
        return Name(text=text, metric=own)
    if head in METRICS and METRICS[head].stats:
        listed = ", ".join(METRICS[head].stats)
        raise InputError(f'metric "{text}": {head} has no {stat}, want one of {listed}')
    near = difflib.get_close_matches(text, METRICS, n=3, cutoff=0.4)
    hint = f", nearest: {', '.join(near)}" if near else ""
    raise InputError(f'metric "{text}" is unknown{hint}')


def read(name: Name, result: schema.Result) -> Reading:
    """The value of a metric in one call; None where it was not measured."""
    if name.metric.pointer.startswith(f"{_CHECK}."):
        return _checked(name.text.removeprefix(f"{_CHECK}."), result)
    found = _at(result, name.metric.pointer)
    if name.stat is not None:
        found = found.get(name.stat) if isinstance(found, dict) else None
    return found if isinstance(found, bool | int | float | str) else None


def _at(result: schema.Result, pointer: str) -> Json:
    head, *rest = pointer.split("/")
    if head == "metrics":
        found: Json = result.metrics.model_dump(mode="json")
    else:
        found = result.duplex.get(head)
    for part in rest:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _checked(id: str, result: schema.Result) -> bool | None:
    """A check of the grade itself: True or False once it was assessed."""
    status = {check.id: check.status for check in result.assessment.checks}.get(id)
    return {"passed": True, "failed": False}.get(str(status))


def answered(check: str, result: schema.Result) -> str | None:
    """The answer to a question and its reason, as the judge told them; None without one."""
    told = result.duplex.get("checks")
    entry = told.get(check) if check.startswith(QUESTION) and isinstance(told, dict) else None
    evidence = entry.get("evidence") if isinstance(entry, dict) else None
    answer = evidence.get("answer") if isinstance(evidence, dict) else None
    return str(entry["reason"]) if isinstance(entry, dict) and answer is not None else None


def turn_readings(name: str, result: schema.Result) -> tuple[float, ...]:
    """Every value of a metric that several turns of a call have; the call's one else."""
    metric = METRICS[name]
    if metric.per_turn is None:
        one = read(find(name), result)
        return (float(one),) if isinstance(one, int | float) else ()
    timing = result.duplex.get("timing")
    turns = timing.get("turns") if isinstance(timing, dict) else None
    found = [_number(turn, metric) for turn in turns] if isinstance(turns, list) else []
    return tuple(value for value in found if value is not None)


def _number(turn: Json, metric: Metric) -> float | None:
    if not isinstance(turn, Mapping) or metric.per_turn is None:
        return None
    if metric.where is not None and not turn.get(metric.where):
        return None
    value = turn.get(metric.per_turn)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

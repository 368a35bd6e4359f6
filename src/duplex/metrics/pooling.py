"""Timing over many calls: values pooled, ratios from summed counts, calls resampled.

Takes timing blocks as they stand in results, so old and new runs pool alike.
Blocks of different versions, policies or detectors are different rulers and are
never pooled. A mean of ratios is never taken; the only mean over calls is that
of the turn-taking score, which is one number a call. Reports drive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from duplex.errors import InputError
from duplex.metrics.stats import Distribution, Measured, Rate, pooled
from duplex.values import Json


class _Stored(BaseModel):
    """A part of a stored block; what stands beside the fields is not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Rate(_Stored):
    numerator: int
    denominator: int


class _Selectivity(_Stored):
    backchannel: _Rate
    vocal_tic: _Rate
    non_directed: _Rate


class _Floor(_Stored):
    caller_ms: float
    assistant_ms: float
    overlap_ms: float
    silence_ms: float


class _Ledger(_Stored):
    attempted: int
    answered: int
    late: int
    unanswered: int
    censored: int
    excluded: int


class _Awkward(_Stored):
    count: int
    ms: float
    longest_ms: float


class _Turn(_Stored):
    side: Literal["caller", "assistant"]
    response_latency_ms: float | None
    plus_minus_ms: float | None = None
    unreliable: bool = False
    yielded: bool | None
    stop_after_ms: float | None = None
    stop_plus_minus_ms: float | None = None
    first_byte_latency_ms: float | None = None
    first_audio_latency_ms: float | None = None
    relay_ms: float | None = None
    assistant_own_ms: float | None = None
    hold_ms: float | None = None


class _Block(_Stored):
    timing_version: str
    detector: str
    policy: dict[str, int]
    floor: _Floor
    response_rate: _Rate
    yield_rate: _Rate
    false_yield: _Rate
    selectivity: _Selectivity
    agent_interruption: _Rate
    ledger: _Ledger
    awkward_silence: _Awkward
    turn_taking_score: float | None
    greeting_latency: float | None
    turns: tuple[_Turn, ...]


Pick = Callable[[_Turn], Measured | None]


def pool(documents: Sequence[Json], *, seed: str) -> dict[str, Json]:
    """Pool timing blocks (as ``TimingBlock.as_json`` writes them) over calls.

    ``seed`` (a run's id) fixes the bootstrap. Raises InputError when a block
    cannot be read or two blocks were made by different rulers.
    """
    blocks = [_read(index, document) for index, document in enumerate(documents)]
    _one_ruler(blocks)
    spreads = _spreads(blocks, seed)
    rates = _rates(blocks)
    ratios = _ratios(blocks)
    unknown: dict[str, Json] = {f"/{k}": "no speech" for k, v in ratios.items() if v is None}
    for name, spread in spreads.items():
        unknown |= spread.unknown(f"/{name}")
    for name, rate in rates.items():
        unknown |= rate.unknown(f"/{name}", "nothing to count")
    if not blocks:
        unknown |= {f"/{name}": "no calls" for name in ("timing_version", "detector")}
    return {
        "calls": len(blocks),
        "timing_version": blocks[0].timing_version if blocks else None,
        "detector": blocks[0].detector if blocks else None,
        **{name: spread.as_json() for name, spread in spreads.items()},
        **{name: rate.as_json() for name, rate in rates.items()},
        **ratios,
        "floor": _floor(blocks),
        "ledger": _ledger(blocks),
        "awkward_silence": {
            "count": sum(block.awkward_silence.count for block in blocks),
            "ms": round(sum(block.awkward_silence.ms for block in blocks), 3),
            "longest_ms": max((block.awkward_silence.longest_ms for block in blocks), default=0),
        },
        "eot_misprediction": sum(block.agent_interruption.numerator for block in blocks),
        "unknown": unknown,
    }


def _read(index: int, document: Json) -> _Block:
    try:
        return _Block.model_validate(document)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].rstrip(".")
        raise InputError(
            f"timing block {index}: {place}: {message[:1].lower()}{message[1:]}"
        ) from None


def _one_ruler(blocks: Sequence[_Block]) -> None:
    for index, block in enumerate(blocks[1:], start=1):
        first = blocks[0]
        for what, got, wanted in (
            ("timing_version", block.timing_version, first.timing_version),
            ("detector", block.detector, first.detector),
            ("policy", block.policy, first.policy),
        ):
            if got != wanted:
                raise InputError(
                    f"timing block {index}: {what} {got} differs from {wanted} of block 0, "
                    "wanted one ruler for all calls pooled"
                )


def _spreads(blocks: Sequence[_Block], seed: str) -> dict[str, Distribution]:
    picks: dict[str, Pick] = {
        "response_latency": _latency,
        "time_to_yield": _stop,
        "first_byte_latency": lambda turn: _plain(turn.first_byte_latency_ms),
        "first_audio_latency": lambda turn: _plain(turn.first_audio_latency_ms),
        "relay": lambda turn: _plain(turn.relay_ms),
        "assistant_own": lambda turn: _plain(turn.assistant_own_ms),
        "hold": lambda turn: _plain(turn.hold_ms),
    }
    spreads = {
        name: pooled(
            [[v for turn in block.turns if (v := pick(turn)) is not None] for block in blocks],
            seed=f"{seed} {name}",
            reason="no call measured one",
        )
        for name, pick in picks.items()
    }
    for name, per_call in (
        ("greeting_latency", [block.greeting_latency for block in blocks]),
        ("turn_taking_score", [block.turn_taking_score for block in blocks]),
    ):
        units = [[Measured(value=value)] if value is not None else [] for value in per_call]
        spreads[name] = pooled(units, seed=f"{seed} {name}", reason="no call has one")
    return spreads


def _latency(turn: _Turn) -> Measured | None:
    if turn.response_latency_ms is None:
        return None
    return Measured(
        value=turn.response_latency_ms,
        plus_minus=turn.plus_minus_ms,
        unreliable=turn.unreliable,
    )


def _stop(turn: _Turn) -> Measured | None:
    if not turn.yielded or turn.stop_after_ms is None:
        return None
    return Measured(value=turn.stop_after_ms, plus_minus=turn.stop_plus_minus_ms)


def _plain(value: float | None) -> Measured | None:
    return None if value is None else Measured(value=value)


def _rates(blocks: Sequence[_Block]) -> dict[str, Rate]:
    parts: dict[str, list[_Rate]] = {
        "response_rate": [block.response_rate for block in blocks],
        "yield_rate": [block.yield_rate for block in blocks],
        "false_yield": [block.false_yield for block in blocks],
        "agent_interruption": [block.agent_interruption for block in blocks],
        "selectivity_backchannel": [block.selectivity.backchannel for block in blocks],
        "selectivity_vocal_tic": [block.selectivity.vocal_tic for block in blocks],
        "selectivity_non_directed": [block.selectivity.non_directed for block in blocks],
    }
    return {
        name: Rate(
            numerator=sum(rate.numerator for rate in rates),
            denominator=sum(rate.denominator for rate in rates),
        )
        for name, rates in parts.items()
    }


def _ratios(blocks: Sequence[_Block]) -> dict[str, float | None]:
    overlap = sum(block.floor.overlap_ms for block in blocks)
    caller = sum(block.floor.caller_ms for block in blocks) + overlap
    assistant = sum(block.floor.assistant_ms for block in blocks) + overlap
    return {
        "overlap_ratio": _ratio(overlap, caller + assistant - overlap),
        "overlap_ratio_sum": _ratio(overlap, caller + assistant),
        "talk_ratio": _ratio(assistant, caller),
    }


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole > 0 else None


def _floor(blocks: Sequence[_Block]) -> Json:
    return {
        "caller_ms": round(sum(block.floor.caller_ms for block in blocks), 3),
        "assistant_ms": round(sum(block.floor.assistant_ms for block in blocks), 3),
        "overlap_ms": round(sum(block.floor.overlap_ms for block in blocks), 3),
        "silence_ms": round(sum(block.floor.silence_ms for block in blocks), 3),
    }


def _ledger(blocks: Sequence[_Block]) -> Json:
    ledgers = [block.ledger for block in blocks]
    return {
        "attempted": sum(ledger.attempted for ledger in ledgers),
        "answered": sum(ledger.answered for ledger in ledgers),
        "late": sum(ledger.late for ledger in ledgers),
        "unanswered": sum(ledger.unanswered for ledger in ledgers),
        "censored": sum(ledger.censored for ledger in ledgers),
        "excluded": sum(ledger.excluded for ledger in ledgers),
    }

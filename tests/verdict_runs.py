"""Runs of made-up calls: whatever a verdict, a sweep or a comparison is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from booking_call import booking_call
from duplex.metrics.timing_policy import TIMING_VERSION
from duplex.results import Result, Run
from duplex.results.outcome import Outcome
from duplex.values import Json
from duplex.verdict.case import Arm
from duplex.verdict.criteria import Criterion, pinned
from results_support import result_of, run_of


@cache
def _base() -> Result:
    return result_of(booking_call())


def timing(latencies: Sequence[float], **more: Json) -> dict[str, Json]:
    """A timing block with these replies; what nobody asks for is left out."""
    ordered = sorted(latencies)
    median = ordered[len(ordered) // 2] if ordered else None
    turns: list[Json] = [
        {
            "side": "assistant",
            "start_ms": 1000.0 * at,
            "end_ms": 1000.0 * at + 500,
            "response_latency_ms": latency,
            "yielded": None,
        }
        for at, latency in enumerate(latencies)
    ]
    spread: Json = {
        "mean": sum(ordered) / len(ordered) if ordered else None,
        "p50": median,
        "p95": ordered[-1] if ordered else None,
        "min": ordered[0] if ordered else None,
        "max": ordered[-1] if ordered else None,
        "n": len(ordered),
    }
    return {
        "timing_version": TIMING_VERSION,
        "detector": "edge",
        "policy": {"response_deadline_ms": 5000},
        "response_latency": spread,
        "turns": turns,
        **more,
    }


def call(
    *,
    passed: bool = True,
    outcome: Outcome = "counted",
    scenario: str = "booking",
    sample: int = 1,
    attempt: int = 1,
    final: bool = True,
    arm: Arm | None = None,
    seed: int | None = None,
    condition: str = "clean",
    persona: str = "default",
    agent: str = "local",
    latencies: Sequence[float] = (1000.0, 1200.0, 1400.0),
    **more: Json,
) -> Result:
    """One call's result; ``more`` goes into its timing block."""
    base = _base()
    counts = outcome == "counted"
    suffix = "" if arm is None else f".{arm.value}"
    about: dict[str, Json] = {
        "call_id": f"{scenario}{suffix}.s{sample}" + (f".a{attempt}" if attempt > 1 else ""),
        "attempt": attempt,
        "final": final,
        "seed": 6 + sample if seed is None else seed,
        "condition": condition,
        "persona": persona,
        "agent": agent,
        "arm": None
        if arm is None
        else {"key": arm.key, "value": arm.value, "label": arm.label, "baseline": arm.baseline},
    }
    ours: dict[str, Json] = {
        "sample": sample,
        "outcome": outcome,
        "duration_ms": 30_000,
        "case": about,
        "timing": timing(latencies, **more) if counts else None,
        "unknown": {},
    }
    task = base.metrics.task.model_copy(update={"task_completed": passed if counts else None})
    return base.model_copy(
        update={
            "scenario_id": scenario,
            "status": ("passed" if passed else "failed") if counts else "infrastructure_error",
            "metrics": base.metrics.model_copy(update={"task": task}),
            "duplex": ours,
        }
    )


def run(
    *results: Result,
    checks: Sequence[str] = (),
    task_rate: float = 100.0,
    arms: Sequence[Arm] = (),
    swept: str = "noisy.snr",
    **plan: Json,
) -> Run:
    """A finished run of these calls; ``plan`` overrides what its plan says."""
    criteria: tuple[Criterion, ...] = pinned(checks, task_rate=task_rate)
    finals = sum(_final(result) for result in results)
    told: dict[str, Json] = {
        "id": "00000000-0000-5000-8000-000000000000",
        "name": "restaurant",
        "status": "completed",
        "created_at": "2026-08-01T00:00:00.000Z",
        "started_at": "2026-08-01T00:00:01.000Z",
        "ended_at": "2026-08-01T00:01:00.000Z",
        "expected": finals,
        "pass_rate": 1.0,
        "criteria": [one.as_json() for one in criteria],
        **plan,
    }
    if arms:
        told["sweep"] = {
            "property": swept,
            "arms": [
                {"key": a.key, "value": a.value, "label": a.label, "baseline": a.baseline}
                for a in arms
            ],
        }
    made = run_of(*results)
    info = made.run.model_copy(update={"duplex": {"plan": told}})
    return made.model_copy(update={"run": info})


def arms(*values: str, swept: str = "noisy.snr") -> tuple[Arm, ...]:
    return tuple(
        Arm(key=f"{swept}={value}", value=value, label=f"{swept} {value}", baseline=at == 0)
        for at, value in enumerate(values)
    )


def _final(result: Result) -> bool:
    case = result.duplex.get("case")
    return isinstance(case, Mapping) and case.get("final") is True

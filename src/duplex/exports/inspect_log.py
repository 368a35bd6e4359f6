"""A run as an evaluation log of Inspect (``inspect_ai``), version 2 of its JSON.

A sample is a call: its messages are the transcript, its scores the checks. What a
voice call has and a text evaluation lacks (timing, audio) stands in metadata.
Transcripts are read from the run's folder; a call without one has no messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from duplex.exports.said import said_in
from duplex.exports.subject import Subject
from duplex.values import Json
from duplex.verdict.case import Case
from duplex.verdict.ids import stable_id

_STATUS = {"completed": "success", "running": "started"}


def inspect_log(subject: Subject, folder: Path) -> dict[str, Json]:
    """The whole log."""
    run, configuration = subject.run, subject.run.run.run.configuration
    scored = [case for case in run.final if case.counted]
    return {
        "version": 2,
        "status": _STATUS.get(run.status, "cancelled" if run.status == "cancelled" else "error"),
        "eval": {
            "run_id": stable_id("run", run.run_id),
            "eval_id": stable_id("eval", run.run_id),
            "created": _time(run.created_at),
            "task": run.plan_name or "duplex",
            "task_id": run.plan_id,
            "task_version": 0,
            "dataset": {
                "name": run.run.run.dataset,
                "samples": len({case.scenario for case in run.cases}),
                "sample_ids": [*sorted({case.scenario for case in run.cases})],
            },
            "model": f"duplex/{configuration.model or configuration.assistant_mode}",
            "config": {"epochs": max((case.sample for case in run.cases), default=1)},
            "metadata": {"duplex_run": run.run_id, "ci": dict(run.ci)},
        },
        "results": {
            "total_samples": len(run.final),
            "completed_samples": len(scored),
            "scores": [_score(subject, id, scored) for id in _ids(subject)],
        },
        "stats": {
            "started_at": _time(run.started_at or run.created_at),
            "completed_at": _time(run.ended_at or run.created_at),
        },
        "samples": [_sample(case, folder) for case in run.final],
    }


def _ids(subject: Subject) -> list[str]:
    return [one.id for one in subject.criteria]


def _score(subject: Subject, id: str, scored: Sequence[Case]) -> Json:
    said = [one.passed for case in scored if (one := case.check(id)) and one.passed is not None]
    name = next(one.name for one in subject.criteria if one.id == id)
    metrics: dict[str, Json] = {}
    if said:
        metrics["accuracy"] = {"name": "accuracy", "value": sum(said) / len(said), "params": {}}
    return {
        "name": id,
        "scorer": id,
        "scored_samples": len(said),
        "unscored_samples": len(scored) - len(said),
        "params": {},
        "metrics": metrics,
        "metadata": {"check": name},
    }


def _sample(case: Case, folder: Path) -> Json:
    result = case.result
    sample: dict[str, Json] = {
        "id": case.scenario if case.arm is None else f"{case.scenario} {case.arm.key}",
        "epoch": case.sample,
        "input": result.title,
        "target": "",
        "uuid": stable_id("call", case.call_id),
        "messages": _messages(case, folder),
        "output": {"model": case.agent, "choices": []},
        "scores": {
            one.id: {
                "value": "C" if one.passed else "I",
                "answer": None if one.reading is None else str(one.reading),
                "explanation": one.reason,
            }
            for one in case.checks
            if one.passed is not None
        },
        "metadata": {
            "call_id": case.call_id,
            "seed": case.seed,
            "condition": case.condition,
            "outcome": case.outcome,
            "audio": result.artifacts.conversation_audio,
            "duration_ms": case.duration_ms,
        },
        "total_time": None if case.duration_ms is None else case.duration_ms / 1000,
    }
    if result.error is not None:
        said = f"{result.error.stage}: {result.error.message}"
        sample["error"] = {"message": said, "traceback": "", "traceback_ansi": ""}
    return sample


def _messages(case: Case, folder: Path) -> list[Json]:
    """Who said what, by the call's transcript file."""
    return [
        {
            "id": stable_id("message", case.call_id, str(at)),
            "role": "assistant" if line.role == "assistant" else "user",
            "content": line.text,
        }
        for at, line in enumerate(said_in(folder, case.call_id))
    ]


def _time(stamp: str) -> str:
    return stamp.replace("Z", "+00:00")

"""What a run says of itself: its settings, the machine, versions, and how fast it went.

Facts for ``results.json``, taken from options and clocks; nothing here decides
anything. The runner drives it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from duplex.call import CallEnd
from duplex.clock import process_seconds
from duplex.conditions import Condition
from duplex.ends import PLAYOUT_HOLD_MS
from duplex.local.engines import engine_versions
from duplex.options import RunOptions
from duplex.participants.spurts import HOLD_MS
from duplex.participants.transport import shown_url
from duplex.results import schema
from duplex.values import Json

PACKAGES = ("duplex-voice", "numpy", "soxr", "webrtcvad-wheels", "websockets")

_START_MS = {"twilio": HOLD_MS, "pcm": HOLD_MS, "python": 0, "realtime": 0}
"""What must have come of a reply before its queue begins to play, by kind of agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One call that was held, with how much media went by in how much time."""

    end: CallEnd
    media_seconds: float
    began: float
    ended: float


def configuration(
    options: RunOptions, first_speakers: set[str], conditions: Iterable[Condition]
) -> schema.Configuration:
    """The run's settings in the words of the contract; calls that differ are "mixed"."""
    lines = {str(condition): condition for condition in conditions}
    line = next(iter(lines.values())) if len(lines) == 1 else None
    remote_caller = options.caller in ("gpt-live", "realtime")
    agent = options.agent
    # An agent that owns its application is its own model, and nobody told us which.
    model = "local" if agent.kind == "local" else options.assistant_model if agent.hosted else None
    return schema.Configuration(
        model=model,
        backend_model=options.asked_backend,
        assistant_mode=agent.kind if agent.paced else options.delegation,
        assistant_endpoint=shown_url(options.assistant_endpoint or agent.target),
        voice=options.voice if agent.hosted else None,
        first_speaker=next(iter(first_speakers)) if len(first_speakers) == 1 else "mixed",
        simulator_model=options.caller_model if remote_caller else options.caller,
        simulator_voice=options.simulator_voice,
        simulator_backend_model=options.simulator_backend_model,
        simulator_backend_reasoning_effort=options.simulator_backend_reasoning_effort,
        semantic_drain=options.observed,
        completion_model=options.completion_model if options.observed else None,
        completion_timeout_seconds=options.completion_timeout_seconds if options.observed else None,
        concurrency=options.concurrency,
        audio_condition="mixed" if line is None else str(line),
        audio_realism={} if line is None else dict(line.as_json(options.seed)),
        tick_ms=options.tick_ms,
        response_deadline_ms=options.response_deadline_ms,
        seed=options.seed,
    )


def about(options: RunOptions, held: Sequence[Held], opening_seconds: float) -> dict[str, Json]:
    """The run's own object ``duplex``."""
    return {
        "versions": dict(versions()),
        "machine": {"processor": _processor(), "python": platform.python_version()},
        "clock": options.clock,
        "transport_ms": options.transport_ms,
        "detector": options.detector,
        "playout_hold": {
            "start_ms": PLAYOUT_HOLD_MS,
            "adaptive": True,
            # An agent with a queue of its own is not in the engine's hold.
            "assistant_start_ms": _START_MS.get(options.agent.kind, PLAYOUT_HOLD_MS),
        },
        "application": options.application,
        **({"redaction": {"fields": list(options.redact)}} if options.redact else {}),
        "models": options.models() | options.graders(),
        "speed": _speed(held, opening_seconds),
    }


def versions() -> Mapping[str, str]:
    """Versions of the packages that decide a call's bytes, those installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {name: at for name, at in engine_versions().items() if at is not None}


def _speed(held: Sequence[Held], opening_seconds: float) -> dict[str, Json]:
    """How much faster than real time: the calls alone, and with all start-up."""
    media = sum(one.media_seconds for one in held)
    # From the first call's start to the last one's end: calls may be held side by side.
    spent = max((one.ended for one in held), default=0.0) - min(
        (one.began for one in held), default=0.0
    )
    whole = process_seconds()
    return {
        "media_seconds": round(media, 3),
        "call_seconds": round(spent, 3),
        "opening_seconds": round(opening_seconds, 3),
        "process_seconds": round(whole, 3),
        "call": round(media / spent, 2) if spent > 0 else None,
        "with_start_up": round(media / whole, 2) if whole > 0 else None,
    }


def _processor() -> str:
    """The processor's name where the system tells it; its kind elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
